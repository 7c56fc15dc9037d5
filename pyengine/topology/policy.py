"""Policy entries: the broker's settings for the destinations that a name or wildcard covers, and their strategies.

Names, defaults and meanings are those of org.apache.activemq.broker.region.policy, in snake_case (spec activemq 3,
2.13, 4.5). Times are milliseconds, or a timedelta; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable
from urllib.parse import parse_qsl

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.matching.selector import Selector
from pyengine._engine.message.envelope import SMALLEST_SIZE
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination, DestinationMap, entry_pattern
from pyengine.durations import Milliseconds
from pyengine.errors import ConfigurationError, SelectorEvaluationError
from pyengine.topology.checked import Checked, Properties, check_selector, refuse_if
from pyengine.topology.limits import destination_problem, group_map_problem, name_problem, text_problem

if TYPE_CHECKING:
    from pyengine._engine.message.message import Message


# ActiveMQPrefetchPolicy's defaults; a durable subscription's depends on optimizedMessageDispatch.
CLIENT_QUEUE_PREFETCH = 1000
CLIENT_BROWSER_PREFETCH = 500
CLIENT_TOPIC_PREFETCH = 32_767
CLIENT_DURABLE_PREFETCHES = (100, 1000)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractDeadLetterStrategy(Properties):
    """Which messages become dead letters.

    process_non_persistent, process_expired: also those. enable_audit: a message id is moved once; the audit remembers
    max_audit_depth ids of each of max_producers_to_audit producers. expiration: life of a dead letter, 0 for ever.
    """

    process_non_persistent: bool = False
    process_expired: bool = True
    enable_audit: bool = True
    expiration: int = 0
    max_producers_to_audit: int = 64
    max_audit_depth: int = 2048


@named_arguments
@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDeadLetterStrategy(AbstractDeadLetterStrategy):
    """All dead letters go to one destination: a queue's name, or a name with its prefix (``topic://Dead``)."""

    dead_letter_queue: str = "ActiveMQ.DLQ"

    def __post_init__(self) -> None:
        Properties.__post_init__(self)
        refuse_if(
            "SharedDeadLetterStrategy.dead_letter_queue", self.dead_letter_queue, name_problem(self.dead_letter_queue)
        )


@named_arguments
@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualDeadLetterStrategy(AbstractDeadLetterStrategy):
    """Each destination has a dead-letter destination of its own: prefix + name (+ ``.`` + subscription) + suffix."""

    queue_prefix: str = "ActiveMQ.DLQ.Queue."
    topic_prefix: str = "ActiveMQ.DLQ.Topic."
    queue_suffix: str = ""
    topic_suffix: str = ""
    use_queue_for_queue_messages: bool = True
    use_queue_for_topic_messages: bool = True
    destination_per_durable_subscriber: bool = False


@named_arguments
@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardingDeadLetterStrategy(AbstractDeadLetterStrategy):
    """Nothing becomes a dead letter."""


DeadLetterStrategy: TypeAlias = SharedDeadLetterStrategy | IndividualDeadLetterStrategy | DiscardingDeadLetterStrategy
DEFAULT_DEAD_LETTER_STRATEGY = SharedDeadLetterStrategy()


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class ConstantPendingMessageLimitStrategy(Properties):
    """A topic consumer may leave ``limit`` messages pending; -1 any number, 0 none beyond its prefetch."""

    limit: int = -1


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class PrefetchRatePendingMessageLimitStrategy(Checked):
    """A topic consumer may leave prefetch * multiplier messages pending, cut to a whole number."""

    multiplier: float = 0.5


PendingMessageLimitStrategy: TypeAlias = ConstantPendingMessageLimitStrategy | PrefetchRatePendingMessageLimitStrategy


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class OldestMessageEvictionStrategy(Properties):
    """Evict the oldest pending message."""

    evict_expired_messages_high_watermark: int = 1000


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class OldestMessageWithLowestPriorityEvictionStrategy(Properties):
    """Evict the oldest of the pending messages with the lowest priority."""

    evict_expired_messages_high_watermark: int = 1000


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class UniquePropertyMessageEvictionStrategy(Properties):
    """Keep the newest message (by timestamp) of each value of a property, evict the others."""

    property_name: str
    evict_expired_messages_high_watermark: int = 1000

    def __post_init__(self) -> None:
        Properties.__post_init__(self)
        wrong = text_problem(self.property_name, "name a property")
        refuse_if("UniquePropertyMessageEvictionStrategy.property_name", self.property_name, wrong)


@runtime_checkable
class EvictionStrategy(Protocol):
    """An eviction strategy of the user's own."""

    def evict_messages(self, messages: Sequence[Message], /) -> Iterable[Message]:
        """Which of the oldest pending messages to discard; at least one of them, else nothing is discarded."""


MessageEvictionStrategy: TypeAlias = (
    OldestMessageEvictionStrategy
    | OldestMessageWithLowestPriorityEvictionStrategy
    | UniquePropertyMessageEvictionStrategy
    | EvictionStrategy
)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AbortSlowConsumerStrategy(Properties):
    """Close consumers that are slow too often (max_slow_count) or for too long (max_slow_duration); -1 switches off.

    abort_connection: end the whole connection instead. check_period: how often it looks.
    """

    max_slow_count: int = -1
    max_slow_duration: Milliseconds = field(default=Milliseconds(30_000))
    check_period: Milliseconds = field(default=Milliseconds(30_000))
    abort_connection: bool = False
    ignore_network_consumers: bool = True


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AbortSlowAckConsumerStrategy(AbortSlowConsumerStrategy):
    """A consumer is slow when its last acknowledgement is older than max_time_since_last_ack.

    ignore_idle_consumers: one that holds nothing is not.
    """

    max_slow_duration: Milliseconds = field(default=Milliseconds(30_000))
    check_period: Milliseconds = field(default=Milliseconds(30_000))
    max_time_since_last_ack: Milliseconds = field(default=Milliseconds(30_000))
    ignore_idle_consumers: bool = True


SlowConsumerStrategy: TypeAlias = AbortSlowConsumerStrategy | AbortSlowAckConsumerStrategy


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class FixedCountSubscriptionRecoveryPolicy(Properties):
    """A retroactive consumer gets the last ``maximum_size`` messages."""

    maximum_size: int = 100


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class FixedSizedSubscriptionRecoveryPolicy(Properties):
    """A retroactive consumer gets the last messages that fit ``maximum_size`` bytes."""

    maximum_size: int = 65_536


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class LastImageSubscriptionRecoveryPolicy:
    """A retroactive consumer gets the last message."""


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class TimedSubscriptionRecoveryPolicy(Properties):
    """A retroactive consumer gets the messages of the last ``recover_duration`` ms, counted in whole seconds."""

    recover_duration: Milliseconds = field(default=Milliseconds(60_000))


@runtime_checkable
class MessageQuery(Protocol):
    """Where a query-based policy gets its messages."""

    def query(self, destination: Destination, /) -> Iterable[Message]:
        """The messages for a new retroactive consumer, in order."""

    def validate_update(self, message: Message, /) -> bool:
        """False drops a message that is sent."""


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class QueryBasedSubscriptionRecoveryPolicy(Checked):
    """A retroactive consumer gets what the query answers."""

    query: MessageQuery


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class NoSubscriptionRecoveryPolicy:
    """A retroactive consumer gets nothing old."""


SubscriptionRecoveryPolicy: TypeAlias = (
    FixedCountSubscriptionRecoveryPolicy
    | FixedSizedSubscriptionRecoveryPolicy
    | LastImageSubscriptionRecoveryPolicy
    | TimedSubscriptionRecoveryPolicy
    | QueryBasedSubscriptionRecoveryPolicy
    | NoSubscriptionRecoveryPolicy
)
DispatchPolicyName = Literal[
    "simple", "round_robin", "strict_order", "priority", "priority_network", "client_id_filter"
]


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class Policy(Properties):
    """A policyEntry: broker settings for the destinations a name or wildcard covers (spec activemq 4.3, 4.5).

    destination: a name, wildcard or composite, of a queue without a prefix (``topic://Prices.>``). Attribute names are
    the broker's in snake_case and mean what they mean there. max_page_size None removes the paging window, which the
    broker cannot. message_group_map_factory_type: "cached" (1024 groups), "simple" or "bucket", with the broker's
    options as a query (``cached?cacheSize=5000``, ``bucket?bucketCount=64``). dead_letter_strategy None: nothing
    becomes a dead letter. dispatch_policy: the order in which a topic serves its consumers; queues ignore it.
    pending_queue_policy: "store" keeps persistent and other messages of a queue in two cursors, whose order among each
    other is not that of sending; "vm" and "file" keep all in one. selector_errors: what a selector that cannot be
    evaluated does to a message: "no_match" (default), or "exact": as in the broker, consumers behind that one of a
    topic do not get it, and a queue strands the page of the round. expire_messages_period: how often (ms, 0 never) a
    queue looks for expired messages, for which it pages in up to max_expire_page_size. time_before_dispatch_starts: ms.
    Raises ConfigurationError for a value of another type or an unknown choice.
    """

    destination: str
    all_consumers_exclusive_by_default: bool = False
    consumers_before_dispatch_starts: int = 0
    lazy_dispatch: bool = False
    max_browse_page_size: int = 400
    max_page_size: int | None = 200
    message_group_map_factory_type: str = "cached"
    prioritized_messages: bool = False
    queue_prefetch: int = 1000
    strict_order_dispatch: bool = False
    time_before_dispatch_starts: Milliseconds = field(default=Milliseconds(0))
    use_consumer_priority: bool = True
    use_prefetch_extension: bool = True
    advisory_for_consumed: bool = False
    advisory_for_delivery: bool = False
    advisory_for_discarding_messages: bool = False
    advisory_for_slow_consumers: bool = False
    always_retroactive: bool = False
    dead_letter_strategy: DeadLetterStrategy | None = DEFAULT_DEAD_LETTER_STRATEGY
    dispatch_policy: DispatchPolicyName = "simple"
    durable_topic_prefetch: int = 100
    enable_audit: bool = True
    expire_messages_period: Milliseconds = field(default=Milliseconds(30_000))
    gc_inactive_destinations: bool = False
    inactive_timeout_before_gc: Milliseconds = field(default=Milliseconds(60_000))
    max_audit_depth: int = 10_000
    max_expire_page_size: int = 400
    max_producers_to_audit: int = 64
    message_eviction_strategy: MessageEvictionStrategy = OldestMessageEvictionStrategy()
    minimum_message_size: int = SMALLEST_SIZE
    pending_message_limit_strategy: PendingMessageLimitStrategy | None = None
    pending_queue_policy: Literal["store", "vm", "file"] = "store"
    persist_jms_redelivered: bool = False
    queue_browser_prefetch: int = 500
    send_advisory_if_no_consumers: bool = False
    slow_consumer_strategy: SlowConsumerStrategy | None = None
    subscription_recovery_policy: SubscriptionRecoveryPolicy | None = None
    topic_prefetch: int = 32_767
    selector_errors: Literal["no_match", "exact"] = "no_match"

    def __post_init__(self) -> None:
        Properties.__post_init__(self)
        if self.destination:  # a default entry has none
            refuse_if("Policy.destination", self.destination, destination_problem(self.destination))
        group_map = self.message_group_map_factory_type
        refuse_if("Policy.message_group_map_factory_type", group_map, group_map_problem(group_map))

    def prefetch_of(self, asked: int, kind: str = "queue", *, browser: bool = False, durable: bool = False) -> int:
        """The prefetch that counts: this entry's where ``asked`` is the client's default (spec activemq 2.4).

        kind: of the destination. durable: a durable subscription, whose two defaults count alike.
        """
        if browser:
            return self.queue_browser_prefetch if asked == CLIENT_BROWSER_PREFETCH else asked
        if kind.endswith("queue"):
            return self.queue_prefetch if asked == CLIENT_QUEUE_PREFETCH else asked
        if durable:
            return self.durable_topic_prefetch if asked in CLIENT_DURABLE_PREFETCHES else asked
        return self.topic_prefetch if asked == CLIENT_TOPIC_PREFETCH else asked

    @property
    def group_map(self) -> tuple[str, int]:
        """("cached", cache size), ("bucket", bucket count) or ("simple", 0)."""
        kind, _, query = self.message_group_map_factory_type.partition("?")
        options = dict(parse_qsl(query))
        match kind:
            case "cached":
                return kind, int(options.get("cacheSize", 1024))
            case "bucket":
                return kind, int(options.get("bucketCount", 1024))
            case _:
                return kind, 0


@named_arguments
@frozen
@dataclass(frozen=True)
class PolicyMap(Checked):
    """Policy entries and which of them counts for a destination.

    default: the defaultEntry, for destinations that no entry covers; None: the broker without a policy, which is not
    the same as an entry with nothing but defaults (no audit, no limit for browsers).
    """

    entries: tuple[Policy, ...] = ()
    default: Policy | None = None

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for place, entry in enumerate(self.entries):
            wrong = text_problem(entry.destination, "name a destination, > for all, or make it the default")
            refuse_if(f"PolicyMap.entries[{place}].destination", entry.destination, wrong)

    def policy_of(self, destination: Destination) -> Policy | None:
        """The entry that applies to a destination: the most specific one, whole; nothing is merged (4.3)."""
        found = self._entries.get(destination)
        return self.default if found is None else found

    @cached_property
    def _entries(self) -> DestinationMap[Policy]:
        return DestinationMap({entry_pattern(policy.destination): policy for policy in self.entries})


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class FilteredDestination(Checked):
    """Where a composite destination forwards what a selector matches; without a selector nothing does."""

    destination: str
    selector: str = ""

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_if("FilteredDestination.destination", self.destination, destination_problem(self.destination))
        check_selector(self)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class VirtualTopic(Checked):
    """Messages to a topic that ``name`` covers are copied to the queues prefix + topic + postfix (4.4).

    Only queues that exist get a copy. selector_aware: and only if a consumer of the queue has a selector that matches.
    """

    name: str = ">"
    prefix: str = "Consumer.*."
    postfix: str = ""
    selector_aware: bool = False
    local: bool = False
    set_original_destination: bool = True

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_if("VirtualTopic.name", self.name, name_problem(self.name))


DEFAULT_VIRTUAL_TOPIC = VirtualTopic("VirtualTopic.>")


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class CompositeQueue(Checked):
    """A queue that forwards to others. forward_only: nothing stays in it. send_when_not_matched: but what no filter
    matched does. forward_to: destinations as texts (queues without a prefix), or filtered ones."""

    name: str
    forward_to: tuple[FilteredDestination | str, ...] = ()
    forward_only: bool = True
    send_when_not_matched: bool = False

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        kind = type(self).__name__
        refuse_if(f"{kind}.name", self.name, name_problem(self.name))
        for place, target in enumerate(self.forward_to):
            if isinstance(target, str):
                refuse_if(f"{kind}.forward_to[{place}]", target, destination_problem(target))


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class CompositeTopic(CompositeQueue):
    """A topic that forwards to others; the rules are those of CompositeQueue."""


VirtualDestination: TypeAlias = VirtualTopic | CompositeQueue | CompositeTopic


@named_arguments
@frozen
@dataclass(frozen=True)
class RedeliveryPlugin(Checked):
    """Send poison messages again after a delay, instead of to the dead-letter destination (2.13).

    policies: (destination or wildcard, policy) pairs, the most specific counts; default: where none applies; None:
    fallback_to_dead_letter decides. send_to_dlq_if_max_retries_exceeded False drops what has used up its redeliveries.
    The initial delay and the delay of a policy are at least 1000 ms.
    """

    policies: tuple[tuple[str, RedeliveryPolicy], ...] = ()
    default: RedeliveryPolicy | None = None
    send_to_dlq_if_max_retries_exceeded: bool = True
    fallback_to_dead_letter: bool = True

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for place, (name, _) in enumerate(self.policies):
            refuse_if(f"RedeliveryPlugin.policies[{place}][0]", name, name_problem(name))

    def policy_of(self, destination: Destination) -> RedeliveryPolicy | None:
        """The policy that applies to a destination, or None."""
        found = self._entries.get(destination)
        return self.default if found is None else found

    @cached_property
    def _entries(self) -> DestinationMap[RedeliveryPolicy]:
        return DestinationMap({entry_pattern(name): policy for name, policy in self.policies})


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class TimeStampingPlugin(Checked):
    """Give each message the broker's time, and let its time to live begin then (timeStampingBrokerPlugin).

    zero_expiration_override: ms of life of a message that has none, 0 none. ttl_ceiling: most ms of life, 0 any.
    future_only: not where the message would expire earlier. process_network_messages: those of other brokers too.
    """

    zero_expiration_override: int = 0
    ttl_ceiling: int = 0
    future_only: bool = False
    process_network_messages: bool = False

    def stamp(self, timestamp: int, expiration: int, now: int) -> tuple[int, int]:
        """A message's time and end, ms, as it has them and as it gets them."""
        life = expiration - timestamp if expiration > 0 else self.zero_expiration_override
        if 0 < self.ttl_ceiling < life:
            life = self.ttl_ceiling
        if self.future_only and life + now <= expiration:
            return timestamp, expiration
        return now, life + now if life > 0 else expiration


@frozen
@dataclass(frozen=True, slots=True)
class ForcePersistencyModePlugin(Checked):
    """Make all messages persistent, or none (forcePersistencyModeBrokerPlugin). persistence_flag: whether they are."""

    persistence_flag: bool = False


@frozen
@dataclass(frozen=True)
class DiscardingPlugin(Checked):
    """Drop messages instead of making them dead letters, regardless of the strategies (discardingDLQBrokerPlugin).

    drop_all: of every destination; else of temporary topics and queues, as the two switches say, and of destinations
    whose whole name matches one of the regular expressions of drop_only, which blanks part. before_redelivery: the
    redelivery plugin never sees what is dropped: so it is where this plugin stands behind that one in a file.
    Raises ConfigurationError for an expression that Java refuses.
    """

    drop_all: bool = True
    drop_temporary_topics: bool = True
    drop_temporary_queues: bool = True
    drop_only: str = ""
    before_redelivery: bool = False

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for expression in self._expressions:
            try:
                expression.matches({"name": ""})
            except SelectorEvaluationError as error:
                raise ConfigurationError("DiscardingPlugin.drop_only", self.drop_only, error.problem) from error

    def drops(self, destination: Destination) -> bool:
        """Whether a message of this destination is dropped."""
        if self.drop_all:
            return True
        if destination.is_temporary:
            by_kind = {"temp-topic": self.drop_temporary_topics, "temp-queue": self.drop_temporary_queues}
            if by_kind[destination.kind]:
                return True
        return any(each.matches({"name": destination.name}) for each in self._expressions)

    @cached_property
    def _expressions(self) -> tuple[Selector, ...]:
        quoted = (part.replace("'", "''") for part in self.drop_only.split(" ") if part)
        return tuple(Selector(f"REGEX('^(?:{part})$', name)") for part in quoted)
