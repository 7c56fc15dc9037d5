"""A function with more parameters than a reader can hold takes a value that names them.

Constructors keep their keyword arguments, and so do methods that a caller gives settings by name: what stands behind
``*`` does not count there. Of a private function, and of one that only C sees, everything counts. A command's
parameters are its options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 8
CONSTRUCTORS = {"__init__", "__cinit__", "__new__"}
COMMANDS = "pyengine/cli/app.py"
FILES = sorted(
    path
    for folder, suffixes in (("engine", ".py .pyx .pxd .h"), ("pyengine", ".py .pyx .pxd"), ("bench", ".py"))
    for path in (ROOT / folder).rglob("*")
    if path.suffix in suffixes.split() and "_engine" not in path.parts
)
PYTHON = re.compile(
    r"^[ \t]*(?P<kind>cdef|cpdef|def|async def)\b(?!\s+(?:class|extern|enum|struct))[^\n(=:]*?\b(?P<name>\w+)\(", re.M
)
HEADER = re.compile(
    r"^(?P<kind>)(?:static|inline|PYENGINE_\w+|const|[a-z_]\w*)[\w\s*]*?\b(?P<name>\w+)\((?=[^;{}]*\)\s*\{)", re.M
)


def parts(text: str) -> list[str]:
    """What stands between commas, outside of brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def parameters(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a file with the number of its parameters that count."""
    text = path.read_text("utf-8")
    for match in (HEADER if path.suffix == ".h" else PYTHON).finditer(text):
        depth, end = 1, match.end()
        while depth:
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        given = parts(re.sub(r"#[^\n]*|/\*.*?\*/", "", text[match.end() : end - 1]))
        name = match["name"]
        public = match["kind"].endswith("def") and match["kind"] in ("def", "async def") and not name.startswith("_")
        if public and "*" in given:
            given = given[: given.index("*")]
        yield name, len([each for each in given if each not in ("self", "cls", "*", "/")])


@pytest.mark.parametrize("folder", sorted({str(path.parent.relative_to(ROOT)) for path in FILES}))
def test_no_function_has_more_parameters_than_a_reader_can_hold(folder: str) -> None:
    long = {
        f"{path.relative_to(ROOT)}: {name}": count
        for path in FILES
        if path.parent == ROOT / folder and str(path.relative_to(ROOT)) != COMMANDS
        for name, count in parameters(path)
        if count > MOST and name not in CONSTRUCTORS
    }
    assert not long, f"more than {MOST} parameters: {long}; give them a value with names"


def test_a_long_list_is_found(tmp_path: Path) -> None:
    path = tmp_path / "room.pyx"
    path.write_text(
        "cdef class A:\n    cdef int f(self, int a, object b=None,  # c, d\n               (int, int) e) except -1:\n"
        "        pass\n    def g(self, a, *, b, c):\n        pass\n    def _h(self, a, *, b, c): pass\n"
    )
    assert list(parameters(path)) == [("f", 3), ("g", 1), ("_h", 3)]
    header = tmp_path / "room.h"
    header.write_text("static inline int f(const int *a, int b) {\n    if (a) return g(1, 2, 3);\n}\nint h(int a);\n")
    assert list(parameters(header)) == [("f", 2)]
