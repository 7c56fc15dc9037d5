"""One named broker: its topics, its log and its consumer groups. What it decides is decided in the core."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyengine._engine.rocketmq.broker import delay_levels as delay
from pyengine._engine.rocketmq.broker.consumer_groups import ConsumerGroups
from pyengine._engine.rocketmq.broker.consumer_offsets import ConsumerOffsets
from pyengine._engine.rocketmq.broker.delay_levels import DelayLevels
from pyengine._engine.rocketmq.broker.queue_locks import RebalanceLocks
from pyengine._engine.rocketmq.client.validators import suggested
from pyengine._engine.rocketmq.commands.origin import Origin, origin_named
from pyengine._engine.rocketmq.commands.stored_message import (
    decode_stored,
    has_blank,
    message_id,
    parse_message_id,
)
from pyengine.attributes import frozen
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.errors import (
    InvalidSourceError,
    MQBrokerError,
    MQClientError,
    ProtocolError,
    PyengineError,
)
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.broker_files import BrokerFiles
from pyengine.rocketmq.broker.commit_log import CommitLog, FileLog, MemoryLog
from pyengine.rocketmq.broker.filter import Filter, filter_of
from pyengine.rocketmq.broker.group_offsets import GroupOffsets
from pyengine.rocketmq.broker.kept_offsets import KeptOffsets
from pyengine.rocketmq.broker.key_index import FoundByKey, KeyIndex
from pyengine.rocketmq.broker.message_check import (
    SPECIAL,
    check_sent_message,
    check_sent_topic,
    check_size,
    is_half,
)
from pyengine.rocketmq.broker.message_store import CLIENT_HOST, SCHEDULE_TOPIC, MessageStore, origin_of
from pyengine.rocketmq.broker.pulls import FramesCallback, PulledFrames, Pulls
from pyengine.rocketmq.broker.schedule import ScheduleMessageService
from pyengine.rocketmq.broker.timers import DONE_TOPIC, TIMER_TOPIC, TimerMessages, deliver_at
from pyengine.rocketmq.broker.topic_config import TopicConfig
from pyengine.rocketmq.broker.topic_table import TopicTable
from pyengine.rocketmq.broker.transactions import HALF_TOPIC, OP_TOPIC, Check, TransactionalMessages
from pyengine.rocketmq.message import Message, MessageExt
from pyengine.rocketmq.remoting.mq_client_api import (
    CLIENT,
    INVALID_PARAMETER,
    PULL_STATUS,
    SERVICE_NOT_AVAILABLE,
    SYSTEM_ERROR,
    TOPIC_NOT_EXIST,
    HeartbeatData,
    MessageModel,
    PullCallback,
    PullMessageRequest,
    PullResult,
)
from pyengine.rocketmq.remoting.stored_message import host_bytes, message_ext, message_of, received
from pyengine.rocketmq.tables.allocation import MessageQueue, queue_named
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

KEPT_ASIDE = {SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, TIMER_TOPIC, DONE_TOPIC}  # topics of the store's own
PROPERTY_WAIT_STORE = "WAIT"
RETRY_QUEUES = 1
DLQ_QUEUES = 1
DEFAULT_MAX_RECONSUME_TIMES = 16


class Stored(NamedTuple):
    """Where a message was stored; of a batch its first one, and the ids of all, joined by commas. flush: the position
    up to which the log is to be made safe before it is confirmed.
    """

    queue: MessageQueue
    queue_offset: int
    offset_msg_id: str
    flush: int


def _stored(queue: MessageQueue, queue_offset: int, offset_msg_id: str, flush: int) -> Stored:
    """The same at the cost of a tuple, as for nearly every message."""
    return tuple.__new__(Stored, (queue, queue_offset, offset_msg_id, flush))


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


@frozen
@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How a broker is set up; see Broker. address: ``ip:port``, which message ids are made of."""

    address: str
    levels: DelayLevels
    seed: int
    flush_disk_type: str
    segment_bytes: int
    max_message_size: int


def open_node(
    nodes: dict[str, BrokerNode], name: str, clock: Clock, options: NodeOptions, directory: Path | None
) -> None:
    """Put into ``nodes`` a broker in memory, or one that goes on with its folder in ``directory``; start() has it work.

    It is in there when its folder is held, also where Ctrl-C comes.
    """
    if directory is None:
        nodes[name] = BrokerNode(name, clock, options, MemoryLog())
        return
    files = BrokerFiles(directory, name)
    try:
        commit_log = FileLog(
            files.log_folder,
            segment_bytes=options.segment_bytes,
            every_flush=options.flush_disk_type == "SYNC_FLUSH",
        )
        try:
            nodes[name] = BrokerNode(name, clock, options, commit_log, files)
        except BaseException:
            commit_log.close()
            raise
    except OSError as error:
        files.close()
        problem = f"cannot be opened: {error.strerror or error}"
        raise InvalidSourceError(
            str(error.filename or files.log_folder), problem, "name a folder to write to"
        ) from error
    except BaseException:
        files.close()
        raise


def _unconfirmed() -> MQBrokerError:
    """What a deletion ends with that the disk did not confirm."""
    return MQBrokerError(SERVICE_NOT_AVAILABLE, "the deletion is written, but the disk did not confirm it; see the log")


class BrokerNode:
    """A broker of a cluster. files: its folder; None keeps it in memory.

    Every method is safe from any thread; answers to pulls come from the node's own worker.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        options: NodeOptions,
        commit_log: CommitLog,
        files: BrokerFiles | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.lock = threading.RLock()
        self.laid_out: Callable[[], None] = lambda: None  # called when a topic came or went, or lies otherwise
        self.groups = ConsumerGroups()
        self.locks = RebalanceLocks()
        self.heartbeats: dict[str, HeartbeatData] = {}  # group -> the last of a member
        self._levels = options.levels
        self.max_message_size = options.max_message_size
        self._host = host_bytes(options.address)
        self._id_prefix = message_id(self._host, 0)[:-16]
        folder = "" if files is None else str(files.folder)
        self.store = MessageStore(commit_log, folder, clock, options.levels, self._host, self._arriving, self._waits)
        self._keys = KeyIndex(self.store)
        self._topics = TopicTable(name, files, {SCHEDULE_TOPIC: len(options.levels)})
        self._offsets = GroupOffsets(self._topics)
        self._delayed = ScheduleMessageService(clock, options.levels, self.lock, self.store, self._send_on)
        self.transactions = TransactionalMessages(clock, self.lock, self.store, name, self._ask_producer)
        self.timers = TimerMessages(clock, self.lock, self.store, name, self._store_where_sent)
        self.ask_producer: Check = lambda *half: None  # asks who has sent a half message what became of it
        from random import Random  # it loads OpenSSL

        self._random = Random(options.seed)
        self._closed = False  # nothing is taken any more
        self._files = files
        self._kept: KeptOffsets | None = None
        if files is not None:
            self._topics.recover(self.store.consume_queues, KEPT_ASIDE)
            self._kept = KeptOffsets(files, self.offsets, clock, self.lock)
        self._pulls = Pulls(name, clock, self.lock, self.store, self.groups, self._offsets, self._admit)
        self._files_worker = self._pulls.worker if files is None else clock.worker(f"FlushRealTimeService_{name}")

    def start(self) -> None:
        """Deliver what is delayed, and keep the files, from now on."""
        self._delayed.start()
        self.transactions.start()
        self.timers.start()
        if self._kept is not None:
            self.store.start(self._files_worker)
            self._kept.start(self._files_worker)

    @property
    def topics(self) -> dict[str, int]:
        """How many queues each topic has here."""
        return self._topics.queues

    @property
    def delay_levels(self) -> int:
        """How many delay levels it has."""
        return len(self._levels)

    @property
    def offsets(self) -> ConsumerOffsets:
        """The committed offsets."""
        return self._offsets.committed

    # Topics and queues

    def _admit(self, topic: str, queue_id: int) -> None:
        """Raise MQClientError once the broker is closed, MQBrokerError for a queue that the topic does not have."""
        self._check_open()
        self._topics.check_queue(topic, queue_id)

    def _check_open(self) -> None:
        """Raise MQClientError once the broker is closed, and in a forked process for the copy of one that keeps files:
        nothing would be kept or delivered.
        """
        if self._closed:
            raise MQClientError(f"the broker[{self.name}] is closed")
        if self._files is not None and not self._files.are_ours:
            raise MQClientError(
                f"the broker[{self.name}] lives in the process that opened {self._files.folder}: send there"
            )

    def create_topic(self, topic: str, queues: int) -> None:
        """Make a topic, or give it more queues; fewer are refused."""
        with self.lock:
            self._check_open()
            self._topics.create(topic, queues)
            self.laid_out()

    def _described(self, topic: str) -> str:
        found = self.topic_config(topic)
        return "null" if found is None else found.describe(topic)

    def topic_config(self, topic: str) -> TopicConfig | None:
        """How a topic lies here, None if it does not."""
        with self.lock:
            return self._topics.config(topic)

    def update_topic(self, topic: str, config: TopicConfig) -> None:
        """Make a topic, or let it lie otherwise (updateAndCreateTopic). Messages of queues that it has no more stay."""
        with self.lock:
            self._check_open()
            self._topics.update(topic, config)
            self.laid_out()

    def kept_groups(self) -> dict[str, Any]:
        """What subscriptionGroup.json says, empty without a folder."""
        return {} if self._files is None else self._files.read_groups()

    def keep_groups(self, wrapper: dict[str, Any]) -> None:
        """Replace subscriptionGroup.json, if the node keeps files."""
        with self.lock:
            if self._files is not None and self._files.are_ours and not self._closed:
                self._files.write_groups(wrapper)

    def delete_topic(self, topic: str) -> None:
        """Forget a topic and its messages (deleteTopic)."""
        with self.lock:
            self._check_open()
            for queue_id in range(self.topics.get(topic, 0)):
                self.store.delete_below(topic, queue_id, self.max_offset(topic, queue_id))
            self._topics.delete(topic)
            self.laid_out()

    def min_offset(self, topic: str, queue_id: int) -> int:
        with self.lock:
            return self.store.consume_queue(topic, queue_id).min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        with self.lock:
            return self.store.consume_queue(topic, queue_id).max_offset

    def search_offset(self, topic: str, queue_id: int, timestamp: int) -> int:
        with self.lock:
            return self.store.consume_queue(topic, queue_id).search(timestamp)

    def message(self, topic: str, queue_id: int, offset: int) -> MessageExt | None:
        """A copy of the message at an offset, None where there is none."""
        with self.lock:
            self._topics.check_queue(topic, queue_id)
            queue = self.store.consume_queue(topic, queue_id)
            if not queue.min_offset <= offset < queue.max_offset:
                return None
            return received(self._decode(queue.position(offset)))

    def query_message(self, topic: str, key: str, most: int, begin: int, end: int) -> FoundByKey:
        """The newest messages of a topic that have a key; begin, end: ms."""
        with self.lock:
            self._check_open()
            return self._keys.query(topic, key, most, begin, end)

    def stored_at(self, position: int) -> bytes | None:
        """The stored message at a position of the log, None where there is none."""
        with self.lock:
            return self.store.stored_at(position)

    def stored_by_id(self, offset_msg_id: str) -> bytes | None:
        """The stored message that has this id of a broker, None where there is none."""
        try:
            return self.stored_at(parse_message_id(offset_msg_id)[1])
        except ProtocolError:
            return None

    # Storing

    def send(
        self, message: Message, queue_id: int, new_topic_queues: int = 0, origin: RemoteSend | None = None
    ) -> Stored:
        """Store what a producer or a consumer's inner producer sends (SendMessageProcessor).

        new_topic_queues: how many a topic gets that this broker has not; 0 refuses it. origin: of a message that comes
        over the network; without it its properties say how often it was consumed.
        """
        properties = message.properties.copy()
        if has_blank(properties):
            properties = {name: value for name, value in properties.items() if name and value}
        topic = message.topic
        check_sent_topic(topic)
        with self.lock:
            if self._closed or self._files is not None:
                self._check_open()
            now = self.clock.now()
            born, host, _, sys_flag, reconsume_times, most = origin or (now, CLIENT_HOST, CLIENT, 0, 0, None)
            if self._is_plain(topic, queue_id) and SPECIAL.isdisjoint(properties):
                check_size(message.body, self.max_message_size)
                store = self.store
                stored_with = origin_named(born, host, reconsume_times, message.flag, sys_flag)
                position, offset = store.put_message(topic, queue_id, message.body, properties, stored_with, now)
                target = queue_named(topic, self.name, queue_id)
                return _stored(target, offset, f"{self._id_prefix}{position:016X}", store.log.end)
            queue_id = self._queue_to_send_to(topic, queue_id, new_topic_queues, origin)
            is_retry = topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX)
            if origin is None and is_retry:
                reconsume_times = names.whole_property(properties, names.PROPERTY_RECONSUME_TIME)
                most = names.whole_property(properties, names.PROPERTY_MAX_RECONSUME_TIMES, DEFAULT_MAX_RECONSUME_TIMES)
            if is_retry:
                group = topic.removeprefix(names.RETRY_GROUP_TOPIC_PREFIX)
                allowed = DEFAULT_MAX_RECONSUME_TIMES if most is None else most
                if delay.retry_is_dead(reconsume_times, allowed, not self.locks.all_expired(group, now)):
                    topic, queue_id = self._dead_letter_queue(group)
                    properties[names.PROPERTY_DELAY_TIME_LEVEL] = "-1"
            check_sent_message(
                message.body, properties, reconsume_times, self.max_message_size, remote=origin is not None
            )
            stored_with = Origin(born, host, reconsume_times, message.flag, sys_flag)
            if origin is not None and is_half(properties, reconsume_times):
                position, offset = self.transactions.prepare(topic, queue_id, message.body, properties, stored_with)
                target = MessageQueue(topic, self.name, queue_id)
                return Stored(target, offset, self.offset_msg_id(position), self.store.log.end)
            return self._put(topic, queue_id, message.body, properties, stored_with)

    def _is_plain(self, topic: str, queue_id: int) -> bool:
        """True if a send to a queue needs no other look than at the message."""
        return 0 <= queue_id < self._topics.queues.get(topic, 0) and not topic.startswith(
            names.RETRY_GROUP_TOPIC_PREFIX
        )

    def end_transaction(self, group: str, offset: int, position: int, outcome: int) -> None:
        """A producer commits a half message, or rolls it back (EndTransactionProcessor). Raises MQBrokerError."""
        with self.lock:
            self._check_open()
            decided = self.transactions.end(group, offset, position, outcome)
            if decided is not None:
                self._store_where_sent(decided, origin_of(decided)._replace(prepared_transaction_offset=position))
                self.transactions.committed(offset)

    def _store_where_sent(self, message: MessageExt, origin: Origin | None = None) -> None:
        """Store a message that was kept aside. Raises MQBrokerError."""
        properties = message.properties
        topic, queue_id = properties[names.PROPERTY_REAL_TOPIC], int(properties[names.PROPERTY_REAL_QUEUE_ID])
        self._topics.check_queue(topic, queue_id)
        self.store.put_message(topic, queue_id, message.body, properties, origin or origin_of(message))

    def _ask_producer(self, group: str, message: MessageExt, half_topic: str, offset: int) -> None:
        self.ask_producer(group, message, half_topic, offset)

    def send_batch(
        self, messages: Sequence[Message], queue_id: int, new_topic_queues: int, origin: RemoteSend | None = None
    ) -> Stored:
        """Store the messages of a batch, all of one topic, one behind the other in one queue."""
        topic = messages[0].topic
        remote, properties = origin is not None, [dict(message.properties) for message in messages]
        if origin is None:
            origin = RemoteSend(self.clock.now(), CLIENT_HOST, CLIENT)
        check_sent_topic(topic)
        with self.lock:
            self._check_open()
            queue_id = self._queue_to_send_to(topic, queue_id, new_topic_queues, origin)
            plain = not topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX) and all(map(SPECIAL.isdisjoint, properties))
            sizes = [0 if message.body is None else len(message.body) for message in messages]
            if plain and max(sizes) <= self.max_message_size:
                return self._put_all(topic, queue_id, messages, properties, origin)
            for message, own in zip(messages, properties, strict=True):
                check_sent_message(message.body, own, 0, self.max_message_size, remote=remote)
            stored = [
                self._put(
                    topic, queue_id, message.body, own,
                    Origin(origin.born, origin.host, 0, message.flag, origin.sys_flag),
                )
                for message, own in zip(messages, properties, strict=True)
            ]  # fmt: skip
            ids = ",".join([each.offset_msg_id for each in stored])
            return stored[0]._replace(offset_msg_id=ids, flush=stored[-1].flush)

    def _put_all(
        self,
        topic: str,
        queue_id: int,
        messages: Sequence[Message],
        properties: list[dict[str, str]],
        origin: RemoteSend,
    ) -> Stored:
        """Store messages without a property that a broker reads, one behind the other."""
        bodies, flags = [message.body for message in messages], [message.flag for message in messages]
        positions, offset = self.store.put_messages(
            topic, queue_id, bodies, properties, flags, Origin(origin.born, origin.host, sys_flag=origin.sys_flag)
        )
        prefix = self._id_prefix
        ids = ",".join([f"{prefix}{position:016X}" for position in positions])
        return Stored(queue_named(topic, self.name, queue_id), offset, ids, self.store.log.end)

    def _queue_to_send_to(self, topic: str, queue_id: int, new_topic_queues: int, origin: RemoteSend | None) -> int:
        """The queue of a topic, which is made where it may be; any queue for one below 0. Raises MQBrokerError."""
        if topic not in self.topics:
            if not new_topic_queues and not topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX):
                raise MQBrokerError(TOPIC_NOT_EXIST, suggested(f"topic[{topic}] not exist, apply first please!"))
            self.create_topic(topic, new_topic_queues or RETRY_QUEUES)
        count = self.topics[topic]
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
        with self.lock:
            self._check_open()
            # Made also where the message goes elsewhere, or is not found.
            topic, queue_id = self._retry_topic(group), self._random.randrange(RETRY_QUEUES)
            try:
                stored = self._decode(message.commit_log_offset)
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

    def offset_msg_id(self, position: int) -> str:
        """The broker's id of the message at a position of its log (MessageDecoder.createMessageId)."""
        return f"{self._id_prefix}{position:016X}"

    def _retry_topic(self, group: str) -> str:
        topic = names.retry_topic(group)
        if topic not in self.topics:
            self.create_topic(topic, RETRY_QUEUES)
        return topic

    def _dead_letter_queue(self, group: str) -> tuple[str, int]:
        topic = names.dlq_topic(group)
        self.create_topic(topic, max(DLQ_QUEUES, self.topics.get(topic, 0)))
        return topic, self._random.randrange(DLQ_QUEUES)

    def _put(self, topic: str, queue_id: int, body: bytes | None, properties: dict[str, str], origin: Origin) -> Stored:
        """Store a message in its queue, or in that of its delay level."""
        target = queue_named(topic, self.name, queue_id)
        self._topics.check_queue(topic, queue_id)
        if SPECIAL.isdisjoint(properties):
            position, offset = self.store.put_message(topic, queue_id, body, properties, origin)
            return Stored(target, offset, self.offset_msg_id(position), self.store.log.end)
        wanted = names.whole_property(properties, names.PROPERTY_DELAY_TIME_LEVEL)
        level = self._levels.clamp(wanted)
        if level > 0:
            if level != wanted:
                properties[names.PROPERTY_DELAY_TIME_LEVEL] = str(level)
            properties[names.PROPERTY_REAL_TOPIC] = topic
            properties[names.PROPERTY_REAL_QUEUE_ID] = str(queue_id)
            topic, queue_id = SCHEDULE_TOPIC, level - 1
        elif (when := deliver_at(properties, self.clock.now())) is not None:
            position, offset = self.timers.keep(when, topic, queue_id, body, properties, origin)
            return Stored(target, offset, self.offset_msg_id(position), self.store.log.end)
        position, offset = self.store.put_message(topic, queue_id, body, properties, origin)
        return Stored(target, offset, self.offset_msg_id(position), self.store.log.end)

    def _arriving(self, topic: str, queue_id: int, code: int, properties: Mapping[str, str]) -> None:
        """A message was stored: have it delivered when it is due, or wake the pulls that wait for it."""
        if topic == SCHEDULE_TOPIC:
            self._delayed.schedule(queue_id + 1)
            return
        self._pulls.arrived(topic, queue_id, code, properties)

    def _waits(self, topic: str, queue_id: int) -> bool:
        """Whether :meth:`_arriving` has anything to do for a message that was stored in a queue."""
        return topic == SCHEDULE_TOPIC or self._pulls.waits(topic, queue_id)

    def _send_on(self, position: int, level: int, offset: int) -> None:
        """Store a delayed message where it was sent to; it lies at ``position``, and at ``offset`` of its level."""
        # DELAY stays: the real broker removes it when it has written the properties down already (messageTimeUp).
        message = self._decode(position)
        self._store_where_sent(message, origin_of(message)._replace(delivers=(level, offset)))

    # Pulls

    def pull(self, request: PullMessageRequest, callback: PullCallback) -> None:
        """Answer a pull through ``callback``, on the node's worker. Raises MQClientError once the broker is closed."""

        def answered(found: PulledFrames | PyengineError) -> None:
            answer: PullResult | PyengineError
            try:
                answer = found if isinstance(found, PyengineError) else self._pull_result(found)
            except ProtocolError as error:
                answer = error
            callback(answer)

        self.pull_frames(request, answered)

    def pull_frames(self, request: PullMessageRequest, callback: FramesCallback) -> None:
        """Answer a pull with stored messages, on the node's worker. Raises MQClientError once the broker is closed."""
        self._check_open()
        self._pulls.pull(request, callback)

    def _pull_result(self, found: PulledFrames) -> PullResult:
        """What a client of this process gets, with messages of its own."""
        messages = tuple(received(message_ext(decode_stored(each, 0)[0], self.name)) for each in found.frames)
        return PullResult(
            PULL_STATUS[found.code], found.next_begin_offset, found.min_offset, found.max_offset, messages
        )

    def _decode(self, position: int) -> MessageExt:
        """A copy of the message at a position of the log."""
        return message_of(self.store.log.read(position), self.name)

    # Groups, offsets and locks

    def heartbeat(self, heartbeat: HeartbeatData) -> list[str]:
        """A member is alive. Returns the client ids to be told of a change."""
        subscriptions: list[tuple[str, int, Filter | PyengineError]] = []
        for subscription in heartbeat.subscriptions:
            wanted: Filter | PyengineError
            try:
                wanted = filter_of(subscription)
            except PyengineError as error:
                wanted = error
            subscriptions.append((subscription.topic, subscription.sub_version, wanted))
        with self.lock:
            self._check_open()
            self._retry_topic(heartbeat.group)
            self.heartbeats[heartbeat.group] = heartbeat
            return self.groups.heartbeat(
                heartbeat.group, heartbeat.client_id, subscriptions, self.clock.now(),
                broadcasting=heartbeat.message_model is MessageModel.BROADCASTING,
            )  # fmt: skip

    def leave(self, client_id: str, group: str) -> list[str]:
        """A member is gone. Returns the client ids to be told."""
        with self.lock:
            told = self.groups.leave(group, client_id)
            if group not in self.groups:
                self.heartbeats.pop(group, None)
            return told

    def has_member(self, client_id: str) -> bool:
        """True if the client is in some group."""
        with self.lock:
            return bool(self.groups.is_member(client_id))

    def expire_members(self) -> None:
        """Members that stopped sending heartbeats are gone; the others learn of it when they rebalance."""
        with self.lock:
            self.groups.expire(self.clock.now())
            for group in [group for group in self.heartbeats if group not in self.groups]:
                del self.heartbeats[group]

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Store a group's offset. Raises MQBrokerError for an unknown topic."""
        with self.lock:
            self._check_open()
            self._offsets.commit(group, topic, queue_id, offset)

    def reset_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set a group's offset, also of members that consume: their next pull brings them there (assignResetOffset)."""
        with self.lock:
            self._check_open()
            self._offsets.reset(group, topic, queue_id, offset)

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """A group's offset, or what one without is told; OffsetNotFoundError."""
        with self.lock:
            return self._offsets.query(group, topic, queue_id, self.store.consume_queue(topic, queue_id))

    def pulled(self, group: str, queue: MessageQueue) -> int:
        """Where the last pull of a group ended, -1 without one."""
        return self.pulled_at(group, queue.topic, queue.queue_id)

    def pulled_at(self, group: str, topic: str, queue_id: int) -> int:
        """The same."""
        return self._pulls.ended_at(group, topic, queue_id)

    def topics_of(self, group: str, topics: Iterable[str]) -> list[str]:
        """Those of ``topics``, or of all that a group has committed offsets of, that it has not given up since."""
        with self.lock:
            if not topics:
                keys = (key.rpartition("@") for key in self.offsets.dump())
                topics = [topic for topic, _, owner in keys if owner == group]
            return [topic for topic in topics if self.groups.wants(group, topic)]

    def persist_offsets(self) -> None:
        """Write consumerOffset.json now, if the node keeps files and an offset was committed since."""
        if self._kept is not None:
            self._kept.persist()

    def lock_queues(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        with self.lock:
            self._check_open()
            return self.locks.lock(group, client_id, queues, self.clock.now())

    def unlock_queues(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        with self.lock:
            self.locks.unlock(group, client_id, queues)

    # Deleting

    def delete_below(self, topic: str, queue_id: int, offset: int) -> int:
        """Forget a queue's messages below an offset, for good. Returns how many.

        Raises MQBrokerError, code 14, where that cannot be written to the log.
        """
        with self.lock:
            self._check_open()
            self._topics.check_queue(topic, queue_id)
            gone = self.store.delete_below(topic, queue_id, offset)
            end = self.store.log.end
        if gone and not self.store.log.flush(end):
            raise _unconfirmed()
        return gone

    def delete_expired(self, before: int) -> int:
        """Forget messages stored before ``before`` (ms) and let go of their files. Returns how many messages.

        Raises MQBrokerError, code 14, where that cannot be written to the log.
        """
        with self.lock:
            self._check_open()
            gone = self.store.delete_expired(before)
        if gone is None:
            raise _unconfirmed()
        return gone

    def close(self) -> None:
        """Answer what waits with an error and stop."""
        with self.lock:
            self._closed = True
            if self._files is not None and not self._files.are_ours:
                return  # the threads, the files and their lock are the other process's
            self._delayed.close()
            self.transactions.close()
            self.timers.close()
            if self._kept is not None:
                self._kept.stop()
            self.store.stop()
            self._pulls.close()
        self._pulls.worker.close()
        if self._files_worker is not self._pulls.worker:
            self._files_worker.close()
        if self._kept is not None:
            self._kept.close()
        with self.lock:
            self.store.log.close()
            if self._files is not None:
                self._files.close()
