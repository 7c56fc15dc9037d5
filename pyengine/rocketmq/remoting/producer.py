"""Sending to a cluster, embedded or real."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from pyengine._engine.rocketmq.client.namespaces import (
    namespace_fields,
    queue_with_namespace,
    queue_without_namespace,
    with_namespace,
    without_namespace,
)
from pyengine._engine.rocketmq.client.outgoing import Outgoing, body_bytes, one_topic
from pyengine._engine.rocketmq.client.validators import attached, check_group, check_message
from pyengine.attributes import Declared, named_arguments
from pyengine.durations import milliseconds
from pyengine.errors import ConfigurationError, MQBrokerError, MQClientError, RemotingError
from pyengine.processes import belong
from pyengine.rocketmq import message as names
from pyengine.rocketmq.consumer.client import settle
from pyengine.rocketmq.message import MAX_MESSAGE_SIZE, Message, MessageExt
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.cluster import Cluster
from pyengine.rocketmq.remoting.mq_client_api import (
    ClientEvents,
    MQClientAPI,
    SendResult,
    check_listed,
    mq_client_id,
    plain_text,
    whole_number,
)
from pyengine.rocketmq.remoting.replies import PendingRequests
from pyengine.rocketmq.remoting.sending import SendOptions
from pyengine.rocketmq.remoting.tls import tls_of
from pyengine.rocketmq.remoting.transport import local_address
from pyengine.rocketmq.tables.allocation import MessageQueue

if TYPE_CHECKING:
    import ssl
    from concurrent.futures import Future

QueueSelector = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]

log = logging.getLogger("pyengine.rocketmq")

_producers = count(1)

FOR_EVER = 2**63 - 1
PROPERTY_INSTANCE_ID = "INSTANCE_ID"  # the namespace of a message

# Properties of a delay that the open broker stores and does not look at: that of the cloud's own producers.
NOT_HONOURED = frozenset(("__STARTDELIVERTIME",))
# Properties that are looked at before a message is sent.
LOOKED_AT = NOT_HONOURED | {
    names.PROPERTY_TAGS,
    names.PROPERTY_KEYS,
}


@named_arguments
class Producer(Declared):
    """Sends messages to the brokers: an embedded Broker, or those that the name servers at ``namesrv_addr`` know
    (``host:port;host:port``). group: its producer group. Safe from any thread.

    rpc_hook: SessionCredentials that sign what goes to ``namesrv_addr``. Its connections end with :meth:`shutdown`, or
    with the block of a context manager. max_message_size: bytes of a body (DefaultMQProducer: 4 MiB); the brokers have
    a limit of their own. use_tls, ssl_context, namespace, namespace_v2, instance_name, unit_name: as with ClientConfig,
    all but namespace for ``namesrv_addr`` alone; and so is send_options: SendOptions, tries, timeouts and which brokers
    are avoided.

    Raises MQClientError with RocketMQ's texts for a group that may not have its name, ConfigurationError for a broker,
    an address, a group or a size that is none.
    """

    broker: MQClientAPI
    group: str
    max_message_size: int
    namespace: str | None
    _changeable: ClassVar[frozenset[str]] = frozenset({"group", "max_message_size"})

    def __init__(
        self,
        broker: MQClientAPI | None = None,
        group: str = "DEFAULT_PRODUCER",
        *,
        namesrv_addr: str | None = None,
        rpc_hook: SessionCredentials | None = None,
        max_message_size: int = MAX_MESSAGE_SIZE,
        use_tls: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        namespace: str | None = None,
        namespace_v2: str | None = None,
        instance_name: str | None = None,
        unit_name: str | None = None,
        send_options: SendOptions | None = None,
    ) -> None:
        is_cluster = callable(getattr(broker, "send_message", None))
        if not is_cluster and (broker is not None or namesrv_addr is None):
            hint = "give a rocketmq.Broker, or namesrv_addr='host:port'"
            raise ConfigurationError("broker", repr(broker), "no RocketMQ cluster", hint)
        if broker is not None and namesrv_addr is not None:
            raise ConfigurationError("namesrv_addr", repr(namesrv_addr), "there is a broker too", "give one of them")
        for name, text in (
            ("namespace", namespace),
            ("namespace_v2", namespace_v2),
            ("instance_name", instance_name),
            ("unit_name", unit_name),
        ):
            if text is not None:
                plain_text(name, text)
        if send_options is not None and not isinstance(send_options, SendOptions):
            raise ConfigurationError("send_options", repr(send_options), "SendOptions are needed")
        if namesrv_addr is None and send_options is not None:
            hint = "an embedded broker answers at once: leave it out"
            raise ConfigurationError("send_options", repr(send_options), "they need namesrv_addr", hint)
        self.namespace = namespace
        group = with_namespace(namespace, plain_text("group", group))
        check_group(group)
        self.group = group
        self.max_message_size = whole_number("max_message_size", max_message_size)
        tls = tls_of(use_tls, ssl_context)
        fields = namespace_fields(namespace_v2)
        self._own = (
            None
            if namesrv_addr is None
            else Cluster(namesrv_addr, credentials=rpc_hook, ssl_context=tls, ext_fields=fields)
        )
        self.broker = self._own or broker  # type: ignore[assignment]
        address = "127.0.0.1" if self._own is None else local_address(self._own.name_servers[0])
        host = bytes(int(part) for part in address.split(".")) if ":" not in address else os.urandom(4)
        self._pending = PendingRequests(self.broker.clock)
        self._prefix = f"{host.hex().upper()}{os.getpid() & 0xFFFF:04X}{next(_producers):08X}"
        if self._own is not None:
            instance = instance_name if instance_name is not None else f"{os.getpid()}#{self._prefix}"
            self._own.register_client(mq_client_id(address, instance, unit_name), self._client_events())
            if send_options is not None:
                self._own.sending.use(send_options)
                if send_options.start_detector_enable:
                    self._own.detect(send_options)
            self._own.register_producer(group)
        self._outgoing = Outgoing(self._prefix, LOOKED_AT)
        self._warned_of: set[str] = set()
        belong(self)

    def _client_events(self) -> ClientEvents:
        """What the brokers may ask."""
        return ClientEvents(reply=self._pending.arrived)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """End the connections to ``namesrv_addr``; a broker that was given stays as it is. Harmless the second time."""
        self._pending.close()
        if self._own is not None:
            self._own.close()

    @overload
    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        arg: Any = None,
    ) -> SendResult: ...

    @overload
    def send(
        self,
        message: str,
        body: bytes,
        *,
        tags: str | None = None,
        keys: str | None = None,
        properties: Mapping[str, str] | None = None,
        delay_time_level: int = 0,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        arg: Any = None,
    ) -> SendResult: ...

    def send(
        self,
        message: Message | str,
        body: bytes | None = None,
        *,
        tags: str | None = None,
        keys: str | None = None,
        properties: Mapping[str, str] | None = None,
        delay_time_level: int = 0,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        arg: Any = None,
    ) -> SendResult:
        """Store one message and return where; with SEND_OK the broker has it as safe as it keeps messages.

        message: a Message, or a topic together with body, tags, keys, properties and delay_time_level (1..18, 0 for
        none). queue: where to; selector: function(queues, message, arg) -> queue, for messages that belong together
        in order; without both the queues take turns. The message gets a unique id, if it has none.

        Raises MQClientError with RocketMQ's texts for a topic or body that cannot be sent and for a queue of another
        topic, MQBrokerError for what the brokers refuse, InvalidMessageError for fields of a wrong type,
        ConfigurationError for a selector that cannot be called.
        """
        if isinstance(message, str):
            message = Message(message, body, tags=tags, keys=keys, properties=properties)
            if delay_time_level:
                message.delay_time_level = delay_time_level
        elif body is not None or tags is not None or keys is not None or properties is not None or delay_time_level:
            raise MQClientError("body, tags, keys, properties and delay_time_level belong into the Message")
        broker = self.broker
        clock = broker.clock
        # As nearly always there is nothing to look at in it.
        usual = self._outgoing.prepare(message, clock.now(), self.max_message_size)
        sent = message if usual else self._prepare(message)
        if queue is not None or selector is not None:
            queue = self._chosen(sent, queue, selector, arg)
        result = broker.send_message(self.group, sent, queue)
        if clock.settles:
            settle(clock)
        return result if not self.namespace else self._as_sent(result)

    def send_one_way(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        arg: Any = None,
    ) -> None:
        """Send a message without waiting for an answer (sendOneway). Raises as :meth:`send`, except errors of
        the broker."""
        sent = self._prepare(message)
        self.broker.send_message_one_way(self.group, sent, self._chosen(sent, queue, selector, arg))
        settle(self.broker.clock)

    def send_async(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        arg: Any = None,
    ) -> Future[SendResult]:
        """Send a message without waiting; the future has what :meth:`send` returns or raises.

        A coroutine awaits ``asyncio.wrap_future(producer.send_async(message))``. A callback of the future runs on a
        thread of the producer's and must not wait. Errors of the message itself are raised here.
        """
        sent = self._prepare(message)
        chosen = self._chosen(sent, queue, selector, arg)
        from concurrent.futures import Future  # it takes time to import

        future: Future[SendResult] = Future()
        future.set_running_or_notify_cancel()

        def answered(found: SendResult | Exception) -> None:
            if isinstance(found, SendResult):
                future.set_result(self._as_sent(found))
            else:
                future.set_exception(found)

        self.broker.send_message_async(self.group, sent, chosen, answered)
        settle(self.broker.clock)
        return future

    def send_batch(self, messages: Sequence[Message], *, queue: MessageQueue | None = None) -> SendResult:
        """Store messages of one topic, one behind the other in one queue, with one request (DefaultMQProducer.send of a
        collection). Together they may have max_message_size bytes. The result's ids are joined by commas.

        Raises as :meth:`send`, and MQClientError with RocketMQ's texts for messages of several topics, delayed ones and
        none at all.
        """
        check_listed("messages", messages, "[Message('topic', b'body')]")
        listed = self._prepare_all(list(messages))
        if body_bytes(listed) > self.max_message_size:
            topic = one_topic(listed)
            check_message(topic, b"".join(bytes(each.body or b"") for each in listed), self.max_message_size)
        result = self.broker.send_batch(self.group, listed, self._at_brokers(queue))
        settle(self.broker.clock)
        return self._as_sent(result)

    def request(
        self,
        message: Message,
        timeout: int | timedelta = 3000,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        arg: Any = None,
    ) -> MessageExt:
        """Send a message and wait for the reply of its consumer; timeout: ms or a timedelta, of both.

        A consumer replies with ``producer.send(rocketmq.create_reply_message(message, body))``. Raises MQClientError,
        code 10006, without a reply in time, and where the message cannot be sent; ConfigurationError if the producer
        has an embedded broker: requests need namesrv_addr.
        """
        return self.request_async(message, timeout, queue=queue, selector=selector, arg=arg).result()

    def request_async(
        self,
        message: Message,
        timeout: int | timedelta = 3000,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        arg: Any = None,
    ) -> Future[MessageExt]:
        """Send a message; the future has what :meth:`request` returns or raises. A coroutine awaits
        ``asyncio.wrap_future(producer.request_async(message))``.
        """
        if self._own is None:
            hint = "the address of a Broker(listen=...) will do"
            raise ConfigurationError("broker", repr(self.broker), "a request needs namesrv_addr", hint)
        sent = self._prepare(message)
        self._own.introduce(sent.topic)
        whole = milliseconds("timeout", timeout)
        identity, future = self._pending.prepare(sent, self._own.client_id or "", whole)
        message.properties.update(sent.properties)

        def answered(found: SendResult | Exception) -> None:
            if not isinstance(found, SendResult):
                failure = MQClientError(f"send request message to <{message.topic}> fail")
                failure.__cause__ = found
                self._pending.fail(identity, failure)

        self.broker.send_message_async(self.group, sent, self._chosen(sent, queue, selector, arg), answered)
        return future

    def query_message(
        self, topic: str, key: str, max_num: int = 32, *, begin: int = 0, end: int | None = None
    ) -> list[MessageExt]:
        """The newest messages of a topic whose ``keys`` have this one, at most ``max_num`` of each broker, which gives
        64 at most. begin, end: ms since 1970, when they were stored. Raises MQClientError if there is none.
        """
        return self._looked_up(topic, key, whole_number("max_num", max_num), begin, end, unique=False)

    def view_message(self, topic: str, msg_id: str) -> MessageExt:
        """The message with an id, of the broker's (offset_msg_id) or of its producer's. Raises MQClientError."""
        topic = with_namespace(self.namespace, plain_text("topic", topic))
        try:
            return self._as_known(self.broker.view_message(topic, plain_text("msg_id", msg_id)))
        except (MQClientError, MQBrokerError, RemotingError) as error:
            log.debug("%s is not a broker's id: %s", msg_id, error)
        return self._looked_up(topic, msg_id, 32, 0, None, unique=True)[0]

    def _looked_up(
        self, topic: str, key: str, most: int, begin: int, end: int | None, *, unique: bool
    ) -> list[MessageExt]:
        name = with_namespace(self.namespace, plain_text("topic", topic))
        last = FOR_EVER if end is None else whole_number("end", end)
        found = self.broker.query_message(
            name, plain_text("key", key), most, whole_number("begin", begin), last, unique=unique
        )
        return [self._as_known(each) for each in found]

    def _as_known(self, message: MessageExt) -> MessageExt:
        message.topic = without_namespace(message.topic, self.namespace)
        return message

    def _at_brokers(self, queue: MessageQueue | None) -> MessageQueue | None:
        """A queue by its name at the brokers."""
        return queue_with_namespace(self.namespace, queue) if isinstance(queue, MessageQueue) else queue

    def _as_sent(self, result: SendResult) -> SendResult:
        """A result with the topic's name as its sender knows it."""
        if not self.namespace:
            return result
        return replace(result, queue=queue_without_namespace(result.queue, self.namespace))

    def _prepare(self, message: Message) -> Message:
        """Check a message, and give it its id. Returns what is sent: the same, within a namespace a copy."""
        if not isinstance(message, Message):
            raise ConfigurationError("message", repr(message), "a Message or a topic is needed")
        if self._outgoing.prepare(message, self.broker.clock.now(), self.max_message_size):
            return message
        properties, namespace = message.properties, self.namespace
        message.check()
        if not NOT_HONOURED.isdisjoint(properties):
            self._warn(properties)
        topic = message.topic if not namespace else with_namespace(namespace, message.topic)
        check_message(topic, message.body, self.max_message_size)
        if names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX not in properties:
            self._outgoing.identify(properties, self.broker.clock.now())
        if not namespace:
            self._outgoing.checked = message.topic
            return message
        properties[PROPERTY_INSTANCE_ID] = namespace
        return Message(topic, message.body, properties=properties, flag=message.flag)

    def _prepare_all(self, messages: list[Message]) -> list[Message]:
        """The same for a batch; a topic that its messages share is looked at once."""
        if self.namespace:
            return [self._prepare(message) for message in messages]
        now, at = self.broker.clock.now(), 0
        while (at := self._outgoing.prepare_from(messages, at, now, self.max_message_size)) < len(messages):
            self._prepare(messages[at])
            at += 1
        return messages

    def _warn(self, properties: Mapping[str, str]) -> None:
        for name in NOT_HONOURED.intersection(properties) - self._warned_of:
            self._warned_of.add(name)
            log.warning("group: %s: %s asks for a delivery at a time; it is delivered at once", self.group, name)

    def _chosen(
        self, message: Message, queue: MessageQueue | None, selector: QueueSelector | None, arg: Any
    ) -> MessageQueue | None:
        """The queue of a message; None: the next one in turn. message: as it is sent."""
        queue = self._at_brokers(queue)
        if selector is not None and not callable(selector):
            hint = "give a function of (queues, message, arg) that returns one of the queues"
            raise ConfigurationError("selector", repr(selector), "cannot be called", hint)
        if isinstance(queue, MessageQueue) and queue.topic != message.topic:
            raise MQClientError(attached("message's topic not equal mq's topic"))
        if selector is not None:
            if queue is not None:
                raise MQClientError("give a queue or a selector, not both")
            queues = self.broker.publish_queues(message.topic)
            if self.namespace:
                plain = without_namespace(message.topic, self.namespace)
                queues = [each._replace(topic=plain) for each in queues]
                message = Message(plain, message.body, properties=message.properties, flag=message.flag)
            queue = self._at_brokers(selector(queues, message, arg))
            if queue is None:
                raise MQClientError("select message queue return null.")
        return queue
