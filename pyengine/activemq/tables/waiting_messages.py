"""The messages that wait in the queues of a stream: one Arrow table in the order of queue and arrival.

A message's key is the number of its queue and its arrival number there, in one integer, so that the table is sorted by
key and the messages of a queue are a range of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine.activemq.tables.assignments import CONNECTION, DESTINATION

_KEY, _ATTEMPTS, _ERROR = "__key", "__attempts", "__error"
_SEQUENCE_BITS = 40  # of a key; the queue's number stands above
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1

Array = np.ndarray[Any, Any]


def keys_of(numbers: Array, sequences: Array) -> Array:
    """The keys of messages: numbers of their queues, and their arrival numbers there."""
    keys: Array = (numbers.astype(np.int64) << _SEQUENCE_BITS) + sequences
    return keys


def numbers_of(keys: Array) -> Array:
    """The numbers of the queues of these messages."""
    return keys >> _SEQUENCE_BITS


def sequences_in(keys: Array, number: int) -> list[int]:
    """The arrival numbers of those of these sorted keys that lie in a queue."""
    low, high = np.searchsorted(keys, [number << _SEQUENCE_BITS, (number + 1) << _SEQUENCE_BITS])
    found: list[int] = (keys[low:high] & _SEQUENCE_MASK).tolist()
    return found


class WaitingMessages:
    """Messages with how often each was delivered, and whether a selector failed on it.

    columns: the schema of the stream's messages.
    """

    def __init__(self, columns: pa.Schema) -> None:
        self.table = pa.table(
            {
                _KEY: pa.array([], pa.int64()),
                _ATTEMPTS: pa.array([], pa.int32()),
                _ERROR: pa.array([], pa.bool_()),
                **{name: pa.array([], columns.field(name).type) for name in columns.names if name != DESTINATION},
            }
        )

    @property
    def keys(self) -> Array:
        """Of each message, ascending."""
        keys: Array = self.table.column(_KEY).to_numpy()
        return keys

    @property
    def attempts(self) -> Array:
        """How often each message was delivered."""
        attempts: Array = self.table.column(_ATTEMPTS).to_numpy()
        return attempts

    @property
    def errors(self) -> Array:
        """Whether a selector failed on each message."""
        errors: Array = self.table.column(_ERROR).to_numpy()
        return errors

    def rows_of(self, keys: Array) -> Array:
        """The rows of the table that have these keys, which are all there."""
        return np.searchsorted(self.keys, keys)

    def sent_by(self, connection: str) -> Array | None:
        """Which messages a connection sent; None if no message has a connection."""
        if CONNECTION not in self.table.column_names:
            return None
        own: Array = pc.fill_null(pc.equal(self.table.column(CONNECTION), connection), False).to_numpy()
        return own

    # Shards

    def add_shard(self, saved: pa.Table, first: int) -> None:
        """Add what :meth:`shard` gave, of queues whose numbers begin with ``first`` now. Columns that this table has
        not are dropped, columns that it alone has are null."""
        schema = self.table.schema
        columns = [
            saved.column(field.name).cast(field.type)
            if field.name in saved.column_names
            else pa.nulls(saved.num_rows, field.type)
            for field in schema
        ]
        moved = pa.Table.from_arrays(columns, schema=schema)
        keys = pa.array(moved.column(_KEY).to_numpy() + (first << _SEQUENCE_BITS))
        self.table = pa.concat_tables([self.table, moved.set_column(0, _KEY, keys)])

    def shard(self, queues: list[int], count: int) -> pa.Table:
        """The messages of these of ``count`` queues, as if the queues were numbered from 0 in this order."""
        place = np.full(count + 1, -1)
        place[queues] = np.arange(len(queues))
        keys = self.keys
        owner = place[numbers_of(keys)]
        inside = (keys & _SEQUENCE_MASK) + (owner << _SEQUENCE_BITS)
        rows = self.table.filter(pa.array(owner >= 0))
        return rows.set_column(0, _KEY, pa.array(inside[owner >= 0])).combine_chunks()

    # Changes

    def add(self, messages: pa.RecordBatch, keys: Array, attempts: Array, errors: Array) -> None:
        """Add messages of a batch."""
        own = {_KEY: pa.array(keys), _ATTEMPTS: pa.array(attempts), _ERROR: pa.array(errors)}
        schema = self.table.schema
        columns = [
            own[field.name] if field.name in own else messages.column(field.name).cast(field.type) for field in schema
        ]
        self.table = pa.concat_tables([self.table, pa.Table.from_arrays(columns, schema=schema)])
        keys = self.keys
        if (keys[1:] < keys[:-1]).any():
            self.table = self.table.take(pa.array(np.argsort(keys, kind="stable")))

    def remove(self, gone: Array) -> None:
        """Remove the messages of these rows, a mask."""
        self.table = self.table.filter(pa.array(~gone)).combine_chunks()

    def note_errors(self, at: Array, truth: Array) -> None:
        """A selector's truths of the messages in these rows: -2 if it failed."""
        errors = self.errors.copy()
        errors[at] |= truth == -2
        self.table = self.table.set_column(2, _ERROR, pa.array(errors))

    def count_delivery(self, keys: Array) -> tuple[Array, Array]:
        """The rows of messages that are delivered now, and how often each was, this time included."""
        at = self.rows_of(keys)
        attempts = self.attempts.copy()
        # A message goes to one consumer after another only when the first one left, and that is another call.
        attempts[at] += 1
        self.table = self.table.set_column(1, _ATTEMPTS, pa.array(attempts))
        return at, attempts[at]
