"""How far a group is behind: Delay and LastConsumeTime, queue by queue (ConsumeStats, spec rocketmq 9)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from pyengine._engine.rocketmq.broker.consume_lag import LastConsume, delay, last_consume
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.tables.allocation import MessageQueue


class StoredMessages(Protocol):
    """What consume_stats asks of a cluster; :class:`pyengine.rocketmq.Broker` answers it."""

    def topic_subscribe_info(self, topic: str) -> list[MessageQueue] | None:
        """All queues of a topic."""

    def consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """The committed offsets of a group, for the queues that have one."""

    def max_offset(self, queue: MessageQueue) -> int:
        """Where the next message will go."""

    def pull_offsets(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """Where a group pulls next, for the queues that it has pulled from."""

    def topics_of(self, group: str, topics: Collection[str] = ()) -> list[str]:
        """The topics that a group has committed offsets of, or those of ``topics``, that count for it."""

    def message(self, queue: MessageQueue, offset: int) -> MessageExt | None:
        """The message at an offset, None if there is none."""


@frozen
@dataclass(frozen=True, slots=True)
class OffsetWrapper:
    """One queue of a group.

    broker_offset, consumer_offset, pull_offset: the next to be stored, consumed and pulled. delay: messages not
    consumed; inflight: those of them that were pulled. last_timestamp: ms, the store time of the last consumed message;
    0 is shown as 1970; last_consume distinguishes its two meanings: nothing was consumed yet, or that message was
    deleted.
    """

    broker_offset: int
    consumer_offset: int
    pull_offset: int
    delay: int
    inflight: int
    last_timestamp: int
    last_consume: LastConsume


@frozen
@dataclass(frozen=True, slots=True)
class ConsumeStats:
    """A group's queues. It is as old as the last commit: up to the 5 s between two, unless pulls carry them."""

    offset_table: dict[MessageQueue, OffsetWrapper]

    def total_delay(self, topic: str | None = None) -> int:
        """Messages behind, of one topic or all."""
        return sum(row.delay for queue, row in self.offset_table.items() if topic in (None, queue.topic))

    def oldest_last_timestamp(self, topic: str | None = None) -> int | None:
        """The LastConsumeTime of the queue that is furthest behind in time, ms; None if none is known."""
        known = [
            row.last_timestamp
            for queue, row in self.offset_table.items()
            if topic in (None, queue.topic) and row.last_consume == LastConsume.KNOWN
        ]
        return min(known, default=None)


def consume_stats(cluster: StoredMessages, group: str, *topics: str) -> ConsumeStats:
    """How far ``group`` is behind on each queue of ``topics``; queues without a committed offset count from 0.

    Without topics: all that it has committed offsets of, the retry topic too. A topic that members of the group do not
    want is left out, as in the real broker, unless they want none at all. Raises ConfigurationError for
    anything but a cluster.
    """
    if not callable(getattr(cluster, "consumer_offsets", None)):
        raise ConfigurationError("cluster", repr(cluster), "no RocketMQ cluster", "give a rocketmq.Broker")
    table = {}
    for topic in cluster.topics_of(group, topics):
        pulled = cluster.pull_offsets(group, topic)
        committed = cluster.consumer_offsets(group, topic)
        for queue in cluster.topic_subscribe_info(topic) or []:
            consumed = committed.get(queue, -1)
            last = cluster.message(queue, consumed - 1) if consumed > 0 else None
            table[queue] = offset_wrapper(
                cluster.max_offset(queue), consumed, pulled.get(queue, -1),
                None if last is None else last.store_timestamp,
            )  # fmt: skip
    return ConsumeStats(table)


def offset_wrapper(broker_offset: int, consumed: int, pulled: int, last_timestamp: int | None) -> OffsetWrapper:
    """One queue of a group. consumed, pulled: -1 for none. last_timestamp: of the last consumed message, None if it
    is not there.
    """
    when, why = last_consume(consumed, last_timestamp)
    behind, ahead = delay(broker_offset, consumed), max(consumed, pulled, 0)
    consumed = max(consumed, 0)
    return OffsetWrapper(broker_offset, consumed, ahead, behind, ahead - consumed, when, why)
