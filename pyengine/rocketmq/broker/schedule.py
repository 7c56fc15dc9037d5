"""Delayed messages of one broker: they wait in a queue of each delay level, and go where they were sent when due."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from pyengine._engine.rocketmq.broker.consume_queue import ConsumeQueue
from pyengine._engine.rocketmq.broker.delay_levels import DelayLevels
from pyengine.clock import Clock, Timer
from pyengine.errors import PyengineError
from pyengine.rocketmq.broker.message_store import SCHEDULE_TOPIC, MessageStore
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

DELIVER_AGAIN = 10_000  # ms after a delayed message could not be stored (ScheduleMessageService.DELAY_FOR_A_PERIOD)


class ScheduleMessageService:
    """RocketMQ's ScheduleMessageService. Every method but the timers' own is called with the broker's lock held.

    send_on: stores the message at a position of the log where it was sent to, and notes there that it is this one of
    its level; raises a PyengineError if it cannot be read or stored.
    """

    def __init__(
        self,
        clock: Clock,
        levels: DelayLevels,
        lock: threading.RLock,
        store: MessageStore,
        send_on: Callable[[int, int, int], object],
    ) -> None:
        self._clock = clock
        self._levels = levels
        self._lock = lock
        self._store = store
        self._send_on = send_on
        self._timers: dict[int, Timer] = {}
        self._closed = False

    def start(self) -> None:
        """Have what waits delivered from now on."""
        for level in range(1, len(self._levels) + 1):
            self.schedule(level)

    def schedule(self, level: int) -> None:
        """Have the first delayed message of a level delivered when it is due."""
        queue, following = self._waiting(level)
        timer = self._timers.get(level)
        if self._closed or following >= queue.max_offset or (timer is not None and timer.pending):
            return
        due = self._levels.due_time(level, queue.tags_code(following), self._clock.now())
        self._call_at(due, level)

    def _waiting(self, level: int) -> tuple[ConsumeQueue, int]:
        """The queue of a level, and the offset of its first message that was not delivered yet."""
        queue = self._store.consume_queue(SCHEDULE_TOPIC, level - 1)
        return queue, max(self._store.delivered[level], queue.min_offset)

    def _call_at(self, when: int, level: int) -> None:
        self._timers[level] = self._clock.call_at(when, partial(self._deliver, level))

    def _deliver(self, level: int) -> None:
        """Send on what is due of a level."""
        with self._lock:
            if self._closed:
                return
            try:
                self._deliver_due(level)
            finally:  # also where the user's interrupt ends it, under a manual clock
                self.schedule(level)

    def _deliver_due(self, level: int) -> None:
        queue, following = self._waiting(level)
        while following < queue.max_offset:
            now = self._clock.now()
            if self._levels.due_time(level, queue.tags_code(following), now) > now:
                break
            try:
                self._send_on(queue.position(following), level, following)
            except PyengineError as error:
                log.error("delay level %s is tried again in %s ms: %s", level, DELIVER_AGAIN, error)
                self._call_at(now + DELIVER_AGAIN, level)
                break
            following += 1

    def close(self) -> None:
        """Deliver nothing more."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
