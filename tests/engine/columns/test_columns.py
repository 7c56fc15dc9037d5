"""Columns answer as rows do: same truth, same raising rows, on every type, layout and border."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pyengine import (
    Columns,
    InvalidMessageError,
    MissingColumnError,
    Selector,
    SelectorEvaluationError,
    Subscriptions,
    UnreadableBatchError,
    UnsupportedColumnError,
)
from pyengine._engine.columns.kernels import use_kernels
from tests.model.column_batches import Batch, batches, polars_frame, rocketmq_selectors, selectors

thorough = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    deadline=None,
    max_examples=100,
    suppress_health_check=list(HealthCheck),
)


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
    assert complaint(selector, columns) == complaint(selector, rows)


def complaint(selector: Selector, batch: Any) -> tuple[int | None, str] | None:
    """What a mask raises: row and problem; None if it does not."""
    try:
        selector.mask(batch)
    except SelectorEvaluationError as error:
        return error.row, error.problem
    return None


@thorough
@given(batches(), selectors)
def test_arrow_columns_answer_as_rows(batch: Batch, text: str) -> None:
    same_answers(Selector(text), batch.rows, batch.table)


@settings(thorough, max_examples=40)
@given(batches(), rocketmq_selectors)
def test_rocketmq_columns_answer_as_rows(batch: Batch, text: str) -> None:
    same_answers(Selector(text, "rocketmq"), batch.rows, batch.table)


@settings(thorough, max_examples=20)
@given(batches(), selectors)
def test_polars_frames_answer_as_rows(batch: Batch, text: str) -> None:
    if "half" not in batch.kinds.values() and not any("time" in kind for kind in batch.kinds.values()):
        same_answers(Selector(text), batch.rows, polars_frame(batch))


@settings(thorough, max_examples=20)
@given(batches(), selectors, st.lists(st.integers(0, 1025), max_size=3))
def test_streams_of_many_batches_answer_as_rows(batch: Batch, text: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(batch.rows)) for cut in cuts), len(batch.rows)]
    parts = [batch.table.slice(first, last - first) for first, last in itertools.pairwise(bounds)]
    same_answers(Selector(text), batch.rows, pa.Table.from_batches(parts))


@settings(thorough, max_examples=20)
@given(batches(), selectors, st.sampled_from([1, 2]))
def test_every_copy_of_the_kernels_answers_alike(batch: Batch, text: str, rank: int) -> None:
    selector = Selector(text)
    expected = selector.truth(batch.table).tolist()
    try:
        if use_kernels(rank) is not None:
            assert selector.truth(batch.table).tolist() == expected
    finally:
        use_kernels(0)


def test_numpy_columns() -> None:
    batch = {
        "i": np.ma.MaskedArray(np.arange(4, dtype=np.int16), [False, True, False, False]),
        "u": np.array(["a", "bb", "", "é"]),
        "o": np.array(["a", None, "bb", "x" * 12], object),
        "b": np.array([True, False, True, True])[::-1],
        "t": np.array(["1970-01-01", "NaT", "1970-01-03", "1970-01-04"], "M8[D]"),
        "f": np.array([0.5, -0.0, np.nan, 3.0], ">f8"),
        "n": np.arange(8)[::2],
    }
    rows = [
        {"i": np.int16(0), "u": "a", "o": "a", "b": True, "t": np.int64(0), "f": 0.5, "n": np.int64(0)},
        {"u": "bb", "b": True, "f": -0.0, "n": np.int64(2)},
        {"i": np.int16(2), "u": "", "o": "bb", "b": False, "t": np.int64(2), "f": float("nan"), "n": np.int64(4)},
        {"i": np.int16(3), "u": "é", "o": "x" * 12, "b": True, "t": np.int64(3), "f": 3.0, "n": np.int64(6)},
    ]
    for text in [
        "i > 0",
        "u = 'bb' OR u = 'é'",
        "o IS NULL",
        "b",
        "t > 1",
        "f >= 0",
        "f > 100",
        "n = 4",
        "o LIKE '%x'",
    ]:
        same_answers(Selector(text), rows, batch)


def test_halves_of_a_character_are_the_character() -> None:
    class Text(str):
        pass

    texts = ["\ud83d\ude00", "\U0001f600", "\ud83d", Text("\ud83d\ude00"), "a"]
    rows = [{"t": str.__str__(text)} for text in texts]
    for text in ("t = '\U0001f600'", "t LIKE '_'", "t LIKE '__'", "t IN ('\ud83d', 'a')"):
        same_answers(Selector(text), rows, {"t": np.array(texts, object)})
    assert Selector("t = '\U0001f600'").mask({"t": np.array(texts, object)}).tolist() == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_more_rows_than_a_cache_holds() -> None:
    """Memory is fetched early then, up to rows that are not there."""
    weight = np.arange(2_500_003, dtype=np.int64)
    price = weight / 7
    colors = pa.DictionaryArray.from_arrays(pa.array((weight % 3).astype(np.int32)), pa.array(["red", "blue", "green"]))
    batch = pa.record_batch({"weight": weight, "price": price, "color": colors})
    table = pa.Table.from_batches([batch.slice(0, 1_000_001), batch.slice(1_000_001)])
    expected = (weight > 2500) & (price <= 300_000) & (weight % 3 == 1) & (weight * price > 1e6)
    for data in (batch, table):
        mask = Selector("weight > 2500 AND price <= 300000 AND color = 'blue' AND weight * price > 1000000").mask(data)
        assert np.array_equal(mask, expected)


def test_other_producers() -> None:
    arrow = pa.table({"a": [1, None, 3], "s": ["x", "y", None]})
    rows = [{"a": np.int64(1), "s": "x"}, {"s": "y"}, {"a": np.int64(3)}]
    selector = Selector("a > 1 OR s = 'x'")
    same_answers(selector, rows, arrow)
    same_answers(selector, rows, pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches()).read_all())
    same_answers(selector, rows, pl.from_arrow(arrow))
    same_answers(selector, rows, duckdb.sql("select * from arrow").arrow())
    assert selector.mask(arrow.slice(0, 0)).tolist() == []
    assert Selector("JMSPriority = 4").mask(pa.table({})).tolist() == []
    assert selector.mask(arrow.schema.empty_table()).tolist() == []


def test_nulls_of_the_struct_itself() -> None:
    fields = [pa.array([1, 2, None, 4]), pa.array(["a", "b", "c", None])]
    batch = pa.StructArray.from_arrays(fields, names=["a", "s"], mask=pa.array([False, True, False, False])).slice(1)
    rows: list[dict[str, Any]] = [{}, {"s": "c"}, {"a": np.int64(4)}]
    for text in ["a IS NULL", "s IS NULL", "s = 'c'", "s <> 'c'", "a = 4"]:
        same_answers(Selector(text), rows, batch)


def test_memory_goes_back_to_its_producer() -> None:
    gc.collect()
    before = pa.total_allocated_bytes()
    table = pa.table({"a": np.arange(10000), "s": pa.array(["x", "y"] * 5000).dictionary_encode()})
    columns = Columns(table)
    del table
    assert pa.total_allocated_bytes() > before
    assert Selector("s = 'x' AND a > 5").mask(columns).sum() == 4997
    batch = pa.record_batch({"a": np.arange(10)})
    for _ in range(100):
        Selector("a > 5").mask(batch)
        with pytest.raises(MissingColumnError):
            Selector("b > 5").mask(batch)
    del columns, batch
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_what_cannot_be_read() -> None:
    table = pa.table(
        {
            "a": [1],
            "list": [[1]],
            "nested": pa.array([{"x": 1}]),
            "big": pa.array([2**63], pa.uint64()),
        }
    )
    assert Selector("a = 1").mask(table).tolist() == [True]
    with pytest.raises(UnsupportedColumnError, match="'list' of type list"):
        Selector("list IS NULL").mask(table)
    with pytest.raises(UnsupportedColumnError, match=r"'nested' of type struct"):
        Selector("nested > 1").mask(table)
    with pytest.raises(InvalidMessageError, match="9223372036854775808"):
        Selector("big > 1").mask(table)
    with pytest.raises(MissingColumnError, match="did you mean 'list'"):
        Selector("lists IS NULL").mask(table)
    assert Selector("lists IS NULL").mask(table, missing="null").tolist() == [True]
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(UnsupportedColumnError, match="two columns"):
        Selector("a = 1").mask(twice)
    with pytest.raises(TypeError, match="not int"):
        Selector("a = 1").mask(3)
    with pytest.raises(TypeError, match="record batch"):
        Columns(pa.array([1]))
    with pytest.raises(UnsupportedColumnError, match="2 rows"):
        Columns({"a": np.arange(2), "b": np.arange(3)})
    with pytest.raises(UnsupportedColumnError, match="complex128"):
        Selector("a = 1").mask({"a": np.zeros(1, complex)})
    with pytest.raises(SelectorEvaluationError) as raised:
        Selector("s - 1 = 2").mask(pa.table({"s": [None, "x"]}))
    assert raised.value.row == 1


def test_integers_beyond_long_count_where_a_row_has_them() -> None:
    beyond = pa.array([1, 2**63], pa.uint64())
    nested = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), beyond)
    for dictionary in (beyond, nested):
        unused = pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.int8()), dictionary)
        assert Selector("n = 1").mask(pa.table({"n": unused})).tolist() == [True, False, True]
        used = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), dictionary)
        with pytest.raises(InvalidMessageError, match=r"9223372036854775808.*row 5"):
            Selector("n < 1").mask(pa.table({"n": pa.chunked_array([unused, used])}))


@pytest.mark.parametrize("beyond", [0, 3])
def test_a_text_beyond_32_bits_is_refused(beyond: int) -> None:
    """Its length would be cut to that of another text; the memory behind these offsets is never read."""
    offsets = pa.py_buffer(np.array([0, 3, 3 + 2**32 + beyond], np.int64))
    there = pa.py_buffer(b"abcabc" * 20)
    texts = pa.LargeStringArray.from_buffers(2, offsets, pa.foreign_buffer(there.address, 2**33, there))
    with pytest.raises(InvalidMessageError, match=rf"s = .*row 1 has a text of {2**32 + beyond} bytes; .*4294967295"):
        Selector("s = 'abc'").mask(pa.table({"s": texts}))
    assert Selector("s = 'abc'").mask(pa.table({"s": texts.slice(0, 1)})).tolist() == [True]
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None, 0, 1], pa.int8()), texts)
    assert Selector("s = 'abc'").mask(pa.table({"s": coded.slice(0, 3)})).tolist() == [True, False, True]
    with pytest.raises(InvalidMessageError, match="row 3 has a text"):
        Subscriptions({"a": "s = 'abc'"}).match_batch(pa.table({"s": coded}))


def test_a_failing_stream_says_why() -> None:
    def parts() -> Any:
        yield pa.record_batch({"a": [1]})
        raise ValueError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), parts())
    with pytest.raises(UnreadableBatchError, match=r"RecordBatchReader cannot be read: .*the disk is gone"):
        Selector("a = 1").mask(reader)


def test_dictionary_answers_follow_the_dictionary() -> None:
    """A selector asked again and again of equal codes over other dictionaries, of the same sizes too."""
    selector = Selector("color IN ('blue', 'red') OR color LIKE 'go%'")
    codes = pa.array([0, 1, 2, None, 1], pa.int32())
    for names in (
        ["blue", "pink", "gold"],
        ["pink", "blue", "gold"],
        ["blue", "pink", "gold"],
        ["b", "luep", "inkgold"],
    ):
        for kind in (pa.string(), pa.large_string()):
            coded = pa.DictionaryArray.from_arrays(codes, pa.array(names, kind))
            wanted = [row is not None and (row in ("blue", "red") or row.startswith("go")) for row in coded.to_pylist()]
            for _ in range(2):
                batch = pa.RecordBatch.from_arrays([coded], names=["color"])
                assert selector.mask(batch).tolist() == wanted


class GivenTwice:
    """Gives the same capsules every time."""

    def __init__(self, name: str, capsules: Any) -> None:
        setattr(self, name, lambda *_: capsules)


def test_what_was_given_away_is_not_read_again() -> None:
    batch = pa.record_batch({"a": [1, 2]})
    array = GivenTwice("__arrow_c_array__", batch.__arrow_c_array__())
    assert len(Columns(array)) == 2
    stream = GivenTwice("__arrow_c_stream__", pa.table({"a": [1, 2]}).__arrow_c_stream__())
    assert pa.table(stream).num_rows == 2
    schema = GivenTwice("__arrow_c_array__", (array.__arrow_c_array__()[0], batch.__arrow_c_array__()[1]))
    for given_twice in (array, stream, schema):
        with pytest.raises(ValueError, match="was read before"):
            Columns(given_twice)


def test_arrays_that_tell_of_more_rows_than_they_have_are_refused() -> None:
    class Long(np.ndarray[Any, Any]):
        def __len__(self) -> int:
            return 1000

    class Masked(np.ma.MaskedArray[Any, Any]):
        def __len__(self) -> int:
            return 1000

    for kind in ("f8", "?", "M8[s]", "U5"):
        array = np.zeros(3, kind)
        for hostile in (array.view(Long), array.view(Masked)):
            with pytest.raises(ValueError, match="has not the 1,000 rows"):
                Columns({"a": hostile})


def test_a_dict_of_arrays_may_change_while_it_is_imported() -> None:
    arrays: dict[str, Any] = {}

    class Changing(np.ndarray[Any, Any]):
        def __array_finalize__(self, _: Any) -> None:
            for name in list(arrays):
                arrays[name + "'"] = arrays.pop(name)

    for name in ("a", "b", "c"):
        arrays[name] = np.zeros(3).view(Changing)
    columns = Columns(arrays)
    columns._check()
    assert len(columns) == 3
