"""An embedded RocketMQ cluster: the name server and its named brokers in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from pyengine._engine.rocketmq.broker import consumer_groups
from pyengine._engine.rocketmq.broker.delay_levels import DEFAULT_LEVELS, DelayLevels
from pyengine._engine.rocketmq.client.outgoing import one_topic, send_result
from pyengine._engine.rocketmq.client.validators import SYSTEM_TOPICS, attached, check_topic, suggested
from pyengine._engine.wire.fastjson import INT32
from pyengine.attributes import Declared, named_arguments
from pyengine.clock import Clock, ManualClock, SystemClock, Timer
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    MQBrokerError,
    MQClientError,
    PyengineError,
)
from pyengine.metrics import Family, Metric
from pyengine.processes import belong
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.broker_files import MOST_QUEUES
from pyengine.rocketmq.broker.broker_metrics import FAMILIES, broker_metrics
from pyengine.rocketmq.broker.broker_node import BrokerNode, open_node
from pyengine.rocketmq.broker.commit_log import SEGMENT_BYTES
from pyengine.rocketmq.broker.filter import filter_of
from pyengine.rocketmq.broker.held import HeldMessage, held_messages
from pyengine.rocketmq.broker.node_options import NodeOptions
from pyengine.rocketmq.broker.topic_config import READABLE, WRITABLE
from pyengine.rocketmq.broker.topic_table import no_topic
from pyengine.rocketmq.message import MAX_MESSAGE_SIZE, Message, MessageExt
from pyengine.rocketmq.remoting.acl import SessionCredentials, check_accounts
from pyengine.rocketmq.remoting.mq_client_api import (
    OFFSET_TIMEOUT,
    SUBSCRIPTION_PARSE_FAILED,
    SYSTEM_ERROR,
    ClientEvents,
    HeartbeatData,
    PullCallback,
    PullMessageRequest,
    SendCallback,
    SendResult,
    SendStatus,
    SubscriptionData,
    batch_result,
    check_listed,
    plain_text,
    whole_number,
    with_key,
)
from pyengine.rocketmq.remoting.stored_message import parsed_id, pulled_messages
from pyengine.rocketmq.remoting.tls import check_context
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

if TYPE_CHECKING:
    import ssl

    from pyengine.rocketmq.server.serving import Listeners, Serving

log = logger("pyengine.rocketmq.broker")

FIRST_PORT = 10911


@named_arguments
class Broker(Declared):
    """A cluster of named brokers, with everything that clients ask of it (remoting.MQClientAPI).

    directory: None keeps everything in memory. A folder keeps it in files, one folder a broker; a new Broker on it
    goes on where the last one stopped or was killed. flush_disk_type: ``ASYNC_FLUSH`` confirms a message
    when it is written, so that it survives the end of the process, and brings it to the disk within half a second;
    ``SYNC_FLUSH`` confirms it when it is on the disk. segment_bytes: size of a file of the log. max_message_size: bytes
    of a body that the brokers take (maxMessageSize, 4 MiB).
    names: the brokers, in this order; machine-room names (``room@broker``) too. clock: where all time comes from, a
    SystemClock of its own by default. auto_create_topics: a send to an unknown topic makes it.
    default_queues: queues a broker of a topic that is made so (RocketMQ: the smaller of the broker's 8 and the
    producer's 4). message_delay_level: the broker's option of that name. seed: of the choice among retry queues.
    listen: ``host:port`` of a name server for clients of any language; port 0: any free one, see
    :attr:`name_server_address`. Under a ManualClock it is served while :meth:`serve` runs. accounts: SessionCredentials
    with which requests must be signed. allow_anonymous: without accounts listen at more than the loopback.
    ssl_context: clients may speak TLS, on the same ports; an ``ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)``
    with your certificate loaded. With tls_mode ``enforcing`` (tls.server.mode) they must.

    A context manager; leaving it closes the brokers. Raises ConfigurationError for options that cannot be used,
    IllegalStateError for a folder that another broker has, InvalidSourceError for a folder that cannot be written and
    for files that are damaged.
    """

    clock: Clock
    nodes: dict[str, BrokerNode]

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        names: Iterable[str] = ("broker-a",),
        clock: Clock | None = None,
        auto_create_topics: bool = True,
        default_queues: int = 4,
        message_delay_level: str = DEFAULT_LEVELS,
        flush_disk_type: Literal["ASYNC_FLUSH", "SYNC_FLUSH"] = "ASYNC_FLUSH",
        segment_bytes: int = SEGMENT_BYTES,
        max_message_size: int = MAX_MESSAGE_SIZE,
        seed: int = 0,
        listen: str | None = None,
        accounts: Iterable[SessionCredentials] = (),
        allow_anonymous: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        tls_mode: Literal["permissive", "enforcing"] = "permissive",
    ) -> None:
        listed = () if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
        texts = all(isinstance(name, str) and name for name in listed)
        if not listed or len(set(listed)) != len(listed) or not texts:
            hint = "give a list of texts, as ['broker-a', 'broker-b']"
            raise ConfigurationError("names", repr(names), "a cluster needs brokers of different names", hint)
        if flush_disk_type not in ("ASYNC_FLUSH", "SYNC_FLUSH"):
            raise ConfigurationError(
                "flush_disk_type", flush_disk_type, "unknown", "ASYNC_FLUSH or SYNC_FLUSH are accepted"
            )
        for option, number in (
            ("default_queues", default_queues),
            ("segment_bytes", segment_bytes),
            ("max_message_size", max_message_size),
        ):
            if whole_number(option, number) < 1:
                raise ConfigurationError(option, number, "a number from 1 on is needed")
        whole_number("seed", seed)
        levels = DelayLevels(plain_text("message_delay_level", message_delay_level))
        if directory is not None and not isinstance(directory, str | PathLike):
            raise ConfigurationError("directory", repr(directory), "a path is needed")
        if clock is not None and not isinstance(clock, Clock):
            raise ConfigurationError("clock", repr(clock), "a clock of pyengine.clock is needed")
        check_context(ssl_context, server=True)
        if tls_mode not in ("permissive", "enforcing"):
            raise ConfigurationError("tls_mode", repr(tls_mode), "unknown", "permissive or enforcing are accepted")
        if listen is None and ssl_context is not None:
            hint = "give listen='127.0.0.1:0' too"
            raise ConfigurationError("ssl_context", repr(ssl_context), "the broker does not listen", hint)
        if ssl_context is None and tls_mode != "permissive":
            raise ConfigurationError("tls_mode", repr(tls_mode), "needs ssl_context", "give a certificate with it")
        self.clock = clock if clock is not None else SystemClock("RocketMQ broker timer")
        self._own_clock = clock is None
        self._auto_create = auto_create_topics
        self._default_queues = default_queues
        self._lock = threading.Lock()
        self._events: dict[str, ClientEvents] = {}
        self._turns: dict[str, count[int]] = {}
        self._layout_lock = threading.Lock()  # of the two below
        self._layout = 0  # how often topics came, went, or came to lie otherwise
        self._published: dict[str, list[MessageQueue]] = {}  # topic -> queues that can be written
        self._scan: Timer | None = None
        self._closed = False
        self._serving: Serving | None = None
        self.nodes = {}
        trusted = check_accounts(accounts)
        listeners: Listeners | None = None
        if listen is not None:
            from pyengine.rocketmq.server.serving import Listeners, Serving, new_queues  # few brokers listen

            listeners = Listeners(listen, listed, trusted, allow_anonymous)
        try:
            for i, name in enumerate(listed):
                address = f"127.0.0.1:{FIRST_PORT + 10 * i}" if listeners is None else listeners.address(name)
                options = NodeOptions(address, levels, seed + i, flush_disk_type, segment_bytes, max_message_size)
                open_node(self.nodes, name, self.clock, options, None if directory is None else Path(directory))
            for node in self.nodes.values():
                node.topic_table.changed = self._laid_out
                node.start()
            belong(self)
            if listeners is not None:
                self._serving = Serving(
                    self, listeners, trusted, new_queues(auto_create_topics, default_queues), ssl_context, tls_mode
                )
                self._serving.start()
        except BaseException:
            if listeners is not None:
                listeners.close()
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the brokers; waiting pulls are answered with an error, and so is what is sent or committed from now on
        (MQClientError). Harmless the second time, which ends what an interrupt left undone."""
        if self._serving is not None:
            self._serving.close()
        with self._lock:
            self._closed = True
            if self._scan is not None:
                self._scan.cancel()
        for node in self.nodes.values():
            node.close()
        if self._own_clock:
            self.clock.close()

    # The network

    @property
    def name_server_address(self) -> str:
        """``host:port`` of the name server. Raises IllegalStateError for a Broker that does not listen."""
        return self._listening().name_server_address

    @property
    def broker_addresses(self) -> list[str]:
        """``host:port`` of each broker. Raises IllegalStateError for a Broker that does not listen."""
        return self._listening().broker_addresses

    def serve(self) -> None:
        """Under a ManualClock: serve the network in this thread, whose clock it is, until :meth:`stop_serving`."""
        self._listening().run()

    def stop_serving(self) -> None:
        """End :meth:`serve`, from any thread or a signal handler."""
        self._listening().server.stop()

    def call(self, action: Callable[[], None]) -> None:
        """Run something in the thread that serves the network, from any thread."""
        self._listening().server.call(action)

    def _listening(self) -> Serving:
        if self._serving is None:
            raise IllegalStateError("the broker does not listen: give listen='127.0.0.1:0'")
        return self._serving

    # What an administrator does

    def create_topic(self, topic: str, queues: int = 4, *, brokers: Iterable[str] | None = None) -> None:
        """Make a topic with ``queues`` queues on each of ``brokers`` (all by default), or give it more queues.

        Raises ConfigurationError for fewer queues than it has and for more than 1,000,000, MQClientError for a name
        that no topic may have, or that the brokers have a topic of.
        """
        check_topic(plain_text("topic", topic))
        if topic in SYSTEM_TOPICS:
            raise MQClientError(attached(f"The topic[{topic}] is conflict with system topic."))
        if not 1 <= whole_number("queues", queues) <= MOST_QUEUES:
            raise ConfigurationError("queues", queues, f"a topic has 1 to {MOST_QUEUES} queues on a broker")
        if isinstance(brokers, str) or not isinstance(brokers, Iterable | None):
            raise ConfigurationError("brokers", repr(brokers), "a list of brokers' names is needed")
        for name in brokers if brokers is not None else list(self.nodes):
            self._node(name).create_topic(topic, queues)

    def topics(self) -> dict[str, int]:
        """Topic -> number of its queues on all brokers."""
        found: dict[str, int] = {}
        for node in self.nodes.values():
            for topic, queues in list(node.topics.items()):
                found[topic] = found.get(topic, 0) + queues
        return found

    def delete_below(self, queue: MessageQueue, offset: int) -> int:
        """Delete the messages of a queue below ``offset``, as retention does. Returns how many there were."""
        return self._node_of(queue).delete_below(queue.topic, queue.queue_id, whole_number("offset", offset))

    def delete_expired(self, hours: float = 72) -> int:
        """Delete the messages that were stored more than ``hours`` ago (fileReservedTime), and files that held no
        others. Delayed messages stay until they are delivered. Returns how many there were.
        """
        if not isinstance(hours, int | float) or not 0 <= hours < INT32:
            raise ConfigurationError("hours", repr(hours), "a number of hours from 0 on is needed")
        before = self.clock.now() - round(hours * 3_600_000)
        return sum(node.delete_expired(before) for node in self.nodes.values())

    def persist_offsets(self) -> None:
        """Write every broker's consumerOffset.json now; by itself it is written 10 s after the start, then every 5.

        Nothing after ``close``, when the folder may be another broker's.
        """
        if self._closed:
            return
        for node in self.nodes.values():
            node.persist_offsets()

    def message(self, queue: MessageQueue, offset: int) -> MessageExt | None:
        """A copy of the message at an offset of a queue, None if there is none."""
        return self._node_of(queue).message(queue.topic, queue.queue_id, whole_number("offset", offset))

    def messages(self, topic: str) -> list[MessageExt]:
        """Copies of all messages of a topic, queue by queue; [] for an unknown topic."""
        found = []
        for queue in self.topic_subscribe_info(topic) or []:
            for offset in range(self.min_offset(queue), self.max_offset(queue)):
                copy = self.message(queue, offset)
                if copy is not None:
                    found.append(copy)
        return found

    def consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """The committed offsets of a group, for the queues that have one."""
        plain_text("group", group)
        found = {}
        for queue in self.topic_subscribe_info(topic) or []:
            node = self.nodes[queue.broker_name]
            with node.lock:
                offset = node.offsets.committed(group, topic, queue.queue_id)
            if offset >= 0:
                found[queue] = offset
        return found

    def pull_offsets(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """Where a group pulls next, for the queues that it has pulled from since the brokers started."""
        plain_text("group", group)
        queues = self.topic_subscribe_info(topic) or []
        return {
            queue: pulled for queue in queues if (pulled := self.nodes[queue.broker_name].pulled(group, queue)) >= 0
        }

    def topics_of(self, group: str, topics: Collection[str] = ()) -> list[str]:
        """The topics that a group has committed offsets of, or those of ``topics``, without what its members do not
        want; of a group that wants nothing, or has no members, all.
        """
        plain_text("group", group)
        check_listed("topics", topics, "['orders']")
        for topic in topics:
            plain_text("topic", topic)
        return sorted({topic for node in self.nodes.values() for topic in node.topics_of(group, topics)})

    def held(self, topic: str | None = None) -> tuple[HeldMessage, ...]:
        """The messages (of a topic, or all) that a group has not consumed, or that no group wants, each with the
        reason; one of several groups once for each."""
        if topic is not None:
            plain_text("topic", topic)
        with self._lock:
            events = dict(self._events)
        return tuple(held_messages(self.nodes.values(), events, topic))

    def metrics(self) -> list[Metric]:
        """Each queue's and each group's numbers at this moment, for :mod:`pyengine.metrics`."""
        return list(broker_metrics(self.nodes.values()))

    def metric_families(self) -> tuple[Family, ...]:
        """What :meth:`metrics` may have, with no topic too."""
        return FAMILIES

    # What clients ask (remoting.MQClientAPI)

    def register_client(self, client_id: str, events: ClientEvents) -> None:
        """The client is connected; a second call with the same id replaces the events."""
        plain_text("client_id", client_id)
        if not isinstance(events, ClientEvents):
            raise ConfigurationError("events", repr(events), "a ClientEvents is needed")
        with self._lock:
            self._events[client_id] = events

    def unregister_client(self, client_id: str, group: str) -> None:
        """The client leaves the group: its orderly locks stay until they expire, the others of the group are notified.
        One that is in no group any more is forgotten.
        """
        plain_text("client_id", client_id)
        plain_text("group", group)
        self.leave(client_id, group, self.nodes.values())

    def leave(self, client_id: str, group: str, nodes: Iterable[BrokerNode]) -> None:
        """The client leaves the group at some of the brokers."""
        notified = [node.leave(client_id, group) for node in nodes]
        with self._lock:
            if not any(node.has_member(client_id) for node in self.nodes.values()):
                self._events.pop(client_id, None)
        self._notify(group, notified)

    def disconnect(self, client_id: str) -> None:
        """The client is gone, with all its groups: it is notified of nothing more."""
        with self._lock:
            self._events.pop(plain_text("client_id", client_id), None)

    def send_heartbeat(self, heartbeat: HeartbeatData) -> None:
        """The client is alive; a new member or a topic that came or went is made known to the group's members."""
        if not isinstance(heartbeat, HeartbeatData):
            raise ConfigurationError("heartbeat", repr(heartbeat), "a HeartbeatData is needed")
        self.heartbeat(heartbeat, self.nodes.values())

    def heartbeat(self, heartbeat: HeartbeatData, nodes: Iterable[BrokerNode]) -> None:
        """The client is alive, as some of the brokers learn."""
        notified = [node.heartbeat(heartbeat) for node in nodes]
        with self._lock:
            if not self._closed and (self._scan is None or not self._scan.pending):
                self._scan = self.clock.call_at(self.clock.now() + consumer_groups.SCAN_INTERVAL, self._expire_members)
        self._notify(heartbeat.group, notified)

    def check_client(self, group: str, client_id: str, subscription: SubscriptionData) -> None:
        """Raises MQClientError, code 23, for an expression that the brokers cannot filter by."""
        if not isinstance(subscription, SubscriptionData):
            hint = "give what build_subscription() makes"
            raise ConfigurationError("subscription", repr(subscription), "a SubscriptionData is needed", hint)
        try:
            filter_of(subscription)
        except PyengineError as error:
            problem = MQClientError(
                attached("Invalid MessageSelector. ", SUBSCRIPTION_PARSE_FAILED), SUBSCRIPTION_PARSE_FAILED
            )
            problem.add_note(f"the subscription of {subscription.topic!r}: {error}")
            raise problem from error

    def topic_subscribe_info(self, topic: str) -> list[MessageQueue] | None:
        """All queues of a topic, broker by broker; None if there is no such topic."""
        queues, known = [], False
        for node in self.nodes.values():
            config = node.topic_config(plain_text("topic", topic))
            known = known or config is not None
            if config is not None and config.perm & READABLE:
                queues += [MessageQueue(topic, node.name, i) for i in range(config.read_queues)]
        return queues if known else None

    def publish_queues(self, topic: str) -> list[MessageQueue]:
        """All queues of a topic that can be written; a topic that is unknown is made. MQClientError if it must not
        be made, or no queue of it can be written."""
        return list(self._publish_queues(topic))

    def _publish_queues(self, topic: str) -> list[MessageQueue]:
        """The same list again as long as the topics lie as they do."""
        known = self._published.get(plain_text("topic", topic))
        if known is not None:
            return known
        with self._layout_lock:
            layout = self._layout
        queues: list[MessageQueue] = []
        for node in self.nodes.values():
            config = node.topic_config(topic)
            if config is not None and config.perm & WRITABLE:
                queues += [MessageQueue(topic, node.name, i) for i in range(config.write_queues)]
        if not queues and any(topic in node.topics for node in self.nodes.values()):
            raise MQClientError(suggested(f"No route info of this topic: {topic}"))
        if not queues:
            return self.make_topic(topic)
        with self._layout_lock:
            if layout == self._layout:
                self._published[topic] = queues
        return queues

    def _laid_out(self) -> None:
        """A topic came or went, or lies otherwise."""
        with self._layout_lock:
            self._layout += 1
            self._published.clear()

    def get_consumer_id_list(self, topic: str, group: str) -> list[str]:
        """Client ids of the group's members, as the topic's first broker knows them; MQBrokerError if it knows none."""
        plain_text("topic", topic)
        plain_text("group", group)
        for node in self.nodes.values():
            if topic in node.topics:
                with node.lock:
                    members = node.groups.members(group)
                if members:
                    return members
                raise MQBrokerError(SYSTEM_ERROR, f"no consumer for this group, {group}")
        raise no_topic(topic)

    def pull_message(self, request: PullMessageRequest, callback: PullCallback) -> None:
        """Answer through ``callback``, once: at once or after long polling, on the broker's worker.

        Raises MQClientError for an unknown broker, ConfigurationError for a request whose numbers are none.
        """
        if not isinstance(request, PullMessageRequest):
            raise ConfigurationError("request", repr(request), "a PullMessageRequest is needed")
        for name in ("queue_offset", "max_nums", "commit_offset"):
            whole_number(name, getattr(request, name))
        whole_number("suspend_timeout", request.suspend_timeout, INT32)
        self._node_of(request.queue).pull(request, callback)

    def query_consumer_offset(self, group: str, queue: MessageQueue, timeout_millis: int = OFFSET_TIMEOUT) -> int:
        """The committed offset. OffsetNotFoundError if there is none; 0 for a young queue (spec rocketmq 4.6)."""
        return self._node_of(queue).query_offset(plain_text("group", group), queue.topic, queue.queue_id)

    def update_consumer_offset(
        self, group: str, queue: MessageQueue, offset: int, timeout_millis: int = OFFSET_TIMEOUT
    ) -> None:
        """Store the offset, lower ones too (one way)."""
        plain_text("group", group)
        self._node_of(queue).commit_offset(group, queue.topic, queue.queue_id, whole_number("offset", offset))

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the next message will get."""
        return self._node_of(queue).max_offset(queue.topic, queue.queue_id)

    def min_offset(self, queue: MessageQueue) -> int:
        """The smallest offset that is still there."""
        return self._node_of(queue).min_offset(queue.topic, queue.queue_id)

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first offset stored at ``timestamp`` (ms) or later (spec rocketmq 4.6)."""
        return self._node_of(queue).search_offset(queue.topic, queue.queue_id, whole_number("timestamp", timestamp))

    def query_message(
        self, topic: str, key: str, max_num: int, begin: int, end: int, *, unique: bool = False
    ) -> list[MessageExt]:
        """The newest messages of a topic that have a key, at most ``max_num`` of each broker; begin, end: ms, of their
        storing. unique: the key is the message's own id. Raises MQClientError if there is none.
        """
        plain_text("topic", topic)
        plain_text("key", key)
        found: list[MessageExt] = []
        for name, node in self.nodes.items():
            answer = node.query_message(topic, key, max_num, begin, end)
            found.extend(pulled_messages(b"".join(answer.messages), name))
        return with_key(found, topic, key, unique=unique)

    def view_message(self, topic: str, offset_msg_id: str) -> MessageExt:
        """The message with an id of a broker. Raises MQClientError for a malformed id, MQBrokerError if the
        broker has no such message.
        """
        host, position = parsed_id(plain_text("offset_msg_id", offset_msg_id))
        for name, node in self.nodes.items():
            stored = node.stored_at(position) if node.sender.offset_msg_id(position) == offset_msg_id else None
            if stored is not None:
                return next(pulled_messages(stored, name))
        raise MQBrokerError(SYSTEM_ERROR, f"can not find message by the offset, {position} of {host}")

    def lock_batch_mq(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """The queues that the client now holds for ordered consumption."""
        plain_text("group", group)
        plain_text("client_id", client_id)
        held: set[MessageQueue] = set()
        for name, own in self._by_broker(queues).items():
            held |= self._node(name).lock_queues(group, client_id, own)
        return held

    def unlock_batch_mq(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give locks back; those of other clients stay."""
        plain_text("group", group)
        plain_text("client_id", client_id)
        for name, own in self._by_broker(queues).items():
            self._node(name).unlock_queues(group, client_id, own)

    def consumer_send_message_back(
        self, group: str, message: MessageExt, delay_level: int, max_reconsume_times: int
    ) -> None:
        """Give a message back for a later try, or for the dead letters (spec rocketmq 6.2)."""
        if not isinstance(message, MessageExt):
            raise ConfigurationError("message", repr(message), "a MessageExt is needed", "give one that was pulled")
        plain_text("group", group)
        whole_number("delay_level", delay_level, INT32)
        whole_number("max_reconsume_times", max_reconsume_times, INT32)
        node = self._node(message.broker_name)
        if not node.store.log.flush(node.sender.send_back(group, message, delay_level, max_reconsume_times).flush):
            raise MQBrokerError(SYSTEM_ERROR, SendStatus.FLUSH_DISK_TIMEOUT.name)

    def send_message(self, group: str, message: Message, queue: MessageQueue | None = None) -> SendResult:
        """Store a message; without a queue in the next one of the topic, in turn. Makes the topic where it may: without
        a queue on every broker, otherwise on the queue's broker alone.

        Raises MQClientError for an unknown broker and where the topic must not be made, MQBrokerError for an unknown
        queue, InvalidMessageError for a message that cannot be stored.
        """
        if not isinstance(message, Message):
            raise ConfigurationError("message", repr(message), "a Message is needed")
        if queue is None:
            queue = self._next_queue(message.topic)
            node = self.nodes[queue.broker_name]
        else:
            node = self._node_of(queue)
            if message.topic not in node.topics:
                check_topic(message.topic)
        topic, queue_id, queue_offset, offset_msg_id, flush = node.sender.send(
            message, queue.queue_id, self._default_queues if self._auto_create else 0
        )
        status = SendStatus.SEND_OK if node.store.log.flush(flush) else SendStatus.FLUSH_DISK_TIMEOUT
        unique = message.properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, offset_msg_id)
        if queue_id != queue.queue_id or topic != queue.topic:
            queue = MessageQueue(topic, node.name, queue_id)
        return send_result(status, unique, offset_msg_id, queue, queue_offset)

    def send_message_async(
        self, group: str, message: Message, queue: MessageQueue | None, callback: SendCallback
    ) -> None:
        """The same; the answer, or what it raises, goes to ``callback``."""
        found: SendResult | Exception
        try:
            found = self.send_message(group, message, queue)
        except PyengineError as error:
            found = error
        callback(found)

    def send_message_one_way(self, group: str, message: Message, queue: MessageQueue | None = None) -> None:
        """The same; what the broker refuses is a line in the log."""
        try:
            self.send_message(group, message, queue)
        except MQBrokerError as error:
            log.warning("a one-way message to %s is refused: %s", message.topic, error)

    def send_batch(self, group: str, messages: Sequence[Message], queue: MessageQueue | None = None) -> SendResult:
        """Store messages of one topic, one behind the other in one queue."""
        topic = one_topic(messages)
        if queue is None:
            queue = self._next_queue(topic)
            node = self.nodes[queue.broker_name]
        else:
            node = self._node_of(queue)
            if topic not in node.topics:
                check_topic(topic)
        stored = node.sender.send_batch(messages, queue.queue_id, self._default_queues if self._auto_create else 0)
        status = SendStatus.SEND_OK if node.store.log.flush(stored.flush) else SendStatus.FLUSH_DISK_TIMEOUT
        stored_in = MessageQueue(stored.topic, node.name, stored.queue_id)
        return batch_result(status, messages, stored.offset_msg_id, stored_in, stored.queue_offset)

    def settle(self) -> None:
        """Under a ManualClock run what the brokers have been asked to do; otherwise nothing."""
        if isinstance(self.clock, ManualClock):
            self.clock.settle()

    def make_topic(self, topic: str) -> list[MessageQueue]:
        """Make a topic that a message is being sent to; returns its queues. MQClientError if it must not be made."""
        internal = plain_text("topic", topic).startswith((names.RETRY_GROUP_TOPIC_PREFIX, names.DLQ_GROUP_TOPIC_PREFIX))
        if not self._auto_create and not internal:
            raise MQClientError(f"No route info of this topic: {topic}")
        self.create_topic(topic, self._default_queues if self._auto_create else 1)
        return self.topic_subscribe_info(topic) or []

    # Within

    def _node(self, name: str) -> BrokerNode:
        try:
            return self.nodes[name]
        except KeyError:
            raise MQClientError(f"The broker[{name}] not exist") from None

    def _node_of(self, queue: MessageQueue) -> BrokerNode:
        if not isinstance(queue, MessageQueue):
            raise MQClientError(f"{queue!r} is not a MessageQueue; give one of broker.topic_subscribe_info(topic)")
        whole_number("queue_id", queue.queue_id, INT32)
        return self._node(queue.broker_name)

    def _by_broker(self, queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
        own: dict[str, list[MessageQueue]] = {}
        check_listed("queues", queues, "[MessageQueue('topic', 'broker-a', 0)]")
        for queue in queues:
            own.setdefault(self._node_of(queue).name, []).append(queue)
        return own

    def _next_queue(self, topic: str) -> MessageQueue:
        queues = self._published.get(topic) if type(topic) is str else None
        if queues is None:
            queues = self._publish_queues(topic)
        turns = self._turns.get(topic)
        if turns is None:
            turns = self._turns.setdefault(topic, count())
        return queues[next(turns) % len(queues)]

    def _notify(self, group: str, lists: Iterable[Iterable[str]]) -> None:
        """Tell each client once that the members of its group changed."""
        client_ids = dict.fromkeys(client_id for notified in lists for client_id in notified)
        calls: list[Callable[[str], None]] = []
        with self._lock:
            for client_id in client_ids:
                if client_id in self._events:
                    calls.append(self._events[client_id].consumer_ids_changed)
        for call in calls:
            call(group)

    def _expire_members(self) -> None:
        for node in self.nodes.values():
            node.expire_members()
        with self._lock:
            if not self._closed and any(len(node.groups) for node in self.nodes.values()):
                self._scan = self.clock.call_at(self.clock.now() + consumer_groups.SCAN_INTERVAL, self._expire_members)
