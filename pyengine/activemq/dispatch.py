"""Batches of messages in, assignments out: the one driver of the core's queues for whole tables.

A Spark worker and a single process call the same ``Dispatcher``; what it answers depends on the order of the messages
of each queue and on nothing else: not on how they are cut into batches, not on the other queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine import Columns, Selector
from pyengine._engine.queue import Queue
from pyengine._engine.reasons import HoldReason
from pyengine.errors import InvalidMessageError, MissingColumnError
from pyengine.topology import Consumer, Topology

ROW, DESTINATION, CONNECTION, BYTES, QUEUE = "__row", "__destination", "__connection", "__bytes", "__queue"

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
_KEPT = pa.schema(
    [
        ("row", pa.int64()),
        ("message_id", pa.string()),
        ("group", pa.string()),
        ("timestamp", pa.int64()),
        ("bytes", pa.int64()),
        ("error", pa.bool_()),
    ]
)
_SELECTOR_REASONS = {HoldReason.SELECTOR, HoldReason.EXCLUSIVE_SELECTOR, HoldReason.GROUP_SELECTOR}
_BEHIND_SELECTORS = ("JMSMessageID", "JMSXGroupID", "JMSXGroupSeq", "JMSPriority", "JMSExpiration", "JMSTimestamp")


@lru_cache(maxsize=4096)
def compiled(text: str, dialect: str = "activemq") -> Selector:
    """The Selector of a text, compiled once per process."""
    return Selector(text, dialect)  # type: ignore[arg-type]


def columns_read(topology: Topology, available: Sequence[str]) -> list[str]:
    """The columns of a table of messages that dispatching reads, in the table's order.

    Raises MissingColumnError when a selector reads a property that the messages do not have.
    """
    wanted = {ROW, DESTINATION, CONNECTION, BYTES, *_BEHIND_SELECTORS}
    for consumer in topology.consumers:
        if consumer.selector:
            for name in compiled(consumer.selector).names:
                if name not in available and not name.startswith("JMS"):
                    raise MissingColumnError(
                        name, _properties(available), f"the source, read by consumer {consumer.name!r},"
                    )
                wanted.add(name)
    return [name for name in available if name in wanted]


def _properties(available: Sequence[str]) -> list[str]:
    return [name for name in available if not name.startswith(("__", "JMS"))]


def dispatch_table(topology: Topology, messages: pa.Table, batch_size: int = 10_000) -> pa.Table:
    """Who gets each message, or why not: the whole table in this process, as ASSIGNMENT_SCHEMA.

    messages: as pyengine.backlog.messages makes them. Within its queue a message comes after those of an earlier
    JMSTimestamp if the source says ``order = "timestamp"``, then by row. Rows come out queue by queue, in order of
    delivery, then what is held. batch_size changes nothing but the memory used.
    """
    table = messages.select(columns_read(topology, messages.column_names))
    destinations = table.column(DESTINATION).combine_chunks()
    codes = (destinations if pa.types.is_dictionary(destinations.type) else destinations.dictionary_encode()).indices
    table = table.append_column(QUEUE, pa.chunked_array([codes]).cast(pa.int64()))
    table = table.take(
        pc.sort_indices(table, [(name, "ascending") for name in order_columns(topology, table.column_names)])
    )
    return pa.Table.from_batches(
        dispatch_batches(topology, table.combine_chunks().to_batches(max_chunksize=batch_size)), ASSIGNMENT_SCHEMA
    )


def order_columns(topology: Topology, available: Sequence[str]) -> list[str]:
    """What messages are sorted by before they are dispatched; numbers only."""
    by_time = topology.source.order == "timestamp" and "JMSTimestamp" in available
    return [QUEUE, *(["JMSTimestamp"] if by_time else []), ROW]


def dispatch_batches(topology: Topology, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Assignments of messages that come sorted by ``order_columns``; a queue may run over any number of batches."""
    dispatcher = Dispatcher(topology)
    for batch in batches:
        yield from dispatcher.feed(batch)
    yield from dispatcher.finish()


class Dispatcher:
    """The queues that are open now: those of one value of ``__queue`` (more than one when two names hash alike)."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._key: int | None = None
        self._open: dict[str, _OpenQueue] = {}

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The assignments that this batch makes, of its own messages and of earlier ones that waited."""
        if not batch.num_rows:
            return
        keys = batch.column(QUEUE).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1, [len(keys)]])
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if keys[start] != self._key:
                yield from self.finish()
                self._key = int(keys[start])
            part = batch.slice(start, stop - start)
            names = part.column(DESTINATION)
            for name in pc.unique(names).to_pylist():
                if name not in self._open:
                    self._open[name] = _OpenQueue(self.topology, name)
                own = part if len(self._open) == 1 else part.filter(pc.equal(names, name))
                found = self._open[name].feed(own)
                if found.num_rows:
                    yield found

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What the open queues still hold, with the reasons; they are closed."""
        for queue in self._open.values():
            found = queue.held()
            if found.num_rows:
                yield found
        self._open = {}
        self._key = None


@dataclass
class _Waiting:
    """Messages of one batch that were not delivered in it. sequences: ascending arrival numbers; rows: of _KEPT."""

    sequences: np.ndarray[Any, Any]
    rows: pa.RecordBatch


@dataclass
class _OpenQueue:
    """One queue of the core with what the assignments of its waiting messages need."""

    topology: Topology
    name: str
    core: Queue = field(init=False)
    consumers: dict[int, Consumer] = field(init=False)
    at_once: list[int] = field(init=False)
    questions: list[tuple[int, Consumer]] = field(init=False)
    arrived: int = 0
    delivered: int = 0
    waiting: list[_Waiting] = field(default_factory=list)
    late: list[np.ndarray[Any, Any]] = field(default_factory=list)  # arrival numbers delivered in a later batch

    def __post_init__(self) -> None:
        policy = self.topology.policy_of(self.name)
        self.core = Queue(
            max_page_size=policy.max_page_size,
            use_consumer_priority=policy.use_consumer_priority,
            strict_order_dispatch=policy.strict_order_dispatch,
            prioritized_messages=policy.prioritized_messages,
            lazy_dispatch=policy.lazy_dispatch,
            use_prefetch_extension=policy.use_prefetch_extension,
            all_consumers_exclusive_by_default=policy.all_consumers_exclusive_by_default,
            message_group_map_factory_type=policy.message_group_map_factory_type,
            consumers_before_dispatch_starts=policy.consumers_before_dispatch_starts,
            time_before_dispatch_starts=policy.time_before_dispatch_starts,
        )
        self.consumers = {}
        for consumer in self.topology.consumers_of(self.name):
            number = self.core.add_consumer(
                selector=compiled(consumer.selector) if consumer.selector else None,
                exclusive=consumer.exclusive,
                priority=consumer.priority,
                prefetch=self.topology.prefetch_of(consumer, self.name),
                no_local=consumer.no_local,
                connection=consumer.connection or ("consumer", len(self.consumers)),
            )
            self.consumers[number] = consumer
        self.at_once = [number for number, consumer in self.consumers.items() if consumer.acknowledges]
        asked: dict[int, Consumer] = {}
        for number, consumer in self.consumers.items():
            if consumer.selector or consumer.no_local:
                asked.setdefault(self.core.predicate_of(number), consumer)
        self.questions = sorted(asked.items(), key=lambda item: item[0])

    def feed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        first, size = self.arrived, batch.num_rows
        self.arrived += size
        matches, errors = self._matches(batch)
        _, sequences, takers = self.core.offer_batch(
            size,
            groups=self._groups(batch),
            group_sequences=_numbers(batch, "JMSXGroupSeq", 0),
            priorities=_numbers(batch, "JMSPriority", 4),
            expirations=_numbers(batch, "JMSExpiration", 0),
            arrivals=_numbers(batch, "JMSTimestamp", 0),
            matches=matches,
            acknowledge=self.at_once,
        )
        kept = _kept(batch, errors)
        here = np.ones(size, bool)
        here[sequences[sequences >= first] - first] = False
        parts = [kept]
        index = sequences - first
        for found, at in self._earlier(sequences, first):
            index[at] = sum(part.num_rows for part in parts) + np.arange(len(at))
            parts.append(found)
        left = np.flatnonzero(here)
        if len(left):
            self.waiting.append(_Waiting(left + first, kept.take(pa.array(left))))
        rows = pa.Table.from_batches(parts).take(pa.array(index)).combine_chunks()
        numbers = np.arange(self.delivered, self.delivered + len(sequences))
        self.delivered += len(sequences)
        names = [self.consumers[number].name for number in self.consumers]
        return _assignments(
            rows,
            self.name,
            consumer=pa.array(names, pa.string()).take(pa.array(takers)),
            delivery=pa.array(numbers, pa.int64()),
        )

    def held(self) -> pa.RecordBatch:
        sequences, reasons, about = self.core.held()
        rows = pa.Table.from_batches([part.rows for part in self.waiting], _KEPT)
        known = np.concatenate([part.sequences for part in self.waiting]) if self.waiting else np.empty(0, np.int64)
        rows = rows.take(pa.array(np.searchsorted(known, sequences))).combine_chunks()
        words = pa.array([reason.name.lower() for reason in HoldReason]).take(pa.array(reasons.astype(np.int64)))
        if len(sequences):
            unasked = np.isin(reasons, list(_SELECTOR_REASONS))
            failed = pa.array(unasked & rows.column("error").to_numpy(zero_copy_only=False).astype(bool))
            words = pc.if_else(failed, "evaluation_error", words)
        names = pa.array([self.consumers[number].name for number in self.consumers], pa.string())
        found = _assignments(
            rows,
            self.name,
            reason=words,
            blocked_by=names.take(pa.array(about, mask=about < 0)) if len(names) else pa.nulls(len(about), pa.string()),
        )
        return self._with_expired(found, known, sequences)

    def _with_expired(
        self, found: pa.RecordBatch, known: np.ndarray[Any, Any], held: np.ndarray[Any, Any]
    ) -> pa.RecordBatch:
        """What was not delivered and is not held either was taken off the queue because its time was over."""
        stayed = ~np.isin(known, np.concatenate([held, *self.late]))
        if not stayed.any():
            return found
        rows = (
            pa.Table.from_batches([part.rows for part in self.waiting], _KEPT).filter(pa.array(stayed)).combine_chunks()
        )
        gone = _assignments(rows, self.name, reason=pa.array(["expired"] * rows.num_rows))
        return pa.Table.from_batches([found, gone]).combine_chunks().to_batches()[0]

    def _earlier(
        self, sequences: np.ndarray[Any, Any], first: int
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray[Any, Any]]]:
        """Rows of earlier batches among the deliveries, and where in ``sequences`` they stand."""
        old = np.flatnonzero(sequences < first)
        if not len(old):
            return
        self.late.append(sequences[old])
        starts = np.array([part.sequences[0] for part in self.waiting])
        which = np.searchsorted(starts, sequences[old], side="right") - 1
        for chunk in np.unique(which).tolist():
            at = old[which == chunk]
            part = self.waiting[chunk]
            yield part.rows.take(pa.array(np.searchsorted(part.sequences, sequences[at]))), at

    def _groups(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any] | None:
        position = batch.schema.get_field_index("JMSXGroupID")
        if position < 0 or batch.column(position).null_count == batch.num_rows:
            return None
        column = batch.column(position)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        handles = self.core.intern_groups([*encoded.dictionary.to_pylist(), None])
        codes = pc.fill_null(encoded.indices.cast(pa.int64()), len(handles) - 1).to_numpy(zero_copy_only=False)
        found: np.ndarray[Any, Any] = handles[codes]
        return found

    def _matches(self, batch: pa.RecordBatch) -> tuple[np.ndarray[Any, Any] | None, np.ndarray[Any, Any]]:
        """Bits of the selectors that match, as offer_batch wants them, and where a selector could not be evaluated."""
        errors = np.zeros(batch.num_rows, bool)
        if not self.questions:
            return None, errors
        bits = np.zeros((batch.num_rows, self.questions[-1][0] // 64 + 1), np.uint64)
        bits[:, 0] = 1
        columns = Columns(batch)
        seen: dict[str, np.ndarray[Any, Any]] = {}
        for bit, consumer in self.questions:
            answer = np.ones(batch.num_rows, bool)
            if consumer.selector:
                if consumer.selector not in seen:
                    seen[consumer.selector] = compiled(consumer.selector).truth(columns)
                answer = seen[consumer.selector] == 1
                errors |= seen[consumer.selector] == -2
            if consumer.no_local and consumer.connection and CONNECTION in batch.schema.names:
                own = pc.fill_null(pc.equal(batch.column(CONNECTION), consumer.connection), False)
                answer &= ~own.to_numpy(zero_copy_only=False)
            bits[:, bit // 64] |= answer.astype(np.uint64) << np.uint64(bit % 64)
        return bits, errors


def _numbers(batch: pa.RecordBatch, name: str, default: int) -> np.ndarray[Any, Any] | None:
    position = batch.schema.get_field_index(name)
    if position < 0:
        return None
    column = batch.column(position)
    if not pa.types.is_integer(column.type):
        raise InvalidMessageError(name, str(column.type), "is not a column of whole numbers")
    found: np.ndarray[Any, Any] = pc.fill_null(column, default).to_numpy(zero_copy_only=False)
    return found


def _kept(batch: pa.RecordBatch, errors: np.ndarray[Any, Any]) -> pa.RecordBatch:
    """What an assignment repeats of its message."""
    sources = {
        "row": ROW,
        "message_id": "JMSMessageID",
        "group": "JMSXGroupID",
        "timestamp": "JMSTimestamp",
        "bytes": BYTES,
    }
    columns: list[Any] = []
    for kept in _KEPT:
        name = sources.get(kept.name, "")
        if kept.name == "error":
            columns.append(pa.array(errors))
        elif name in batch.schema.names:
            columns.append(batch.column(name).cast(kept.type))
        else:
            columns.append(pa.nulls(batch.num_rows, kept.type))
    return pa.RecordBatch.from_arrays(columns, schema=_KEPT)


def _assignments(rows: pa.Table, destination: str, **given: Any) -> pa.RecordBatch:
    size = rows.num_rows
    columns: list[Any] = []
    for wanted in ASSIGNMENT_SCHEMA:
        if wanted.name in given:
            columns.append(given[wanted.name].cast(wanted.type))
        elif wanted.name == "destination":
            columns.append(pa.array([destination], pa.string()).take(pa.array(np.zeros(size, np.int64))))
        elif wanted.name in rows.schema.names:
            columns.append(_flat(rows.column(wanted.name), wanted.type))
        else:
            columns.append(pa.nulls(size, wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=ASSIGNMENT_SCHEMA)


def _flat(column: Any, type: pa.DataType) -> Any:
    """A chunked column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, type)
