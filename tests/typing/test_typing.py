"""The stubs' promises: revealed types, and misuse that a checker must find."""

from __future__ import annotations

import re
from pathlib import Path

from mypy import api

HERE = Path(__file__).parent
MISUSE = """
import pyengine
pyengine.Message(grup_id="g")
pyengine.Message({"a": object()})
pyengine.Message(priority="high")
pyengine.Message().set_int_property("x", "1")
pyengine.Selector(5)
"""


def check(path: Path) -> list[str]:
    """The lines mypy prints about one file."""
    out, errors, _ = api.run(["--strict", "--no-error-summary", "--no-pretty", "--follow-imports=silent", str(path)])
    assert not errors, errors
    return out.splitlines()


def test_revealed_types() -> None:
    source = HERE / "revealed.py"
    expected = {
        number: line.split("  # ")[1]
        for number, line in enumerate(source.read_text("utf-8").splitlines(), 1)
        if line.startswith("reveal_type(")
    }
    found = {}
    for line in check(source):
        match = re.search(r":(\d+): note: Revealed type is \"(.*)\"", line)
        assert match, line
        found[int(match[1])] = re.sub(r"\bbuiltins\.", "", match[2])
    assert found == expected


def test_misuse_is_found(tmp_path: Path) -> None:
    path = tmp_path / "misuse.py"
    path.write_text(MISUSE, "utf-8")
    lines = {int(match[1]) for line in check(path) if (match := re.search(r":(\d+): error:", line))}
    assert lines == {3, 4, 5, 6, 7}
