"""Words that the field does not speak, in comments, docstrings and pages: those that are left are counted, file by
file, in words.toml, and no count may change but down.

After a change that lowers a count, or moves a file, ``python -m tests.house.test_words`` writes words.toml again; it
refuses a construction whose total would rise. The style sheet is in CONTRIBUTING.md.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = Path(__file__).with_name("words.toml")
FOLDERS = ("engine", "pyengine", "bench", "tests", "wheels", "website", "docs")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "CHANGELOG.md",
    "setup.py",
    "pyengine_pytest.py",
)
PYTHON = {".py", ".pyx", ".pxd", ".pyi"}

# Construction -> (what it looks like, what to write).
CONSTRUCTIONS = {
    "is no": (r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer\b|more\b)", "is not a"),
    "is to": (r"\b(?:is|are) to (?!each\b|the\b|an?\b)\w+", "must"),
    "let go": (r"\b(?:let|lets|letting) (?:it |them |that )?go\b", "release, free, forget, give up"),
    "hand out": (r"\bhand(?:s|ed|ing)? (?:it |them )?out\b", "dispatch"),
    "nobody": (r"\b(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body\b", "no consumer, a caller: name the subject"),
    "whoever": (r"\b[Ww]hoever\b|\b[Ww]hom\b", "name the subject"),
    "who": (r"(?<!\w )\b[Ww]ho\b|\b(?:of|by|to|for|asks?|says?|tells?) who\b", "name the subject"),
    "what ... is": (r"(?:^|[.:;] )What (?:is|was|it|they|has|had|can|may|must|comes?|came)\b", "name the subject"),
    "told": (r"\b(?:told|tells? of)\b", "notified, reported, distinguished"),
    "but for": (r"\bbut for\b", "except"),
    "anew": (r"\banew\b", "again"),
    "means nothing": (r"\b(?:means?|meant) (?:nothing|something)\b(?! else)", "is not used"),
    "Where": (r"(?<=[.;:] )Where |, where (?:a|an|the|it|there|they|no|one|that)\b", "if, when"),
    "whatever": (r"\b[Ww]hatever\b", "any, each, regardless of"),
    "besides": (r"\bbesides\b", "also, in addition to"),
    "says": (r"\b(?:says?|said) (?:so|what|of|which|how|when|where|whether|nothing)\b", "states, reports"),
    "a say": (r"\ba say\b", "decides, takes part"),
    "a text": (r"\b(?:[Aa]|[Oo]ne|[Nn]o) text\b(?! (?:file|message|body|column|area))", "a string"),
}
# Names of variables and fields that say nothing: counted in the code of engine/ and pyengine/.
GRAMMAR = r"\b(?:it|its|told|seen|made|beyond)\b"
KINDS = [*CONSTRUCTIONS, "name"]
PATTERNS = {kind: re.compile(pattern, re.MULTILINE) for kind, (pattern, _) in CONSTRUCTIONS.items()}

TRIPLE = re.compile(r'"""(.*?)"""', re.DOTALL)
COMMENT = re.compile(r"(?:^|\s)#+ (.*)$", re.MULTILINE)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'")
C_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
FENCE = re.compile(r"^(?: *)```.*?^ *```", re.DOTALL | re.MULTILINE)
CODE_SPAN = re.compile(r"``[^`]*``|`[^`]*`")
IS_CODE = re.compile(r"^\s*#\s*(?:include|define|if|ifdef|ifndef)\b", re.MULTILINE)


def flowing(text: str) -> str:
    """Prose whose lines are joined within a paragraph, without code spans."""
    return CODE_SPAN.sub("`", re.sub(r"(?<=\S)[ \t]*\n[ \t]*(?=[^\s\-*|#>])", " ", text))


def prose(path: Path) -> str:
    """The comments and docstrings of a file of code, or a page without its code."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return flowing(FENCE.sub("", text))
    if path.suffix == ".h":
        return flowing("\n\n".join(C_COMMENT.findall(text)))
    docstrings = [found for found in TRIPLE.findall(text) if not IS_CODE.search(found)]
    rest = TRIPLE.sub("", text)
    comments = re.findall(r"(?:^[ \t]*#+ .*\n)+", rest, re.MULTILINE)
    whole = [re.sub(r"^[ \t]*#+ ", "", block, flags=re.MULTILINE) for block in comments]
    beside = COMMENT.findall(STRING.sub('""', re.sub(r"^[ \t]*#.*$", "", rest, flags=re.MULTILINE)))
    return flowing("\n\n".join(part.strip() for part in [*docstrings, *whole, *beside]))


def code(path: Path) -> str:
    """A file of Python or Cython without strings and comments."""
    return re.sub(r"#.*$", "", STRING.sub('""', TRIPLE.sub("", path.read_text("utf-8"))), flags=re.MULTILINE)


def files() -> list[Path]:
    """Every file of prose; what is generated, recorded or in Chinese is left out."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in {*PYTHON, ".h", ".md"}]
    found += [ROOT / name for name in PAGES]
    return sorted(path for path in found if "_engine" not in path.parts and path != Path(__file__))


@cache
def counted() -> dict[str, dict[str, int]]:
    """Construction -> file -> how often."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        text = prose(path)
        for kind, pattern in PATTERNS.items():
            counts[kind][name] = len(pattern.findall(text))
        if path.suffix in PYTHON and name.split("/")[0] in {"engine", "pyengine"}:
            counts["name"][name] = len(re.findall(GRAMMAR, code(path)))
    return {kind: {name: n for name, n in sorted(found.items()) if n} for kind, found in counts.items()}


@cache
def allowed() -> dict[str, dict[str, int]]:
    """The same, of words.toml."""
    return {kind: dict(found) for kind, found in tomllib.loads(ALLOWED.read_text("utf-8")).items()}


def advice(kind: str) -> str:
    return CONSTRUCTIONS[kind][1] if kind in CONSTRUCTIONS else "a noun or verb of the field"


@pytest.mark.parametrize("kind", KINDS)
def test_no_count_rises_and_none_that_fell_stays_in_the_list(kind: str) -> None:
    here, listed = counted()[kind], allowed().get(kind, {})
    wrong = {name: (listed.get(name, 0), here.get(name, 0)) for name in {*here, *listed}
             if listed.get(name, 0) != here.get(name, 0)}  # fmt: skip
    assert not wrong, (
        f"{kind!r}, better {advice(kind)!r}: (allowed, found) {wrong}; "
        "if a count fell or a file moved: python -m tests.house.test_words"
    )


@pytest.mark.parametrize(
    ("kind", "text", "count"),
    [
        ("is no", "It is no number. There is no such file. It is no longer there.", 1),
        ("is to", "The queue is to be asked. The distance is to the left.", 1),
        ("nobody", "Nobody takes it.", 1),
        ("who", "Who asks gets it.", 1),
        ("who", "the client who asks", 0),
        ("hand out", "It hands out what it has.", 1),
        ("a text", "A text is read from a text file.", 1),
    ],
)
def test_a_construction_is_found(kind: str, text: str, count: int) -> None:
    assert len(PATTERNS[kind].findall(text)) == count


def test_prose_is_what_is_not_code(tmp_path: Path) -> None:
    path = tmp_path / "room.py"
    path.write_text('"""One\nsentence."""\nx = "# no comment"  # beside\n# above\n# and below\nhand_out = 1\n')
    assert prose(path).split("\n\n") == ["One sentence.", "above and below", "beside"]
    assert "hand_out" in code(path)


def write() -> int:
    """Write words.toml; 1 if the total of a construction would rise."""
    before = allowed() if ALLOWED.exists() else {}
    risen = []
    for kind, found in counted().items():
        if kind in before and sum(found.values()) > sum(before[kind].values()):
            more = {name: n for name, n in found.items() if n > before[kind].get(name, 0)}
            totals = f"{sum(before[kind].values())} -> {sum(found.values())}"
            risen.append(f"{kind}: {totals}, better: {advice(kind)}; {more}")
    if risen:
        print(*risen, sep="\n", file=sys.stderr)
        return 1
    lines = ["# Construction -> file -> how often; see test_words.py, which writes this file."]
    for kind, found in counted().items():
        lines += ["", f'["{kind}"]', *(f'"{name}" = {n}' for name, n in found.items())]
    ALLOWED.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(write())
