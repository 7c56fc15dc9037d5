"""Random typed columns and selectors that read them; each batch with its rows as mappings of exactly typed values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "gold",
    "golden",
    "gold-12345",
    "gold-123456789",
    "gold-123456780",
    "é",
    "\U0001f600",
    "\uff15",
    "1",
    "2.5",
    "-3",
    "true",
    "x" * 20,
]
SMALL = [0, 1, 2, 3, 5, -1, -3, 100, 127]
REALS = [0.0, -0.0, 1.0, 2.5, -3.0, 0.1, 1e300, float("inf"), float("-inf"), float("nan"), 16777217.0, 5e-324]


def spread(bits: int, signed: bool) -> list[int]:
    """Integers worth asking about in one integer type."""
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed or bits == 64 else (1 << bits) - 1
    return [
        value for value in [*SMALL, low, low + 1, high, high - 1, 16777216, 16777217, 2**53 + 1] if low <= value <= high
    ]


@dataclass(frozen=True)
class Kind:
    """A column type: its Arrow type, the values to draw, and what one value is as a message property."""

    arrow: pa.DataType
    values: list[Any]
    scalar: Callable[[Any], Any]


def integer(arrow: pa.DataType, scalar: Callable[[Any], Any]) -> Kind:
    return Kind(arrow, spread(arrow.bit_width, pa.types.is_signed_integer(arrow)), scalar)


def real(arrow: pa.DataType, scalar: Callable[[Any], Any]) -> Kind:
    with np.errstate(over="ignore"):
        return Kind(arrow, [float(scalar(value)) for value in REALS], scalar)


NUMBERS = {
    "int8": integer(pa.int8(), np.int8),
    "int16": integer(pa.int16(), np.int16),
    "int32": integer(pa.int32(), np.int32),
    "int64": integer(pa.int64(), np.int64),
    "uint8": integer(pa.uint8(), np.int16),
    "uint16": integer(pa.uint16(), np.int32),
    "uint32": integer(pa.uint32(), np.int64),
    "uint64": integer(pa.uint64(), np.int64),
    "float": real(pa.float32(), np.float32),
    "double": real(pa.float64(), np.float64),
}
HALF = Kind(pa.float16(), [np.float16(value) for value in REALS if abs(value) < 60000 or value != value], np.float32)
MILLISECOND = {"s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000}


def time(arrow: pa.DataType, unit: str) -> Kind:
    """Times of which some are no whole milliseconds; a message has milliseconds, rounded down."""
    factor = MILLISECOND.get(unit, 86_400_000)
    values = SMALL if factor > 0 else [value * -factor + more for value in SMALL for more in (0, 1, -factor - 1)]
    if pa.types.is_time(arrow):
        values = [value for value in values if value >= 0]
    return Kind(arrow, values, lambda value: np.int64(value * factor if factor > 0 else value // -factor))


TIMES = {
    "timestamp": time(pa.timestamp("us"), "us"),
    "timestamp_s": time(pa.timestamp("s"), "s"),
    "timestamp_ns": time(pa.timestamp("ns", "Asia/Shanghai"), "ns"),
    "zoned": time(pa.timestamp("ms", "UTC"), "ms"),
    "date32": time(pa.date32(), "D"),
    "date64": Kind(pa.date64(), [value * 86_400_000 for value in SMALL], np.int64),
    "duration": time(pa.duration("ns"), "ns"),
    "time32": time(pa.time32("s"), "s"),
    "time64": time(pa.time64("us"), "us"),
}
TEXT = {
    "string": Kind(pa.string(), TEXTS, str),
    "large_string": Kind(pa.large_string(), TEXTS, str),
    "string_view": Kind(pa.string_view(), TEXTS, str),
}
OTHERS = {
    "bool": Kind(pa.bool_(), [True, False], bool),
    "half": HALF,
    "null": Kind(pa.null(), [None], lambda value: value),
}
KINDS = {**NUMBERS, **TIMES, **TEXT, **OTHERS}
DICTIONARIES = ["string", "large_string", "int32", "double", "bool", "timestamp", "date32"]
SIZES = [0, 1, 63, 64, 65, 130, 1023, 1024, 1025]


@dataclass(frozen=True)
class Batch:
    """rows: what the columns say, message by message; table: the same as Arrow."""

    rows: list[dict[str, Any]]
    table: pa.RecordBatch
    kinds: dict[str, str]


def arrow_array(kind: Kind, values: list[Any]) -> pa.Array:
    if pa.types.is_temporal(kind.arrow):
        width = pa.int32() if kind.arrow.bit_width == 32 else pa.int64()
        return pa.array(values, width).cast(kind.arrow)
    return pa.array(values, kind.arrow)


def dictionary_array(kind: Kind, index: pa.DataType, values: list[Any], null_entry: bool) -> pa.Array:
    """Codes of any width into a dictionary with a value of its own for null, unused values and duplicates."""
    entries = [*kind.values, None, kind.values[0]]
    places = {id(value): place for place, value in enumerate(kind.values)}
    codes = [(len(kind.values) if null_entry else None) if value is None else places[id(value)] for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(codes, index), arrow_array(kind, entries))


@st.composite
def batches(draw: st.DrawFn, names: tuple[str, ...] = ("a", "b", "c", "d")) -> Batch:
    """A record batch of random types, with nulls, sliced from a longer one."""
    rng = draw(st.randoms(use_true_random=False))
    size = draw(st.sampled_from(SIZES))
    before, after = draw(st.sampled_from([(0, 0), (1, 0), (3, 5), (64, 1)]))
    arrays, kinds, cells = [], {}, {}
    for name in names:
        label = draw(st.sampled_from(list(KINDS)))
        kind = KINDS[label]
        nulls = draw(st.sampled_from([0.0, 0.0, 0.1, 0.9]))
        values = [None if rng.random() < nulls else rng.choice(kind.values) for _ in range(before + size + after)]
        if label in DICTIONARIES and draw(st.booleans()):
            index = draw(st.sampled_from([pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()]))
            array = dictionary_array(kind, index, values, draw(st.booleans()))
        else:
            array = arrow_array(kind, values)
        arrays.append(array)
        kinds[name] = label
        cells[name] = [None if value is None else kind.scalar(value) for value in values[before : before + size]]
    table = pa.RecordBatch.from_arrays(arrays, list(names)).slice(before, size)
    rows = [{name: cells[name][row] for name in names if cells[name][row] is not None} for row in range(size)]
    return Batch(rows, table, kinds)


def polars_frame(batch: Batch) -> pl.DataFrame:
    """The columns that polars can hold."""
    return pl.from_arrow(batch.table)


LITERALS = [
    "0",
    "1",
    "2",
    "3",
    "100",
    "127",
    "128",
    "-1",
    "-3",
    "2.5",
    "0.0",
    "-0.0",
    "0.1",
    "1e300",
    "16777217",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "1e400",
    "-1e400",
    "9007199254740993",
    "86400000",
    "2000",
    "1 - 3",
    "4.9e-324",
]
QUOTED = ["'" + text.replace("'", "''") + "'" for text in TEXTS]
PATTERNS = [
    "'gold%'",
    "'gold-1234%'",
    "'gold-12345678%'",
    "'%'",
    "'%ld%'",
    "'_'",
    "'a'",
    "''",
    "'gold\\_%' ESCAPE '\\'",
]
properties = st.sampled_from(["a", "b", "c", "d"])
order = st.sampled_from(["<", "<=", ">", ">="])
equality = st.sampled_from(["=", "<>"])
literals = st.sampled_from(LITERALS)
either_way = st.sampled_from([False, True])


def joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    """The parts with blanks between them."""
    return st.tuples(*(part if isinstance(part, st.SearchStrategy) else st.just(part) for part in parts)).map(" ".join)


def arithmetic() -> st.SearchStrategy[str]:
    operand = st.one_of(properties, literals)
    return st.one_of(
        joined("(", properties, st.sampled_from(["+", "-", "*", "/", "%"]), operand, ")"),
        joined("(", operand, st.sampled_from(["+", "-", "*", "/", "%"]), properties, ")"),
        joined("( -", properties, ")"),
    )


def predicates() -> st.SearchStrategy[str]:
    operand = st.one_of(properties, properties, arithmetic())
    return st.one_of(
        joined(operand, order, literals),
        joined(literals, order, operand),
        joined(operand, equality, literals),
        joined(literals, equality, operand),
        joined(properties, equality, st.sampled_from([*QUOTED, "TRUE", "FALSE"])),
        joined(st.sampled_from([*QUOTED, "TRUE", "FALSE"]), equality, properties),
        joined(properties, equality, properties),
        joined(properties, order, properties),
        joined(properties, st.sampled_from(["IS NULL", "IS NOT NULL"])),
        joined(
            properties,
            st.sampled_from(["IN", "NOT IN"]),
            "(",
            st.sampled_from(QUOTED),
            ",",
            st.sampled_from(QUOTED),
            ")",
        ),
        joined(properties, st.sampled_from(["LIKE", "NOT LIKE"]), st.sampled_from(PATTERNS)),
        joined(properties, st.sampled_from(["BETWEEN", "NOT BETWEEN"]), literals, "AND", literals),
        joined(properties, "BETWEEN", literals, "AND", properties),
        joined(properties),
        st.sampled_from(["TRUE", "FALSE", "JMSPriority = 4", "JMSType IS NULL"]),
    )


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        joined("(", inner, st.sampled_from(["AND", "OR"]), inner, ")"),
        joined("(", inner, st.sampled_from(["AND", "OR"]), inner, st.sampled_from(["AND", "OR"]), inner, ")"),
        joined("NOT (", inner, ")"),
        joined("( (", inner, ")", st.sampled_from(["IS NULL", "IS NOT NULL"]), ")"),
        joined("( (", inner, ")", equality, "(", inner, ")", ")"),
        joined("( (", inner, ")", equality, properties, ")"),
    )


selectors = st.tuples(
    st.sampled_from(["", "", "convert_string_expressions:"]),
    st.recursive(predicates().map(lambda text: f"( {text} )"), grown, max_leaves=6),
).map("".join)


def rocketmq_predicates() -> st.SearchStrategy[str]:
    whole = st.sampled_from(["0", "1", "2", "3", "2147483648", "2.5"])
    return st.one_of(
        joined(properties, order, whole),
        joined(properties, equality, st.one_of(whole, st.sampled_from([*QUOTED, "TRUE"]))),
        joined(properties, st.sampled_from(["=", "<", ">="]), properties),
        joined(properties, st.sampled_from(["IS NULL", "IS NOT NULL"])),
        joined(
            properties,
            st.sampled_from(["IN", "NOT IN"]),
            "(",
            st.sampled_from(QUOTED),
            ",",
            st.sampled_from(QUOTED),
            ")",
        ),
        joined(
            properties,
            st.sampled_from([f"{no}{verb}" for no in ("", "NOT ") for verb in ("CONTAINS", "STARTSWITH", "ENDSWITH")]),
            st.sampled_from(QUOTED),
        ),
        joined(properties, st.sampled_from(["BETWEEN", "NOT BETWEEN"]), "1 AND 3"),
        joined(properties),
    )


rocketmq_selectors = st.recursive(
    rocketmq_predicates().map(lambda text: f"( {text} )"),
    lambda inner: st.one_of(
        joined("(", inner, st.sampled_from(["AND", "OR"]), inner, ")"),
        joined("NOT (", inner, ")"),
        joined("( (", inner, ") IS NULL )"),
        joined("( (", inner, ")", equality, "(", inner, ")", ")"),
    ),
    max_leaves=6,
)
