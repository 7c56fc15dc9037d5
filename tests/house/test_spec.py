"""Every reference to the rules of the brokers leads to a section of docs/spec.

A reference is ``spec activemq 2.4``: a broker, then sections, ranges (``2.11-2.14``) and further ones behind commas,
also of the other broker (``spec activemq 1.6, rocketmq 8.2``). No other form is allowed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKERS = ("activemq", "rocketmq")
SECTION = r"\d+(?:\.\d+)?"
SECTIONS = rf"{SECTION}(?:-{SECTION})?"
BROKER = "|".join(BROKERS)
REFERENCE = re.compile(rf"\bspec (?={BROKER})((?:(?:{BROKER}) )?{SECTIONS}(?:, (?:(?:{BROKER}) )?{SECTIONS})*)")
# Anything else that seems to name a section: "spec 2.4", "spec activemq section 2", "the specification (1.2)", "D12".
OTHER_FORM = re.compile(rf"\b[Ss]pec(?:ification)?s?\b[\s(,.]*(?:{BROKER}|section|chapter|part|rule|§|\d)")
FOLDERS = ("engine", "pyengine", "tests", "bench", "docs", "examples", "wheels")
KINDS = {".py", ".pyx", ".pxd", ".pyi", ".h", ".md", ".toml", ".java", ".lark"}


def sources() -> list[Path]:
    """Files that may hold a reference; what Cython and pip wrote is left out."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    return sorted(path for path in found if path != Path(__file__) and "_engine" not in path.parts)


def joined(text: str) -> str:
    """The text with line ends, and the marks of comments and indentation behind them, as one blank."""
    return re.sub(r"\s*\n[ \t]*(?:#|//|\*)?[ \t]*", " ", text)


def expanded(sections: str) -> list[tuple[str, str]]:
    """(broker, section) of all that a reference names, both ends of a range and what lies between them."""
    found = []
    broker = ""
    for part in sections.split(", "):
        *named, numbers = part.split(" ")
        broker = named[0] if named else broker
        first, _, last = numbers.partition("-")
        found.append((broker, first))
        if last:
            start, end = first.split("."), last.split(".")
            assert len(start) == len(end), f"{part}: a range of two kinds"
            assert start[:-1] == end[:-1], f"{part}: a range over several chapters"
            assert int(start[-1]) < int(end[-1]), f"{part}: a range that ends before it begins"
            found += [(broker, ".".join((*start[:-1], str(n)))) for n in range(int(start[-1]) + 1, int(end[-1]) + 1)]
    return found


def headings(broker: str) -> list[str]:
    """The numbers of the sections of a broker's rules."""
    page = (ROOT / "docs/spec" / f"{broker}.md").read_text("utf-8")
    return re.findall(rf"^##+ ({SECTION}) \S", page, re.MULTILINE)


SOURCES = sources()


def test_every_reference_leads_to_a_section() -> None:
    sections = {(broker, number) for broker in BROKERS for number in headings(broker)}
    wrong, count = [], 0
    for path in SOURCES:
        for match in REFERENCE.finditer(joined(path.read_text("utf-8"))):
            count += 1
            wrong += [(str(path.relative_to(ROOT)), each) for each in expanded(match[1]) if each not in sections]
    assert wrong == []
    assert count > 100


def test_no_reference_has_another_form() -> None:
    wrong = []
    for path in SOURCES:
        rest = REFERENCE.sub("", joined(path.read_text("utf-8")))
        wrong += [f"{path.relative_to(ROOT)}: {rest[m.start() - 30 : m.end() + 20]}" for m in OTHER_FORM.finditer(rest)]
    assert wrong == []


@pytest.mark.parametrize("text", ["spec 2.4", "spec activemq section 2", "Spec activemq", "specification (1.1)"])
def test_another_form_is_found(text: str) -> None:
    assert OTHER_FORM.search(REFERENCE.sub("", text))


def test_a_list_and_a_range_are_expanded() -> None:
    (match,) = REFERENCE.finditer(joined("(spec activemq 1.2-1.4,\n    # 2, rocketmq 8.2)"))
    assert expanded(match[1]) == [
        ("activemq", "1.2"),
        ("activemq", "1.3"),
        ("activemq", "1.4"),
        ("activemq", "2"),
        ("rocketmq", "8.2"),
    ]


@pytest.mark.parametrize("broker", BROKERS)
def test_sections_are_numbered_in_order(broker: str) -> None:
    numbers = [tuple(int(part) for part in number.split(".")) for number in headings(broker)]
    assert numbers == sorted(set(numbers))
    wanted = {number[:1] for number in numbers if len(number) == 2}
    assert wanted <= {number for number in numbers if len(number) == 1}
