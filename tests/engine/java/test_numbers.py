"""Java's text of numbers and back, against recorded answers of a Java 17 virtual machine.

java_numbers.tsv: kind, what was asked, answer. d and f: bits of a double or float, and its toString; D and F: a text,
and the bits that Double.valueOf or Float.valueOf gave, or NFE for NumberFormatException.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pyengine._engine.java.numbers import double_text, double_value, float_text, float_value

RECORDED = [
    line.split("\t") for line in (Path(__file__).parent / "data" / "java_numbers.tsv").read_text("ascii").splitlines()
]


def answer(kind: str, asked: str) -> str:
    """What pyengine answers, in the form of the record."""
    if kind == "d":
        return double_text(struct.unpack(">d", bytes.fromhex(asked.zfill(16)))[0])
    if kind == "f":
        return float_text(struct.unpack(">f", bytes.fromhex(asked.zfill(8)))[0])
    wide = kind == "D"
    try:
        value = (double_value if wide else float_value)(asked.encode("ascii"))
    except ValueError:
        return "NFE"
    if value != value:
        return "7ff8000000000000" if wide else "7fc00000"
    return struct.pack(">d" if wide else ">f", value).hex().lstrip("0") or "0"


@pytest.mark.parametrize("kind", ["d", "f", "D", "F"])
def test_numbers_are_those_of_java(kind: str) -> None:
    cases = [(asked, recorded) for case_kind, asked, recorded in RECORDED if case_kind == kind]
    assert len(cases) > 150
    assert [(asked, answer(kind, asked)) for asked, _ in cases] == cases
