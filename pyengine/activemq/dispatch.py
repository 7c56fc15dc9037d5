"""Batches of messages in, assignments out: the one driver of the core's queues for whole tables.

A Spark worker and a single process call the same ``Dispatcher``; what it answers depends on the order of the messages
of each queue and on nothing else: not on how they are cut into batches, not on the other queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine import Columns
from pyengine._engine.batches import offer_runs
from pyengine._engine.queue import Queue
from pyengine._engine.reasons import HoldReason
from pyengine.activemq.assignments import ASSIGNMENT_SCHEMA as ASSIGNMENT_SCHEMA
from pyengine.activemq.assignments import BYTES as BYTES
from pyengine.activemq.assignments import CONNECTION as CONNECTION
from pyengine.activemq.assignments import DESTINATION as DESTINATION
from pyengine.activemq.assignments import KEPT_SCHEMA, kept_of, whole_numbers
from pyengine.activemq.assignments import QUEUE as QUEUE
from pyengine.activemq.assignments import ROW as ROW
from pyengine.activemq.assignments import TRUTH as TRUTH
from pyengine.activemq.assignments import compiled as compiled
from pyengine.activemq.queues import queue_settings
from pyengine.activemq.topic_dispatch import TopicDispatcher
from pyengine.errors import MissingColumnError
from pyengine.topology import Policy, Topology
from pyengine.topology.model import TOPIC, prefetch_under

DELIVERED, EXPIRED = -1, -2  # of offer_runs
SELECTOR_REASONS = [int(HoldReason.SELECTOR), int(HoldReason.EXCLUSIVE_SELECTOR), int(HoldReason.GROUP_SELECTOR)]
REASON_WORDS = pa.array([*(reason.name.lower() for reason in HoldReason), "evaluation_error", "expired"])
_ROWS_A_CALL = 2_000
_BEHIND_SELECTORS = ("JMSMessageID", "JMSXGroupID", "JMSXGroupSeq", "JMSPriority", "JMSExpiration", "JMSTimestamp")


def columns_read(topology: Topology, available: Sequence[str]) -> list[str]:
    """The columns of a table of messages that dispatching reads, in the table's order.

    A column named TRUTH + selector stands for what the selector reads: its truth by row, found beforehand.

    Raises MissingColumnError when a selector reads a property that the messages do not have.
    """
    wanted = {ROW, DESTINATION, CONNECTION, BYTES, *_BEHIND_SELECTORS, *topology.policy_properties}
    for consumer in topology.consumers:
        if TRUTH + consumer.selector in available:
            wanted.add(TRUTH + consumer.selector)
        elif consumer.selector:
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
    encoded = destinations if pa.types.is_dictionary(destinations.type) else destinations.dictionary_encode()
    shared = TOPIC if topology.shares_topics else None
    keys = np.array(
        [-1 if shared and name.startswith(shared) else at for at, name in enumerate(encoded.dictionary.to_pylist())],
        np.int64,
    )
    table = table.append_column(QUEUE, pa.array(keys).take(encoded.indices))
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
    """Messages of many queues and topics, sorted by ``__queue``."""

    def __init__(self, topology: Topology) -> None:
        self._queues = QueueDispatcher(topology)
        self._topics = TopicDispatcher(topology) if topology.has_topics else None

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The assignments that this batch makes, of its own messages and of earlier ones that waited."""
        if self._topics is None:
            yield from self._queues.feed(batch)
            return
        names = batch.column(DESTINATION)
        if pa.types.is_dictionary(names.type):
            topics = pc.starts_with(names.dictionary, TOPIC).take(names.indices)
        else:
            topics = pc.starts_with(names, TOPIC)
        yield from self._queues.feed(batch.filter(pc.invert(topics)))
        yield from self._topics.feed(batch.filter(topics))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is still held, with the reasons; everything is closed."""
        yield from self._queues.finish()
        if self._topics is not None:
            yield from self._topics.finish()


class QueueDispatcher:
    """Messages of many queues, sorted by queue: each queue is opened where it begins and closed where it ends.

    What a batch needs once is done once: groups become codes, a selector is asked of whole columns, and the core runs
    all queues of the batch in one call. Open at the end of a batch are the queues of one value of ``__queue`` (more
    than one when two names hash alike).
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.names = pa.array([consumer.name for consumer in topology.consumers], pa.string())
        self._key: int | None = None
        self._open: dict[str, _OpenQueue] = {}
        self._shapes: dict[tuple[Any, ...], Shape] = {}

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The assignments that this batch makes, of its own messages and of earlier ones that waited."""
        if not batch.num_rows:
            return
        batch, starts, keys, names = _cut(batch)
        queues: list[_OpenQueue] = []
        bounds: list[int] = []
        here: dict[str, int] = {}
        ended: list[int] = []
        for start, key, name in zip(starts, keys, names, strict=True):
            if key != self._key:
                for queue in self._open.values():
                    if queue.name not in here:
                        here[queue.name] = len(queues)
                        queues.append(queue)
                        bounds.append(start)
                    ended.append(here[queue.name])
                self._open, here, self._key = {}, {}, key
            if name not in self._open:
                self._open[name] = self._opened(name)
            here[name] = len(queues)
            queues.append(self._open[name])
            bounds.append(start)
        yield from self._offer(batch, queues, [*bounds, batch.num_rows], ended)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What the open queues still hold, with the reasons; they are closed."""
        queues = list(self._open.values())
        self._open, self._key = {}, None
        if queues:
            none = pa.RecordBatch.from_pylist([], pa.schema([(DESTINATION, pa.string())]))
            yield from self._offer(none, queues, [0] * (len(queues) + 1), list(range(len(queues))))

    def _opened(self, name: str) -> _OpenQueue:
        covering = self.topology.covering(name)
        shape = self._shapes.get(covering)
        if shape is None:
            policy, consumers = self.topology.policy_of(name), self.topology.positions_of(name)
            shape = self._shapes[covering] = Shape(self.topology, policy, consumers)
        return _OpenQueue(name, shape, shape.queue())

    def _offer(
        self, batch: pa.RecordBatch, queues: list[_OpenQueue], bounds: list[int], ended: list[int]
    ) -> Iterator[pa.RecordBatch]:
        closing = np.zeros(len(queues), np.uint8)
        closing[ended] = 1
        matches, errors = matches_of(batch, queues, bounds)
        codes, groups = group_codes(batch)
        runs, rows, consumers, deliveries, reasons = offer_runs(
            [queue.core for queue in queues],
            np.array(bounds),
            closing,
            [queue.shape.prompt for queue in queues],
            groups=codes,
            group_names=groups,
            group_sequences=whole_numbers(batch, "JMSXGroupSeq", 0),
            priorities=whole_numbers(batch, "JMSPriority", 4),
            expirations=whole_numbers(batch, "JMSExpiration", 0),
            arrivals=whole_numbers(batch, "JMSTimestamp", 0),
            matches=matches,
        )
        kept = kept_of(batch, errors)
        parts, index = [kept], rows.copy()
        for run, queue in enumerate(queues):
            if queue.waiting:
                at = np.flatnonzero((runs == run) & (rows < bounds[run]))
                for found, where in queue.earlier(rows[at] - bounds[run] + queue.arrived):
                    index[at[where]] = sum(part.num_rows for part in parts) + np.arange(len(where))
                    parts.append(found)
                if closing[run] and (found := queue.rest()) is not None:
                    more = np.arange(found.num_rows) + sum(part.num_rows for part in parts)
                    index = np.concatenate([index, more])
                    runs = np.concatenate([runs, np.full(len(more), run, np.int32)])
                    consumers, deliveries = (
                        np.concatenate([array, np.full(len(more), -1)]) for array in (consumers, deliveries)
                    )
                    reasons = np.concatenate([reasons, np.full(len(more), EXPIRED, np.int8)])
                    parts.append(found)
            if not closing[run]:
                queue.keep(kept, bounds[run], bounds[run + 1], rows[runs == run])
        if len(index):
            yield self._assignments(parts, index, queues, runs, consumers, deliveries, reasons)

    def _assignments(
        self,
        parts: list[pa.RecordBatch],
        index: np.ndarray[Any, Any],
        queues: list[_OpenQueue],
        runs: np.ndarray[Any, Any],
        consumers: np.ndarray[Any, Any],
        deliveries: np.ndarray[Any, Any],
        reasons: np.ndarray[Any, Any],
    ) -> pa.RecordBatch:
        if len(parts) == 1 and len(index) == parts[0].num_rows and (index == np.arange(len(index))).all():
            rows = parts[0]
        else:
            rows = pa.Table.from_batches(parts).combine_chunks().take(pa.array(index)).combine_chunks()
            rows = rows.to_batches()[0]
        shapes = {id(queue.shape): queue.shape for queue in queues}
        firsts = dict(zip(shapes, np.cumsum([0, *(len(shape.consumers) for shape in shapes.values())]), strict=False))
        places = np.array([place for shape in shapes.values() for place in shape.consumers] or [0])
        first = np.array([firsts[id(queue.shape)] for queue in queues])
        found = (
            self.names.take(pa.array(places[np.maximum(first[runs] + consumers, 0)], mask=consumers < 0))
            if len(self.names)
            else pa.nulls(len(index), pa.string())
        )
        delivered = reasons == DELIVERED
        made: dict[str, Any] = {
            "destination": pa.array([queue.name for queue in queues], pa.string()).take(pa.array(runs)),
            "delivery": pa.array(deliveries, mask=~delivered),
        }
        if delivered.all():
            made["consumer"] = found
        else:
            failed = np.isin(reasons, SELECTOR_REASONS) & rows.column("error").to_numpy(zero_copy_only=False)
            words = np.where(
                failed, len(REASON_WORDS) - 2, np.where(reasons == EXPIRED, len(REASON_WORDS) - 1, reasons)
            )
            made["reason"] = REASON_WORDS.take(pa.array(words.astype(np.int64), mask=delivered))
            made["consumer"] = pc.if_else(pa.array(delivered), found, None)
            made["blocked_by"] = pc.if_else(pa.array(delivered), None, found)
        columns = [
            made[wanted.name]
            if wanted.name in made
            else rows.column(wanted.name)
            if wanted.name in KEPT_SCHEMA.names
            else pa.nulls(len(index), wanted.type)
            for wanted in ASSIGNMENT_SCHEMA
        ]
        return pa.RecordBatch.from_arrays(columns, schema=ASSIGNMENT_SCHEMA)


def member_of(topology: Topology, policy: Policy, place: int, number: int) -> dict[str, Any]:
    """How the consumer at a place of the topology joins a queue of the core, as its number-th."""
    consumer = topology.consumers[place]
    return {
        "selector": compiled(consumer.selector) if consumer.selector else None,
        "exclusive": consumer.exclusive,
        "priority": consumer.priority,
        "prefetch": prefetch_under(policy, consumer),
        "no_local": consumer.no_local,
        "connection": consumer.connection or ("consumer", number),
    }


class Membership:
    """What consumers of a queue ask of a batch. members: id at the core -> place in the topology.

    questions: (bit of ``matches``, selector or "", connection whose messages are refused or ""). prompt: as
    offer_runs wants it.
    """

    def __init__(self, topology: Topology, core: Queue, members: Mapping[int, int]) -> None:
        asked: dict[int, tuple[str, str]] = {}
        prompt: set[int] = set()
        for number, place in members.items():
            consumer = topology.consumers[place]
            if consumer.selector or consumer.no_local:
                refused = consumer.connection if consumer.no_local else ""
                asked.setdefault(core.predicate_of(number), (consumer.selector, refused))
            if consumer.acknowledges:
                prompt.add(number)
        self.questions = sorted((bit, *question) for bit, question in asked.items())
        self.prompt = None if len(prompt) == len(members) else prompt


class HasShape(Protocol):
    """A queue of a batch, as far as its messages' answers depend on it."""

    @property
    def shape(self) -> Membership: ...


class Shape(Membership):
    """What queues with the same policy and the same consumers have in common.

    consumers: places in the topology; their ids at the core are 0, 1, ... in this order.
    """

    def __init__(self, topology: Topology, policy: Policy, consumers: tuple[int, ...]) -> None:
        self.consumers = consumers
        self._policy = policy
        self._members = [member_of(topology, policy, place, number) for number, place in enumerate(consumers)]
        super().__init__(topology, self.queue(), dict(enumerate(consumers)))

    def queue(self) -> Queue:
        """A new queue with its consumers."""
        core = Queue(**queue_settings(self._policy))
        for member in self._members:
            core.add_consumer(**member)
        return core


@dataclass
class _Waiting:
    """Messages of one batch that outlived it. sequences: ascending arrival numbers; left: which still wait."""

    sequences: np.ndarray[Any, Any]
    rows: pa.RecordBatch
    left: np.ndarray[Any, Any]


@dataclass
class _OpenQueue:
    """A queue of the core with what the assignments of its waiting messages need. arrived: messages so far."""

    name: str
    shape: Shape
    core: Queue
    arrived: int = 0
    waiting: list[_Waiting] = field(default_factory=list)

    def earlier(self, sequences: np.ndarray[Any, Any]) -> Iterator[tuple[pa.RecordBatch, np.ndarray[Any, Any]]]:
        """The rows of earlier batches with these arrival numbers, and where in ``sequences`` they stand."""
        starts = np.array([part.sequences[0] for part in self.waiting])
        which = np.searchsorted(starts, sequences, side="right") - 1
        for chunk in np.unique(which).tolist():
            where = np.flatnonzero(which == chunk)
            part = self.waiting[chunk]
            places = np.searchsorted(part.sequences, sequences[where])
            part.left[places] = False
            yield part.rows.take(pa.array(places)), where

    def rest(self) -> pa.RecordBatch | None:
        """Rows of earlier batches that were neither delivered nor held at the end: their time was over."""
        parts = [part.rows.filter(pa.array(part.left)) for part in self.waiting if part.left.any()]
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0] if parts else None

    def keep(self, kept: pa.RecordBatch, start: int, stop: int, told: np.ndarray[Any, Any]) -> None:
        """Keep the rows of a batch that were not delivered in it, and forget the older ones that were since."""
        left = np.ones(stop - start, bool)
        left[told[told >= start] - start] = False
        if left.any():
            at = np.flatnonzero(left)
            self.waiting.append(_Waiting(self.arrived + at, kept.take(pa.array(at + start)), np.ones(len(at), bool)))
        self.arrived += stop - start
        for part in self.waiting:
            if 2 * np.count_nonzero(part.left) < len(part.left):
                part.rows = part.rows.filter(pa.array(part.left))
                part.sequences = part.sequences[part.left]
                part.left = np.ones(len(part.sequences), bool)
        self.waiting = [part for part in self.waiting if len(part.sequences)]


def _cut(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int], list[int], list[str]]:
    """The batch, and the first row, key and name of every run of one queue; the names of a key in one run each."""
    keys = batch.column(QUEUE).to_numpy(zero_copy_only=False)
    names = batch.column(DESTINATION)
    if pa.types.is_dictionary(names.type):
        codes = names.indices.to_numpy(zero_copy_only=False)
        renamed = codes[1:] != codes[:-1]
    else:
        renamed = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy(zero_copy_only=False)
    turned = keys[1:] != keys[:-1]
    if (renamed & ~turned).any():
        codes = names.cast(pa.string()).dictionary_encode().indices.to_numpy(zero_copy_only=False)
        order = np.lexsort((codes, np.concatenate([[0], np.cumsum(turned)])))
        batch, codes = batch.take(pa.array(order)), codes[order]
        renamed = codes[1:] != codes[:-1]
    starts = np.concatenate([[0], np.flatnonzero(turned | renamed) + 1])
    names = batch.column(DESTINATION).take(pa.array(starts))
    return batch, starts.tolist(), keys[starts].tolist(), names.to_pylist()


def group_codes(batch: pa.RecordBatch) -> tuple[np.ndarray[Any, Any] | None, list[str] | None]:
    position = batch.schema.get_field_index("JMSXGroupID")
    if position < 0 or batch.column(position).null_count == batch.num_rows:
        return None, None
    column = batch.column(position)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if len(encoded.dictionary) > batch.num_rows:
        encoded = pc.dictionary_encode(pc.cast(encoded, encoded.type.value_type))
    names = encoded.dictionary.to_pylist()
    codes = pc.fill_null(encoded.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    if None in names:
        codes = np.where(codes == names.index(None), np.int32(-1), codes)
    return codes, names


def matches_of(
    batch: pa.RecordBatch, queues: Sequence[HasShape], bounds: list[int]
) -> tuple[np.ndarray[Any, Any] | None, np.ndarray[Any, Any]]:
    """Bits of the selectors that match, as offer_runs wants them, and where a selector could not be evaluated."""
    size = batch.num_rows
    errors = np.zeros(size, bool)
    shapes: dict[int, tuple[Membership, list[tuple[int, int]]]] = {}
    for queue, start, stop in zip(queues, bounds[:-1], bounds[1:], strict=True):
        spans = shapes.setdefault(id(queue.shape), (queue.shape, []))[1]
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], stop)
        else:
            spans.append((start, stop))
    words = max((shape.questions[-1][0] // 64 + 1 for shape, _ in shapes.values() if shape.questions), default=0)
    if not words:
        return None, errors
    bits = np.zeros((size, words), np.uint64)
    bits[:, 0] = 1
    answers = Answers(batch)
    for shape, spans in shapes.values():
        for selector in {selector for _, selector, _ in shape.questions if selector}:
            answers.announce(selector, spans)
    for shape, spans in shapes.values():
        at: Any = slice(*spans[0])
        if len(spans) > 1:
            at = np.concatenate([np.arange(start, stop) for start, stop in spans])
        for bit, selector, refused in shape.questions:
            matching = np.ones(size, bool)[at]
            if selector:
                truth = answers.of(selector)[at]
                matching = truth == 1
                errors[at] |= truth == -2
            if refused and CONNECTION in batch.schema.names:
                own = pc.fill_null(pc.equal(batch.column(CONNECTION), refused), False)
                matching = matching & ~own.to_numpy(zero_copy_only=False)[at]
            bits[at, bit // 64] |= matching.astype(np.uint64) << np.uint64(bit % 64)
    return bits, errors


class Answers:
    """The truth of selectors on one batch: each asked once, of all rows, or of the few spans where it matters."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.spans: dict[str, list[tuple[int, int]]] = {}
        self.found: dict[str, np.ndarray[Any, Any]] = {}
        self.imported: dict[tuple[int, int], Columns] = {}

    def announce(self, selector: str, spans: list[tuple[int, int]]) -> None:
        """A selector will be asked of these rows."""
        self.spans[selector] = self.spans.get(selector, []) + spans

    def of(self, selector: str) -> np.ndarray[Any, Any]:
        """Truth by row of the whole batch; right on the spans that were announced."""
        if selector not in self.found and TRUTH + selector in self.batch.schema.names:
            self.found[selector] = self.batch.column(TRUTH + selector).to_numpy(zero_copy_only=False)
        if selector not in self.found:
            size, spans = self.batch.num_rows, [span for span in self.spans[selector] if span[0] < span[1]]
            # A span costs a call, about as much as a few thousand rows.
            if spans and len(spans) * _ROWS_A_CALL + sum(stop - start for start, stop in spans) > size:
                spans = [(0, size)]
            truth = np.zeros(size, np.int8)
            for start, stop in spans:
                columns = self.imported.get((start, stop))
                if columns is None:
                    columns = self.imported[start, stop] = Columns(self.batch.slice(start, stop - start))
                truth[start:stop] = compiled(selector).truth(columns)
            self.found[selector] = truth
        return self.found[selector]
