"""What dispatching tables of queues and of topics have in common: the columns of messages and of assignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine import Selector
from pyengine.errors import InvalidMessageError

ROW, DESTINATION, CONNECTION, BYTES, QUEUE = "__row", "__destination", "__connection", "__bytes", "__queue"
TRUTH = "__truth:"  # before a selector: int8 column of its truth, 1 true, 0 false, -1 unknown, -2 raises

ASSIGNMENT_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("message_id", pa.string()),
        ("destination", pa.string()),
        ("consumer", pa.string()),
        ("delivery", pa.int64()),
        ("reason", pa.string()),
        ("blocked_by", pa.string()),
        ("group", pa.string()),
        ("timestamp", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
NAMED = ("consumer", "reason", "blocked_by")  # columns of few different texts
CODES = pa.dictionary(pa.int32(), pa.string())
KEPT_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("message_id", pa.string()),
        ("group", pa.string()),
        ("timestamp", pa.int64()),
        ("bytes", pa.int64()),
        ("error", pa.uint8()),
    ]
)
# Columns of a message that an assignment repeats.
KEPT_COLUMNS = {
    "row": ROW,
    "message_id": "JMSMessageID",
    "group": "JMSXGroupID",
    "timestamp": "JMSTimestamp",
    "bytes": BYTES,
}


def encoded(schema: pa.Schema, names: Sequence[str] = NAMED) -> pa.Schema:
    """A schema of assignments with some columns of texts as dictionaries."""
    return pa.schema([field.with_type(CODES) if field.name in names else field for field in schema])


@lru_cache(maxsize=4096)
def compiled(text: str, dialect: str = "activemq") -> Selector:
    """A selector, compiled once per process."""
    return Selector(text, dialect)  # type: ignore[arg-type]


def whole_numbers(batch: pa.RecordBatch, name: str, default: int) -> np.ndarray[Any, Any] | None:
    """A column of whole numbers, nulls as ``default``; None without it. Raises InvalidMessageError."""
    position = batch.schema.get_field_index(name)
    if position < 0:
        return None
    column = batch.column(position)
    if not pa.types.is_integer(column.type):
        raise InvalidMessageError(name, str(column.type), "is not a column of whole numbers")
    found: np.ndarray[Any, Any] = pc.fill_null(column, default).to_numpy(zero_copy_only=False)
    return found


def persistent(batch: pa.RecordBatch) -> np.ndarray[Any, Any] | None:
    """1 for each persistent message, by JMSDeliveryMode (nulls are); None without the column."""
    position = batch.schema.get_field_index("JMSDeliveryMode")
    if position < 0:
        return None
    column = batch.column(position)
    other = pa.array([1], column.type) if pa.types.is_integer(column.type) else pa.array(["NON_PERSISTENT"])
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    found: np.ndarray[Any, Any] = pc.invert(pc.is_in(column, other)).to_numpy(zero_copy_only=False).astype(np.int32)
    return found


def gathered(batches: Iterable[pa.RecordBatch], most_rows: int, most_bytes: int) -> Iterator[pa.Table]:
    """The batches together as tables of so many rows or bytes or a few more, the last one of what is left."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= most_rows or size >= most_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def masked(values: np.ndarray[Any, Any], there: np.ndarray[Any, Any]) -> pa.Array:
    """Whole numbers as a column, null where nothing is ``there``."""
    bits = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, pa.py_buffer(values)])


def kept_of(
    batch: pa.RecordBatch, errors: np.ndarray[Any, Any], names: Sequence[str] = KEPT_SCHEMA.names
) -> pa.RecordBatch:
    """What an assignment repeats of its message: these columns of KEPT_SCHEMA, in its order."""
    columns: list[Any] = []
    schema = pa.schema([KEPT_SCHEMA.field(name) for name in names])
    for kept in schema:
        name = KEPT_COLUMNS.get(kept.name, "")
        if kept.name == "error":
            columns.append(pa.array(errors.view(np.uint8)))
        elif name in batch.schema.names:
            columns.append(batch.column(name).cast(kept.type))
        else:
            columns.append(pa.nulls(batch.num_rows, kept.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
