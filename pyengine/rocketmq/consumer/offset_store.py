"""Where a consumer keeps its offsets: in memory first, then at the broker (spec rocketmq 5)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from pyengine._engine.rocketmq.client.offset_table import OffsetTable
from pyengine.attributes import named_arguments
from pyengine.errors import ConfigurationError, NullArgumentError, OffsetNotFoundError
from pyengine.rocketmq.remoting.mq_client_api import OFFSET_TIMEOUT, MQClientAPI, check_listed, plain_text, whole_number
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


class ReadOffsetType(Enum):
    """Where read_offset looks."""

    READ_FROM_MEMORY = "READ_FROM_MEMORY"
    READ_FROM_STORE = "READ_FROM_STORE"
    MEMORY_FIRST_THEN_STORE = "MEMORY_FIRST_THEN_STORE"


class OffsetStore(Protocol):
    """What a consumer asks of its offset store; thread-safe. An offset is the next one to consume."""

    def load(self) -> None:
        """Read what was stored, if that is local."""

    def update_offset(self, queue: MessageQueue | None, offset: int, *, increase_only: bool = False) -> None:
        """Remember an offset; with ``increase_only`` never a lower one."""

    def update_and_freeze_offset(self, queue: MessageQueue | None, offset: int) -> None:
        """Remember an offset and nothing else until it is removed."""

    def read_offset(self, queue: MessageQueue | None, where: ReadOffsetType) -> int:
        """The offset; below 0 if there is none."""

    def persist_all(self, queues: Iterable[MessageQueue] | None) -> None:
        """Store the offsets of these queues."""

    def persist(self, queue: MessageQueue) -> None:
        """Store one offset."""

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forget an offset."""

    def offsets(self) -> dict[MessageQueue, int]:
        """What is remembered."""


def check_queue(queue: object) -> None:
    """Raise ConfigurationError for what is neither a MessageQueue nor None."""
    if queue is not None and not isinstance(queue, MessageQueue):
        raise ConfigurationError("queue", repr(queue), "no MessageQueue", "give MessageQueue('topic', 'broker-a', 0)")


def listed_queues(queues: Iterable[MessageQueue] | None) -> list[MessageQueue]:
    """Queues as a list, none of them for None. Raises ConfigurationError for anything but a list of queues."""
    if queues is None:
        return []
    check_listed("queues", queues, "[MessageQueue('topic', 'broker-a', 0)]")
    listed = list(queues)
    for queue in listed:
        check_queue(queue)
    return listed


class RememberedOffsets:
    """The part in memory of both offset stores; thread-safe."""

    def __init__(self) -> None:
        self._table = OffsetTable()
        self._lock = threading.Lock()

    def update_offset(self, queue: MessageQueue | None, offset: int, *, increase_only: bool = False) -> None:
        """Remember an offset; with ``increase_only`` never a lower one; a frozen one stays. None is ignored.

        Raises ConfigurationError for anything but a queue and a number of 64 bits.
        """
        check_queue(queue)
        whole_number("offset", offset)
        with self._lock:
            self._table.update(queue, offset, increase_only=increase_only)

    def update_and_freeze_offset(self, queue: MessageQueue | None, offset: int) -> None:
        """Remember an offset and let nothing else change it until it is removed. Raises as update_offset does."""
        check_queue(queue)
        whole_number("offset", offset)
        with self._lock:
            self._table.update_and_freeze(queue, offset)

    def _remembered(self, queue: MessageQueue, where: ReadOffsetType) -> int | None:
        """The offset in memory, -1 if only the memory is asked and has none; None: the store must be asked."""
        if where is ReadOffsetType.READ_FROM_STORE:
            return None
        with self._lock:
            offset = self._table.get(queue)
        return -1 if offset is None and where is ReadOffsetType.READ_FROM_MEMORY else offset

    def offsets(self) -> dict[MessageQueue, int]:
        """What is remembered."""
        with self._lock:
            return dict(self._table.items())


@named_arguments
class RemoteBrokerOffsetStore(RememberedOffsets):
    """Offsets of clustering: the broker's, with a copy in memory (RemoteBrokerOffsetStore, spec rocketmq 5.2).

    api: the brokers. group: the consumer group. Commits are one way: a lost one is repaired by the next. Raises
    ConfigurationError for a cluster or a group that is none.
    """

    def __init__(self, api: MQClientAPI, group: str) -> None:
        super().__init__()
        if not callable(getattr(api, "query_consumer_offset", None)):
            raise ConfigurationError("api", repr(api), "no RocketMQ cluster", "give a rocketmq.Broker")
        plain_text("group", group)
        self._api = api
        self._group = group

    def load(self) -> None:
        """Nothing: the broker has them."""

    def read_offset(self, queue: MessageQueue | None, where: ReadOffsetType) -> int:
        """The offset; -1: none, -2: the broker could not be asked, -3: no queue.

        Reading from the store remembers what it finds; a frozen offset stays, but what the broker has is returned.
        """
        check_queue(queue)
        if queue is None:
            return -3
        remembered = self._remembered(queue, where)
        if remembered is not None:
            return remembered
        try:
            stored = self._api.query_consumer_offset(self._group, queue, OFFSET_TIMEOUT)
        except OffsetNotFoundError:
            return -1
        except Exception as error:
            log.warning("fetchConsumeOffsetFromBroker exception, %s (group %s)", queue, self._group, exc_info=error)
            return -2
        self.update_offset(queue, stored)
        return stored

    def persist_all(self, queues: Iterable[MessageQueue] | None) -> None:
        """Send the offsets of these queues, changed or not, and forget those of others. No queues: nothing at all."""
        with self._lock:
            pairs = self._table.persist_all(listed_queues(queues))
        for queue, offset in pairs:
            self._send(queue, offset)

    def persist(self, queue: MessageQueue) -> None:
        """Send one offset, if there is one. Raises NullArgumentError for None."""
        if queue is None:
            raise NullArgumentError("queue")
        check_queue(queue)
        with self._lock:
            offset = self._table.get(queue)
        if offset is not None:
            self._send(queue, offset)

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forget an offset, and that it was frozen."""
        check_queue(queue)
        with self._lock:
            self._table.remove(queue)

    def _send(self, queue: MessageQueue, offset: int) -> None:
        try:
            self._api.update_consumer_offset(self._group, queue, offset, OFFSET_TIMEOUT)
        except Exception as error:
            log.error("updateConsumeOffsetToBroker exception, %s (group %s)", queue, self._group, exc_info=error)
