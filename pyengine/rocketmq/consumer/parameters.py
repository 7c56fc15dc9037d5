"""Every parameter of a push consumer, with RocketMQ's names in snake_case, defaults and units (spec rocketmq 7)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, field, fields
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyengine._engine.rocketmq.client.consume_timestamp import parse_consume_timestamp
from pyengine._engine.rocketmq.client.namespaces import (
    namespace_fields,
    queue_with_namespace,
    queue_without_namespace,
    with_namespace,
)
from pyengine._engine.rocketmq.client.validators import check_consumer_group, check_given, check_ranges, suggested
from pyengine._engine.rocketmq.commands import defaults
from pyengine.attributes import Declared, named_arguments
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.durations import Milliseconds, whole_milliseconds
from pyengine.errors import ConfigurationError, MQClientError, NullArgumentError
from pyengine.rocketmq.consumer.listener import (
    MessageListener,
    MessageListenerConcurrently,
    MessageListenerOrderly,
    MessageQueueListener,
)
from pyengine.rocketmq.consumer.offset_store import OffsetStore
from pyengine.rocketmq.remoting.mq_client_api import (
    ConsumeFromWhere,
    MessageModel,
    MQClientAPI,
    mq_client_id,
    plain_text,
)
from pyengine.rocketmq.subscription import MessageSelector
from pyengine.rocketmq.tables.allocation import AllocateMessageQueueAveragely, MessageQueue, Strategy
from pyengine.whole_numbers import is_whole_number

if TYPE_CHECKING:
    import ssl

_POP, _TRACE = "POP consumption", "message trace"
# Parameters whose effect is not there: what they ask for.
NOT_DONE = {
    "client_rebalance": _POP,
    "pop_invisible_time": _POP,
    "pop_batch_nums": _POP,
    "pop_threshold_for_queue": _POP,
    "enable_trace": _TRACE,
    "trace_topic": _TRACE,
    "trace_dispatcher": _TRACE,
    "namespace_v2": "the namespace of a real cluster's proxy",
    "rpc_hook": "hooks, as those of ACL",
    "use_tls": "TLS",
    "ssl_context": "TLS",
}


@named_arguments
@dataclass(kw_only=True, eq=False)
class ClientConfig(Declared):
    """What a client shares among its consumers and producers (ClientConfig). Intervals and timeouts are ms, or a
    timedelta.

    Nothing here is checked. namesrv_addr, the name servers of a real cluster (``host:port;host:port``), counts where no
    broker is given; client_ip is then by default the address that this machine has in their network. namespace: topics
    and groups have names within it, ``ns%topic`` at the brokers, without it for listeners; namespace_v2 goes with every
    request (``ns``, for proxies of 5.x). What concerns sockets and tracing has the real defaults and no effect inside
    one process: access_channel, the trace, TLS, proxy, detector and decode settings.
    use_tls: connections are TLS (``tls.enable``), by ssl_context, or by the system's trust without one; ssl_context
    alone does it too. See client_ssl_context for the real client's names.
    local_offset_store_dir: where broadcasting keeps its offsets, ``~/.rocketmq_offsets`` by default (the system
    property rocketmq.client.localOffsetStoreDir).
    """

    namesrv_addr: str | None = None
    client_ip: str = "127.0.0.1"
    instance_name: str = "DEFAULT"
    client_callback_executor_threads: int = 2
    namespace: str | None = None
    namespace_initialized: bool = False
    namespace_v2: str | None = None
    access_channel: str = "LOCAL"
    poll_name_server_interval: Milliseconds = field(default=Milliseconds(30000))
    heartbeat_broker_interval: Milliseconds = field(default=Milliseconds(30000))
    persist_consumer_offset_interval: Milliseconds = field(default=Milliseconds(5000))
    pull_time_delay_mills_when_exception: Milliseconds = field(
        default=Milliseconds(defaults.PULL_TIME_DELAY_WHEN_EXCEPTION)
    )
    trace_msg_batch_num: int = 10
    unit_mode: bool = False
    unit_name: str | None = None
    decode_read_body: bool = True
    decode_decompress_body: bool = True
    vip_channel_enabled: bool = False
    use_heartbeat_v2: bool = False
    use_tls: bool = False
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    socks_proxy_config: str = "{}"
    mq_client_api_timeout: Milliseconds = field(default=Milliseconds(3000))
    detect_timeout: Milliseconds = field(default=Milliseconds(200))
    detect_interval: Milliseconds = field(default=Milliseconds(2000))
    language: str = "JAVA"
    enable_stream_request_type: bool = False
    send_latency_enable: bool = False
    start_detector_enable: bool = False
    enable_heartbeat_channel_event_listener: bool = True
    enable_trace: bool = False
    trace_topic: str | None = None
    max_page_size_in_get_metadata: int = 2000
    local_offset_store_dir: str | Path | None = None

    _changeable: ClassVar[frozenset[str]] = frozenset({"allocate_message_queue_strategy", "subscription"})

    if not TYPE_CHECKING:  # which says so of every name

        def __setattr__(self, name: str, value: object) -> None:
            if isinstance(value, timedelta):
                value = self._whole(name, value)
            super().__setattr__(name, value)

    def _whole(self, name: str, span: timedelta) -> int | timedelta:
        """A span in the unit of a parameter; a value of another type is refused by the parameter's own check."""
        if name == "consume_timeout":
            minutes, rest = divmod(span, timedelta(minutes=1))
            if rest:
                raise ConfigurationError(
                    name, repr(span), "whole minutes are needed", "it is in minutes, as in RocketMQ"
                )
            return minutes
        known = {each.name for each in fields(self) if each.type == "Milliseconds"}
        return whole_milliseconds(span) if name in known else span

    def check_network(self) -> None:
        """Raise ConfigurationError for a setting that a real cluster would be asked for and that is not built."""
        plain = ClientConfig()
        for name in ("socks_proxy_config", "enable_trace", "use_heartbeat_v2"):
            value = getattr(self, name)
            if value != getattr(plain, name):
                raise ConfigurationError(name, repr(value), "not built for namesrv_addr", "leave it out")

    def with_namespace(self, name: str) -> str:
        """A topic's or group's name at the brokers."""
        return with_namespace(self.namespace, name)

    def queue_with_namespace(self, queue: MessageQueue) -> MessageQueue:
        """A queue at the brokers."""
        return queue_with_namespace(self.namespace, queue) if isinstance(queue, MessageQueue) else queue

    def queue_without_namespace(self, queue: MessageQueue) -> MessageQueue:
        """A queue as its user knows it."""
        return queue_without_namespace(queue, self.namespace)

    def ext_fields(self) -> dict[str, str]:
        """What every request to a real cluster has, beside its own (NamespaceRpcHook, StreamTypeRPCHook)."""
        return namespace_fields(self.namespace_v2) | ({"ReqT": "0"} if self.enable_stream_request_type else {})

    def build_mq_client_id(self) -> str:
        """``ip@instance[@unit][@STREAM]``; clients with one id share their threads and their rebalance."""
        client_id = mq_client_id(self.client_ip, self.instance_name, self.unit_name)
        return f"{client_id}@STREAM" if self.enable_stream_request_type else client_id


@named_arguments
@dataclass(kw_only=True, eq=False)
class MemberParameters(ClientConfig):
    """What every kind of consumer has beside its client; see ConsumerParameters for what it means."""

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str = ""
    allocate_message_queue_strategy: Strategy = field(default_factory=AllocateMessageQueueAveragely)
    message_queue_listener: MessageQueueListener | None = None
    offset_store: OffsetStore | None = None
    trace_dispatcher: Any = None
    rpc_hook: Any = None

    def check_kinds(self) -> None:
        """Raise ConfigurationError for what Java's compiler refuses: a number, a string, a model, a place to begin, a
        strategy, an offset store or a listener of queues that is none.
        """
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            if parameter.type in ("int", "Milliseconds") and not is_whole_number(value):
                raise ConfigurationError(parameter.name, repr(value), "a whole number is needed")
            if parameter.name in (
                "client_ip",
                "instance_name",
                "unit_name",
                "namespace",
                "namespace_v2",
                "consume_timestamp",
            ) and not (isinstance(value, str) or (value is None and parameter.default in (None, ""))):
                raise ConfigurationError(parameter.name, repr(value), "a string is needed")
        choices: dict[str, type[Enum]] = {"message_model": MessageModel, "consume_from_where": ConsumeFromWhere}
        for name, kind in choices.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                known = ", ".join(f"{kind.__name__}.{each}" for each in kind.__members__)
                raise ConfigurationError(name, repr(value), f"a {kind.__name__} is needed", f"known: {known}")
        strategy = self.allocate_message_queue_strategy
        if strategy is not None and not callable(getattr(strategy, "allocate", None)):
            hint = "give an object, as AllocateMessageQueueAveragely()"
            raise ConfigurationError("allocate_message_queue_strategy", repr(strategy), "a strategy is needed", hint)
        methods = {"offset_store": "load", "message_queue_listener": "message_queue_changed"}
        for name, method in methods.items():
            value = getattr(self, name)
            if value is not None and not callable(getattr(value, method, None)):
                raise ConfigurationError(name, repr(value), f"an object with the method {method} is needed")

    def consume_timestamp_millis(self) -> int:
        """The consume_timestamp as ms since 1970; it names a time of the local zone."""
        wall = parse_consume_timestamp(self.consume_timestamp)
        assert wall is not None
        return local_to_utc(wall)


@named_arguments
@dataclass(kw_only=True, eq=False)
class ConsumerParameters(MemberParameters):
    """The parameters of DefaultMQPushConsumer; all can be set at any time, ranges are checked at start() alone.

    message_model: CLUSTERING shares the queues among the group, BROADCASTING gives every client all.
    consume_from_where, consume_timestamp (``yyyyMMddHHmmss``, local time, default half an hour ago): where a group
    without offsets starts. consume_thread_min: threads of the pool; consume_thread_max is never reached, as in the
    real pool. pull_threshold_for_queue (messages), pull_threshold_size_for_queue (MiB), consume_concurrently_max_span
    (offsets): flow control of one queue; the two for_topic values, -1 for off, are divided among all queues at each
    change of the assignment. pull_interval: ms between two pulls. consume_message_batch_max_size: messages a listener
    gets at most. pull_batch_size: messages a pull brings at most. pull_batch_size_in_bytes goes with the pull, and no
    broker looks at it, as in 5.3.3. max_reconsume_times: -1 is 16, without end in order.
    suspend_current_queue_time_millis: how long an ordered queue rests after a failure. consume_timeout: minutes until a
    message whose listener does not return is given back, as RocketMQ's consumeTimeout, or a timedelta.
    await_termination_millis_when_shutdown: how long shutdown() waits for listeners. The ``pop_`` values,
    trace_dispatcher and adjust_thread_pool_nums_threshold have no effect, the last as in the real client. rpc_hook:
    SessionCredentials that sign what goes to namesrv_addr. start() warns of a parameter that asks for what is not done
    here, in the log ``pyengine.rocketmq``.
    """

    subscription: dict[str, str | MessageSelector | None] = field(default_factory=dict)
    message_listener: MessageListener | None = None
    consume_thread_min: int = defaults.CONSUME_THREADS
    consume_thread_max: int = defaults.CONSUME_THREADS
    adjust_thread_pool_nums_threshold: int = 100000
    consume_concurrently_max_span: int = defaults.CONSUME_CONCURRENTLY_MAX_SPAN
    pull_threshold_for_queue: int = defaults.PULL_THRESHOLD_FOR_QUEUE
    pop_threshold_for_queue: int = 96
    pull_threshold_size_for_queue: int = defaults.PULL_THRESHOLD_SIZE_FOR_QUEUE
    pull_threshold_for_topic: int = -1
    pull_threshold_size_for_topic: int = -1
    pull_interval: Milliseconds = field(default=Milliseconds(0))
    consume_message_batch_max_size: int = defaults.CONSUME_MESSAGE_BATCH_MAX_SIZE
    pull_batch_size: int = defaults.PULL_BATCH_SIZE
    pull_batch_size_in_bytes: int = defaults.PULL_BATCH_SIZE_IN_BYTES
    post_subscription_when_pull: bool = False
    max_reconsume_times: int = -1
    suspend_current_queue_time_millis: Milliseconds = field(default=Milliseconds(defaults.SUSPEND_CURRENT_QUEUE_TIME))
    consume_timeout: int = defaults.CONSUME_TIMEOUT
    pop_invisible_time: Milliseconds = field(default=Milliseconds(60000))
    pop_batch_nums: int = 32
    await_termination_millis_when_shutdown: Milliseconds = field(default=Milliseconds(0))
    client_rebalance: bool = True

    def not_done(self) -> list[tuple[str, str]]:
        """The parameters that are set and ask for what is not done here: (name, what they ask for)."""
        untouched = {each.name: each.default for each in fields(self)}
        done = {"rpc_hook", "use_tls", "ssl_context", "namespace_v2"} if self.namesrv_addr else set()
        return [
            (name, NOT_DONE[name]) for name in NOT_DONE if name not in done and getattr(self, name) != untouched[name]
        ]

    def check_config(self, consumer_group: str | None) -> None:
        """What start() refuses, in the real client's order. Raises MQClientError with its text.

        NullArgumentError if it throws NullPointerException: a consume_timestamp of None. ConfigurationError for what
        Java's compiler refuses: a number, a string, a model, a place to begin, a strategy, an offset store, a listener
        of queues or a subscription that is none.
        """
        self.check_kinds()
        if self.subscription is not None and not isinstance(self.subscription, Mapping):
            raise ConfigurationError("subscription", repr(self.subscription), "a mapping topic -> expression is needed")
        if consumer_group is not None:
            plain_text("consumer_group", consumer_group)
        check_consumer_group(consumer_group)
        values = {java_name(name): getattr(self, name) for name in type(self).__dataclass_fields__}
        check_given(("messageModel", "consumeFromWhere"), values)
        if self.consume_timestamp is None:
            raise NullArgumentError("consume_timestamp", 'Cannot invoke "String.length()" because "text" is null')
        if parse_consume_timestamp(self.consume_timestamp) is None:
            raise MQClientError(
                suggested(
                    "consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received "
                    f"{self.consume_timestamp} "
                )
            )
        check_given(("allocateMessageQueueStrategy", "subscription", "messageListener"), values)
        if not isinstance(self.message_listener, MessageListenerConcurrently | MessageListenerOrderly):
            raise MQClientError(
                suggested("messageListener must be instanceof MessageListenerOrderly or MessageListenerConcurrently")
            )
        check_ranges(values)


@dataclass(eq=False)
class PushConsumerParameters(ConsumerParameters):
    """A push consumer's parameters with its group, its brokers (None: those at namesrv_addr) and its clock."""

    consumer_group: str = "DEFAULT_CONSUMER"
    _: KW_ONLY
    broker: MQClientAPI | None = None
    clock: Clock = field(default=None)  # type: ignore[assignment]


def java_name(name: str) -> str:
    """consume_thread_min -> consumeThreadMin, client_ip -> clientIP."""
    first, *rest = name.split("_")
    return first + "".join(part.upper() if part in ("ip", "tls") else part.capitalize() for part in rest)


def local_to_utc(wall: int) -> int:
    """ms of a local wall clock, read as UTC -> ms since 1970.

    As java.util.GregorianCalendar: a time that summer time leaves out is read by the clock before the change, one that
    comes twice is its second.
    """
    day = 86_400_000
    before, after = (wall - _offset(moment) for moment in (wall - day, wall + day))
    return after if wall - _offset(after) == after else before


def _offset(moment: int) -> int:
    """ms that local time is ahead of UTC."""
    return 1000 * time.localtime(moment // 1000).tm_gmtoff


def default_consume_timestamp(now: int) -> str:
    """Half an hour before ``now`` (ms), local time."""
    return time.strftime("%Y%m%d%H%M%S", time.localtime(now // 1000 - 1800))
