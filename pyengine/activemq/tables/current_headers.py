"""Selectors that read what changes while a message waits, on messages that are rows of a table.

A queue of batches keeps no objects that it could ask again when JMSRedelivered, JMSXDeliveryCount or
JMSXGroupFirstForConsumer change; their rows are asked, with the values of now in the columns of these names.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine.activemq.tables.assignments import compiled
from pyengine.activemq.tables.typed_texts import TypedRows

REDELIVERED, COUNT, FIRST = "JMSRedelivered", "JMSXDeliveryCount", "JMSXGroupFirstForConsumer"


def truth_now(
    selector: str, rows: pa.Table, redeliveries: np.ndarray[Any, Any], group_first: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Truth (int8, as Selector.truth) of a selector on messages of a queue, one a row, as they are now.

    redeliveries: how often each came back on this queue; group_first: whether it was the first of its group at a
    consumer. Of a message that was neither these columns are read as they are; one that was sent with a counter counts
    on from there.
    """
    truth = np.empty(rows.num_rows, np.int8)
    back = redeliveries > 0
    for again, first in itertools.product((False, True), repeat=2):
        at = np.flatnonzero((back == again) & (group_first == first))
        if len(at):
            batch = rows.take(pa.array(at))
            values = {FIRST: pa.array(np.ones(len(at), bool))} if first else {}
            if again:
                counters = redeliveries[at] + _counter_sent(batch)
                values |= {REDELIVERED: pa.array(counters > 0), COUNT: pa.array(counters + 1, pa.int32())}
            for name, column in values.items():
                place = batch.schema.get_field_index(name)
                batch = batch.append_column(name, column) if place < 0 else batch.set_column(place, name, column)
            truth[at] = TypedRows(batch).truth(compiled(selector))
    return truth


def _counter_sent(rows: pa.Table) -> np.ndarray[Any, Any]:
    """The redelivery counter with which each message was sent."""
    counter = np.zeros(rows.num_rows, np.int64)
    for name, fits, less in ((COUNT, pa.types.is_integer, 1), (REDELIVERED, pa.types.is_boolean, 0)):
        place = rows.schema.get_field_index(name)
        if place >= 0 and fits(rows.schema.field(place).type):
            column = pc.fill_null(rows.column(place).cast(pa.int64()), 0).to_numpy()
            counter = np.maximum(counter, column - less)
    return counter
