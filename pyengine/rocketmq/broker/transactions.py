"""Transactions of one broker: half messages, their end, and what their producers are asked."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine.clock import Clock, Timer
from pyengine.errors import MQBrokerError, PyengineError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.message_store import MessageStore, origin_of
from pyengine.rocketmq.broker.outstanding import Outstanding
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import SYSTEM_ERROR
from pyengine.rocketmq.remoting.stored_message import message_of
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECK_INTERVAL = 30_000  # ms between looks at half messages (transactionCheckInterval)
TIMEOUT = 6_000  # ms that a producer has before it is asked (transactionTimeOut)
CHECK_MAX = 15  # times that it is asked (transactionCheckMax)
COMMIT, ROLLBACK = 8, 12  # values of the bits of a system flag: the outcome of a transaction
TRANSACTION_BITS = 12

PROPERTY_PRODUCER_GROUP = "PGROUP"
PROPERTY_TRANSACTION_ID = "__transactionId__"
PROPERTY_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
PROPERTY_CHECK_IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"

Check = Callable[[str, MessageExt, str, int], None]


class TransactionalMessages:
    """The half messages of a broker (TransactionalMessageService). Methods but the timer's own have the lock held.

    ask: function(producer group, half message as its user knows it, half topic, offset there) that asks a producer.
    """

    def __init__(self, clock: Clock, lock: threading.RLock, store: MessageStore, broker_name: str, ask: Check) -> None:
        self._clock = clock
        self._lock = lock
        self._store = store
        self._broker_name = broker_name
        self._ask = ask
        self._half = Outstanding(store, HALF_TOPIC, OP_TOPIC)
        self._timer: Timer | None = None
        self._closed = False

    def start(self) -> None:
        """Ask for what is undecided from now on."""
        if self._half.offsets:
            self._look_later()

    def close(self) -> None:
        """Ask no more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def prepare(
        self, topic: str, queue_id: int, body: bytes | None, properties: dict[str, str], origin: Origin
    ) -> tuple[int, int]:
        """Keep a half message. Returns its position in the log and its offset among them."""
        unique = properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        if unique:
            properties[PROPERTY_TRANSACTION_ID] = unique
        properties[names.PROPERTY_REAL_TOPIC] = topic
        properties[names.PROPERTY_REAL_QUEUE_ID] = str(queue_id)
        kept = self._half.put(body, properties, origin._replace(sys_flag=origin.sys_flag & ~TRANSACTION_BITS))
        self._look_later()
        return kept

    def end(self, group: str, offset: int, position: int, outcome: int) -> MessageExt | None:
        """A producer has decided: COMMIT or ROLLBACK. Returns what to store where it was sent to, None for nothing.

        offset, position: of the half message. Raises MQBrokerError if there is none such, or it is another group's.
        """
        found = self._read(position)
        if found is None or self._half.offsets.get(offset) != position:
            raise MQBrokerError(SYSTEM_ERROR, "Find prepared transaction message failed")
        if found.properties.get(PROPERTY_PRODUCER_GROUP) != group:
            raise MQBrokerError(SYSTEM_ERROR, "The producer group wrong")
        if outcome != COMMIT:
            self._half.end(offset)
            return None
        found.sys_flag = found.sys_flag & ~TRANSACTION_BITS | COMMIT
        found.prepared_transaction_offset = position
        return found

    def committed(self, offset: int) -> None:
        """The message that :meth:`end` has returned is stored."""
        self._half.end(offset)

    def _read(self, position: int) -> MessageExt | None:
        try:
            return message_of(self._store.log.read(position), self._broker_name)
        except (PyengineError, ValueError):
            return None

    def _look_later(self) -> None:
        if not self._closed and (self._timer is None or not self._timer.pending):
            self._timer = self._clock.call_at(self._clock.now() + CHECK_INTERVAL, self._look)

    def _look(self) -> None:
        asked: list[tuple[str, MessageExt, int]] = []
        with self._lock:
            if self._closed:
                return
            for offset, position in list(self._half.offsets.items()):
                found = self._read(position)
                if found is None or self._clock.now() - found.store_timestamp < self._patience(found):
                    continue
                times = names.whole_property(found.properties, PROPERTY_CHECK_TIMES)
                if times >= CHECK_MAX:
                    log.warning("the half message %s is dropped: nobody decided it in %d looks", found.msg_id, times)
                    self._half.end(offset)
                    continue
                asked.append(self._put_back(found, offset, times + 1))
            if self._half.offsets:
                self._timer = self._clock.call_at(self._clock.now() + CHECK_INTERVAL, self._look)
        for group, message, offset in asked:
            self._ask(group, message, HALF_TOPIC, offset)

    def _patience(self, message: MessageExt) -> int:
        seconds = message.properties.get(PROPERTY_CHECK_IMMUNITY, "")
        return int(seconds) * 1000 if seconds.isascii() and seconds.isdecimal() else TIMEOUT

    def _put_back(self, message: MessageExt, offset: int, times: int) -> tuple[str, MessageExt, int]:
        """Store it again with one more check counted. Returns the check, and the producer that it goes to."""
        message.properties[PROPERTY_CHECK_TIMES] = str(times)
        position, following = self._half.put(message.body, message.properties, origin_of(message))
        self._half.end(offset)
        again = message_of(self._store.log.read(position), self._broker_name)
        return message.properties.get(PROPERTY_PRODUCER_GROUP, ""), again, following
