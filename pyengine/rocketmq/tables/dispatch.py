"""Which client of which consumer group gets each message of a log: allocation and filters over whole tables.

Every answer is that of one row: the owner of its message queue under the group's allocation (spec rocketmq 3), if the
subscription takes the message (8). Nothing depends on the order or on how rows are cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyengine import Selector
from pyengine._engine.java.hashing import tags_code
from pyengine._engine.rocketmq.client.tags import broker_accepts, client_accepts
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.errors import AllocationError, MissingColumnError, UnsupportedColumnError
from pyengine.rocketmq.message import retry_topic
from pyengine.rocketmq.remoting.mq_client_api import MessageModel, SubscriptionData
from pyengine.rocketmq.subscription import MessageSelector, build_subscription
from pyengine.rocketmq.tables.allocation import (
    MessageQueue,
    Owners,
    Strategy,
    allocate_all,
    sort_client_ids,
    sort_queues,
)

CONSUMPTION_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("message_id", pa.string()),
        ("topic", pa.string()),
        ("broker_name", pa.string()),
        ("queue_id", pa.int32()),
        ("group", pa.string()),
        ("consumer", pa.string()),
        ("reason", pa.string()),
    ]
)
_DELIVERED, _FILTERED, _FAILED, _NO_OWNER, _NO_GROUP, _UNKNOWN_QUEUE = range(6)
_REASONS = pa.array([None, "filtered", "evaluation_error", "no_owner", "no_group", "unknown_queue"], pa.string())
Mask = npt.NDArray[np.bool_]


@frozen
@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Where a table of messages has what decides. Empty: it has none; a missing broker_name is ``broker`` everywhere.

    topic, broker_name (text) and queue_id (whole number) name the message queue; tags and message_id are text. Every
    other column is a property of its own name for SQL92; TAGS stands for the tags, as on the broker.
    """

    topic: str = "topic"
    queue_id: str = "queue_id"
    broker_name: str = ""
    tags: str = ""
    message_id: str = ""
    broker: str = "broker-a"


@frozen
@dataclass(frozen=True)
class ConsumerGroup:
    """A consumer group: its clients, what they subscribe to, and how they share the queues.

    subscriptions: topic -> tags (``"A || B"``), ``rocketmq.sql(...)`` or ``"*"``, the same for all clients; the group's
    retry topic is subscribed to by itself. strategy: RocketMQ's name or a strategy. Broadcasting: every client gets
    every message that the subscription takes. Raises MQClientError, NullArgumentError, InvalidSelectorError.
    """

    name: str
    client_ids: Sequence[str]
    subscriptions: Mapping[str, MessageSelector | str | None]
    strategy: str | Strategy = "AVG"
    message_model: MessageModel = MessageModel.CLUSTERING

    def __post_init__(self) -> None:
        for data in self.data.values():
            if data.expression_type == "SQL92":
                Selector(data.sub_string, "rocketmq")

    @cached_property
    def data(self) -> dict[str, SubscriptionData]:
        """The subscription to each topic as a heartbeat has it."""
        found = {topic: build_subscription(topic, selector) for topic, selector in self.subscriptions.items()}
        if self.message_model is MessageModel.CLUSTERING:
            retry = retry_topic(self.name)
            found.setdefault(retry, build_subscription(retry, "*"))
        return found


@frozen
@dataclass(frozen=True)
class ConsumerGroups:
    """Consumer groups over the message queues of a cluster. queues: MessageQueue or (topic, broker name, queue id).

    Raises AllocationError for two groups of one name, or for what a strategy refuses.
    """

    queues: Sequence[MessageQueue | tuple[str, str, int]]
    groups: Sequence[ConsumerGroup]
    columns: MessageColumns = field(default=MessageColumns())

    def __post_init__(self) -> None:
        taken = [group.name for group in self.groups]
        for name in taken:
            if taken.count(name) > 1:
                raise AllocationError("groups", name, "two groups have this name")
        for group in self.groups:
            for topic in group.data:
                self.owners(group, topic)

    @cached_property
    def by_topic(self) -> dict[str, list[MessageQueue]]:
        """The message queues of each topic, in the order of the rebalance."""
        found: dict[str, list[MessageQueue]] = {}
        for queue in sort_queues([MessageQueue(*queue) for queue in self.queues]):
            found.setdefault(queue.topic, []).append(queue)
        return found

    def owners(self, group: ConsumerGroup, topic: str) -> Owners:
        """The owner of each queue of a topic, as a position in the sorted client ids of the group; -1 none."""
        queues = self.by_topic.get(topic, [])
        if not queues or not group.client_ids:
            return np.full(len(queues), -1, np.int32)
        return allocate_all(group.strategy, queues, sort_client_ids(group.client_ids))

    def columns_read(self, available: Sequence[str]) -> list[str]:
        """The columns that decide, in the table's order. Raises MissingColumnError."""
        at = self.columns
        wanted = dict.fromkeys(name for name in (at.topic, at.queue_id, at.broker_name, at.tags, at.message_id) if name)
        for group in self.groups:
            for data in group.data.values():
                if data.expression_type == "SQL92":
                    read = Selector(data.sub_string, "rocketmq").names
                    wanted |= dict.fromkeys(name for name in read if not (name == "TAGS" and at.tags))
        for name in wanted:
            if name not in available:
                raise MissingColumnError(name, list(available), "the table of messages")
        return [name for name in available if name in wanted]


def dispatch_messages(groups: ConsumerGroups, messages: pa.Table | pa.RecordBatch, rows: Any) -> pa.Table:
    """The consumer of each message: a line for every row and group that subscribes to its topic, as CONSUMPTION_SCHEMA.

    rows: int64 array, the number of each row, null if it has none. consumer: the client id, null if no consumer gets
    it. reason: null, or "filtered" (the subscription refuses it), "evaluation_error" (its SQL92 cannot be evaluated, so
    the broker does not send it), "no_owner" (the allocation gives the queue to no client), and, with group null,
    "no_group" (no group subscribes to the topic) and "unknown_queue" (the topic has no such message queue).
    Broadcasting gives a line for every client. Lines come by row, then group in the order given, then client. Raises
    MissingColumnError, UnsupportedColumnError if a topic, broker, tag or id is not a string or a queue id not an int.
    """
    groups.columns_read(messages.schema.names)
    batch = (messages if isinstance(messages, pa.Table) else pa.Table.from_batches([messages])).combine_chunks()
    work = _Work(groups, batch)
    for topic in pc.unique(work.topics).to_pylist():
        work.serve(topic)
    return work.table(pa.array(rows, pa.int64()))


class _Work:
    def __init__(self, groups: ConsumerGroups, batch: pa.Table) -> None:
        self.groups = groups
        self.batch = batch
        at = groups.columns
        size = batch.num_rows
        self.topics = _cast(batch, at.topic, pa.string())
        self.brokers = (
            _cast(batch, at.broker_name, pa.string()) if at.broker_name else pa.array([at.broker] * size, pa.string())
        )
        self.queue_ids = pc.fill_null(_cast(batch, at.queue_id, pa.int32()), -1)
        self.tags = (_cast(batch, at.tags, pa.string()) if at.tags else pa.nulls(size, pa.string())).dictionary_encode()
        self.codes = pc.fill_null(self.tags.indices, -1).to_numpy(zero_copy_only=False)
        self.verdicts: dict[tuple[str, str], tuple[Mask, Mask]] = {}
        self.lines: list[tuple[Any, int, Any, int]] = []  # places, group, clients (-1 none), reason
        self.clients = [sort_client_ids(group.client_ids) for group in groups.groups]

    def serve(self, topic: str | None) -> None:
        here = np.flatnonzero(
            pc.fill_null(pc.equal(self.topics, topic), False).to_numpy(zero_copy_only=False)
            if topic is not None
            else pc.is_null(self.topics).to_numpy(zero_copy_only=False)
        )
        queues = self.groups.by_topic.get(topic or "", [])
        numbers = {(queue.broker_name, queue.queue_id): number for number, queue in enumerate(queues)}
        brokers, ids = self.brokers.take(pa.array(here)).to_pylist(), self.queue_ids.take(pa.array(here)).to_pylist()
        at = np.array([numbers.get(key, -1) for key in zip(brokers, ids, strict=True)], np.int64)
        self.add(here[at < 0], -1, -1, _UNKNOWN_QUEUE)
        here, at = here[at >= 0], at[at >= 0]
        served = False
        for number, group in enumerate(self.groups.groups):
            data = group.data.get(topic or "")
            if data is None or not len(here):
                continue
            served = True
            takes, fails = self.verdict(data)
            takes, fails = takes[here], fails[here]
            self.add(here[fails], number, -1, _FAILED)
            self.add(here[~takes & ~fails], number, -1, _FILTERED)
            if group.message_model is MessageModel.BROADCASTING:
                for client in range(len(self.clients[number])):
                    self.add(here[takes], number, client, _DELIVERED)
                if not self.clients[number]:
                    self.add(here[takes], number, -1, _NO_OWNER)
                continue
            owners = self.groups.owners(group, topic or "")[at]
            self.add(here[takes & (owners < 0)], number, -1, _NO_OWNER)
            given = takes & (owners >= 0)
            self.add(here[given], number, owners[given], _DELIVERED)
        if not served:
            self.add(here, -1, -1, _NO_GROUP)

    def add(self, places: Any, group: int, clients: Any, reason: int) -> None:
        if len(places):
            self.lines.append((places, group, np.broadcast_to(clients, places.shape), reason))

    def verdict(self, data: SubscriptionData) -> tuple[Mask, Mask]:
        """Which rows a subscription takes, and on which it cannot be evaluated."""
        asked = data.expression_type, data.sub_string
        if asked not in self.verdicts:
            size = self.batch.num_rows
            if data.expression_type == "SQL92":
                batch = self.batch
                if self.groups.columns.tags and "TAGS" not in batch.schema.names:
                    batch = batch.append_column("TAGS", self.tags.cast(pa.string()))
                truth = Selector(data.sub_string, "rocketmq").truth(batch)
                self.verdicts[asked] = truth == 1, truth == -2
            else:
                tags = [*self.tags.dictionary.to_pylist(), None]  # the last is -1: a message without tags
                passes = np.array(
                    [
                        broker_accepts(data.sub_string, data.code_set, tags_code(tag))
                        and client_accepts(data.tags_set, tag)
                        for tag in tags
                    ]
                )
                self.verdicts[asked] = passes[self.codes], np.zeros(size, bool)
        return self.verdicts[asked]

    def table(self, rows: Any) -> pa.Table:
        none = np.zeros(0, np.int64)
        places = np.concatenate([line[0] for line in self.lines] or [none])
        sizes = [len(line[0]) for line in self.lines]
        groups = np.repeat(np.array([line[1] for line in self.lines], np.int64), sizes)
        clients = np.concatenate([line[2] for line in self.lines] or [none]).astype(np.int64)
        reasons = np.repeat(np.array([line[3] for line in self.lines], np.int64), sizes)
        order = np.lexsort((clients, groups, places))
        places, groups, clients, reasons = places[order], groups[order], clients[order], reasons[order]
        first = np.cumsum([0, *(len(ids) for ids in self.clients)])
        every = pa.array([client for ids in self.clients for client in ids], pa.string())
        at = pa.array(places)
        message_id = self.groups.columns.message_id
        ids = _cast(self.batch, message_id, pa.string()) if message_id else pa.nulls(self.batch.num_rows, pa.string())
        columns = [
            rows.take(at),
            ids.take(at),
            self.topics.take(at),
            self.brokers.take(at),
            self.queue_ids.take(at),
            pa.array([group.name for group in self.groups.groups], pa.string()).take(pa.array(groups, mask=groups < 0)),
            every.take(pa.array(first[np.maximum(groups, 0)] + clients, mask=clients < 0)),
            _REASONS.take(pa.array(reasons)),
        ]
        return pa.Table.from_arrays(columns, schema=CONSUMPTION_SCHEMA)


def _cast(batch: pa.Table, name: str, type: pa.DataType) -> Any:
    """A column in another type, as one array. Raises UnsupportedColumnError."""
    column = batch.column(name)
    try:
        found = column.cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedColumnError(name, str(column.type), str(error)) from error
    return found.combine_chunks() if hasattr(found, "combine_chunks") else found
