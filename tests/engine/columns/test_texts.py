"""Texts of columns beside what Python says of each: IN with many values, LIKE, CONTAINS and REGEX, in every layout."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine import Selector
from pyengine._engine.selector.like import like

LAYOUTS = [pa.string(), pa.large_string(), pa.string_view()]
# Texts whose first 8 bytes, last 8 bytes and length are alike, and their neighbours.
ALIKE = [f"order-00{n:05}-of-customer" for n in range(40)]
NAMES = ["", "a", "k1", "k10", "abcdefgh", "abcdefghi", "bcdefghi", "é", "ééééé", "\U0001f600\U0001f600", "x" * 16,
         "x" * 17, "x" * 300, *ALIKE]  # fmt: skip
TEXTS = st.sampled_from(NAMES) | st.text("abé\U0001f600", max_size=20)
ROWS = st.lists(st.none() | TEXTS, min_size=1, max_size=150)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def column(rows: list[str | None], layout: Any, start: int) -> pa.RecordBatch:
    """The rows behind others that are not theirs."""
    return pa.record_batch({"s": pa.array(["other"] * start + rows, layout)}).slice(start)


@settings(max_examples=50, deadline=None)
@given(
    rows=ROWS,
    values=st.lists(TEXTS, min_size=1, max_size=60),
    layout=st.sampled_from(LAYOUTS),
    start=st.integers(0, 9),
    negated=st.booleans(),
)
def test_in(rows: list[str | None], values: list[str], layout: Any, start: int, negated: bool) -> None:
    selector = Selector(f"s {'NOT ' if negated else ''}IN ({', '.join(map(quoted, values))})")
    expected = [row is not None and (row in values) != negated for row in rows]
    assert selector.mask(column(rows, layout, start)).tolist() == expected


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [2, 12, 13, 40, 200, 1000])
@pytest.mark.parametrize("form", ["k{}", "customer-{}", "order-00{:06}-of-customer", "é{}", "{}" + "x" * 40])
def test_in_of_any_size(layout: Any, count: int, form: str) -> None:
    draw = random.Random(count)
    every = [form.format(n) for n in range(2 * count)]
    values = draw.sample(every, count)
    rows = [draw.choice([*every, None, "", "k"]) for _ in range(1100)]
    selector = Selector(f"s IN ({', '.join(map(quoted, values))})")
    known = set(values)
    assert selector.mask(column(rows, layout, 3)).tolist() == [row in known for row in rows]


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.none() | st.text("abé", max_size=60) | st.text("ab", max_size=200), min_size=1, max_size=80),
    pattern=st.text("ab%", max_size=8) | st.text("aab%_é", max_size=8) | st.text("ab", min_size=60, max_size=70),
    layout=st.sampled_from(LAYOUTS),
    start=st.integers(0, 3),
)
def test_like(rows: list[str | None], pattern: str, layout: Any, start: int) -> None:
    expected = [row is not None and like(row, pattern) for row in rows]
    assert Selector(f"s LIKE {quoted(pattern)}").mask(column(rows, layout, start)).tolist() == expected
    source = "".join(".*" if each == "%" else "." if each == "_" else re.escape(each) for each in pattern)
    assert [row is not None and re.fullmatch(source, row, re.DOTALL) is not None for row in rows] == expected


@pytest.mark.parametrize("part", ["a" * 63 + "b", "a" * 5 + "b", "ab", "b" + "a" * 40 + "b"])
def test_like_of_texts_that_nearly_match_takes_linear_time(part: str) -> None:
    text = "a" * 200_000 + "c" + "a" * 30
    assert Selector(f"s LIKE '%{part}%'").mask(column([text, text + part], pa.string(), 0)).tolist() == [False, True]


@pytest.mark.parametrize("text", ["aab" * 40, "é" * 30 + "ab", "Ωab" * 9, "\U0001f600ab", "ÿþ", ""])
@pytest.mark.parametrize("part", ["ab", "aba", "é", "ÿ", "Ω", "\U0001f600", "b" * 99])
def test_contains(text: str, part: str) -> None:
    selector = Selector(f"s CONTAINS {quoted(part)}", dialect="rocketmq")
    assert selector.matches({"s": text}) is (part in text)
    assert selector.mask(column([text, None], pa.string(), 1)).tolist() == [part in text, False]


@pytest.mark.parametrize("source", ["a.*b", "^[a-c]+$", "(foo|é)+", r"\\d{2}"])
def test_regex(source: str) -> None:
    rows = ["ab", "a\nb", "foo", "é", "x12", "", None, "abc"]
    expected = [row is not None and re.search(source.replace(r"\\", "\\"), row, re.ASCII) is not None for row in rows]
    selector = Selector(f"REGEX('{source.replace(chr(92) * 2, chr(92))}', s)")
    assert selector.mask(column(rows, pa.string(), 2)).tolist() == expected
    assert [selector.matches({"s": row}) for row in rows] == expected
