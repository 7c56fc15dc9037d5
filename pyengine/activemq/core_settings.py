"""What a policy says to the core: the settings of its queues, the strategies of its topics."""

from __future__ import annotations

from typing import Any

from pyengine._engine.activemq.topic.eviction_strategies import (
    ConstantPendingLimit,
    CustomEviction,
    Eviction,
    LowestPriorityEviction,
    OldestEviction,
    PendingLimit,
    PrefetchRatePendingLimit,
    UniquePropertyEviction,
)
from pyengine._engine.activemq.topic.recovery_policies import (
    FixedCountRecovery,
    FixedSizedRecovery,
    LastImageRecovery,
    NoRecovery,
    QueryRecovery,
    Recovery,
    TimedRecovery,
)
from pyengine.destinations import Destination
from pyengine.topology.policy import (
    ConstantPendingMessageLimitStrategy,
    FixedCountSubscriptionRecoveryPolicy,
    FixedSizedSubscriptionRecoveryPolicy,
    LastImageSubscriptionRecoveryPolicy,
    OldestMessageEvictionStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    Policy,
    QueryBasedSubscriptionRecoveryPolicy,
    TimedSubscriptionRecoveryPolicy,
    UniquePropertyMessageEvictionStrategy,
)

NO_POLICY = Policy("")


def queue_settings(policy: Policy | None, cursor: str = "store") -> dict[str, Any]:
    """What a policy says to the core's queue; without one browsers see everything.

    cursor: what its broker's queues have where the policy asks for no other (StoreQueueCursor): "store", or "memory" if
    the broker keeps nothing; "single" in a temporary queue.
    """
    settings = policy or NO_POLICY
    return {
        "cursor": cursor if settings.pending_queue_policy == "store" else "single",
        "max_page_size": settings.max_page_size,
        "max_browse_page_size": None if policy is None else policy.max_browse_page_size,
        "use_consumer_priority": settings.use_consumer_priority,
        "strict_order_dispatch": settings.strict_order_dispatch,
        "prioritized_messages": settings.prioritized_messages,
        "lazy_dispatch": settings.lazy_dispatch,
        "use_prefetch_extension": settings.use_prefetch_extension,
        "all_consumers_exclusive_by_default": settings.all_consumers_exclusive_by_default,
        "message_group_map_factory_type": settings.message_group_map_factory_type,
        "consumers_before_dispatch_starts": settings.consumers_before_dispatch_starts,
        "time_before_dispatch_starts": settings.time_before_dispatch_starts,
        "selector_errors": settings.selector_errors,
    }


def limit_of(policy: Policy | None) -> PendingLimit | None:
    """The core's pending limit of a policy."""
    strategy = None if policy is None else policy.pending_message_limit_strategy
    if strategy is None:
        return None
    if isinstance(strategy, ConstantPendingMessageLimitStrategy):
        return ConstantPendingLimit(strategy.limit)
    return PrefetchRatePendingLimit(strategy.multiplier)


def eviction_of(policy: Policy | None) -> Eviction | None:
    """The core's eviction strategy of a policy."""
    if policy is None:
        return None
    strategy = policy.message_eviction_strategy
    watermark = getattr(strategy, "evict_expired_messages_high_watermark", 1000)
    if isinstance(strategy, OldestMessageEvictionStrategy):
        return OldestEviction(high_watermark=watermark)
    if isinstance(strategy, OldestMessageWithLowestPriorityEvictionStrategy):
        return LowestPriorityEviction(high_watermark=watermark)
    if isinstance(strategy, UniquePropertyMessageEvictionStrategy):
        return UniquePropertyEviction(strategy.property_name, high_watermark=watermark)
    return CustomEviction(strategy.evict_messages, high_watermark=watermark)


def recovery_of(policy: Policy | None, destination: Destination) -> Recovery | None:
    """The core's recovery policy of a policy."""
    given = None if policy is None else policy.subscription_recovery_policy
    if given is None:
        return None
    if isinstance(given, FixedCountSubscriptionRecoveryPolicy):
        return FixedCountRecovery(given.maximum_size)
    if isinstance(given, FixedSizedSubscriptionRecoveryPolicy):
        return FixedSizedRecovery(given.maximum_size)
    if isinstance(given, LastImageSubscriptionRecoveryPolicy):
        return LastImageRecovery()
    if isinstance(given, TimedSubscriptionRecoveryPolicy):
        return TimedRecovery(given.recover_duration)
    if isinstance(given, QueryBasedSubscriptionRecoveryPolicy):
        query = given.query
        return QueryRecovery(lambda name: query.query(destination), query.validate_update)
    return NoRecovery()
