"""Data frames: only the columns that selectors name are read, what their libraries cannot hand over has a typed error,
decimals are exact and times milliseconds."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine import (
    Columns,
    InvalidMessageError,
    MissingColumnError,
    Selector,
    Subscriptions,
    UnreadableBatchError,
    UnsupportedColumnError,
)

MIXED = [1, "x", None]


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame({"a": [1, 2, 3], "mixed": MIXED, 7: MIXED})


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame({"a": [1, 2, 3], "mixed": pl.Series([object()] * 3, dtype=pl.Object)})


def relation() -> duckdb.DuckDBPyRelation:
    return duckdb.connect().sql("SELECT a, CAST('x' || a AS INT) AS mixed FROM range(1, 4) AS t(a)")


FRAMES: list[Callable[[], Any]] = [pandas_frame, polars_frame, relation]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_column_that_no_selector_names_does_not_matter(frame: Callable[[], Any]) -> None:
    selector = Selector("a > 1")
    assert selector.mask(frame()).tolist() == [False, True, True]
    assert selector.truth(frame()).tolist() == [0, 1, 1]
    assert selector.mask_words(frame()).tolist() == [6]
    offsets, keys = Subscriptions({"x": "a > 1", "y": "a = 3"}).match_batch(frame())
    assert (offsets.tolist(), list(keys)) == ([0, 0, 1, 3], ["x", "x", "y"])
    assert Selector("JMSPriority = 4").mask(frame()).tolist() == [True] * 3
    with pytest.raises(MissingColumnError, match=r"no column 'b'; known: .*mixed"):
        Selector("b = 1").mask(frame())
    with pytest.raises(MissingColumnError, match=r"no column 'b'; known: .*mixed"):
        Subscriptions({"x": "b = 1"}).match_batch(frame())


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "ask", [lambda batch: Selector("mixed = 1").mask(batch), Subscriptions({"x": "a = 1 AND mixed = 1"}).match_batch]
)
def test_a_column_that_cannot_be_read_is_named(frame: Callable[[], Any], ask: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedColumnError, match=r"column 'mixed' of type .* cannot be read") as raised:
        ask(frame())
    assert raised.value.column == "mixed"


def test_columns_of_a_frame_with_a_column_that_cannot_be_read() -> None:
    columns = Columns(pandas_frame())
    columns._check()
    assert columns.names == ("a",)
    assert columns.offered == ("a", "mixed")
    assert Selector("a = 2").mask(columns).tolist() == [False, True, False]
    with pytest.raises(UnsupportedColumnError, match=r"'mixed' of type object .*Could not convert"):
        Selector("mixed = 1").mask(columns)


def test_only_named_columns_are_converted() -> None:
    class Watched(np.ndarray[Any, Any]):
        def tolist(self) -> Any:
            raise AssertionError("this column was read")

    texts = np.array(["x", "y"], object).view(Watched)
    assert Selector("a = 1").mask({"a": np.array([1, 2]), "texts": texts}).tolist() == [True, False]
    with pytest.raises(UnsupportedColumnError, match="have 2 rows"):
        Selector("a = 1").mask({"a": np.array([1, 2]), "b": np.array([1])})


def test_two_columns_of_one_name() -> None:
    with pytest.raises(UnsupportedColumnError, match="two columns have this name"):
        Selector("a = 1").mask(pd.DataFrame([[1, 2, "x"]], columns=["a", "a", "b"]))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "a", "b"])
    assert Selector("b = 3").mask(twice).tolist() == [True]
    with pytest.raises(UnsupportedColumnError, match="two columns have this name"):
        Selector("a = 1").mask(twice)


def test_a_source_that_fails_is_told_with_its_words() -> None:
    failing = duckdb.connect().sql("SELECT 1 AS a FROM range(3) AS t(i) WHERE CAST('x' || i AS INT) = 1")
    for text in ("a = 1", "1 = 1"):  # it is not the column that fails
        with pytest.raises(UnreadableBatchError, match=r"Relation cannot be read: .*Conversion Error"):
            Selector(text).mask(failing)


def dropped() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE orders AS SELECT 1 AS a")
    found = connection.table("orders")
    connection.execute("DROP TABLE orders")
    return found


def closed() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    found = connection.sql("SELECT 1 AS a")
    connection.close()
    return found


@pytest.mark.parametrize("relation", [dropped, closed])
@pytest.mark.parametrize(
    "ask", [Selector("a = 1").mask, Selector("1 = 1").mask, Columns, Subscriptions({"x": "a = 1"}).match_batch]
)
def test_a_relation_that_is_gone_is_told(relation: Callable[[], Any], ask: Callable[[Any], Any]) -> None:
    with pytest.raises(UnreadableBatchError, match=r"DuckDBPyRelation cannot be read: (Catalog|Connection) Error"):
        ask(relation())


@pytest.mark.parametrize("name", ["__arrow_c_stream__", "__arrow_c_array__"])
@pytest.mark.parametrize("kind", [OSError, ValueError, TypeError, NotImplementedError])
def test_a_batch_whose_arrow_interface_fails_is_told(name: str, kind: type[Exception]) -> None:
    raised = kind("gone")

    def fail(self: object, _: object = None) -> object:
        raise raised

    with pytest.raises(UnreadableBatchError, match="Broken cannot be read: gone") as told:
        Selector("a = 1").mask(type("Broken", (), {name: fail})())
    assert told.value.__cause__ is raised
    wrong = type("Broken", (), {name: lambda *_: (1, 2)})()
    with pytest.raises(UnreadableBatchError, match=r"instead of a capsule with an arrow_\w+ its Arrow interface gives"):
        Selector("a = 1").mask(wrong)


def test_extension_types() -> None:
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0, -1] * 5, pa.int8()))
    table = pa.table({"flag": flags}).slice(1)
    assert Selector("flag = TRUE").truth(table).tolist() == ([1, -1, 0, 1] * 5)[1:]
    months = pd.DataFrame({"month": pd.period_range("2024-01", periods=2, freq="M"), "a": [1, 2]})
    assert Selector("a = 2").mask(months).tolist() == [False, True]
    with pytest.raises(UnsupportedColumnError, match=r"column 'month' of type pandas\.period"):
        Selector("month > 5").mask(months)


def test_a_uhugeint_is_itself_or_refused() -> None:
    """DuckDB hands one from 2^127 on over as a negative number."""
    for number, columns in ((2**127 - 1, "n"), (2**127 - 1, "n, 1 AS a")):
        found = duckdb.connect().sql(f"SELECT {columns} FROM (SELECT {number}::UHUGEINT AS n)")
        assert Selector("n > 9223372036854775806").mask(found).tolist() == [True]
    large = duckdb.connect().sql(f"SELECT {2**127}::UHUGEINT AS n, 1 AS a")
    assert Selector("a = 1").mask(large).tolist() == [True]
    with pytest.raises(UnsupportedColumnError, match=r"column 'n' of type UHUGEINT .*out of range"):
        Selector("n > 1").mask(large)


def test_half_of_a_character_is_told() -> None:
    with pytest.raises(UnsupportedColumnError, match=r"column 's' .*can't encode character .*position 0"):
        Selector("s = 'x'").mask(pd.DataFrame({"s": ["x", "\ud800"]}))


# Decimals

DECIMALS = [
    "0", "0.1", "0.10", "-0.1", "0.100000000000000001", "1.5", "-1.5", "100", "100.5", "2147483648", "9007199254740993",
    "9007199254740992", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "100000000000000000000000", "12345678901234567890.12345678", "99999999999999999999.999999999999999999",
]  # fmt: skip
LITERALS = [*(text for text in DECIMALS if not text.startswith("-")), "1e23", "1e300", "1e-300", "100.50"]
RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def literal(text: str) -> Decimal:
    """What a literal is: a whole number, or the shortest decimal number that its double is read from."""
    return Decimal(text) if text.isdigit() else Decimal(repr(float(text)))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.sampled_from(DECIMALS) | st.just(None), min_size=1, max_size=5),
    st.sampled_from(LITERALS),
    st.sampled_from(list(RELATIONS)),
    st.sampled_from([pa.decimal128(38, 13), pa.decimal256(60, 20), pa.decimal256(76, 38)]),
    st.booleans(),
    st.booleans(),
)
def test_decimals_compare_as_the_numbers_they_are(
    texts: list[str | None], constant: str, relation: str, kind: pa.DataType, coded: bool, swapped: bool
) -> None:
    values = [None if text is None else Decimal(text) for text in texts]
    column = pa.array(
        [
            None if each is None else each.quantize(Decimal(1).scaleb(-kind.scale), context=Context(prec=80))
            for each in values
        ],
        kind,
    )
    table = pa.table({"d": column.dictionary_encode() if coded else column})
    # A whole literal whose low 64 bits look like an int is that int, whatever it is compared with.
    if constant.isdigit() and int(constant) >= 2**63 and -(2**31) <= (int(constant) + 2**63) % 2**64 - 2**63 < 2**31:
        return
    left, right = (constant, "d") if swapped else ("d", constant)
    selector = Selector(f"{left} {relation} {right}")
    number = literal(constant)
    wanted = [
        (RELATIONS[relation](*((number, value) if swapped else (value, number))) if value is not None else None)
        for value in values
    ]
    if swapped and relation in ("=", "<>"):  # a null on the right is FALSE
        wanted = [relation == "<>" if each is None else each for each in wanted]
    assert selector.mask(table).tolist() == [bool(each) for each in wanted]
    assert selector.mask(Columns(table)).tolist() == [bool(each) for each in wanted]
    many = Subscriptions({number: f"{selector.text} AND d IS NOT NULL OR d > {number}.5" for number in range(200)})
    single = Selector(f"{selector.text} AND d IS NOT NULL OR d > 3.5").mask(table)
    found, places = many.match_places(table)
    assert [3 in places[found[row] : found[row + 1]] for row in range(len(values))] == single.tolist()


def test_decimals_of_every_library() -> None:
    sums = duckdb.connect().sql(
        "SELECT sum(i::BIGINT) AS s, max(i)::HUGEINT * 9007199254740993 AS h, sum(i::DECIMAL(18, 2)) AS d"
        " FROM range(3) AS t(i)"
    )
    for text, wanted in (
        ("s = 3", True), ("s > 2.5", True), ("s < 3", False), ("h = 18014398509481986", True), ("d = 3", True),
        ("h = 18014398509481985", False), ("h > 18014398509481985 AND h < 99999999999999999999999", True),
    ):  # fmt: skip
        assert Selector(text).mask(sums).tolist() == [wanted], text
    objects = pd.DataFrame({"price": [Decimal("0.10"), None, Decimal("99.995"), 3], "note": ["x", 1, 2.5, None]})
    assert Selector("price = 0.1 OR price >= 99.995").mask(objects).tolist() == [True, False, True, False]
    filled = pd.DataFrame({"price": [Decimal("0.1"), Decimal("0.25"), None, 12], 7: ["x", 1, 2, 3]}).fillna(0)
    for whole in (filled, filled[::-1]):  # whatever comes first
        assert Selector("price < 0.2 OR price = 12").mask(whole).tolist().count(True) == 3
        assert Selector("price = 12").mask(Columns(whole)).sum() == 1
    with pytest.raises(UnsupportedColumnError, match=r"column 'price' of type object"):
        Selector("price = 12").mask(pd.DataFrame({"price": [Decimal("0.1"), 1, "x"]}))
    frame = pl.DataFrame(
        {"price": [Decimal("0.10"), Decimal("3")], "n": [2**70, 3]}, {"price": pl.Decimal(10, 2), "n": pl.Int128}
    )
    assert Selector("price = 0.1 AND n > 1180591620717411303423").mask(frame).tolist() == [True, False]
    for kind in (pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(5, -2)):
        assert Selector("d >= 500").mask(pa.table({"d": pa.array([Decimal(500), Decimal(400)], kind)})).tolist() == [
            True,
            False,
        ]


def test_decimals_beside_other_types() -> None:
    table = pa.table(
        {
            "d": pa.array([Decimal("0.10"), Decimal("2.00"), None], pa.decimal128(10, 2)),
            "f": pa.array([0.1, float("nan"), 1.0], pa.float32()),
            "n": pa.array([0.1, float("inf"), None]),
            "b": pa.array([0, 2, 2], pa.int8()),
            "other": pa.array([Decimal("0.1"), Decimal("2.0001"), None], pa.decimal256(50, 4)),
            "text": ["0.1", "2", "2"],
        }
    )
    for text, wanted in (
        ("d = f", [1, 0, -1]), ("f > d", [0, 1, -1]), ("d = n", [1, 0, 1]), ("n > d", [0, 1, -1]), 
        ("d = b", [0, 1, -1]), ("b = d", [0, 1, 0]), ("d = other", [1, 0, 1]), ("d < other", [0, 1, -1]),
        ("d = text", [0, 0, -1]),
        ("convert_string_expressions:d = text", [1, 1, -1]), ("d = TRUE", [0, 0, -1]), ("d LIKE '0%'", [0, 0, -1]),
        ("d IS NULL", [0, 0, 1]), ("d BETWEEN 0.1 AND 1", [1, 0, -1]), ("d + 1 = 3", [0, 1, -1]), 
        ("-d = -2", [0, 1, -1]),
        ("'' + d = '0.10'", [1, 0, -1]), ("INLIST(MAKELIST(2.0, 3), d)", [0, 1, 0]),
        ("d", [0, 0, -1]),
    ):  # fmt: skip
        assert Selector(text).truth(table).tolist() == wanted, text
    assert Selector("d = '0.10'", "rocketmq").mask(table).tolist() == [True, False, False]


# Times

MOMENT = datetime.datetime(2024, 2, 29, 12, 0, 0, 250_000)
MILLISECONDS = 1709208000250


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Shanghai"])
def test_moments_are_milliseconds(unit: str, zone: str | None) -> None:
    column = pa.array([MOMENT, None], pa.timestamp(unit, zone))
    selector = Selector(f"JMSTimestamp = {MILLISECONDS} AND at = {MILLISECONDS}")
    table = pa.table({"at": column, "JMSTimestamp": column})
    assert selector.mask(table).tolist() == [True, False]
    assert selector.mask(table.to_pandas()).tolist() == [True, False]
    assert selector.mask(pl.from_arrow(table)).tolist() == [True, False]
    assert selector.mask(duckdb.arrow(table)).tolist() == [True, False]
    assert list(Subscriptions({"x": selector.text}).match_batch(table)[1]) == ["x"]


@pytest.mark.parametrize("dtype", ["M8[Y]", "M8[M]", "M8[W]", "M8[D]", "M8[h]", "M8[s]", "M8[25s]", "M8[ns]"])
def test_times_of_numpy_are_milliseconds(dtype: str) -> None:
    array = np.array(["1970-01-01", "NaT"], dtype)
    assert Selector("at = 0").mask({"at": array}).tolist() == [True, False]
    later = array + np.ones(1, int)
    wanted = int(later[0].astype("M8[us]").astype(np.int64)) // 1000
    assert Selector(f"at = {wanted}").mask({"at": later}).tolist() == [True, False]
    spans = np.array([-1, 2_000_001], "m8[us]")
    assert Selector("span = -1 OR span = 2000").mask({"span": spans}).tolist() == [True, True]


def test_a_moment_beyond_long_is_told_with_its_row() -> None:
    far = pa.table({"at": pa.chunked_array([pa.array([1], pa.timestamp("s")), pa.array([2**62], pa.timestamp("s"))])})
    with pytest.raises(InvalidMessageError, match=r"at = 4611686018427387904 .*row 1 leads to no moment"):
        Selector("at > 1").mask(far)
    assert Selector("at IS NOT NULL").mask(far.slice(0, 1)).tolist() == [True]


# Texts


def not_utf8() -> pa.Table:
    buffers = pa.array([b"ok", b"\xff\xfe", None], pa.binary()).buffers()
    return pa.table({"n": [1, 2, 3], "s": pa.Array.from_buffers(pa.string(), 3, buffers)})


def test_a_text_that_is_not_utf8_is_told_with_its_row() -> None:
    with pytest.raises(InvalidMessageError, match=r"s = b'\\xff\\xfe' .*row 1 is not UTF-8") as raised:
        Selector("REGEX('a.*', s)").mask(not_utf8())
    assert raised.value.field == "s"
    with pytest.raises(InvalidMessageError, match="row 1 is not UTF-8"):
        Subscriptions(
            {number: f"n > 0 AND REGEX('a.*', s) AND n <> {number + 9}" for number in range(200)}
        ).match_batch(not_utf8())
    assert Selector("s = 'ok'").mask(not_utf8()).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda: pl.LazyFrame({"a": [1]}), r"not LazyFrame; give LazyFrame\.collect\(\)$"),
        (lambda: ds.dataset(pa.table({"a": [1]})), r"not InMemoryDataset; give InMemoryDataset\.to_table\(\)$"),
        (lambda: ds.dataset(pa.table({"a": [1]})).scanner(), r"not Scanner; give Scanner\.to_table\(\)$"),
        (lambda: 7, r"not int$"),
    ],
    ids=["polars", "a data set", "a scanner", "a number"],
)
@pytest.mark.parametrize("ask", [Selector("a > 0").mask, Subscriptions({"a": "a > 0"}).match_batch])
def test_a_query_that_was_not_run_is_told_with_what_runs_it(
    query: Callable[[], Any], words: str, ask: Callable[[Any], Any]
) -> None:
    with pytest.raises(TypeError, match=words):
        ask(query())


def test_an_infinite_decimal_is_named() -> None:
    frame = pd.DataFrame({"a": [Decimal("Infinity"), Decimal(1)]})
    with pytest.raises(UnsupportedColumnError, match=r"'a' .*it holds Decimal\('Infinity'\), which no column of decim"):
        Selector("a > 0").mask(frame)
