"""Columns answer as rows do: same truth, same raising rows, on every type, layout and border."""

from __future__ import annotations

import gc
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyengine import (
    Columns,
    InvalidMessageError,
    MissingColumnError,
    Selector,
    SelectorEvaluationError,
    UnsupportedColumnError,
)
from pyengine._engine.kernels import use_kernels
from tests.model.column_batches import Batch, batches, polars_frame, rocketmq_selectors, selectors

from hypothesis import Phase
thorough = settings(phases=[Phase.explicit, Phase.generate], deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))


def same_answers(selector: Selector, rows: list[dict[str, Any]], batch: Any) -> None:
    """The batch answers as its rows do, in every form of answer."""
    columns = Columns(batch)
    columns._check()
    assert selector.truth(columns).tolist() == selector.truth(rows).tolist()
    mask = selector.mask(columns, on_error="reject")
    assert mask.dtype == np.bool_
    assert mask.tolist() == selector.mask(rows, on_error="reject").tolist()
    words = selector.mask_words(columns, on_error="reject")
    assert words.tobytes() == np.packbits(np.pad(mask, (0, -len(mask) % 64)), bitorder="little").tobytes()
    try:
        selector.mask(rows)
    except SelectorEvaluationError as expected:
        with pytest.raises(SelectorEvaluationError) as got:
            selector.mask(columns)
        assert (got.value.row, got.value.problem) == (expected.row, expected.problem)
    else:
        assert (selector.mask(columns) == mask).all()


@thorough
@given(batches(), selectors)
def test_arrow_columns_answer_as_rows(batch: Batch, text: str) -> None:
    same_answers(Selector(text), batch.rows, batch.table)


@settings(thorough, max_examples=100)
@given(batches(), rocketmq_selectors)
def test_rocketmq_columns_answer_as_rows(batch: Batch, text: str) -> None:
    same_answers(Selector(text, "rocketmq"), batch.rows, batch.table)


@settings(thorough, max_examples=60)
@given(batches(), selectors)
def test_polars_frames_answer_as_rows(batch: Batch, text: str) -> None:
    if "half" not in batch.kinds.values() and not any("time" in kind for kind in batch.kinds.values()):
        same_answers(Selector(text), batch.rows, polars_frame(batch))


@settings(thorough, max_examples=60)
@given(batches(), selectors, st.lists(st.integers(0, 1025), max_size=3))
def test_streams_of_many_batches_answer_as_rows(batch: Batch, text: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(batch.rows)) for cut in cuts), len(batch.rows)]
    parts = [batch.table.slice(first, last - first) for first, last in zip(bounds, bounds[1:], strict=False)]
    same_answers(Selector(text), batch.rows, pa.Table.from_batches(parts))


@settings(thorough, max_examples=60)
@given(batches(), selectors, st.sampled_from([1, 2]))
def test_every_copy_of_the_kernels_answers_alike(batch: Batch, text: str, rank: int) -> None:
    selector = Selector(text)
    expected = selector.truth(batch.table).tolist()
    try:
        if use_kernels(rank) is not None:
            assert selector.truth(batch.table).tolist() == expected
    finally:
        use_kernels(0)
