"""Batches of messages in, assignments out: the one driver of the core's queues for whole tables.

A Spark worker and a single process call the same ``Dispatcher``; what it answers depends on the order of the messages
of each queue and on nothing else: not on how they are cut into batches, not on the other queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile
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
from pyengine.activemq.assignments import KEPT_SCHEMA, kept_of, persistent, whole_numbers
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
_BEHIND_SELECTORS = (
    "JMSMessageID", "JMSXGroupID", "JMSXGroupSeq", "JMSPriority", "JMSExpiration", "JMSTimestamp", "JMSDeliveryMode",
)  # fmt: skip


def columns_read(topology: Topology, available: Sequence[str], told: Sequence[str] | None = None) -> list[str]:
    """The columns of a table of messages that dispatching reads, in the table's order.

    A column named TRUTH + selector stands for what the selector reads: its truth by row, found beforehand. told: the
    columns of the answer, None all.

    Raises MissingColumnError when a selector reads a property that the messages do not have.
    """
    wanted = {ROW, DESTINATION, CONNECTION, BYTES, *_BEHIND_SELECTORS, *topology.policy_properties}
    asked: set[str] = set()
    for consumer in topology.consumers:
        if TRUTH + consumer.selector in available:
            wanted.add(TRUTH + consumer.selector)
        elif consumer.selector:
            for name in compiled(consumer.selector).names:
                if name not in available and not name.startswith("JMS"):
                    raise MissingColumnError(
                        name, _properties(available), f"the source, read by consumer {consumer.name!r},"
                    )
                asked.add(name)
    if told is not None and not topology.has_topics:
        timed = "JMSExpiration" in available or any(
            policy.consumers_before_dispatch_starts or policy.time_before_dispatch_starts
            for policy in (*topology.policies, topology.default_policy)
        )
        needless = {"message_id": "JMSMessageID", "bytes": BYTES, **({} if timed else {"timestamp": "JMSTimestamp"})}
        wanted -= {name for column, name in needless.items() if column not in told}
    wanted |= asked
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


def dispatch_batches(
    topology: Topology, batches: Iterable[pa.RecordBatch], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Assignments of messages that come sorted by ``order_columns``; a queue may run over any number of batches.

    columns: of ASSIGNMENT_SCHEMA, in its order; None: all.
    """
    dispatcher = Dispatcher(topology, columns)
    for batch in batches:
        yield from dispatcher.feed(batch)
    yield from dispatcher.finish()


class Dispatcher:
    """Messages of many queues and topics, sorted by ``__queue``."""

    def __init__(self, topology: Topology, columns: Sequence[str] | None = None) -> None:
        self._queues = QueueDispatcher(topology, columns)
        self._columns = None if columns is None else self._queues.schema.names
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
        yield from self._selected(self._topics.feed(batch.filter(topics)))

    def _selected(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches if self._columns is None else (batch.select(self._columns) for batch in batches)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is still held, with the reasons; everything is closed."""
        yield from self._queues.finish()
        if self._topics is not None:
            yield from self._selected(self._topics.finish())


class QueueDispatcher:
    """Messages of many queues, sorted by queue: each queue is opened where it begins and closed where it ends.

    What a batch needs once is done once: groups become codes, a selector is asked of whole columns, and the core runs
    all queues of the batch in one call. Open at the end of a batch are the queues of one value of ``__queue`` (more
    than one when two names hash alike). Kept are the messages that a queue may still hand out, at most a page of them
    (maxPageSize) and what a start delay holds back.
    """

    def __init__(self, topology: Topology, columns: Sequence[str] | None = None) -> None:
        self.topology = topology
        self.schema = pa.schema([each for each in ASSIGNMENT_SCHEMA if columns is None or each.name in columns])
        self._kept = [each.name for each in KEPT_SCHEMA if each.name in self.schema.names or each.name == "error"]
        self.names = pa.array([consumer.name for consumer in topology.consumers], pa.string())
        self._key: int | None = None
        self._open: dict[str, _OpenQueue] = {}
        self._shapes: dict[tuple[Any, ...], Shape] = {}

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The assignments that this batch makes, of its own messages and of earlier ones that waited."""
        if not batch.num_rows:
            return
        batch, starts, keys, names = _cut(batch)
        head = _while(keys, self._key)
        if head == len(keys):
            self._open |= {name: self._opened(name) for name in names if name not in self._open}
            known = [self._open[name] for name in names]
            yield from self._offer(batch, known, [], [], [*starts, batch.num_rows], closing=0)
            return
        # Of the queues that were open some have more rows here; all end here, because the key is another one now.
        first = [self._open.pop(name) if name in self._open else self._opened(name) for name in names[:head]]
        first += self._open.values()
        bounds = [*starts[:head], *[starts[head]] * (len(first) - head), *starts[head:], batch.num_rows]
        tail = len(keys) - _while(reversed(keys), keys[-1])
        self._key = keys[-1]
        self._open = {name: self._opened(name) for name in names[tail:]}
        between = names[head:tail]
        yield from self._offer(
            batch, first, between, list(self._open.values()), bounds, closing=len(first) + len(between)
        )

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What the open queues still hold, with the reasons; they are closed."""
        queues = list(self._open.values())
        self._open, self._key = {}, None
        if queues:
            none = pa.RecordBatch.from_pylist([], pa.schema([(DESTINATION, pa.string())]))
            yield from self._offer(none, queues, [], [], [0] * (len(queues) + 1), closing=len(queues))

    def _shape_of(self, name: str) -> Shape:
        covering = self.topology.covering(name)
        shape = self._shapes.get(covering)
        if shape is None:
            policy, consumers = self.topology.policy_of(name), self.topology.positions_of(name)
            shape = self._shapes[covering] = Shape(self.topology, policy, consumers)
        return shape

    def _opened(self, name: str) -> _OpenQueue:
        shape = self._shape_of(name)
        return _OpenQueue(name, shape, shape.queue())

    def _offer(
        self,
        batch: pa.RecordBatch,
        first: list[_OpenQueue],
        between: list[str],
        last: list[_OpenQueue],
        bounds: list[int],
        *,
        closing: int,
    ) -> Iterator[pa.RecordBatch]:
        """first, last: queues that were there before this batch or stay. between: names of those that begin and end in
        it. closing: so many end, from the first on."""
        names = [*(queue.name for queue in first), *between, *(queue.name for queue in last)]
        inside = [self._shape_of(name) for name in between]
        shapes = [*(queue.shape for queue in first), *inside, *(queue.shape for queue in last)]
        beyond = [*enumerate(first), *enumerate(last, len(first) + len(between))]
        matches, errors = matches_of(batch, shapes, bounds)
        every = any(shape.by_name for shape in {id(shape): shape for shape in shapes}.values())
        codes, groups = group_codes(batch, None if every else [(bounds[run], bounds[run + 1]) for run, _ in beyond])
        closes = np.zeros(len(shapes), np.uint8)
        closes[:closing] = 1
        runs, rows, consumers, deliveries, reasons = offer_runs(
            [*(queue.core for queue in first), *(shape.core for shape in inside), *(queue.core for queue in last)],
            np.array(bounds),
            closes,
            [shape.prompt for shape in shapes],
            groups=codes,
            group_names=groups,
            group_sequences=whole_numbers(batch, "JMSXGroupSeq", 0),
            priorities=whole_numbers(batch, "JMSPriority", 4),
            expirations=whole_numbers(batch, "JMSExpiration", 0),
            persistent=persistent(batch),
            arrivals=whole_numbers(batch, "JMSTimestamp", 0),
            matches=matches,
            steady=True,
        )
        kept = kept_of(batch, errors, self._kept)
        parts, index = [kept], rows
        for run, queue in beyond:
            told = rows[runs == run]
            if queue.waiting:
                index = index.copy() if index is rows else index
                at = np.flatnonzero((runs == run) & (rows < bounds[run]))
                for found, where in queue.earlier(rows[at] - bounds[run] + queue.arrived):
                    index[at[where]] = sum(part.num_rows for part in parts) + np.arange(len(where))
                    parts.append(found)
                if run < closing and (found := queue.rest()) is not None:
                    more = np.arange(found.num_rows) + sum(part.num_rows for part in parts)
                    index = np.concatenate([index, more])
                    runs = np.concatenate([runs, np.full(len(more), run, np.int32)])
                    consumers, deliveries = (
                        np.concatenate([array, np.full(len(more), -1)]) for array in (consumers, deliveries)
                    )
                    reasons = np.concatenate([reasons, np.full(len(more), EXPIRED, np.int8)])
                    parts.append(found)
            if run < closing:
                queue.shape.take_back(queue.core)
            else:
                queue.keep(kept, bounds[run], bounds[run + 1], told)
        if len(index):
            yield self._assignments(parts, index, names, shapes, runs, consumers, deliveries, reasons)

    def _assignments(
        self,
        parts: list[pa.RecordBatch],
        index: np.ndarray[Any, Any],
        names: list[str],
        shapes: list[Shape],
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
        wanted = self.schema.names
        made: dict[str, Any] = {}
        if "destination" in wanted:
            made["destination"] = pa.array(names, pa.string()).take(pa.array(runs))
        delivered = reasons == DELIVERED
        every = bool(delivered.all())
        if "delivery" in wanted:
            made["delivery"] = pa.array(deliveries, mask=None if every else ~delivered)
        if "reason" in wanted and not every:
            words = np.where(reasons == EXPIRED, len(REASON_WORDS) - 1, reasons)
            failed = np.isin(reasons, SELECTOR_REASONS) & rows.column("error").to_numpy(zero_copy_only=False)
            words[failed] = len(REASON_WORDS) - 2
            made["reason"] = REASON_WORDS.take(pa.array(words.astype(np.int64), mask=delivered))
        if "consumer" in wanted or ("blocked_by" in wanted and not every):
            found = self._named(shapes, runs, consumers)
            made["consumer"] = found if every else pc.if_else(pa.array(delivered), found, None)
            if not every:
                made["blocked_by"] = pc.if_else(pa.array(delivered), None, found)
        columns = [
            made[field.name]
            if field.name in made
            else rows.column(field.name)
            if field.name in rows.schema.names
            else pa.nulls(len(index), field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _named(self, shapes: list[Shape], runs: np.ndarray[Any, Any], consumers: np.ndarray[Any, Any]) -> pa.Array:
        """Names of consumers, given by their ids at the core of their run; null for -1."""
        if not len(self.names):
            return pa.nulls(len(runs), pa.string())
        different = {id(shape): shape for shape in shapes}
        places = np.array([place for shape in different.values() for place in shape.consumers] or [0])
        if len(different) > 1:
            sizes = [len(shape.consumers) for shape in different.values()]
            firsts = dict(zip(different, np.cumsum([0, *sizes]).tolist(), strict=False))
            first = np.array([firsts[id(shape)] for shape in shapes])
            consumers = np.where(consumers < 0, consumers, first[runs] + consumers)
        missing = consumers < 0
        if missing.any():
            return self.names.take(pa.array(places[np.maximum(consumers, 0)], mask=missing))
        return self.names.take(pa.array(places[consumers]))


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

    consumers: places in the topology; their ids at the core are 0, 1, ... in this order. by_name: owners of groups hang
    on the groups' names. core: for queues that begin and end in one batch, one after another. Making a queue costs as
    much as a hundred messages, so those that have ended are used again.
    """

    def __init__(self, topology: Topology, policy: Policy, consumers: tuple[int, ...]) -> None:
        self.consumers = consumers
        self.by_name = policy.message_group_map_factory_type.startswith("bucket")
        self._policy = policy
        self._members = [member_of(topology, policy, place, number) for number, place in enumerate(consumers)]
        self._idle: list[Queue] = []
        self.core = self.queue()
        super().__init__(topology, self.core, dict(enumerate(consumers)))

    @property
    def shape(self) -> Membership:
        """Itself: what a queue of this shape asks."""
        return self

    def queue(self) -> Queue:
        """A queue with its consumers, to which nothing was sent."""
        if self._idle:
            return self._idle.pop()
        core = Queue(**queue_settings(self._policy))
        for member in self._members:
            core.add_consumer(**member)
        return core

    def take_back(self, core: Queue) -> None:
        """A queue of ``queue()`` is not needed any more, and is as new."""
        self._idle.append(core)


@dataclass(slots=True)
class _Waiting:
    """Messages of one batch that outlived it. sequences: ascending arrival numbers; left: which still wait."""

    sequences: np.ndarray[Any, Any]
    rows: pa.RecordBatch
    left: np.ndarray[Any, Any]


@dataclass(slots=True)
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


def _while(keys: Iterable[int], key: int | None) -> int:
    """How many of the first keys are this one."""
    return sum(1 for _ in takewhile(lambda each: each == key, keys))


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


def group_codes(
    batch: pa.RecordBatch, spans: Sequence[tuple[int, int]] | None = None
) -> tuple[np.ndarray[Any, Any] | None, list[str | None] | None]:
    """Groups as codes (int32, -1 none) and the names of the codes. spans: rows whose names are wanted, None all."""
    position = batch.schema.get_field_index("JMSXGroupID")
    if position < 0 or batch.column(position).null_count == batch.num_rows:
        return None, None
    column = batch.column(position)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if encoded.dictionary.null_count:
        encoded = encoded.dictionary_decode().dictionary_encode()
    codes = pc.fill_null(encoded.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    total = sum(stop - start for start, stop in spans) if spans is not None else len(codes)
    if 2 * total >= len(encoded.dictionary):
        return codes, encoded.dictionary.to_pylist()
    names: list[str | None] = [None] * len(encoded.dictionary)
    wanted = np.unique(np.concatenate([codes[start:stop] for start, stop in spans or ()] or [codes[:0]]))
    wanted = wanted[wanted >= 0]
    for code, name in zip(wanted.tolist(), encoded.dictionary.take(pa.array(wanted)).to_pylist(), strict=True):
        names[code] = name
    return codes, names


def matches_of(
    batch: pa.RecordBatch, queues: Sequence[HasShape], bounds: list[int]
) -> tuple[np.ndarray[Any, Any] | None, np.ndarray[Any, Any]]:
    """Bits of the selectors that match, as offer_runs wants them, and where a selector could not be evaluated."""
    size = batch.num_rows
    errors = np.zeros(size, bool)
    shapes: dict[int, tuple[Membership, list[tuple[int, int]]]] = {}
    place = 0
    for number, same in groupby(id(queue.shape) for queue in queues):
        start, place = place, place + sum(1 for _ in same)
        shapes.setdefault(number, (queues[start].shape, []))[1].append((bounds[start], bounds[place]))
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
