"""The lite pull consumer (org.apache.rocketmq.client.consumer.DefaultLitePullConsumer)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from pyengine.attributes import named_arguments
from pyengine.dataclass import dataclass
from pyengine.durations import milliseconds
from pyengine.errors import ConfigurationError
from pyengine.processes import belong
from pyengine.rocketmq.consumer.brokers import take_clock
from pyengine.rocketmq.consumer.listener import MessageQueueListener
from pyengine.rocketmq.consumer.lite_pull_member import LitePullMember, TopicListener
from pyengine.rocketmq.consumer.lite_pull_parameters import LitePullConsumerParameters
from pyengine.rocketmq.consumer.offset_store import listed_queues
from pyengine.rocketmq.consumer.running_info import ConsumerRunningInfo, lite_running_info
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import plain_text, whole_number
from pyengine.rocketmq.subscription import MessageSelector
from pyengine.rocketmq.tables.allocation import MessageQueue


@named_arguments
@dataclass(eq=False)
class DefaultLitePullConsumer(LitePullConsumerParameters):
    """A consumer that is asked for messages: subscribe to topics, whose queues the group shares, or assign queues; then
    poll, and commit what was done.

        with rocketmq.DefaultLitePullConsumer("billing", broker=broker) as consumer:
            consumer.subscribe("orders")
            for message in consumer.poll(1000):
                ...

    consumer_group: its name. broker, or namesrv_addr with rpc_hook: the brokers, as with DefaultMQPushConsumer. Every
    parameter is an attribute too; see :class:`LitePullConsumerParameters` for what they mean. Messages that fail do not
    come again by themselves: there is no retry topic. Raises ConfigurationError for a group, a broker or a clock that
    is none.
    """

    default_lite_pull_consumer_impl: LitePullMember = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.default_lite_pull_consumer_impl = LitePullMember(self, own_clock=take_clock(self))
        belong(self)

    @property
    def _member(self) -> LitePullMember:
        return self.default_lite_pull_consumer_impl

    # -- before and after

    def start(self) -> None:
        """Check the parameters, then pull until shutdown(). Raises MQClientError, and once only once.

        Its group has its name within the namespace from then on.
        """
        if self.consumer_group:
            self.consumer_group = self.with_namespace(plain_text("consumer_group", self.consumer_group))
        self._member.start()

    def shutdown(self) -> None:
        """Commit what was noted, leave the group, stop. Harmless the second time."""
        self._member.shutdown()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    @property
    def is_running(self) -> bool:
        """True from start() to shutdown()."""
        return self._member.is_running

    # -- what is pulled

    def subscribe(
        self,
        topic: str,
        expression: MessageSelector | str | None = "*",
        message_queue_listener: MessageQueueListener | None = None,
    ) -> None:
        """Want a topic's messages, before or after start(). expression: tags, ``"A || B"``, or ``rocketmq.sql(...)``.

        message_queue_listener: called with each change of the assignment, when its queues are pulled. Replaces the one
        that was set, and that of an earlier call, as in the real client. Raises MQClientError for an expression of
        nothing but ``||`` and after assign(), ConfigurationError for a topic or an expression that is not a string.
        """
        if topic is not None:
            topic = self.with_namespace(plain_text("topic", topic))
        self._member.subscribe(topic, expression, message_queue_listener)

    def unsubscribe(self, topic: str) -> None:
        """Want a topic's messages no more; what was pulled already is still polled."""
        self._member.unsubscribe(self._topic(topic))

    def assign(self, message_queues: Collection[MessageQueue]) -> None:
        """Pull these queues and no others, without sharing them with the group.

        Raises ConfigurationError for none, IllegalStateError after subscribe().
        """
        self._member.assign(self._queues(message_queues))

    def set_sub_expression_for_assign(self, topic: str, sub_expression: str) -> None:
        """Have only messages with these tags of a topic's assigned queues. Before start(), else IllegalStateError."""
        self._member.set_sub_expression_for_assign(self._topic(topic), plain_text("sub_expression", sub_expression))

    def assignment(self) -> set[MessageQueue]:
        """The queues that it pulls."""
        return set(self._member.assigned.names())

    # -- polling

    def poll(self, timeout: int | timedelta | None = None) -> list[MessageExt]:
        """The next messages, all of one queue; [] if none come in time.

        timeout: ms or a timedelta, poll_timeout_millis by default. Under a manual clock waiting moves the time. With
        auto_commit it notes for committing what earlier calls returned. Raises IllegalStateError unless it runs.
        """
        return self._member.poll(self.poll_timeout_millis if timeout is None else milliseconds("timeout", timeout))

    async def poll_async(self, timeout: int | timedelta | None = None) -> list[MessageExt]:
        """:meth:`poll` for tasks of an event loop: other tasks run while it waits. A task that is cancelled has polled
        nothing. The other methods do not wait, except those that ask a broker.
        """
        limit = self.poll_timeout_millis if timeout is None else milliseconds("timeout", timeout)
        return await self._member.poll_async(limit)

    def pause(self, message_queues: Iterable[MessageQueue]) -> None:
        """Pull from these queues no more; what is cached is still polled."""
        self._member.pause(self._queues(message_queues), paused=True)

    def resume(self, message_queues: Iterable[MessageQueue]) -> None:
        """Pull from these queues again, within a second."""
        self._member.pause(self._queues(message_queues), paused=False)

    # -- offsets

    def seek(self, message_queue: MessageQueue, offset: int) -> None:
        """Go on at an offset; what is cached of the queue is dropped.

        Raises MQClientError for a queue that is not assigned and an offset that the queue does not have.
        """
        self._member.seek(self._queue(message_queue), whole_number("offset", offset))

    def seek_to_begin(self, message_queue: MessageQueue) -> None:
        """Go on at the smallest offset."""
        self._member.seek(self._queue(message_queue), self._member.min_offset(self._queue(message_queue)))

    def seek_to_end(self, message_queue: MessageQueue) -> None:
        """Go on at the largest offset."""
        self._member.seek(self._queue(message_queue), self._member.max_offset(self._queue(message_queue)))

    def commit(
        self, offsets: Mapping[MessageQueue, int] | Iterable[MessageQueue] | None = None, persist: bool = False
    ) -> None:
        """Note for committing what poll() returned, of every queue or of some, or offsets of your own.

        It goes to the brokers every persist_consumer_offset_interval ms and at shutdown(), or now with ``persist``,
        which counts for given queues alone. A queue that was not polled yet, or is not assigned, is left out.
        """
        if offsets is None:
            self._member.commit_all()
        elif isinstance(offsets, Mapping):
            checked = {self._queue(queue): whole_number("offset", offset) for queue, offset in offsets.items()}
            self._member.commit_offsets(checked, persist=persist)
        else:
            self._member.commit(self._queues(offsets), persist=persist)

    def commit_sync(
        self, offsets: Mapping[MessageQueue, int] | Iterable[MessageQueue] | None = None, persist: bool = False
    ) -> None:
        """The older name of :meth:`commit`, which is no more synchronous than that."""
        self.commit(offsets, persist)

    def committed(self, message_queue: MessageQueue) -> int:
        """The offset that was noted, else the one that the brokers have; -1 for none. Raises MQClientError if they
        cannot be asked.
        """
        return self._member.committed(self._queue(message_queue))

    def offset_for_timestamp(self, message_queue: MessageQueue, timestamp: int) -> int:
        """The first offset that was stored at ``timestamp`` (ms since 1970) or later."""
        return self._member.search_offset(self._queue(message_queue), whole_number("timestamp", timestamp))

    # -- topics

    def fetch_message_queues(self, topic: str) -> set[MessageQueue]:
        """All queues of a topic. Raises MQClientError if there is no such topic."""
        queues = self._member.fetch_message_queues(self._topic(topic))
        return {self.queue_without_namespace(queue) for queue in queues}

    def register_topic_message_queue_change_listener(self, topic: str, listener: TopicListener) -> None:
        """Have function(topic, queues) called when a topic gets other queues, for assign(). They are compared every
        topic_metadata_check_interval_millis.
        """
        if not callable(listener):
            hint = "give a function of (topic, queues)"
            raise ConfigurationError("listener", repr(listener), "cannot be called", hint)
        self._member.listen_to_topic(self._topic(topic), listener)

    def consumer_running_info(self, *, with_stacks: bool = False) -> ConsumerRunningInfo:
        """What the consumer is doing (spec rocketmq 9). with_stacks: where every thread of the process is, too."""
        member = self._member
        return lite_running_info(member.context, self, member.assigned, with_stacks=with_stacks)

    # -- names at the brokers

    def _topic(self, topic: str) -> str:
        return self.with_namespace(plain_text("topic", topic))

    def _queues(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        return [self.queue_with_namespace(queue) for queue in listed_queues(queues)]

    def _queue(self, given: Any) -> MessageQueue:
        if not isinstance(given, MessageQueue):
            hint = "give one of assignment() or fetch_message_queues(topic)"
            raise ConfigurationError("message_queue", repr(given), "no MessageQueue", hint)
        return self.queue_with_namespace(given)
