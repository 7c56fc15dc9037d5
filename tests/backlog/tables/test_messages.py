"""Rows become messages, and the rows that cannot say why."""

from __future__ import annotations

import ast
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyengine
from pyengine.backlog.tables.messages import message_schema, refuse_own_name, rejects_table, to_messages
from pyengine.backlog.tables.sources import _apply_types
from pyengine.errors import MissingColumnError, UnsupportedColumnError
from pyengine.topology import Source, Steps, TimeColumn


def source(**settings: object) -> Source:
    return Source(destination="q", path="x", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["__row", "__destination", "__bytes", "__queue", "__truth:n > 1"])
def test_a_name_of_a_message_s_own_column_is_refused(name: str) -> None:
    table = pa.table({"n": [1, 2], name: [7, 8], "__index_level_0__": [0, 1]})
    with pytest.raises(UnsupportedColumnError, match="rename it") as refused:
        to_messages(table, [0, 1], source())
    assert refused.value.column == name
    with pytest.raises(UnsupportedColumnError, match="rename it"):
        to_messages(table, [0, 1], source(properties=("n",), id=name))
    messages, _ = to_messages(table, [0, 1], source(properties=("n", "__index_level_0__")))
    assert messages.column("__row").to_pylist() == [0, 1]


def test_types_are_kept_widened_or_refused() -> None:
    table = pa.table(
        {
            "byte": pa.array([1], pa.int8()),
            "unsigned": pa.array([255], pa.uint8()),
            "half": pa.array([np.float16(1.5)], pa.float16()),
            "coded": pa.array(["a"]).dictionary_encode(),
            "large": pa.array(["\U0001f600"], pa.large_string()),
            "when": pa.array([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("us")),
            "day": pa.array([date(1970, 1, 2)]),
            "nothing": pa.nulls(1),
            "price": pa.array([Decimal("1.50")]),
            "clock": pa.array([time(0, 0, 1, 1999)], pa.time64("us")),
            "second": pa.array([time(0, 0, 2)], pa.time32("s")),
            "took": pa.array([timedelta(microseconds=-1)], pa.duration("us")),
        }
    )
    messages, rejects = to_messages(table, [0], source())
    assert not rejects
    types = {name: str(messages.schema.field(name).type) for name in table.column_names}
    assert types == {
        "byte": "int8",
        "unsigned": "int16",
        "half": "float",
        "coded": "string",
        "large": "string",
        "when": "int64",
        "day": "int64",
        "nothing": "string",
        "price": "decimal128(3, 2)",
        "clock": "int64",
        "second": "int64",
        "took": "int64",
    }
    line = messages.to_pylist()[0]
    assert (line["when"], line["day"], line["unsigned"], line["nothing"]) == (1000, 86_400_000, 255, None)
    assert (line["price"], line["clock"], line["second"], line["took"]) == (Decimal("1.50"), 1001, 2000, -1)
    assert line["__bytes"] == 1 + 2 + 4 + 1 + 4 + 8 + 8 + 16 + 3 * 8
    with pytest.raises(UnsupportedColumnError, match="span"):
        to_messages(pa.table({"span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), [0], source())


@pytest.mark.parametrize(
    "type", [pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()), pa.list_(pa.int64())], ids=str
)
def test_a_column_that_can_become_no_header_is_refused_once(type: pa.DataType) -> None:
    """Else every row would be a reject."""
    at, more = TimeColumn("c"), TimeColumn("g", plus_minutes="c")
    settings: list[dict[str, Any]] = [
        {"destination": "q.{c}"}, {"id": "c"}, {"group": "c"}, {"connection": "c"}, {"body": "c"}, {"priority": "c"},
        {"priority": Steps("c", ((1.0, 5),))}, {"group": "g", "group_sequence": "c"}, {"timestamp": at},
        {"expiration": at}, {"timestamp": more},
    ]  # fmt: skip
    rows = pa.table({"c": pa.nulls(1, type), "g": ["x"]})
    for each in settings:
        mapping = Source(**({"destination": "q", "path": "f", "properties": ()} | each))
        with pytest.raises(UnsupportedColumnError, match="column 'c' of type"):
            message_schema(rows.schema, mapping)


def test_a_missing_column_is_named() -> None:
    schema = pa.schema([("region", pa.string())])
    with pytest.raises(MissingColumnError, match="did you mean 'region'"):
        message_schema(schema, source(properties=("regio",)))


@pytest.mark.parametrize(
    ("values", "type", "moment", "expected"),
    [
        ([1, None], pa.int64(), TimeColumn("at", unit="s"), [1000, 0]),
        ([1_999, -1], pa.int64(), TimeColumn("at", unit="us"), [1, -1]),
        (["2013-01-01T05:00:00Z", None], pa.string(), TimeColumn("at"), [1357016400000, 0]),
        (["2013-01-01T00:00:00"], pa.string(), TimeColumn("at", timezone="America/New_York"), [1357016400000]),
        (["2013-01-01T05:00:00Z", "2013-01-01 05:00"], pa.string(), TimeColumn("at"), [1357016400000] * 2),
        ([datetime(2013, 1, 1, 5, tzinfo=UTC)], pa.timestamp("ns", "UTC"), TimeColumn("at"), [1357016400000]),
        ([datetime(2013, 1, 1)], pa.timestamp("s"), TimeColumn("at", timezone="America/New_York"), [1357016400000]),
    ],
)
def test_moments(values: list[object], type: pa.DataType, moment: TimeColumn, expected: list[int]) -> None:
    table = pa.table({"at": pa.array(values, type)})
    messages, rejects = to_messages(table, range(len(values)), source(timestamp=moment, properties=()))
    assert not rejects
    assert messages.column("JMSTimestamp").to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-03-29T02:30:00", 1585443599999),  # the clocks go from 02:00 to 03:00
        ("2020-10-25T02:30:00", 1603585800000),  # twice that night
        ("0000-01-01T00:00:00Z", None),
    ],
)
def test_a_moment_does_not_depend_on_what_it_is_read_with(text: str, expected: int | None) -> None:
    given = source(timestamp=TimeColumn("at", timezone="Europe/Paris"), properties=())
    for others in ([], ["2020-01-01T00:00:00.12345Z"], ["2020-01-01"], ["no moment"]):
        messages, _ = to_messages(pa.table({"at": [text, *others]}), range(1 + len(others)), given)
        moments = {line["__row"]: line["JMSTimestamp"] for line in messages.to_pylist()}
        assert moments.get(0) == expected
    if expected is not None:
        for unit in ("s", "ms", "us", "ns"):
            table = pa.table({"at": pa.array([datetime.fromisoformat(text)], pa.timestamp(unit))})
            messages, _ = to_messages(table, range(1), given)
            assert messages.column("JMSTimestamp").to_pylist() == [expected]


def test_a_moment_beyond_all_clocks_is_a_reject() -> None:
    table = pa.table({"at": pa.array([1, 2**62], pa.int64())})
    messages, rejects = to_messages(table, [0, 1], source(timestamp=TimeColumn("at", unit="s"), properties=()))
    assert messages.column("JMSTimestamp").to_pylist() == [1000]
    assert [(reject.row, reject.column, reject.reason) for reject in rejects] == [
        (1, "at", "leads to no moment that fits a long")
    ]


def test_rows_that_are_no_message_are_returned_with_the_reason() -> None:
    table = pa.table(
        {
            "at": ["2013-01-01T05:00:00Z", "tomorrow", "2013-01-01T05:00:00Z", "2013-01-01T05:00:00Z"],
            "p": [4, 4, 12, None],
            "n": ["1", "1", "1", "many"],
        }
    )
    given = source(timestamp=TimeColumn("at"), priority="p", types=(("n", "int"),))
    messages, rejects = to_messages(table, [10, 11, 12, 13], given)
    assert messages.column("__row").to_pylist() == [10]
    found = [(reject.row, reject.column, reject.value) for reject in rejects]
    assert found == [(11, "at", "tomorrow"), (12, "p", "12"), (13, "n", "many")]
    table = rejects_table(rejects, [(0, "a"), (11, "b"), (11, "none"), (13, "c")])
    assert table.column("file").to_pylist() == ["none", "none", "c"]
    assert table.column("file_row").to_pylist() == [0, 1, 0]
    assert rejects_table(rejects, []).column("file").null_count == 3


@given(st.lists(st.none() | st.floats(allow_nan=True, width=32), max_size=20))
def test_steps_are_the_models(numbers: list[float | None]) -> None:
    steps = Steps("d", ((-1.5, 1), (0, 5), (60, 9)), below=2, missing=7)
    table = pa.table({"d": pa.array(numbers, pa.float64())})
    messages, _ = to_messages(table, range(len(numbers)), source(priority=steps))
    assert messages.column("JMSPriority").to_pylist() == [steps.priority(number) for number in numbers]


def test_declared_types_are_the_same_in_files_and_in_columns() -> None:
    table = pa.table(
        {
            "flag": pa.array([0, 1, 2, None]),
            "at": pa.array([1_999, -1, 5, None]).cast(pa.timestamp("us")),
            "day": pa.array([1, 2, 3, None], pa.int32()).cast(pa.date32()),
            "number": pa.array(["01", "1", "x", "2"]).dictionary_encode(),
        }
    )
    types = (("flag", "boolean"), ("at", "long"), ("day", "long"), ("number", "int"))
    mapping = Source(destination="q.{number}", path="x", types=types, timestamp=TimeColumn("at"))  # type: ignore[arg-type]
    messages, rejects = to_messages(table, range(4), mapping)
    read = _apply_types("x", table, pa.array(range(4)), [], dict(types))
    again, none = to_messages(read.table, read.numbers, mapping)
    assert not none
    assert messages == again
    assert messages.select(["__destination", "JMSTimestamp", "flag", "at", "day"]).to_pylist() == [
        {"__destination": "q.1", "JMSTimestamp": 1, "flag": False, "at": 1, "day": 86_400_000},
        {"__destination": "q.1", "JMSTimestamp": -1, "flag": True, "at": -1, "day": 2 * 86_400_000},
        {"__destination": "q.2", "JMSTimestamp": 0, "flag": None, "at": None, "day": None},
    ]
    assert [each.row for each in rejects] == [each.row for each in read.rejects] == [2]
    with pytest.raises(UnsupportedColumnError, match="cannot become string"):
        to_messages(pa.table({"a": [[1]]}), [0], source(types=(("a", "string"),)))


def test_moments_beyond_long_are_rejected() -> None:
    table = pa.table(
        {
            "at": pa.array([1, 2**63, 2**62, None], pa.uint64()),
            "more": pa.array([1, 1, 2**61, 2**61]),
            "old": pa.array([1, 2**61, -(2**61), None]).cast(pa.timestamp("s")),
        }
    )
    messages, rejects = to_messages(
        table, range(4), source(timestamp=TimeColumn("at", plus_minutes="more"), properties=())
    )
    assert messages.column("JMSTimestamp").to_pylist() == [60_001, 0]
    assert [(each.row, each.column) for each in rejects] == [(1, "at"), (2, "more")]
    for mapping in (source(timestamp=TimeColumn("old"), properties=()), source(properties=("old",))):
        messages, rejects = to_messages(table, range(4), mapping)
        assert [each.row for each in rejects] == [1, 2]
        assert messages.column(messages.column_names[-1]).to_pylist()[0] == 1000


def test_a_row_without_the_time_that_orders_it_is_rejected() -> None:
    rows = pa.table({"at": ["2024-01-01", None, "2024-01-01", "no"], "more": pa.array([1, 1, None, 1])})
    moment = TimeColumn("at", plus_minutes="more")
    made, rejects = to_messages(rows, range(4), Source("q", path="f", timestamp=moment, order="timestamp"))
    missing = "the timestamp that orders the rows is missing"
    assert made.column("__row").to_pylist() == [0]
    assert [(each.row, each.column, each.value, each.reason) for each in rejects] == [
        (1, "at", "", missing),
        (2, "more", "", missing),
        (3, "at", "no", "is no ISO 8601 time of the years 1 to 9999"),
    ]
    made, _ = to_messages(rows, range(4), Source("q", path="f", timestamp=moment))
    assert made.column("JMSTimestamp").to_pylist() == [1704067260000, 0, 0]


def test_rows_as_sparks_kafka_source_has_them() -> None:
    rows = pa.table(
        {
            "key": pa.array([b"ann", None, b"\xff"], pa.binary()),
            "value": pa.array([b"\x00\x01", None, b"x"], pa.binary()),
            "topic": ["orders", "orders", "orders"],
            "partition": pa.array([0, 1, 0], pa.int32()),
            "offset": pa.array([5, 5, 6], pa.int64()),
            "timestamp": pa.array([1_000_000, None, 0], pa.timestamp("us", "UTC")),
            "timestampType": pa.array([0, 0, 0], pa.int32()),
            "headers": pa.array(
                [[{"key": "h", "value": None}], None, []],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    kafka = Source(
        destination="{topic}.{partition}",
        path="x",
        group="key",
        body="value",
        timestamp=TimeColumn("timestamp"),
        properties=("partition", "offset"),
    )
    messages, rejects = to_messages(rows, range(3), kafka)
    assert messages.to_pylist() == [
        {"__row": 0, "__destination": "orders.0", "__bytes": 14, "JMSXGroupID": "ann", "JMSTimestamp": 1000}
        | {"partition": 0, "offset": 5},
        {"__row": 1, "__destination": "orders.1", "__bytes": 12, "JMSXGroupID": None, "JMSTimestamp": 0}
        | {"partition": 1, "offset": 5},
    ]
    assert [(each.row, each.column, each.reason) for each in rejects] == [(2, "key", "is not a string")]
    with pytest.raises(UnsupportedColumnError, match=r"'key' of type binary.*properties"):
        to_messages(rows, range(3), Source(destination="{topic}", path="x"))


def test_every_column_of_our_own_is_refused_as_a_property() -> None:
    package = Path(pyengine.__file__).parent
    texts = (
        node.value
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    own = {text for text in texts if re.fullmatch(r"__[a-z]+:?", text)}
    assert {"__row", "__queue", "__shard", "__truth:"} <= own
    for name in own:
        with pytest.raises(UnsupportedColumnError, match="of its own"):
            refuse_own_name(name)
