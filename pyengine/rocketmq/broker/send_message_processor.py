"""What a broker does with a message that is sent to it or given back: its queue, delay, transaction, dead letters."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from pyengine._engine.rocketmq.broker import delay_levels as delay
from pyengine._engine.rocketmq.broker.commit_log_record import are_plain
from pyengine._engine.rocketmq.broker.queue_locks import RebalanceLocks
from pyengine._engine.rocketmq.client.validators import SYSTEM_TOPICS, suggested
from pyengine._engine.rocketmq.commands import defaults
from pyengine._engine.rocketmq.commands.origin import Origin, OriginFields
from pyengine._engine.rocketmq.commands.stored_message import is_plain, message_id, message_ids
from pyengine.clock import Clock
from pyengine.errors import MQBrokerError, PyengineError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.message_check import SPECIAL, check_sent_message, check_sent_topic, check_size, is_half
from pyengine.rocketmq.broker.message_store import CLIENT_HOST, SCHEDULE_TOPIC, MessageStore, origin_of
from pyengine.rocketmq.broker.node_options import NodeOptions
from pyengine.rocketmq.broker.node_state import NodeState
from pyengine.rocketmq.broker.schedule import ScheduleMessageService
from pyengine.rocketmq.broker.timers import TimerMessages, deliver_at
from pyengine.rocketmq.broker.topic_table import TopicTable
from pyengine.rocketmq.broker.transactions import Check, TransactionalMessages
from pyengine.rocketmq.message import Message, MessageExt
from pyengine.rocketmq.remoting.mq_client_api import CLIENT, INVALID_PARAMETER, SYSTEM_ERROR, TOPIC_NOT_EXIST
from pyengine.rocketmq.remoting.stored_message import host_bytes, message_of

PROPERTY_WAIT_STORE = "WAIT"
RETRY_QUEUES = 1
DLQ_QUEUES = 1


class Stored(NamedTuple):
    """Where a message was stored; of a batch its first one, and the ids of all, joined by commas. flush: the position
    up to which the log must be on the disk before the send is confirmed.
    """

    topic: str
    queue_id: int
    queue_offset: int
    offset_msg_id: str
    flush: int


_new_tuple = tuple.__new__


class RemoteSend(NamedTuple):
    """Where a message that is sent over the network comes from. born: when its producer sent it, ms. host: the
    producer's, 8 bytes, and as text. reconsume_times, most: how often it was consumed, and may be; None: the broker's.
    """

    born: int
    host: bytes
    client: str
    sys_flag: int = 0
    reconsume_times: int = 0
    most: int | None = None


class SendMessageProcessor:
    """RocketMQ's SendMessageProcessor and EndTransactionProcessor.

    ask_producer: asks the producer of a half message whether it was committed; the server sets it.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        lock: threading.RLock,
        options: NodeOptions,
        store: MessageStore,
        topics: TopicTable,
        locks: RebalanceLocks,
        state: NodeState,
    ) -> None:
        self._name = name
        self._clock = clock
        self._lock = lock
        self._levels = options.levels
        self._max_message_size = options.max_message_size
        self._id_prefix = message_id(host_bytes(options.address), 0)[:-16]
        self._store = store
        self._topics = topics
        self._locks = locks
        self._state = state
        self.delayed = ScheduleMessageService(clock, options.levels, lock, store, self._deliver_delayed)
        self.transactions = TransactionalMessages(clock, lock, store, name, self._ask)
        self.timers = TimerMessages(clock, lock, store, name, self._store_where_sent)
        self.ask_producer: Check = lambda *half: None
        from random import Random  # it loads OpenSSL

        self._random = Random(options.seed)

    def start(self) -> None:
        """Deliver what is delayed, and check transactions, from now on."""
        self.delayed.start()
        self.transactions.start()
        self.timers.start()

    def close(self) -> None:
        """Deliver and check nothing any more."""
        self.delayed.close()
        self.transactions.close()
        self.timers.close()

    def send(
        self, message: Message, queue_id: int, new_topic_queues: int = 0, origin: RemoteSend | None = None
    ) -> Stored:
        """Store what a producer or a consumer's inner producer sends (SendMessageProcessor).

        new_topic_queues: how many a topic gets that this broker has not; 0 refuses it. origin: of a message that comes
        over the network; without it its properties have how often it was consumed.
        """
        topic, properties, state = message.topic, message.properties, self._state
        if topic in SYSTEM_TOPICS:
            check_sent_topic(topic)
        with self._lock:
            if state.closed or state.files is not None:
                state.check_open()
            now, store = self._clock.now(), self._store
            born, host, _, sys_flag, reconsume_times, most = origin or (now, CLIENT_HOST, CLIENT, 0, 0, None)
            is_retry = topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX)
            if (
                0 <= queue_id < self._topics.queues.get(topic, 0) and not is_retry and is_plain(properties, SPECIAL)
            ):  # as nearly always: a send to a queue that is there, of what is stored as it is
                body = message.body
                if body is not None and len(body) > self._max_message_size:
                    check_size(body, self._max_message_size)
                fields: OriginFields = (born, host, reconsume_times, message.flag, sys_flag, None, 0)
                position, offset = store.put_message(topic, queue_id, body, properties, fields, now)
                place = (topic, queue_id, offset, f"{self._id_prefix}{position:016X}", store.log.end)
                return _new_tuple(Stored, place)  # at the cost of a tuple
            properties = {name: value for name, value in properties.items() if name and value}
            queue_id = self._queue_to_send_to(topic, queue_id, new_topic_queues, origin)
            if origin is None and is_retry:
                reconsume_times = names.whole_property(properties, names.PROPERTY_RECONSUME_TIME)
                most = names.whole_property(
                    properties, names.PROPERTY_MAX_RECONSUME_TIMES, defaults.MAX_RECONSUME_TIMES
                )
            if is_retry:
                group = topic.removeprefix(names.RETRY_GROUP_TOPIC_PREFIX)
                allowed = defaults.MAX_RECONSUME_TIMES if most is None else most
                if delay.retry_is_dead(reconsume_times, allowed, not self._locks.all_expired(group, now)):
                    topic, queue_id = self._dead_letter_queue(group)
                    properties[names.PROPERTY_DELAY_TIME_LEVEL] = "-1"
            check_sent_message(
                message.body, properties, reconsume_times, self._max_message_size, remote=origin is not None
            )
            stored_with = Origin(born, host, reconsume_times, message.flag, sys_flag)
            if origin is not None and is_half(properties, reconsume_times):
                position, offset = self.transactions.prepare(topic, queue_id, message.body, properties, stored_with)
                return Stored(topic, queue_id, offset, self.offset_msg_id(position), store.log.end)
            return self._put(topic, queue_id, message.body, properties, stored_with)

    def send_batch(
        self, messages: Sequence[Message], queue_id: int, new_topic_queues: int, origin: RemoteSend | None = None
    ) -> Stored:
        """Store the messages of a batch, all of one topic, one behind the other in one queue."""
        topic = messages[0].topic
        remote = origin is not None
        if origin is None:
            origin = RemoteSend(self._clock.now(), CLIENT_HOST, CLIENT)
        check_sent_topic(topic)
        with self._lock:
            self._state.check_open()
            queue_id = self._queue_to_send_to(topic, queue_id, new_topic_queues, origin)
            is_retry = topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX)
            if not is_retry and are_plain(messages, SPECIAL, self._max_message_size):
                stored_with = Origin(origin.born, origin.host, sys_flag=origin.sys_flag)
                positions, offset = self._store.put_messages(topic, queue_id, messages, stored_with)
                ids = message_ids(self._id_prefix, positions)
                return Stored(topic, queue_id, offset, ids, self._store.log.end)
            properties = [dict(message.properties) for message in messages]
            for message, own in zip(messages, properties, strict=True):
                check_sent_message(message.body, own, 0, self._max_message_size, remote=remote)
            stored = [
                self._put(
                    topic, queue_id, message.body, own,
                    Origin(origin.born, origin.host, 0, message.flag, origin.sys_flag),
                )
                for message, own in zip(messages, properties, strict=True)
            ]  # fmt: skip
            ids = ",".join([each.offset_msg_id for each in stored])
            return stored[0]._replace(offset_msg_id=ids, flush=stored[-1].flush)

    def _queue_to_send_to(self, topic: str, queue_id: int, new_topic_queues: int, origin: RemoteSend | None) -> int:
        """The queue of a topic, which is made where it may be; any queue for one below 0. Raises MQBrokerError."""
        if topic not in self._topics.queues:
            if not new_topic_queues and not topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX):
                raise MQBrokerError(TOPIC_NOT_EXIST, suggested(f"topic[{topic}] not exist, apply first please!"))
            self._topics.create(topic, new_topic_queues or RETRY_QUEUES)
        count = self._topics.queues[topic]
        if queue_id < 0:
            return self._random.randrange(count)
        if queue_id >= count:
            raise MQBrokerError(
                INVALID_PARAMETER,
                f"request queueId[{queue_id}] is illegal, {self._described(topic)} "
                f"Producer: {CLIENT if origin is None else origin.client}",
            )
        return queue_id

    def send_back(self, group: str, message: MessageExt, delay_level: int, max_reconsume_times: int) -> Stored:
        """A consumer gives a message back (AbstractSendMessageProcessor.consumerSendMsgBack)."""
        with self._lock:
            self._state.check_open()
            # Made also where the message goes elsewhere, or is not found.
            topic, queue_id = self.create_retry_topic(group), self._random.randrange(RETRY_QUEUES)
            try:
                stored = self._message_at(message.commit_log_offset)
            except (PyengineError, ValueError) as error:
                raise MQBrokerError(
                    SYSTEM_ERROR, f"look message by offset failed, {message.commit_log_offset}"
                ) from error
            properties = dict(stored.properties)
            properties.setdefault(names.PROPERTY_RETRY_TOPIC, stored.topic)
            properties[PROPERTY_WAIT_STORE] = "false"
            level = delay.send_back(delay_level, stored.reconsume_times, max_reconsume_times)
            if level < 0:
                topic, queue_id = self._dead_letter_queue(group)
                level = 0
            properties[names.PROPERTY_DELAY_TIME_LEVEL] = str(level)
            if not properties.get(names.PROPERTY_ORIGIN_MESSAGE_ID, "").strip():
                properties[names.PROPERTY_ORIGIN_MESSAGE_ID] = self.offset_msg_id(stored.commit_log_offset)
            origin = origin_of(stored)._replace(reconsume_times=stored.reconsume_times + 1)
            return self._put(topic, queue_id, stored.body, properties, origin)

    def end_transaction(self, group: str, offset: int, position: int, outcome: int) -> None:
        """A producer commits a half message, or rolls it back (EndTransactionProcessor). Raises MQBrokerError."""
        with self._lock:
            self._state.check_open()
            decided = self.transactions.end(group, offset, position, outcome)
            if decided is not None:
                self._store_where_sent(decided, origin_of(decided)._replace(prepared_transaction_offset=position))
                self.transactions.committed(offset)

    def _store_where_sent(self, message: MessageExt, origin: Origin | None = None) -> None:
        """Store a message that was kept aside. Raises MQBrokerError."""
        properties = message.properties
        topic, queue_id = properties[names.PROPERTY_REAL_TOPIC], int(properties[names.PROPERTY_REAL_QUEUE_ID])
        self._topics.check_queue(topic, queue_id)
        self._store.put_message(topic, queue_id, message.body, properties, origin or origin_of(message))

    def _deliver_delayed(self, position: int, level: int, offset: int) -> None:
        """Store a delayed message where it was sent to; it lies at ``position``, and at ``offset`` of its level."""
        # DELAY stays: the real broker removes it when it has written the properties down already (messageTimeUp).
        message = self._message_at(position)
        self._store_where_sent(message, origin_of(message)._replace(delivers=(level, offset)))

    def _ask(self, group: str, message: MessageExt, half_topic: str, offset: int) -> None:
        self.ask_producer(group, message, half_topic, offset)

    def _message_at(self, position: int) -> MessageExt:
        """A copy of the message at a position of the log."""
        return message_of(self._store.log.read(position), self._name)

    def create_retry_topic(self, group: str) -> str:
        """The retry topic of a group, made if it is not there."""
        topic = names.retry_topic(group)
        if topic not in self._topics.queues:
            self._topics.create(topic, RETRY_QUEUES)
        return topic

    def _dead_letter_queue(self, group: str) -> tuple[str, int]:
        topic = names.dlq_topic(group)
        self._topics.create(topic, max(DLQ_QUEUES, self._topics.queues.get(topic, 0)))
        return topic, self._random.randrange(DLQ_QUEUES)

    def _put(self, topic: str, queue_id: int, body: bytes | None, properties: dict[str, str], origin: Origin) -> Stored:
        """Store a message in its queue, or in that of its delay level."""
        target = topic, queue_id
        self._topics.check_queue(topic, queue_id)
        if SPECIAL.isdisjoint(properties):
            position, offset = self._store.put_message(topic, queue_id, body, properties, origin)
            return Stored(*target, offset, self.offset_msg_id(position), self._store.log.end)
        wanted = names.whole_property(properties, names.PROPERTY_DELAY_TIME_LEVEL)
        level = self._levels.clamp(wanted)
        if level > 0:
            if level != wanted:
                properties[names.PROPERTY_DELAY_TIME_LEVEL] = str(level)
            properties[names.PROPERTY_REAL_TOPIC] = topic
            properties[names.PROPERTY_REAL_QUEUE_ID] = str(queue_id)
            topic, queue_id = SCHEDULE_TOPIC, level - 1
        elif (when := deliver_at(properties, self._clock.now())) is not None:
            position, offset = self.timers.keep(when, topic, queue_id, body, properties, origin)
            return Stored(*target, offset, self.offset_msg_id(position), self._store.log.end)
        position, offset = self._store.put_message(topic, queue_id, body, properties, origin)
        return Stored(*target, offset, self.offset_msg_id(position), self._store.log.end)

    def offset_msg_id(self, position: int) -> str:
        """The broker's id of the message at a position of its log (MessageDecoder.createMessageId)."""
        return f"{self._id_prefix}{position:016X}"

    def _described(self, topic: str) -> str:
        found = self._topics.config(topic)
        return "null" if found is None else found.describe(topic)
