"""Every parameter of a lite pull consumer, with RocketMQ's names in snake_case, defaults and units."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from datetime import timedelta
from typing import TYPE_CHECKING

from pyengine._engine.rocketmq.client.lite_pull import MIN_AUTO_COMMIT_INTERVAL
from pyengine._engine.rocketmq.client.validators import check_consumer_group, check_given, suggested
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.durations import Milliseconds
from pyengine.errors import ConfigurationError, MQClientError
from pyengine.rocketmq.consumer.parameters import MemberParameters, java_name
from pyengine.rocketmq.remoting.mq_client_api import ConsumeFromWhere, MQClientAPI, plain_text
from pyengine.visible import logger
from pyengine.whole_numbers import is_whole_number

log = logger("pyengine.rocketmq")

BEGINNINGS = (
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
)


@dataclass(eq=False)
class LitePullConsumerParameters(MemberParameters):
    """The parameters of DefaultLitePullConsumer 5.3; times are ms or a timedelta. Those that every consumer has are
    described at ConsumerParameters.

    consumer_group: its name. broker, or namesrv_addr: the brokers. auto_commit: poll() notes the offsets of what was
    polled before for committing, at most every auto_commit_interval_millis; a value below 1,000 is ignored, as in the
    real client, and logged. pull_thread_nums: queues that are pulled at the same time; a queue without messages holds
    its place for as long as the broker holds the pull. pull_batch_size: messages a pull brings, and poll() returns, at
    most. pull_threshold_for_all: messages in the cache, counted in whole batches; pull_threshold_for_queue (messages),
    pull_threshold_size_for_queue (MiB), consume_max_span (offsets): flow control of one queue. poll_timeout_millis: how
    long poll() waits. topic_metadata_check_interval_millis: how often listeners of topics are compared.
    broker_suspend_max_time_millis: how long the broker may hold a pull, consumer_timeout_millis_when_suspend: how long
    its answer is waited for. consumer_pull_timeout_millis has no effect, as in the real client, whose pulls all wait.
    """

    consumer_group: str = "DEFAULT_CONSUMER"
    _: KW_ONLY
    enable_stream_request_type: bool = True
    broker: MQClientAPI | None = None
    clock: Clock = field(default=None)  # type: ignore[assignment]
    broker_suspend_max_time_millis: Milliseconds = field(default=Milliseconds(20_000))
    consumer_timeout_millis_when_suspend: Milliseconds = field(default=Milliseconds(30_000))
    consumer_pull_timeout_millis: Milliseconds = field(default=Milliseconds(10_000))
    auto_commit: bool = True
    auto_commit_interval_millis: Milliseconds = field(default=Milliseconds(5000))
    pull_thread_nums: int = 20
    pull_batch_size: int = 10
    pull_threshold_for_all: int = 10_000
    consume_max_span: int = 2000
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100
    poll_timeout_millis: Milliseconds = field(default=Milliseconds(5000))
    topic_metadata_check_interval_millis: Milliseconds = field(default=Milliseconds(30_000))

    if not TYPE_CHECKING:  # which says so of every name

        def __setattr__(self, name: str, value: object) -> None:
            if name == "consume_from_where" and value not in BEGINNINGS:
                known = ", ".join(f"ConsumeFromWhere.{each.name}" for each in BEGINNINGS)
                raise ConfigurationError(name, repr(value), "Invalid ConsumeFromWhere Value", f"known: {known}")
            if name == "auto_commit_interval_millis":
                value = self._whole(name, value) if isinstance(value, timedelta) else value
                if is_whole_number(value) and value < MIN_AUTO_COMMIT_INTERVAL:
                    group = getattr(self, "consumer_group", "")  # the first field to be set
                    log.warning("auto_commit_interval_millis=%s is below 1000 and is ignored (group %s)", value, group)
                    value = getattr(self, name)  # the default at first
            super().__setattr__(name, value)

    def check_config(self) -> None:
        """What start() refuses, in the real client's order. Raises MQClientError with its text, ConfigurationError for
        what Java's compiler refuses.
        """
        self.check_kinds()
        if self.consumer_group is not None:
            plain_text("consumer_group", self.consumer_group)
        check_consumer_group(self.consumer_group)
        names = ("message_model", "allocate_message_queue_strategy")
        check_given([java_name(name) for name in names], {java_name(name): getattr(self, name) for name in names})
        if self.consumer_timeout_millis_when_suspend < self.broker_suspend_max_time_millis:
            problem = (
                "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than "
                "brokerSuspendMaxTimeMillis"
            )
            raise MQClientError(suggested(problem))
