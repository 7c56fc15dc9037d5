"""Sending to an embedded cluster."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, overload

from pyengine._engine.rocketmq.client.validators import attached, check_group, check_message
from pyengine.attributes import Declared
from pyengine.errors import ConfigurationError, MQClientError
from pyengine.processes import belong
from pyengine.rocketmq import message as names
from pyengine.rocketmq.allocation import MessageQueue
from pyengine.rocketmq.broker import Broker
from pyengine.rocketmq.message import MAX_MESSAGE_SIZE, Message
from pyengine.rocketmq.remoting import SendResult, plain_text, whole_number

QueueSelector = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]

log = logging.getLogger("pyengine.rocketmq")

_producers = count(1)

# Properties of a delay that the open broker stores and does not look at: that of the cloud's own producers.
NOT_HONOURED = ("__STARTDELIVERTIME",)


class Producer(Declared):
    """Sends messages to a Broker. group: its producer group. Safe from any thread.

    max_message_size: bytes of a body (DefaultMQProducer: 4 MiB); the brokers have a limit of their own. Raises
    MQClientError with RocketMQ's texts for a group that may not have its name, ConfigurationError for a broker, a group
    or a size that is none.
    """

    broker: Broker
    group: str
    max_message_size: int
    _changeable: ClassVar[frozenset[str]] = frozenset({"group", "max_message_size"})

    def __init__(
        self, broker: Broker, group: str = "DEFAULT_PRODUCER", *, max_message_size: int = MAX_MESSAGE_SIZE
    ) -> None:
        if not callable(getattr(broker, "send_message", None)):
            raise ConfigurationError("broker", repr(broker), "no RocketMQ cluster", "give a rocketmq.Broker")
        self.broker = broker
        check_group(plain_text("group", group))
        self.group = group
        self.max_message_size = whole_number("max_message_size", max_message_size)
        self._prefix = f"7F000001{os.getpid() & 0xFFFF:04X}{next(_producers):08X}"
        self._number = count()
        self._lock = threading.Lock()
        self._warned_of: set[str] = set()
        belong(self)

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
        elif any(given is not None for given in (body, tags, keys, properties)) or delay_time_level:
            raise MQClientError("body, tags, keys, properties and delay_time_level belong into the Message")
        elif not isinstance(message, Message):
            raise ConfigurationError("message", repr(message), "a Message or a topic is needed")
        if selector is not None and not callable(selector):
            hint = "give a function of (queues, message, arg) that returns one of the queues"
            raise ConfigurationError("selector", repr(selector), "cannot be called", hint)
        message.check()
        for name in NOT_HONOURED:
            if name in message.properties and name not in self._warned_of:
                self._warned_of.add(name)
                log.warning("group: %s: %s asks for a delivery at a time; it is delivered at once", self.group, name)
        check_message(message.topic, message.body, self.max_message_size)
        with self._lock:
            unique = f"{self._prefix}{self.broker.clock.now() & 0xFFFFFFFF:08X}{next(self._number) & 0xFFFF:04X}"
        message.properties.setdefault(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique)
        if isinstance(queue, MessageQueue) and queue.topic != message.topic:
            raise MQClientError(attached("message's topic not equal mq's topic"))
        if selector is not None:
            if queue is not None:
                raise MQClientError("give a queue or a selector, not both")
            queues = self.broker.topic_subscribe_info(message.topic) or self.broker.make_topic(message.topic)
            queue = selector(queues, message, arg)
            if queue is None:
                raise MQClientError("select message queue return null.")
        result = self.broker.send_message(self.group, message, queue)
        self.broker.settle()
        return result
