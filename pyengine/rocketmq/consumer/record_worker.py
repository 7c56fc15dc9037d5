"""Key-ordered, out-of-order-safe work on records that a client of any broker polled: Kafka's, RocketMQ's, your own.

The library does not own the socket: you poll, you pause, you commit; it says which record may be worked on next, which
offset is safe to commit and which queue holds enough.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping
from itertools import islice
from typing import Any, Literal, NamedTuple

from pyengine._engine.rocketmq.client.process_queue import FlowControl
from pyengine._engine.rocketmq.client.work_table import Work, WorkOrder, WorkTable, polled
from pyengine.attributes import Declared
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidMessageError
from pyengine.rocketmq.remoting.mq_client_api import check_listed, whole_number
from pyengine.rocketmq.tables.allocation import MessageQueue

_ORDERS = {"key": WorkOrder.BY_KEY, "queue": WorkOrder.BY_QUEUE, "none": WorkOrder.UNORDERED}


class TopicPartition(NamedTuple):
    """A partition of a Kafka topic; equal to the plain tuple."""

    topic: str
    partition: int


def _named(queue: object) -> Hashable:
    """A queue as records name it: of a plain tuple, or of another client's object, what it stands for.

    Raises ConfigurationError for what is none.
    """
    if not isinstance(queue, tuple):
        # confluent-kafka's own, which is no tuple and compares with nothing else.
        topic, partition = getattr(queue, "topic", None), getattr(queue, "partition", None)
        if isinstance(topic, str) and isinstance(partition, int):
            return TopicPartition(topic, partition)
    elif _is_hashable(queue):
        kind = {2: TopicPartition, 3: MessageQueue}.get(len(queue)) if type(queue) is tuple else None
        return queue if kind is None else kind(*queue)
    raise ConfigurationError("queue", repr(queue), "no queue", "give TopicPartition('topic', 0) or a MessageQueue")


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _queues(queues: Iterable[Hashable]) -> list[Hashable]:
    """Different queues as a list. Raises ConfigurationError for what is none."""
    check_listed("queues", queues, "[TopicPartition('topic', 0)]")
    listed = [_named(queue) for queue in queues]
    if len(set(listed)) != len(listed):
        raise ConfigurationError("queues", listed, "a queue stands there twice")
    return listed


def _no_work(work: object) -> ConfigurationError:
    return ConfigurationError("work", repr(work), "no record in hand", "give what take() returned")


class RecordWorker(Declared):
    """Hands out polled records to any number of threads or tasks and keeps the offset that is safe to commit.

    order: ``"key"`` works on one record of a key at a time, in order (records without a key in any order); ``"queue"``
    on one of a queue at a time; ``"none"`` on all at once. max_messages, max_mebibytes, max_span: budget of one queue
    (RocketMQ's pullThresholdForQueue, pullThresholdSizeForQueue, consumeConcurrentlyMaxSpan): one that exceeds it is in
    :meth:`full`. The span is from the smallest offset that is not done to the largest that was put: what a restart
    repeats is at most that, and what one poll brings on top. RocketMQ's own ends at the largest that is not done.

    A record is anything with confluent-kafka's, aiokafka's or RocketMQ's fields. A queue is
    ``TopicPartition(topic, partition)``, that of aiokafka or confluent-kafka too, or a MessageQueue. Thread-safe.
    Raises ConfigurationError for an order or a budget that is none.
    """

    def __init__(
        self,
        order: Literal["key", "queue", "none"] = "key",
        *,
        max_messages: int = 1000,
        max_mebibytes: int = 100,
        max_span: int = 2000,
    ) -> None:
        if not isinstance(order, str) or order not in _ORDERS:
            raise ConfigurationError("order", repr(order), "unknown", "'key', 'queue' or 'none'")
        budget = {"max_messages": max_messages, "max_mebibytes": max_mebibytes, "max_span": max_span}
        for name, most in budget.items():
            if whole_number(name, most) < 0:
                raise ConfigurationError(name, most, "a queue would always be full", "a number from 0 on is needed")
        self._table = WorkTable(_ORDERS[order], **budget)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0

    def assign(self, queues: Iterable[Hashable]) -> dict[Any, int]:
        """These queues are this client's from now on. Returns {queue: epoch}; IllegalStateError for one it has, and
        ConfigurationError for what is no list of queues: then it gets none of them.
        """
        wanted = _queues(queues)
        with self._lock:
            held = self._table.assigned()
            for queue in wanted:
                if queue in held:
                    raise IllegalStateError(f"{queue!r} is assigned already: revoke() comes first")
            return dict(zip(wanted, map(self._table.assign, wanted), strict=True))  # all, wherever Ctrl-C comes

    def revoke(self, queues: Iterable[Hashable]) -> dict[Any, int]:
        """These queues belong to others now. Returns the offsets to commit last: {queue: offset}, where there is one.

        What is in hand may be finished; its completion is dropped and counted (:attr:`dropped`). Raises
        IllegalStateError for a queue that is not assigned, ConfigurationError for what is no list of queues: then all
        stay.
        """
        leaving = _queues(queues)
        with self._lock:
            for queue in leaving:
                self._table.safe_offset(queue)
            safe = dict(zip(leaving, map(self._table.revoke, leaving), strict=True))
        return {queue: offset for queue, offset in safe.items() if offset >= 0}

    def put(self, records: Iterable[Any]) -> int:
        """Take in polled records. Returns how many were new; an offset that is there already is not taken twice.

        Raises InvalidMessageError for what is no record and for a key that cannot be hashed, IllegalStateError for a
        queue that is not assigned, ConfigurationError for what is no list of records.
        """
        check_listed("records", records, "what the client's poll returned")
        works = polled(records)
        with self._lock:
            try:
                new = self._table.put_polled(works)
            except TypeError:
                for work in works:
                    for field, value in (("key", work.key), ("queue", work.queue)):
                        if not _is_hashable(value):
                            hint = "make it bytes, a text or a tuple"
                            raise InvalidMessageError(field, value, "cannot be hashed", hint=hint) from None
                raise
            finally:  # what lies before a record that is refused is in
                if self._waiting:
                    self._changed.notify(len(works))
        return new

    def take(self, timeout: float | None = 0) -> Work | None:
        """A record that may be worked on now, None if there is none within ``timeout`` seconds (None: wait for ever).

        The answer has ``record``, ``key``, ``queue`` and ``attempts``, and is finished once, by :meth:`complete` or
        :meth:`give_back`. Raises ConfigurationError for a timeout that is no number.
        """
        work: Work | None = None
        try:
            with self._lock:
                for work in self._table:
                    return work
        except BaseException:
            if work is not None:  # nobody would have it in hand
                self.give_back(work)
            raise
        if timeout == 0:
            return None
        taken: list[Work] = []
        try:
            self._wait(taken, timeout)
        except BaseException:
            for work in taken:
                self.give_back(work)
            raise
        return taken[0] if taken else None

    def _wait(self, taken: list[Work], timeout: float | None) -> None:
        """Put there what can be taken within ``timeout``."""
        if timeout is not None:
            if not isinstance(timeout, (int, float)) or timeout != timeout:
                raise ConfigurationError("timeout", repr(timeout), "a number of seconds is needed, or None")
            timeout = min(timeout, threading.TIMEOUT_MAX)

        def found() -> bool:
            taken.extend(islice(self._table, 1))
            return bool(taken)

        with self._lock:
            self._waiting += 1
            try:
                self._changed.wait_for(found, timeout)
            finally:
                self._waiting -= 1

    def complete(self, work: Work) -> bool:
        """The record is done. False: its queue was revoked meanwhile, so somebody else will do it too.

        Raises IllegalStateError for a record that is not in hand here, ConfigurationError for what is none.
        """
        with self._lock:
            try:
                counted = self._table.complete(work)
            except TypeError:
                raise _no_work(work) from None
            if self._waiting:
                self._changed.notify()
            return counted

    def give_back(self, work: Work) -> bool:
        """The record failed and comes again, before the others of its key. False: its queue was revoked meanwhile.

        Raises as :meth:`complete` does.
        """
        with self._lock:
            try:
                kept = self._table.give_back(work)
            except TypeError:
                raise _no_work(work) from None
            if self._waiting:
                self._changed.notify()
            return kept

    def commits(self) -> dict[Any, int]:
        """The offsets to commit: {queue: next offset to consume}, for queues where it moved since the last call."""
        with self._lock:
            return self._table.commits()

    def full(self) -> Mapping[Any, FlowControl]:
        """The queues that hold enough, and which limit they exceed. Pause them at the client, resume the others."""
        with self._lock:
            return self._table.full()

    def unfinished(self, queue: Hashable) -> list[int]:
        """The offsets of a queue that were put and not completed, ascending."""
        with self._lock:
            return self._table.unfinished(_named(queue))

    @property
    def dropped(self) -> int:
        """How many records were finished after their queue had been revoked."""
        with self._lock:
            return self._table.dropped
