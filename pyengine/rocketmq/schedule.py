"""Delayed messages of one broker: they wait in a queue of each delay level, and go where they were sent when due."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable

from pyengine._engine.consume_queue import ConsumeQueue
from pyengine._engine.delay import DelayLevels
from pyengine.clock import Clock, Timer
from pyengine.errors import PyengineError

log = logging.getLogger("pyengine.rocketmq.broker")

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELIVER_AGAIN = 10_000  # ms after a delayed message could not be stored (ScheduleMessageService.DELAY_FOR_A_PERIOD)


class ScheduleMessageService:
    """RocketMQ's ScheduleMessageService. Every method but the timers' own is called with the broker's lock held.

    index_of: the index of a level's queue. send_on: stores the message at a position of the log where it was sent to,
    and notes there that it is this one of its level; raises a PyengineError where it cannot be read or stored.
    """

    def __init__(
        self,
        clock: Clock,
        levels: DelayLevels,
        lock: threading.RLock,
        index_of: Callable[[int], ConsumeQueue],
        send_on: Callable[[int, int, int], object],
    ) -> None:
        self._clock = clock
        self._levels = levels
        self._lock = lock
        self._index_of = index_of
        self._send_on = send_on
        # Also of levels that the log has and this broker has not; their messages wait for one that has them.
        self._delivered: defaultdict[int, int] = defaultdict(int)
        self._timers: dict[int, Timer] = {}
        self._closed = False

    def take_up(self, level: int, offset: int) -> None:
        """The log says that this message of a level was delivered."""
        self._delivered[level] = max(self._delivered[level], offset + 1)

    def start(self) -> None:
        """Have what waits delivered from now on."""
        for level in range(1, len(self._levels) + 1):
            self.schedule(level)

    def schedule(self, level: int) -> None:
        """Have the first delayed message of a level delivered when it is due."""
        index = self._index_of(level)
        following = max(self._delivered[level], index.min_offset)
        timer = self._timers.get(level)
        if self._closed or following >= index.max_offset or (timer is not None and timer.pending):
            return
        due = self._levels.due_time(level, index.tags_code(following), self._clock.now())
        self._call_at(due, level)

    def _call_at(self, when: int, level: int) -> None:
        self._timers[level] = self._clock.call_at(when, lambda: self._deliver(level))

    def _deliver(self, level: int) -> None:
        """Send on what is due of a level."""
        with self._lock:
            if self._closed:
                return
            index = self._index_of(level)
            following = max(self._delivered[level], index.min_offset)
            while following < index.max_offset:
                now = self._clock.now()
                if self._levels.due_time(level, index.tags_code(following), now) > now:
                    break
                try:
                    self._send_on(index.position(following), level, following)
                except PyengineError as error:
                    log.error("delay level %s is tried again in %s ms: %s", level, DELIVER_AGAIN, error)
                    self._call_at(now + DELIVER_AGAIN, level)
                    return
                following += 1
                self._delivered[level] = following
            self.schedule(level)

    def delivered(self, level: int) -> int:
        """Offset of the first message of a level that was not delivered yet."""
        return self._delivered[level]

    @property
    def all_delivered(self) -> dict[int, int]:
        """The same of every level, those that only the log has too."""
        levels = sorted({*range(1, len(self._levels) + 1), *self._delivered})
        return {level: self._delivered[level] for level in levels}

    def close(self) -> None:
        """Deliver nothing more."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
