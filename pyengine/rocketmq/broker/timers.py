"""Messages that are delivered at a time of their own (TimerMessageStore); one broker's."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Mapping

from pyengine._engine.java.numbers import parsed_long
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine.clock import Clock, Timer
from pyengine.errors import MQBrokerError, PyengineError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.message_check import PROPERTY_TIMER_OUT_MS, TIMER_PROPERTIES
from pyengine.rocketmq.broker.message_store import MessageStore
from pyengine.rocketmq.broker.outstanding import Outstanding
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import MESSAGE_ILLEGAL
from pyengine.rocketmq.remoting.stored_message import message_of
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

TIMER_TOPIC = "rmq_sys_wheel_timer"
DONE_TOPIC = "rmq_sys_wheel_timer_done"
PRECISION = 1000  # ms (timerPrecisionMs)
MAX_DELAY = 3 * 24 * 3600 * 1000  # ms (timerMaxDelaySec)
AGAIN = 10_000  # ms after a message could not be stored

TIMERS = frozenset(TIMER_PROPERTIES)

Deliver = Callable[[MessageExt], None]


def deliver_at(properties: Mapping[str, str], now: int) -> int | None:
    """When the message is due, ms; None if it has no timer or its time is over.

    Raises MQBrokerError, code 13, for anything but a number and for a delay of more than three days.
    """
    if TIMERS.isdisjoint(properties) or PROPERTY_TIMER_OUT_MS in properties:
        return None
    illegal = MQBrokerError(
        MESSAGE_ILLEGAL,
        f"timer message illegal, the delay time should not be bigger than the max delay {MAX_DELAY}ms; or if set del "
        "msg, the delay time should be bigger than the current time",
    )
    for name, unit in (("TIMER_DELAY_SEC", 1000), ("TIMER_DELAY_MS", 1), ("TIMER_DELIVER_MS", 0)):
        text = properties.get(name)
        if text is not None:
            try:
                number = parsed_long(name, text)
            except ValueError:
                raise illegal from None
            when = now + number * unit if unit else number
            if when <= now:
                return None
            if when - now > MAX_DELAY:
                raise illegal
            return when
    return None


class TimerMessages:
    """The messages of a broker that wait for their time. Methods but the timer's own have the broker's lock held.

    deliver: stores a message where it was sent to.
    """

    def __init__(
        self, clock: Clock, lock: threading.RLock, store: MessageStore, broker_name: str, deliver: Deliver
    ) -> None:
        self._clock = clock
        self._lock = lock
        self._store = store
        self._broker_name = broker_name
        self._deliver = deliver
        self._kept = Outstanding(store, TIMER_TOPIC, DONE_TOPIC)
        self._due: list[tuple[int, int]] = []  # when, offset
        self._timer: Timer | None = None
        self._closed = False
        for offset, position in self._kept.offsets.items():
            message = message_of(store.log.read(position), broker_name)
            heapq.heappush(self._due, (int(message.properties[PROPERTY_TIMER_OUT_MS]) + PRECISION, offset))

    def start(self) -> None:
        """Deliver from now on."""
        self._look_later()

    def close(self) -> None:
        """Deliver no more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def keep(
        self, when: int, topic: str, queue_id: int, body: bytes | None, properties: dict[str, str], origin: Origin
    ) -> tuple[int, int]:
        """Keep a message until ``when`` (ms), to the second. Returns its position in the log and its offset there."""
        slot = (when - 1) // PRECISION * PRECISION
        properties[PROPERTY_TIMER_OUT_MS] = str(slot)
        properties[names.PROPERTY_REAL_TOPIC] = topic
        properties[names.PROPERTY_REAL_QUEUE_ID] = str(queue_id)
        kept = self._kept.put(body, properties, origin)
        heapq.heappush(self._due, (slot + PRECISION, kept[1]))
        self._look_later()
        return kept

    def _look_later(self) -> None:
        if self._closed or not self._due:
            return
        if self._timer is not None and self._timer.pending:
            self._timer.cancel()
        self._timer = self._clock.call_at(max(self._due[0][0], self._clock.now()), self._look)

    def _look(self) -> None:
        with self._lock:
            if self._closed:
                return
            while self._due and self._due[0][0] <= self._clock.now():
                _, offset = heapq.heappop(self._due)
                position = self._kept.offsets.get(offset)
                if position is None:
                    continue
                try:
                    message = message_of(self._store.log.read(position), self._broker_name)
                    message.properties["TIMER_ENQUEUE_MS"] = str(message.store_timestamp)
                    message.properties["TIMER_DEQUEUE_MS"] = str(self._clock.now())
                    self._deliver(message)
                except PyengineError as error:
                    log.error("a timer message is tried again in %s ms: %s", AGAIN, error)
                    heapq.heappush(self._due, (self._clock.now() + AGAIN, offset))
                    continue
                self._kept.end(offset)
            self._look_later()
