"""The push consumer (org.apache.rocketmq.client.consumer.DefaultMQPushConsumer)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from types import TracebackType
from typing import Any, Self, TypeVar

from pyengine._engine.rocketmq.client.validators import attached
from pyengine._engine.wire.fastjson import INT32
from pyengine.attributes import named_arguments
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, MQClientError, PyengineError
from pyengine.metrics import Metric
from pyengine.processes import belong
from pyengine.rocketmq.consumer.brokers import take_clock
from pyengine.rocketmq.consumer.client import settle
from pyengine.rocketmq.consumer.consumer_metrics import consumer_metrics
from pyengine.rocketmq.consumer.listener import MessageListener, MessageListenerConcurrently, MessageListenerOrderly
from pyengine.rocketmq.consumer.member import GroupMember
from pyengine.rocketmq.consumer.parameters import PushConsumerParameters
from pyengine.rocketmq.consumer.running_info import ConsumerRunningInfo, running_info
from pyengine.rocketmq.consumer.send_back import send_message_back
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import plain_text, whole_number
from pyengine.rocketmq.subscription import MessageSelector, build_subscription
from pyengine.rocketmq.tables.allocation import MessageQueue

Listener = TypeVar("Listener", bound=Callable[..., Any])


@named_arguments
@dataclass(eq=False)
class DefaultMQPushConsumer(PushConsumerParameters):
    """One member of a consumer group: it gets messages from its brokers and gives them to a listener.

    consumer_group: its name. broker: the brokers, a :class:`pyengine.rocketmq.MQClientAPI`; or namesrv_addr: the name
    servers of a real cluster, ``host:port;host:port``, with rpc_hook: SessionCredentials if it wants them. clock: the
    broker's unless given. Every parameter is an attribute too; see :class:`ConsumerParameters` for what they mean.
    Ranges are checked at :meth:`start`. As in the real client, pull_time_delay_mills_when_exception is read once, by
    the constructor. It raises ConfigurationError for a group, a broker or a clock that is none.
    """

    default_mq_push_consumer_impl: GroupMember = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.default_mq_push_consumer_impl = GroupMember(self, own_clock=take_clock(self))
        belong(self)

    @property
    def _member(self) -> GroupMember:
        return self.default_mq_push_consumer_impl

    # -- before and after

    def subscribe(self, topic: str, expression: MessageSelector | str | None = "*") -> None:
        """Want a topic's messages. expression: tags, ``"A || B"``, ``"*"`` for all, or ``rocketmq.sql("price > 10")``.

        Raises MQClientError for an expression of nothing but ``||`` and for an empty one of SQL92, ConfigurationError
        for a topic or an expression that is not a string.
        """
        try:
            name = self.with_namespace(plain_text("topic", topic))
            subscription = build_subscription(name, expression, self.clock.now())
        except ConfigurationError:
            raise
        except PyengineError as error:
            raise MQClientError(attached("subscription exception")) from error
        self._member.subscribe(subscription)

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic. Raises ConfigurationError for anything but a string."""
        self._member.unsubscribe(self.with_namespace(plain_text("topic", topic)))

    def register_message_listener(self, listener: MessageListener | Listener) -> MessageListener | Listener:
        """Set the listener and return it, so that it can decorate a function.

        listener: a function or coroutine function (messages, context) -> ConsumeConcurrentlyStatus, or one wrapped in
        MessageListenerOrderly for ConsumeOrderlyStatus and order. Raises ConfigurationError for what cannot be called.
        """
        if isinstance(listener, MessageListenerConcurrently | MessageListenerOrderly):
            self.message_listener = listener
        else:
            self.message_listener = MessageListenerConcurrently(listener)
        return listener

    def start(self) -> None:
        """Check the parameters, then pull and consume until shutdown(). Raises MQClientError, and once only once.

        Its group has its name within the namespace from then on.
        """
        if self.consumer_group:
            self.consumer_group = self.with_namespace(plain_text("consumer_group", self.consumer_group))
        self._member.start()

    def shutdown(self) -> None:
        """Stop: wait await_termination_millis_when_shutdown ms for listeners, commit, leave the group."""
        self._member.shutdown()

    def __enter__(self) -> Self:
        try:
            self.start()
        except MQClientError as error:
            if self.message_listener is None or not self._member.subscriptions:
                error.add_note("with starts the consumer: subscribe and register_message_listener before it")
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    # -- meanwhile

    def suspend(self) -> None:
        """Pull nothing more until resume(); what is cached is still consumed."""
        self._member.suspend()

    def resume(self) -> None:
        """Go on pulling."""
        self._member.resume()

    def update_core_pool_size(self, size: int) -> None:
        """Change the number of threads; ignored, as in the real client, unless 0 < size < consume_thread_max."""
        self._member.consuming.update_core_pool_size(whole_number("size", size))

    def send_message_back(self, message: MessageExt, delay_level: int) -> None:
        """Give one message back; it comes again after that delay level. Raises PyengineError if that fails."""
        if not isinstance(message, MessageExt):
            raise ConfigurationError("message", repr(message), "a MessageExt is needed", "give one that was consumed")
        whole_number("delay_level", delay_level, INT32)
        send_message_back(self._member.context, message, delay_level)
        settle(self.clock)

    def reset_offset_by_timestamp(self, timestamp: int) -> None:
        """Consume again from what was stored at ``timestamp`` (ms since 1970) or later; it takes 10 s a topic."""
        self._member.reset_offset_by_timestamp(timestamp)

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the queue's next message will get."""
        return self._member.running.api.max_offset(self.queue_with_namespace(queue))

    def min_offset(self, queue: MessageQueue) -> int:
        """The smallest offset that the queue still has."""
        return self._member.running.api.min_offset(self.queue_with_namespace(queue))

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first offset that was stored at ``timestamp`` (ms since 1970) or later."""
        return self._member.running.api.search_offset(self.queue_with_namespace(queue), timestamp)

    def fetch_subscribe_message_queues(self, topic: str) -> set[MessageQueue]:
        """All queues of a topic. Raises MQClientError if there is no such topic."""
        name = self.with_namespace(plain_text("topic", topic))
        queues = self._member.running.api.topic_subscribe_info(name)
        if queues is None:
            raise MQClientError(attached(f"The topic[{name}] not exist"))
        return {self.queue_without_namespace(queue) for queue in queues}

    def metrics(self) -> Iterator[Metric]:
        """Its numbers now, for :mod:`pyengine.metrics`: queues, rates, flow control, how the listener's calls ended."""
        member = self._member
        info = self.consumer_running_info()
        return consumer_metrics(member.context, info, member.pulling.gate, member.consuming.core_pool_size)

    def consumer_running_info(self, *, with_stacks: bool = False) -> ConsumerRunningInfo:
        """What the consumer is doing (spec rocketmq 9). with_stacks: where every thread of the process is, too."""
        member = self._member
        return running_info(member.context, member.consuming.core_pool_size, with_stacks=with_stacks)
