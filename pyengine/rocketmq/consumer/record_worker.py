"""Key-ordered, out-of-order-safe work on records that a client of any broker polled: Kafka's, RocketMQ's, your own.

The library does not own the socket: you poll, you pause, you commit; it decides which record may be worked on next,
which offset is safe to commit and which queue holds enough.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pyengine._engine.rocketmq.client.process_queue import FlowControl
from pyengine._engine.rocketmq.client.work_table import LockedTable, Work, WorkOrder, WorkTable, polled
from pyengine._engine.rocketmq.commands import defaults
from pyengine.attributes import Declared, named_arguments
from pyengine.clock import Clock, SystemClock, Timer
from pyengine.durations import milliseconds, seconds
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidMessageError
from pyengine.rocketmq.remoting.mq_client_api import check_listed, whole_number
from pyengine.rocketmq.tables.allocation import MessageQueue

if TYPE_CHECKING:
    import asyncio

_ORDERS = {"key": WorkOrder.BY_KEY, "queue": WorkOrder.BY_QUEUE, "none": WorkOrder.UNORDERED}


@named_arguments
class TopicPartition(NamedTuple):
    """A partition of a Kafka topic; equal to the plain tuple."""

    topic: str
    partition: int


def _named(queue: object) -> Hashable:
    """A queue as records name it: of a plain tuple, or of another client's object, what it stands for.

    Raises ConfigurationError for what is none.
    """
    if not isinstance(queue, tuple):
        # confluent-kafka's own, which is not a tuple and compares with nothing else.
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


@functools.cache
def _system_clock() -> SystemClock:
    """The clock of all workers without one of their own: one thread for all delays of the process."""
    return SystemClock()


@named_arguments
class RecordWorker(Declared):
    """Hands out polled records to any number of threads or tasks and keeps the offset that is safe to commit.

    order: ``"key"`` works on one record of a key at a time, in order (records without a key in any order); ``"queue"``
    on one of a queue at a time; ``"none"`` on all at once. max_messages, max_mebibytes, max_span: budget of one queue
    (RocketMQ's pullThresholdForQueue, pullThresholdSizeForQueue, consumeConcurrentlyMaxSpan): one that exceeds it is in
    :meth:`full`. The span is from the smallest offset that is not done to the largest that was put: what a restart
    repeats is at most that, and what one poll brings on top. RocketMQ's own ends at the largest that is not done.

    A record is anything with confluent-kafka's, aiokafka's or RocketMQ's fields. A queue is
    ``TopicPartition(topic, partition)``, that of aiokafka or confluent-kafka too, or a MessageQueue. Thread-safe.
    clock: by which the delays of :meth:`give_back` pass; the system's by default, a ManualClock in a test.
    Raises ConfigurationError for an order or a budget that is none.
    """

    def __init__(
        self,
        order: Literal["key", "queue", "none"] = "key",
        *,
        max_messages: int = defaults.PULL_THRESHOLD_FOR_QUEUE,
        max_mebibytes: int = defaults.PULL_THRESHOLD_SIZE_FOR_QUEUE,
        max_span: int = defaults.CONSUME_CONCURRENTLY_MAX_SPAN,
        clock: Clock | None = None,
    ) -> None:
        if not isinstance(order, str) or order not in _ORDERS:
            raise ConfigurationError("order", repr(order), "unknown", "'key', 'queue' or 'none'")
        budget = {"max_messages": max_messages, "max_mebibytes": max_mebibytes, "max_span": max_span}
        for name, most in budget.items():
            if whole_number(name, most) < 0:
                raise ConfigurationError(name, most, "a queue would always be full", "a number from 0 on is needed")
        self._table = WorkTable(_ORDERS[order], **budget)
        self._lock = threading.RLock()
        self._locked = LockedTable(self._table, self._lock)
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        self._tasks: list[asyncio.Future[None]] = []
        self._clock = clock
        self._timer: Timer | None = None

    def assign(self, queues: Iterable[Hashable]) -> dict[Any, int]:
        """These queues are this client's from now on. Returns {queue: epoch}; IllegalStateError for one it has, and
        ConfigurationError for anything but a list of queues: then it gets none of them.
        """
        wanted = _queues(queues)
        with self._lock:
            held = self._table.assigned()
            for queue in wanted:
                if queue in held:
                    raise IllegalStateError(f"{queue!r} is assigned already: revoke() comes first")
            return dict(zip(wanted, map(self._table.assign, wanted), strict=True))  # all, wherever Ctrl-C comes

    def revoke(self, queues: Iterable[Hashable]) -> dict[Any, int]:
        """These queues belong to others now. Returns the offsets to commit last: {queue: offset}, if there is one.

        What is in hand may be finished; its completion is dropped and counted (:attr:`dropped`). Raises
        IllegalStateError for a queue that is not assigned, ConfigurationError for anything but a list of queues: then
        all stay.
        """
        leaving = _queues(queues)
        with self._lock:
            for queue in leaving:
                self._table.safe_offset(queue)
            safe = dict(zip(leaving, map(self._table.revoke, leaving), strict=True))
        return {queue: offset for queue, offset in safe.items() if offset >= 0}

    def put(self, records: Iterable[Any]) -> int:
        """Take in polled records. Returns how many were new; an offset that is there already is not taken twice.

        Raises InvalidMessageError for an object that is not a record and for a key that cannot be hashed,
        IllegalStateError for a queue that is not assigned, ConfigurationError for anything but a list of records.
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
                            hint = "make it bytes, a string or a tuple"
                            raise InvalidMessageError(field, value, "cannot be hashed", hint=hint) from None
                raise
            finally:  # what lies before a record that is refused is in
                self._wake(len(works))
        return new

    def _wake(self, records: int) -> None:
        """Let so many of those that wait for a record look again. The lock is held."""
        if self._waiting:
            self._changed.notify(records)
        if self._tasks:
            woken, self._tasks = self._tasks[:records], self._tasks[records:]
            for future in woken:
                future.get_loop().call_soon_threadsafe(_finish, future)

    def take(self, timeout: float | timedelta | None = 0) -> Work | None:
        """A record that may be worked on now, None if there is none within ``timeout`` seconds (None: wait for ever).

        The answer has ``record``, ``key``, ``queue`` and ``attempts``, and is finished once, by :meth:`complete` or
        :meth:`give_back`. Raises ConfigurationError for a timeout that is not a number.
        """
        work: Work | None = None
        try:
            for work in self._locked:
                return work
        except BaseException:
            if work is not None:  # no caller would have it
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

    async def take_async(self, timeout: float | timedelta | None = None) -> Work | None:
        """:meth:`take` for tasks of an event loop: other tasks run while it waits. timeout: seconds, None: for ever.

        A task that is cancelled has taken nothing. Raises as :meth:`take` does.
        """
        import asyncio

        limit = _checked_timeout(timeout)
        loop = asyncio.get_running_loop()
        end = None if limit is None else loop.time() + limit
        while True:
            with self._lock:
                for work in self._table:
                    return work
                ahead = None if end is None else end - loop.time()
                if ahead is not None and ahead <= 0:
                    return None
                future = loop.create_future()
                self._tasks.append(future)
            try:
                await asyncio.wait([future], timeout=ahead)
            except BaseException:
                self._give_up(future)
                raise
            with self._lock:
                if future in self._tasks:  # its time is over
                    self._tasks.remove(future)

    def _give_up(self, future: asyncio.Future[None]) -> None:
        """Pass the wake-up of a cancelled task on to another task."""
        with self._lock:
            if future in self._tasks:
                self._tasks.remove(future)
            else:
                self._wake(1)

    def _wait(self, taken: list[Work], timeout: float | timedelta | None) -> None:
        """Put there what can be taken within ``timeout``."""
        limit = _checked_timeout(timeout)

        def found() -> bool:
            taken.extend(islice(self._table, 1))
            return bool(taken)

        with self._lock:
            self._waiting += 1
            try:
                if self._clock is None:
                    self._changed.wait_for(found, limit)
                else:
                    self._clock.wait(self._changed, found, None if limit is None else int(1000 * limit))
            finally:
                self._waiting -= 1

    def complete(self, work: Work) -> bool:
        """The record is done. False: its queue was revoked meanwhile, so another consumer processes it too.

        Raises IllegalStateError for a record that is not in hand here, ConfigurationError for what is none.
        """
        try:
            counted = self._locked.complete(work)
        except TypeError:
            raise _no_work(work) from None
        if self._waiting or self._tasks:  # one that waits since has seen what this left behind
            with self._lock:
                self._wake(1)
        return counted

    def give_back(self, work: Work, *, delay: int | timedelta = 0) -> bool:
        """The record failed and comes again, before the others of its key. False: its queue was revoked meanwhile.

        delay: ms or a timedelta after which it may be taken again; until then the others of its key wait too, and its
        offset is not committed. Raises as :meth:`complete` does, ConfigurationError for a delay that is none.
        """
        wait = milliseconds("delay", delay)
        if wait < 0:
            raise ConfigurationError("delay", delay, "a record cannot come again before it failed", "0 is at once")
        with self._lock:
            clock = (self._clock or _system_clock()) if wait else None
            try:
                kept = self._table.give_back(work, clock.now() + wait if clock else -1)
            except TypeError:
                raise _no_work(work) from None
            if clock is None:
                self._wake(1)
            elif kept:
                self._release(clock)
            return kept

    def _release(self, clock: Clock) -> None:
        """Make records available whose delay is over, and set the timer for the next. The lock is held."""
        following = self._table.release(clock.now())
        if self._timer is not None and self._timer.when != following:
            self._timer.cancel()
            self._timer = None
        if following >= 0 and self._timer is None:
            self._timer = clock.call_at(following, functools.partial(_release_due, weakref.ref(self), clock))

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


def _release_due(worker: weakref.ref[RecordWorker], clock: Clock) -> None:
    """What a timer does: it does not keep a worker that its owner dropped."""
    alive = worker()
    if alive is not None:
        with alive._lock:
            alive._timer = None
            alive._release(clock)
            alive._wake(alive._waiting + len(alive._tasks))


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _checked_timeout(timeout: float | timedelta | None) -> float | None:
    """Seconds to wait, None for ever. Raises ConfigurationError for what is not a number."""
    if timeout is None:
        return None
    if not isinstance(timeout, (int, float, timedelta)) or timeout != timeout:
        raise ConfigurationError("timeout", repr(timeout), "a number of seconds is needed, a timedelta or None")
    return min(seconds(timeout), threading.TIMEOUT_MAX)
