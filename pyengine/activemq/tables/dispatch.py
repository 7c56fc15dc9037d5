"""Batches of messages in, assignments out: the one driver of the core's queues for whole tables.

A Spark worker and a single process call the same ``Dispatcher``; what it answers depends on the order of the messages
of each queue and on nothing else: not on how they are cut into batches, not on the other queues.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine._engine.activemq.queue.batches import MessageColumns, offer_runs
from pyengine._engine.activemq.queue.hold_reasons import HoldReason
from pyengine._engine.activemq.queue.queue import Queue
from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA as ASSIGNMENT_SCHEMA
from pyengine.activemq.tables.assignments import BYTES as BYTES
from pyengine.activemq.tables.assignments import CONNECTION as CONNECTION
from pyengine.activemq.tables.assignments import DESTINATION as DESTINATION
from pyengine.activemq.tables.assignments import KEPT_COLUMNS, encoded, kept_of, masked, persistent, whole_numbers
from pyengine.activemq.tables.assignments import QUEUE as QUEUE
from pyengine.activemq.tables.assignments import ROW as ROW
from pyengine.activemq.tables.assignments import TRUTH as TRUTH
from pyengine.activemq.tables.assignments import compiled as compiled
from pyengine.activemq.tables.shapes import Membership, Shape, Shapes
from pyengine.activemq.tables.topic_dispatch import TopicDispatcher
from pyengine.activemq.tables.typed_names import TYPED
from pyengine.activemq.tables.typed_texts import TypedRows
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, MissingColumnError, shown
from pyengine.topology import Topology
from pyengine.topology.checked import check_arguments
from pyengine.topology.model import TOPIC

DELIVERED, EXPIRED = -1, -2  # of offer_runs
SELECTOR_REASONS = [int(HoldReason.SELECTOR), int(HoldReason.EXCLUSIVE_SELECTOR), int(HoldReason.GROUP_SELECTOR)]
REASON_WORDS = pa.array([*(reason.name.lower() for reason in HoldReason), "evaluation_error", "expired"])
_ROWS_A_CALL = 2_000
# Columns of messages that whole_numbers() does not look at.
_NUMBERS, _TEXTS = (ROW, BYTES), (DESTINATION, CONNECTION, "JMSMessageID", "JMSXGroupID")
_BEHIND_SELECTORS = (
    "JMSMessageID", "JMSXGroupID", "JMSXGroupSeq", "JMSPriority", "JMSExpiration", "JMSTimestamp", "JMSDeliveryMode",
)  # fmt: skip


def columns_read(topology: Topology, available: Sequence[str], output: Sequence[str] | None = None) -> list[str]:
    """The columns of a table of messages that dispatching reads, in the table's order.

    A column named TRUTH + selector stands for what the selector reads: its truth by row, found beforehand. output: the
    columns of the answer, None all.

    Raises MissingColumnError when a selector reads a property that the messages do not have.
    """
    by_policies = topology.policy_properties
    wanted = {ROW, DESTINATION, CONNECTION, BYTES, *_BEHIND_SELECTORS, *by_policies, *(TYPED + n for n in by_policies)}
    asked: set[str] = set()
    for consumer in topology.consumers:
        if TRUTH + consumer.selector in available:
            wanted.add(TRUTH + consumer.selector)
        elif consumer.selector:
            for name in compiled(consumer.selector).names:
                if TYPED + name in available:
                    name = TYPED + name
                if name not in available and not name.startswith("JMS"):
                    raise MissingColumnError(
                        name, _properties(available), f"the source, read by consumer {consumer.name!r},"
                    )
                asked.add(name)
    if output is not None and not topology.has_topics:
        timed = "JMSExpiration" in available or any(
            policy.consumers_before_dispatch_starts or policy.time_before_dispatch_starts
            for policy in (*topology.policies, topology.default_policy)
        )
        needless = {"message_id": "JMSMessageID", "bytes": BYTES, **({} if timed else {"timestamp": "JMSTimestamp"})}
        wanted -= {name for column, name in needless.items() if column not in output}
    wanted |= asked
    return [name for name in available if name in wanted]


def _properties(available: Sequence[str]) -> list[str]:
    named = (name.removeprefix(TYPED) for name in available)
    return [name for name in named if not name.startswith(("__", "JMS"))]


def dispatch_table(topology: Topology, messages: pa.Table, batch_size: int = 10_000) -> pa.Table:
    """The consumer of each message, or why it waits: the whole table in this process, as ASSIGNMENT_SCHEMA.

    messages: as pyengine.backlog.tables.messages makes them. Within its queue a message comes after those of an earlier
    JMSTimestamp if the source says ``order = "timestamp"``, then by row. Rows come out queue by queue, in order of
    delivery, then what is held. batch_size changes nothing but the memory used. Raises ConfigurationError for another
    argument, and a table without such columns, MissingColumnError for a property that a selector reads and the messages
    lack.
    """
    check_arguments("dispatch_table", dispatch_table, locals())
    if batch_size < 1:
        raise ConfigurationError("dispatch_table.batch_size", shown(batch_size), "must be 1 or more")
    names = columns_read(topology, messages.column_names)
    if problem := _problem_of(messages, names):
        hint = "make messages of rows with to_messages of pyengine.backlog.tables.messages"
        raise ConfigurationError("dispatch_table.messages", shown(messages.column_names), problem, hint)
    table = messages.select(names)
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


def _problem_of(messages: pa.Table, names: Sequence[str]) -> str:
    """What is wrong with a table of messages, of which columns of these names are read; empty: nothing."""
    for name in (ROW, DESTINATION):
        if name not in names:
            return f"has no column {name!r}"
    for name in names:
        if messages.column_names.count(name) > 1:
            return f"has more than one column {name!r}"
        column = messages.column(name)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if name in _NUMBERS and not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
            return f"has a column {name!r} of {column.type} where whole numbers are wanted"
        if name in _TEXTS and not (
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
        ):
            return f"has a column {name!r} of {column.type} where texts are wanted"
        if name in (ROW, DESTINATION) and column.null_count:
            return f"has a null in the column {name!r}"
    return ""


def order_columns(topology: Topology, available: Sequence[str]) -> list[str]:
    """What messages are sorted by before they are dispatched; numbers only."""
    by_time = topology.source.order == "timestamp" and "JMSTimestamp" in available
    return [QUEUE, *(["JMSTimestamp"] if by_time else []), ROW]


def dispatch_batches(
    topology: Topology, batches: Iterable[pa.RecordBatch], columns: Sequence[str] | None = None, *, codes: bool = False
) -> Iterator[pa.RecordBatch]:
    """Assignments of messages that come sorted by ``order_columns``; a queue may run over any number of batches.

    columns: of ASSIGNMENT_SCHEMA, in its order; None: all. codes: texts as ``encoded`` says.
    """
    dispatcher = Dispatcher(topology, columns, codes=codes)
    for batch in batches:
        yield from dispatcher.feed(batch)
    yield from dispatcher.finish()


class Dispatcher:
    """Messages of many queues and topics, sorted by ``__queue``."""

    def __init__(self, topology: Topology, columns: Sequence[str] | None = None, *, codes: bool = False) -> None:
        self._queues = QueueDispatcher(topology, columns, codes=codes)
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
        schema = self._queues.schema
        return (batch.select(schema.names).cast(schema) for batch in batches)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is still held, with the reasons; everything is closed."""
        yield from self._queues.finish()
        if self._topics is not None:
            yield from self._selected(self._topics.finish())


class QueueDispatcher:
    """Messages of many queues, sorted by queue: each queue is opened where it begins and closed where it ends.

    What a batch needs once is done once: groups become codes, a selector is asked of whole columns, and the core runs
    all queues of the batch in one call. Open at the end of a batch are the queues of one value of ``__queue`` (more
    than one when two names hash alike). Kept are the messages that a queue may still dispatch, at most a page of them
    (maxPageSize) and what a start delay holds back.
    """

    def __init__(self, topology: Topology, columns: Sequence[str] | None = None, *, codes: bool = False) -> None:
        self.topology = topology
        self.schema = pa.schema([each for each in ASSIGNMENT_SCHEMA if columns is None or each.name in columns])
        self.schema = encoded(self.schema) if codes else self.schema
        self._codes = codes
        self._kept: list[str] = []
        self.names = pa.array([consumer.name for consumer in topology.consumers], pa.string())
        self._key: int | None = None
        self._open: dict[str, _OpenQueue] = {}
        self._shapes = Shapes(topology)

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The assignments that this batch makes, of its own messages and of earlier ones that waited."""
        if not batch.num_rows:
            return
        if not self._kept:
            there = [name for name, column in KEPT_COLUMNS.items() if column in batch.schema.names]
            self._kept = [*(name for name in there if name in self.schema.names), "error"]
        batch, starts, keys, names = _cut(batch)
        turns = np.flatnonzero(keys != self._key) if self._key is not None else np.arange(1)
        head = int(turns[0]) if len(turns) else len(keys)
        early = names[:head].to_pylist()
        if head == len(keys):
            self._open |= {name: self._opened(name) for name in early if name not in self._open}
            known = [self._open[name] for name in early]
            yield from self._offer(batch, known, names[:0], [], np.append(starts, batch.num_rows), closing=0)
            return
        # Of the queues that were open some have more rows here; all end here, because the key is another one now.
        first = [self._open.pop(name) if name in self._open else self._opened(name) for name in early]
        first += self._open.values()
        silent = np.full(len(first) - head, starts[head])
        bounds = np.concatenate([starts[:head], silent, starts[head:], [batch.num_rows]])
        tail = int(np.flatnonzero(keys != keys[-1])[-1]) + 1 if (keys != keys[-1]).any() else 0
        tail = max(tail, head)
        self._key = int(keys[-1])
        self._open = {name: self._opened(name) for name in names[tail:].to_pylist()}
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
            names = none.column(DESTINATION)
            yield from self._offer(none, queues, names, [], np.zeros(len(queues) + 1, np.int64), closing=len(queues))

    def _opened(self, name: str) -> _OpenQueue:
        shape = self._shapes.of(name)
        return _OpenQueue(name, shape, shape.queue())

    def _offer(
        self,
        batch: pa.RecordBatch,
        first: list[_OpenQueue],
        between: pa.Array,
        last: list[_OpenQueue],
        bounds: np.ndarray[Any, Any],
        *,
        closing: int,
    ) -> Iterator[pa.RecordBatch]:
        """first, last: queues that were there before this batch or stay. between: names of those that begin and end in
        it. closing: so many end, from the first on."""
        inside = self._shapes.numbers_of(between)
        opened = [*first, *last]
        numbers = np.array([queue.shape.number for queue in opened], np.int64)
        # Of all shapes that there are, those of this batch; which: the place of each run's shape among them.
        used, which = np.unique(
            np.concatenate([numbers[: len(first)], inside, numbers[len(first) :]]), return_inverse=True
        )
        shapes = [self._shapes.every[number] for number in used.tolist()]
        inside = which[len(first) : len(first) + len(between)]
        places = np.arange(len(opened))
        open_ended = [*enumerate(first), *enumerate(last, len(first) + len(between))]
        matches, errors = matches_of(batch, shapes, which, bounds)
        every = any(shape.by_name for shape in shapes)
        codes, groups = group_codes(batch, None if every else [(bounds[run], bounds[run + 1]) for run, _ in open_ended])
        closes = np.zeros(len(which), np.uint8)
        closes[:closing] = 1
        runs, rows, consumers, deliveries, reasons = offer_runs(
            [*(queue.core for queue in opened), *(shape.core for shape in shapes)],
            bounds,
            closes,
            [*(queue.shape.prompt for queue in opened), *(shape.prompt for shape in shapes)],
            message_columns(batch, codes, groups, matches),
            queue_of=np.concatenate([places[: len(first)], len(opened) + inside, places[len(first) :]]),
            steady=True,
        )
        kept = kept_of(batch, errors, self._kept)
        parts, index = [kept], rows
        for run, queue in open_ended:
            dispatched = rows[runs == run]
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
                queue.keep(kept, bounds[run], bounds[run + 1], dispatched)
        if len(index):
            names = [[queue.name for queue in first], between, [queue.name for queue in last]]
            outcomes = _Outcomes(runs, consumers, deliveries, reasons, shapes, which)
            yield self._assignments(parts, index, names, outcomes)

    def _assignments(
        self,
        parts: list[pa.RecordBatch],
        index: np.ndarray[Any, Any],
        names: list[Any],
        outcomes: _Outcomes,
    ) -> pa.RecordBatch:
        runs, deliveries, reasons = outcomes.runs, outcomes.deliveries, outcomes.reasons
        if len(parts) == 1 and len(index) == parts[0].num_rows and (index == np.arange(len(index))).all():
            rows = parts[0]
        else:
            rows = pa.Table.from_batches(parts).combine_chunks().take(pa.array(index)).combine_chunks()
            rows = rows.to_batches()[0]
        wanted = self.schema.names
        computed: dict[str, Any] = {}
        if "destination" in wanted:
            computed["destination"] = pa.concat_arrays([pa.array(part, pa.string()) for part in names]).take(
                pa.array(runs)
            )
        delivered = reasons == DELIVERED
        held = ~delivered
        every = not held.any()
        if "delivery" in wanted:
            computed["delivery"] = pa.array(deliveries) if every else masked(deliveries, delivered)
        if "reason" in wanted and not every:
            words = np.where(reasons == EXPIRED, np.int8(len(REASON_WORDS) - 1), reasons)
            errors = rows.column("error").to_numpy()
            if errors.any():
                words[np.isin(reasons, SELECTOR_REASONS) & (errors != 0)] = len(REASON_WORDS) - 2
            computed["reason"] = self._texts(REASON_WORDS, words, held)
        if "consumer" in wanted or ("blocked_by" in wanted and not every):
            places = self._places(outcomes)
            there = places >= 0
            if "consumer" in wanted:
                computed["consumer"] = self._texts(self.names, places, there & delivered)
            if "blocked_by" in wanted and not every:
                computed["blocked_by"] = self._texts(self.names, places, there & held)
        columns = [
            computed[field.name]
            if field.name in computed
            else rows.column(field.name)
            if field.name in rows.schema.names
            else pa.nulls(len(index), field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _texts(self, words: pa.Array, places: np.ndarray[Any, Any], there: np.ndarray[Any, Any]) -> pa.Array:
        if self._codes:
            return pa.DictionaryArray.from_arrays(masked(places.astype(np.int32), there), words)
        return words.take(masked(places, there))

    def _places(self, outcomes: _Outcomes) -> np.ndarray[Any, Any]:
        """Places in the topology of consumers, given by their ids at the core of their run; -1 for -1."""
        shapes, which, runs, consumers = outcomes.shapes, outcomes.which, outcomes.runs, outcomes.consumers
        width = 1 + max(len(shape.consumers) for shape in shapes)
        places = np.full((len(shapes), width), -1)
        for at, shape in enumerate(shapes):
            places[at, : len(shape.consumers)] = shape.consumers
        if len(shapes) == 1:
            found: np.ndarray[Any, Any] = places[0].take(consumers, mode="wrap")
        else:
            found = places.ravel().take((which * width)[runs] + np.where(consumers < 0, width - 1, consumers))
        return found


class _Outcomes(NamedTuple):
    """The answer of offer_runs by message, without the rows. which: the place of each run's shape in ``shapes``."""

    runs: np.ndarray[Any, Any]
    consumers: np.ndarray[Any, Any]
    deliveries: np.ndarray[Any, Any]
    reasons: np.ndarray[Any, Any]
    shapes: list[Shape]
    which: np.ndarray[Any, Any]


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

    def keep(self, kept: pa.RecordBatch, start: int, stop: int, dispatched: np.ndarray[Any, Any]) -> None:
        """Keep the rows of a batch that were not delivered in it, and forget the older ones that were since."""
        left = np.ones(stop - start, bool)
        left[dispatched[dispatched >= start] - start] = False
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


def _cut(
    batch: pa.RecordBatch,
) -> tuple[pa.RecordBatch, np.ndarray[Any, Any], np.ndarray[Any, Any], pa.Array]:
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
    names = batch.column(DESTINATION).take(pa.array(starts)).cast(pa.string())
    return batch, starts, keys[starts], names


def message_columns(
    batch: pa.RecordBatch,
    codes: np.ndarray[Any, Any] | None,
    groups: list[str | None] | None,
    matches: np.ndarray[Any, Any] | None,
) -> MessageColumns:
    """A batch as the core's queues take it. codes, groups: see group_codes. matches: see matches_of."""
    return MessageColumns(
        batch.num_rows,
        groups=codes,
        group_names=groups,
        group_sequences=whole_numbers(batch, "JMSXGroupSeq", 0),
        priorities=whole_numbers(batch, "JMSPriority", 4),
        expirations=whole_numbers(batch, "JMSExpiration", 0),
        persistent=persistent(batch),
        arrivals=whole_numbers(batch, "JMSTimestamp", 0),
        matches=matches,
    )


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
    spans = [(0, len(codes))] if spans is None else spans
    total = sum(stop - start for start, stop in spans)
    if 2 * total >= len(encoded.dictionary):
        return codes, encoded.dictionary.to_pylist()
    names: list[str | None] = [None] * len(encoded.dictionary)
    asked = np.zeros(len(names) + 1, bool)  # the last one for no group
    for start, stop in spans:
        asked[codes[start:stop]] = True
    wanted = np.flatnonzero(asked[:-1])
    for code, name in zip(wanted.tolist(), encoded.dictionary.take(pa.array(wanted)).to_pylist(), strict=True):
        names[code] = name
    return codes, names


def matches_of(
    batch: pa.RecordBatch, shapes: Sequence[Membership], which: np.ndarray[Any, Any], bounds: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any] | None, np.ndarray[Any, Any]]:
    """Bits of the selectors that match, as offer_runs wants them, and where a selector could not be evaluated.

    which: the shape of each run of rows. bounds: where the runs begin, and the end.
    """
    size = batch.num_rows
    errors = np.zeros(size, bool)
    spans: dict[int, list[tuple[int, int]]] = {}
    turns = [0, *(np.flatnonzero(which[1:] != which[:-1]) + 1).tolist(), len(which)] if len(which) else []
    for start, stop in itertools.pairwise(turns):
        spans.setdefault(int(which[start]), []).append((int(bounds[start]), int(bounds[stop])))
    asking = [(shapes[number], found) for number, found in spans.items()]
    words = max((shape.questions[-1][0] // 64 + 1 for shape, _ in asking if shape.questions), default=0)
    if not words:
        return None, errors
    bits = np.zeros((size, words), np.uint64)
    bits[:, 0] = 1
    answers = Answers(batch)
    for shape, found in asking:
        for selector in {selector for _, selector, _ in shape.questions if selector}:
            answers.announce(selector, found)
    for shape, found in asking:
        at: Any = slice(*found[0])
        if len(found) > 1:
            at = np.concatenate([np.arange(start, stop) for start, stop in found])
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
        self.imported: dict[tuple[int, int], TypedRows] = {}

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
                rows = self.imported.get((start, stop))
                if rows is None:
                    rows = self.imported[start, stop] = TypedRows(self.batch.slice(start, stop - start))
                truth[start:stop] = rows.truth(compiled(selector))
            self.found[selector] = truth
        return self.found[selector]
