"""Numbers computed from columns answer as the same numbers row by row, whatever the types of the columns."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine
from pyengine._engine.columns import kernels

ROWS = 1500
TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
REALS = [0.0, -0.0, 1.5, -2.5, 1e4, 3e38, -1e-8, float("inf"), float("-inf"), float("nan")]


def numbers(kind: str, draw: numpy.random.Generator) -> numpy.ndarray[Any, Any]:
    """Small numbers, and the ends of the type."""
    dtype = numpy.dtype(kind)
    if dtype.kind == "f":
        with numpy.errstate(over="ignore"):
            ends = numpy.array(REALS, numpy.float64).astype(dtype)
        small = draw.integers(-20, 20, ROWS).astype(dtype) / dtype.type(2)
    else:
        most = min(numpy.iinfo(dtype).max, 2**63 - 1)
        ends = numpy.array([0, 1, 2, most, most - 1, numpy.iinfo(dtype).min], dtype)
        small = draw.integers(0, 20, ROWS).astype(dtype)
    return numpy.where(draw.random(ROWS) < 0.3, draw.choice(ends, ROWS), small)


def operand(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(["a", "b", "c", "2", "3.5", "0", "100000", "3000000000", "1e300"])
    if not depth:
        return leaf
    below = operand(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(below, st.sampled_from("+-*/%"), below).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        below.map(lambda text: f"(-{text})" if text[0] == "(" else text),
        st.sampled_from(["(-a)", "(-b)"]),
    )


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(*[st.sampled_from(TYPES)] * 3),
    operand(3),
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    operand(2),
    st.sampled_from(["", " AND c > 1", " OR a IS NULL", " IS NULL"]),
    st.integers(0, 5),
)
def test_columns_compute_as_rows_do(
    kinds: tuple[str, ...], left: str, relation: str, right: str, more: str, seed: int
) -> None:
    draw = numpy.random.default_rng(seed)
    text = f"({left} {relation} {right}){more}"
    columns = {name: numbers(kind, draw) for name, kind in zip("abc", kinds, strict=True)}
    nulls = {name: draw.random(ROWS) < 0.15 for name in columns}
    batch = pa.table({name: pa.array(columns[name], mask=nulls[name]) for name in columns})
    rows = [{name: None if nulls[name][row] else columns[name][row] for name in columns} for row in range(0, ROWS, 7)]
    selector = pyengine.Selector(text)
    assert selector.truth(batch)[::7].tolist() == selector.truth(rows).tolist(), (text, kinds)
    assert selector.mask(batch, on_error="reject")[::7].tolist() == selector.mask(rows, on_error="reject").tolist()


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_every_copy_of_the_loops_computes_alike(rank: int) -> None:
    draw = numpy.random.default_rng(rank)
    if kernels.use_kernels(rank) is None:
        pytest.skip(f"this processor has no copy of rank {rank}")
    try:
        for kind in TYPES:
            column = numbers(kind, draw)
            batch = {"a": column, "b": column[::-1].copy()}
            rows = [{"a": column[row], "b": column[ROWS - 1 - row]} for row in range(0, ROWS, 5)]
            for text in ("a + b > a - b", "a * b < 7", "a / b >= 0.5", "a % b = 1", "-(a + b) <= a"):
                selector = pyengine.Selector(text)
                assert selector.truth(batch)[::5].tolist() == selector.truth(rows).tolist(), (text, kind)
    finally:
        kernels.use_kernels(0)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_every_step_of_an_expression_rounds_as_java_does(rank: int) -> None:
    # Fused with the sum, the product would keep its last bit, 2 ** -60.
    factor, rounded = 1 + 2.0**-30, 1 + 2.0**-29
    row = {"a": factor, "b": factor, "c": rounded, "d": -rounded}
    batch = {name: numpy.full(ROWS, value) for name, value in row.items()}
    if kernels.use_kernels(rank) is None:
        pytest.skip(f"this processor has no copy of rank {rank}")
    try:
        for text in ("a * b + d = 0", "d + a * b = 0", "a * b - c = 0", "c - a * b = 0", f"a * {factor!r} + d = 0"):
            selector = pyengine.Selector(text)
            assert selector.matches(row), text
            assert selector.mask([row] * 3).all(), text
            assert selector.mask(batch).all(), text
            assert selector.mask(pa.table(batch)).all(), text
    finally:
        kernels.use_kernels(0)
