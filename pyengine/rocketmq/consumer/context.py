"""What the parts of one consumer share: its parameters and its state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.validators import suggested
from pyengine.clock import Clock
from pyengine.errors import MQClientError
from pyengine.rocketmq.consumer.client import MQClientInstance
from pyengine.rocketmq.consumer.consume_status import ConsumeStatistics
from pyengine.rocketmq.consumer.listener import MessageListener, MessageListenerOrderly
from pyengine.rocketmq.consumer.offset_store import OffsetStore
from pyengine.rocketmq.consumer.parameters import PushConsumerParameters
from pyengine.rocketmq.remoting.mq_client_api import MessageModel, SubscriptionData
from pyengine.rocketmq.tables.allocation import MessageQueue, Strategy


class MemberParameters(Protocol):
    """What every kind of consumer has."""

    consumer_group: str
    clock: Clock
    message_model: MessageModel
    allocate_message_queue_strategy: Strategy
    pull_time_delay_mills_when_exception: int
    namespace: str | None


class MemberContext:
    """A member of a group as its parts see it, of any kind of consumer.

    lock: held while process queues are read or changed. client, offset_store: None until the consumer was started.
    exception_delay: ms, of the moment when the consumer was made. orderly: each queue is consumed in order.
    """

    orderly = False

    def __init__(self, parameters: MemberParameters) -> None:
        self._parameters = parameters
        self.clock = parameters.clock
        self.lock = threading.RLock()
        self.service_state = "CREATE_JUST"
        self.exception_delay = parameters.pull_time_delay_mills_when_exception
        self.start_timestamp = self.clock.now()
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.process_queues: dict[MessageQueue, ProcessQueue] = {}
        self.client: MQClientInstance | None = None
        self.offset_store: OffsetStore | None = None

    @property
    def strategy(self) -> Strategy:
        """How the group shares its queues."""
        return self._parameters.allocate_message_queue_strategy

    @property
    def group(self) -> str:
        """The consumer group."""
        return self._parameters.consumer_group

    @property
    def namespace(self) -> str | None:
        """In which the brokers have its topics and its group."""
        return self._parameters.namespace

    @property
    def clustering(self) -> bool:
        """True unless every member gets everything."""
        return self._parameters.message_model is MessageModel.CLUSTERING

    @property
    def running(self) -> MQClientInstance:
        """The client of a consumer that was started. Raises MQClientError before that."""
        if self.client is None:
            raise self.not_ok()
        return self.client

    @property
    def store(self) -> OffsetStore:
        """The offset store of a consumer that was started. Raises MQClientError before that."""
        if self.offset_store is None:
            raise self.not_ok()
        return self.offset_store

    def not_ok(self) -> MQClientError:
        """The real client's error for a consumer that does not run."""
        return MQClientError(suggested(f"The consumer service state not OK, {self.service_state}"))


def called(listener: MessageListener) -> Callable[..., Any]:
    """The function that is called with messages."""
    return listener.consume_message


class ConsumerContext(MemberContext):
    """A push consumer as its parts see it. parameters: read at each use."""

    def __init__(self, parameters: PushConsumerParameters) -> None:
        super().__init__(parameters)
        self.parameters = parameters
        self.paused = False
        self.statistics = ConsumeStatistics()
        self.around = called  # read when the consumer starts; telemetry puts something around the listener

    @property
    def orderly(self) -> bool:  # type: ignore[override]
        """True if each queue is consumed in order."""
        return isinstance(self.parameters.message_listener, MessageListenerOrderly)
