"""Batches of messages to topics in, assignments out: the one driver of the core's topics for whole tables.

Every subscription is there before the first message. Each message gives a line for every subscription that wanted it,
or one line with the reason why no subscription got it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine import Selector
from pyengine._engine.activemq.topic.ledger import Event, EventKind, TopicDelivery
from pyengine._engine.activemq.topic.message_audit import Audit
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine.activemq.core_settings import eviction_of, limit_of
from pyengine.activemq.tables.assignments import (
    ASSIGNMENT_SCHEMA,
    CONNECTION,
    DESTINATION,
    KEPT_SCHEMA,
    QUEUE,
    TRUTH,
    compiled,
    kept_of,
    persistent,
    whole_numbers,
)
from pyengine.activemq.tables.typed_names import TYPED
from pyengine.activemq.tables.typed_texts import TypedRows
from pyengine.dataclass import dataclass
from pyengine.errors import SelectorEvaluationError
from pyengine.topology import Topology
from pyengine.topology.model import TOPIC

_REASONS = {EventKind.DISCARDED: "discarded", EventKind.DROPPED: "discarded", EventKind.EXPIRED: "expired"}


class _Sent(dict[str, Any]):
    """What the core's topics know of a message beside numbers: the properties that policies read, and its row."""

    __slots__ = ("__weakref__", "batch", "place", "topic")
    batch: _Batch
    place: int
    topic: str


@dataclass(slots=True, eq=False)
class _Batch:
    """The rows of a batch that may still get lines. kept: what an assignment repeats. truths: by selector."""

    kept: pa.RecordBatch
    truths: dict[Selector, Any]


@dataclass(slots=True, eq=False)
class _Asked:
    """A selector whose answers for the whole batch are there already."""

    selector: Selector

    def matches(self, message: _Sent) -> bool:
        truth = message.batch.truths[self.selector][message.place]
        if truth == -2:
            raise SelectorEvaluationError(self.selector.text, "it cannot be evaluated")
        return bool(truth == 1)

    def __hash__(self) -> int:
        return hash(self.selector)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.selector == other.selector


@dataclass(slots=True)
class _Lines:
    """Assignments in the making: for each line a row of a batch, and what became of it."""

    sent: list[_Sent] = field(default_factory=list)
    consumers: list[str | None] = field(default_factory=list)
    deliveries: list[int | None] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)

    def add(self, sent: _Sent, consumer: str | None, delivery: int | None, reason: str | None) -> None:
        self.sent.append(sent)
        self.consumers.append(consumer)
        self.deliveries.append(delivery)
        self.reasons.append(reason)

    def table(self) -> Iterator[pa.RecordBatch]:
        if not self.sent:
            return
        starts: dict[int, int] = {}
        parts: list[pa.RecordBatch] = []
        for sent in self.sent:
            if id(sent.batch) not in starts:
                starts[id(sent.batch)] = sum(part.num_rows for part in parts)
                parts.append(sent.batch.kept)
        index = np.array([starts[id(sent.batch)] + sent.place for sent in self.sent])
        rows = pa.Table.from_batches(parts, KEPT_SCHEMA).take(pa.array(index)).combine_chunks()
        given = pc.is_null(pa.array(self.reasons, pa.string()))
        consumers = pa.array(self.consumers, pa.string())
        computed: dict[str, Any] = {
            "destination": pa.array([sent.topic for sent in self.sent], pa.string()),
            "consumer": pc.if_else(given, consumers, None),
            "delivery": pa.array(self.deliveries, pa.int64()),
            "reason": pa.array(self.reasons, pa.string()),
            "blocked_by": pc.if_else(given, None, consumers),
        }
        columns = [
            computed[wanted.name] if wanted.name in computed else rows.column(wanted.name)
            for wanted in ASSIGNMENT_SCHEMA
        ]
        yield from pa.Table.from_arrays(columns, schema=ASSIGNMENT_SCHEMA).combine_chunks().to_batches()


class TopicDispatcher:
    """Messages to topics, sorted by key: the topics of one key are one region, opened and closed with it.

    Topics share a key where one subscription's window counts over them (Topology.shares_topics).
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._key: int | None = None
        self._region: _OpenRegion | None = None
        self._selectors = tuple(
            dict.fromkeys(
                compiled(consumer.selector)
                for consumer in topology.consumers
                if consumer.selector and TOPIC in consumer.destination
            )
        )
        self._properties = sorted(topology.policy_properties)

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The assignments that this batch makes, of its own messages and of earlier ones that waited."""
        if not batch.num_rows:
            return
        lines = _Lines()
        rows = TypedRows(batch)
        truths = {
            selector: batch.column(TRUTH + selector.text).to_pylist()
            if TRUTH + selector.text in batch.schema.names
            else rows.truth(selector, missing="null").tolist()
            for selector in self._selectors
        }
        work = _Batch(kept_of(batch, np.zeros(batch.num_rows, bool)), truths)
        keys = batch.column(QUEUE).to_pylist()
        names = batch.column(DESTINATION).cast(pa.string()).to_pylist()
        expirations = whole_numbers(batch, "JMSExpiration", 0)
        if expirations is not None:
            expirations = np.maximum(expirations, 0)  # a negative one is none, as on a queue
        settings = [
            (name, values.tolist())
            for name, values in (
                ("priority", whole_numbers(batch, "JMSPriority", 4)),
                ("expiration", expirations),
                ("timestamp", whole_numbers(batch, "JMSTimestamp", 0)),
                ("persistent", persistent(batch)),
            )
            if values is not None
        ]
        for name, column in (("connection", CONNECTION), ("message_id", "JMSMessageID")):
            if column in batch.schema.names:
                settings.append((name, batch.column(column).cast(pa.string()).to_pylist()))
        properties = [
            (name, _property_values(batch.column(column)))
            for name in self._properties
            for column in (name, TYPED + name)
            if column in batch.schema.names
        ]
        for place, (key, name) in enumerate(zip(keys, names, strict=True)):
            if key != self._key or self._region is None:
                if self._region is not None:
                    self._region.close(lines)
                self._key, self._region = key, _OpenRegion(self.topology)
            sent = _Sent({property: values[place] for property, values in properties if values[place] is not None})
            sent.batch, sent.place, sent.topic = work, place, name
            self._region.send(sent, {setting: values[place] for setting, values in settings}, lines)
        yield from lines.table()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What still waits for a subscription; the region is closed."""
        lines = _Lines()
        if self._region is not None:
            self._region.close(lines)
        self._key, self._region = None, None
        yield from lines.table()


def _property_values(column: Any) -> list[Any]:
    """Values that a property may have: decimals of one column are equal where their texts are."""
    return (column.cast(pa.string()) if pa.types.is_decimal(column.type) else column).to_pylist()  # type: ignore[no-any-return]


class _OpenRegion:
    """Topics of the core whose windows hang together, with the subscriptions of the topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.core = TopicRegion()
        self.topics: dict[str, tuple[int, tuple[int, ...]]] = {}
        self.handed: list[int] = []
        self.subscriptions: dict[int, int] = {}  # place in the topology -> id in the core
        self.places: dict[int, int] = {}  # and back
        self.sent: WeakValueDictionary[int, _Sent] = WeakValueDictionary()
        self.count = 0
        self.keeps = any(
            topology.may_fill(consumer) and TOPIC in consumer.destination for consumer in topology.consumers
        )

    def send(self, sent: _Sent, settings: dict[str, Any], lines: _Lines) -> None:
        """Send one message and settle all that comes of it."""
        number, members = self.topics.get(sent.topic) or self._opened(sent.topic)
        now, before, held = settings.get("timestamp", 0), len(lines.sent), self.core.messages
        outcomes: list[Any] = self.core.send(number, sent, now=now, **settings)
        self.count += 1  # the core's handle
        if self.keeps:
            self.sent[self.count] = sent
        failed = unwanted = False
        for outcome in outcomes:  # grows while it is read
            if isinstance(outcome, TopicDelivery):
                consumer = self.topology.consumers[self.places[outcome.consumer]]
                lines.add(outcome.body, consumer.name, self.handed[outcome.topic], None)
                self.handed[outcome.topic] += 1
                if consumer.acknowledges:
                    outcomes += self.core.acknowledge(outcome.consumer, outcome.message or 0, now=now)
                continue
            assert isinstance(outcome, Event)
            if outcome.kind in _REASONS:
                about = None if outcome.consumer is None else self._name(outcome.consumer)
                lines.add(outcome.body, about, None, _REASONS[outcome.kind])
            elif outcome.kind is EventKind.CUT and outcome.consumer is not None:
                lines.add(sent, self._name(outcome.consumer), None, "evaluation_error")
            failed = failed or outcome.kind is EventKind.SELECTOR_FAILED
            unwanted = unwanted or outcome.kind is EventKind.NO_CONSUMER
        if unwanted:
            lines.add(sent, None, None, self._refusal(members, settings.get("connection"), failed))
        elif len(lines.sent) == before and self.core.messages == held:
            lines.add(sent, None, None, "duplicate")  # the audits of all who wanted it know its id

    def _refusal(self, members: tuple[int, ...], connection: str | None, failed: bool) -> str:
        consumers = [self.topology.consumers[place] for place in members]
        if not consumers:
            return "no_consumer"
        if connection is not None and all(each.no_local and each.connection == connection for each in consumers):
            return "no_local"
        return "evaluation_error" if failed else "selector"

    def _name(self, subscription: int) -> str:
        return self.topology.consumers[self.places[subscription]].name

    def _opened(self, name: str) -> tuple[int, tuple[int, ...]]:
        policy = self.topology.policy_of(name)
        number = self.core.add_topic(
            name, dispatch_policy=policy.dispatch_policy, selector_errors=policy.selector_errors
        )
        members = self.topology.positions_of(name)
        for place in members:
            if place not in self.subscriptions:
                self._subscribe(place)
            self.core.attach(self.subscriptions[place], number)
        self.handed.append(0)
        self.topics[name] = number, members
        return number, members

    def _subscribe(self, place: int) -> None:
        consumer = self.topology.consumers[place]
        policy = self.topology.consumer_policy(consumer)
        audit = None
        if policy is not None and policy.enable_audit:
            audit = Audit(policy.max_audit_depth, policy.max_producers_to_audit)
        number = self.core.add_subscription(
            selector=_Asked(compiled(consumer.selector)) if consumer.selector else None,
            priority=consumer.priority,
            prefetch=self.topology.topic_prefetch_under(policy, consumer),
            no_local=consumer.no_local,
            connection=consumer.connection or ("consumer", place),
            client_id=consumer.connection or None,
            pending_limit_strategy=limit_of(policy),
            eviction=eviction_of(policy),
            audit=audit,
            use_prefetch_extension=policy is None or policy.use_prefetch_extension,
        )
        self.subscriptions[place] = number
        self.places[number] = place

    def close(self, lines: _Lines) -> None:
        """What waits for subscriptions that are full, by subscription in the topology's order."""
        for place in sorted(self.subscriptions):
            for handle in self.core.waiting(self.subscriptions[place]):
                lines.add(self.sent[handle], self.topology.consumers[place].name, None, "no_credit")
