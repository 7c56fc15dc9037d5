"""The Chinese catalogue: every sentence that the code says is in it with its fields, and pages are all Chinese."""

from __future__ import annotations

import ast
import html
import io
import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest
from rich.console import Console

import pyengine
from pyengine import Selector
from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import Evidence, Remark, read_files
from pyengine.backlog.findings import Finding, Said, chinese, say, translated
from pyengine.backlog.lint.checks import lint_broker, lint_consumer, lint_spring
from pyengine.backlog.pages import findings_page
from pyengine.backlog.pages import page as pages
from pyengine.backlog.sentence_templates import heard
from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.sources import read_files as read_rows
from pyengine.cli import diagnose as diagnosing
from pyengine.cli import lint as linting
from pyengine.topology import Source, TimeColumn
from tests.backlog.lint.test_spring import SPRING, configuration
from tests.backlog.lint.test_traps import CASES, CONSUMERS
from tests.backlog.pages.test_pages import DATA
from tests.engine.selector.test_parser import SURPRISES

PACKAGE = Path(pyengine.__file__).parent
CATALOGUE = {file.name.removesuffix(".zh.toml"): tomllib.loads(file.read_text("utf-8"))
             for file in Path(pages.__file__).parent.glob("*.zh.toml")}  # fmt: skip
# What stays as it is in Chinese: values and units of the files themselves.
NEUTRAL = {"true", "false", "none", "ms", "min", "cached", "bucket", "discarding", "perm", "locked", "dropped",
           "topic", "Paused", "Active"}  # fmt: skip
# Which arguments of a call are shown to people.
TOLD = {"Finding": slice(2, 5), "trap": slice(2, 4), "Remark": slice(3, None)}
CJK = re.compile(r"[\u4e00-\u9fff]")


def said_in(text: str) -> tuple[list[str], list[str]]:
    """Templates that a module says, and what it says without a template that can be found in its text."""
    templates, others = [], []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "say":
            first = node.args[0]
            known = isinstance(first, ast.Constant) and isinstance(first.value, str)
            (templates if known else others).append(first.value if known else ast.unparse(node))
        elif name in TOLD:
            told = [part for each in node.args[TOLD[name]] for part in getattr(each, "elts", [each])]
            others += [ast.unparse(node) for each in told if isinstance(each, ast.Constant | ast.JoinedStr)]
    return templates, others


def rooms() -> dict[str, set[str]]:
    """Every template by who says it: a room of rules or traps, any other by its package; "shared": those of several."""
    homes: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text("utf-8")
        if not re.search(r"\b(say|Finding|trap|Remark)\(", text):
            continue
        templates, others = said_in(text)
        assert not others, (file, others)
        home = file.stem if file.parent.name == "rules" else file.parent.name
        for template in templates:
            homes.setdefault(template, set()).add(home)
    found: dict[str, set[str]] = {}
    for template, stems in homes.items():
        found.setdefault(stems.pop() if len(stems) == 1 else "shared", set()).add(template)
    return found


def fields(template: str) -> set[tuple[str, str | None, str | None]]:
    """Without the words that English has in two forms, one of 1, which Chinese has not."""
    found = set()
    for _, name, form, how in Formatter().parse(template):
        if name is not None and not (form or "").startswith("|"):
            found.add((name, re.sub(r"[^,]*\|.*", "", form or ""), how))
    return found


def pieces(template: str) -> list[str]:
    return [literal for literal, *_ in Formatter().parse(template)]


def english(template: str) -> list[str]:
    """The plain English words of a template: no names of parameters, commands, values or units."""
    text = re.sub(r"`[^`]*`|<[^>]*>", " ", " ".join(pieces(template)))
    return [word for word in re.findall(r"(?<![\w.?%=])[A-Z]?[a-z]+(?![\w(]|[.=]\w)", text) if word not in NEUTRAL]


def test_every_sentence_has_its_chinese_and_no_other_is_kept() -> None:
    said = rooms()
    assert sum(map(len, said.values())) > 300
    for room, templates in said.items():
        kept = CATALOGUE.get(room, {}).keys()
        assert templates == kept, (room, templates ^ kept)
    assert CATALOGUE.keys() - said.keys() == {"words", "sentence_templates"}
    assert len(chinese()) == sum(map(len, CATALOGUE.values())), "a text is in two files"


def test_the_chinese_has_the_fields_of_the_english() -> None:
    for room, table in CATALOGUE.items():
        for template, text in table.items():
            assert room == "words" or fields(template) == fields(text), (room, template)
            assert CJK.search(text) or not english(template), (room, template)


def test_a_number_has_its_words_in_the_form_that_it_wants() -> None:
    said = [say("{rows:,row is|rows are} read, {more:more place|more places}, {rows:|it|them}", rows=rows, more=rows)
            for rows in (0, 1, 1000)]  # fmt: skip
    assert said == [
        "0 rows are read, 0 more places, them",
        "1 row is read, 1 more place, it",
        "1,000 rows are read, 1000 more places, them",
    ]
    for reason in ("has 1 field, the header has 3", "has 2 fields, the header has 3"):
        assert str(heard(reason)) == reason
        assert heard(reason).in_language("zh") == f"有 {reason[4]} 个字段\uff0c而表头有 3 个"
    told = say("{waiting} of {queue_size:message|messages} {waiting:|is|are} not dispatched",
               waiting=1, queue_size=10)  # fmt: skip
    assert told.in_language("zh") == chinese()[told.template].format(waiting=1, queue_size=10)


def test_words_of_the_core_and_of_errors_are_found_in_the_catalogue() -> None:
    known = CATALOGUE["sentence_templates"]
    for dialect, text, _, _ in SURPRISES:
        for _, advice in Selector(text, dialect).surprises:
            assert str(heard(advice)) == advice
            assert heard(advice).template in known, advice
    asked = {"refused", "unknown_parameter"}
    for finding in (each for code in asked for each in lint_consumer(CONSUMERS[code][0]) if each.code in asked):
        texts = (*finding.evidence, finding.advice)
        assert all(isinstance(each, Said) and each.template != "{words}" for each in texts), texts
    assert heard("x = 1").in_language("zh") == "x = 1"


def test_why_rows_are_rejected_is_said_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"q,at,more\nx\xff,1,1\nx,1\n,1,1\nx,,1\nx,1,9223372036854775807\nx,no,1\n")
    lines = ['{"q": "\\ud800"}', '{"q": 9223372036854775808}', "[]", '{"n": 9007199254740993}', '{"n": 0.5}', "{"]
    (tmp_path / "b.jsonl").write_text("\n".join(lines))
    moment = TimeColumn("at", unit="s", plus_minutes="more")
    reasons = set()
    for name, types in (("a.csv", (("at", "long"), ("more", "long"))), ("b.jsonl", ())):
        source = Source("{q}", path=str(tmp_path / name), timestamp=moment, order="timestamp", id="q", types=types)
        rows = read_rows([source.path], types=dict(types))
        reasons |= {each.reason for each in rows.rejects}
        if name == "a.csv":
            reasons |= {each.reason for each in to_messages(rows.table, rows.numbers, source)[1]}
    assert len(reasons) == 11, reasons
    for reason in reasons:
        template = heard(reason).template
        assert template not in ("{words}", "{property} is missing"), reason
        assert CJK.search(heard(reason).in_language("zh"))


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    files = sorted([*DATA.glob("jolokia-*.json"), *DATA.glob("*.txt")])
    brokers = [lint_broker(trap) for code, (trap, _) in CASES.items() if code not in ("always_false", "not_forwarded")]
    consumers = [lint_consumer(trap) for trap, _ in CONSUMERS.values()]
    springs = [lint_spring(configuration(trap)) for trap, _, _ in SPRING.values()]
    return [finding for each in (*brokers, *consumers, *springs, diagnose(read_files(files))) for finding in each]


def test_a_chinese_page_has_no_english_sentence(found: list[Finding]) -> None:
    assert len({finding.code for finding in found}) > 50
    page, english_page = (
        html.unescape(re.sub("</?code>", "`", findings_page.render("Diagnosis", found, language=language)))
        for language in ("zh", "en")
    )
    shown = 0
    for template, text in chinese().items():
        longest = max(pieces(template), key=len).strip()
        if template != text and len(english(longest)) > 1:
            shown += longest in english_page
            assert longest not in page, template
    assert shown > 100
    for finding in found:
        for line in (finding.where, finding.advice, *finding.evidence):
            assert isinstance(line, Said), line
            assert line.in_language("zh") in page


def test_a_terminal_is_chinese_and_json_stays_english(found: list[Finding], capsys: pytest.CaptureFixture[str]) -> None:
    shown = io.StringIO()
    evidence = Evidence(remarks=[Remark("f.json", 3, "{", say("not JSON: {error}", error="here"))])
    diagnosing.show(evidence, found, Console(file=shown), "zh")
    linting.show(linting.Answer([], [], {}), Console(file=shown), "zh")
    text = shown.getvalue()
    for finding in found:
        assert f"{finding.code}  {chinese()[finding.code]}  {translated(finding.where, 'zh')}\n" in text
        assert f"        {translated(finding.advice, 'zh')}\n" in text
    assert text.splitlines()[-1] == CATALOGUE["cli"]["no traps found"]
    assert capsys.readouterr().err == "未能识别\uff1af.json:3\uff1a{\uff1a不是 JSON\uff1ahere\n"
    assert not CJK.search(str(diagnosing.as_dict(evidence, found)))
