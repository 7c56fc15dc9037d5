"""The keys of policies: the strategies a key takes, each one's fields and types, and their names in XML and TOML.

Both readers (activemq_xml.py, reading.py) and the writer go by these tables; defaults are in policy.py alone.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from pyengine.durations import Milliseconds
from pyengine.topology import policy as model

STRATEGIES: dict[str, dict[str, type]] = {
    "dead_letter_strategy": {
        "shared": model.SharedDeadLetterStrategy,
        "individual": model.IndividualDeadLetterStrategy,
        "discarding": model.DiscardingDeadLetterStrategy,
    },
    "pending_message_limit_strategy": {
        "constant": model.ConstantPendingMessageLimitStrategy,
        "prefetch_rate": model.PrefetchRatePendingMessageLimitStrategy,
    },
    "message_eviction_strategy": {
        "oldest": model.OldestMessageEvictionStrategy,
        "oldest_with_lowest_priority": model.OldestMessageWithLowestPriorityEvictionStrategy,
        "unique_property": model.UniquePropertyMessageEvictionStrategy,
    },
    "slow_consumer_strategy": {
        "abort_slow": model.AbortSlowConsumerStrategy,
        "abort_slow_ack": model.AbortSlowAckConsumerStrategy,
    },
    "subscription_recovery_policy": {
        "fixed_count": model.FixedCountSubscriptionRecoveryPolicy,
        "fixed_sized": model.FixedSizedSubscriptionRecoveryPolicy,
        "last_image": model.LastImageSubscriptionRecoveryPolicy,
        "timed": model.TimedSubscriptionRecoveryPolicy,
        "none": model.NoSubscriptionRecoveryPolicy,
    },
}
DISPATCH_POLICIES = ("simple", "round_robin", "strict_order", "priority", "priority_network", "client_id_filter")
PENDING_QUEUE_POLICIES = {"store": "storeCursor", "vm": "vmQueueCursor", "file": "fileQueueCursor"}
REDELIVERY: dict[str, type] = {
    "maximum_redeliveries": int,
    "initial_redelivery_delay": int,
    "redelivery_delay": int,
    "use_exponential_back_off": bool,
    "back_off_multiplier": float,
    "maximum_redelivery_delay": int,
    "use_collision_avoidance": bool,
    "collision_avoidance_percent": int,
}


def element_name(strategy: type) -> str:
    """The XML element of a strategy."""
    name = strategy.__name__
    return "discarding" if name == "DiscardingDeadLetterStrategy" else name[0].lower() + name[1:]


@cache
def types_of(kind: type) -> dict[str, type]:
    """The plain fields of a model class and their types: bool, int, float or str. Strategies and texts with a closed
    list of answers are not among them."""
    hints = get_type_hints(kind, vars(model) | {"Any": Any})
    found: dict[str, type] = {}
    for item in fields(kind):
        hint = hints[item.name]
        plain = {part for part in get_args(hint) or (hint,) if part is not NoneType}
        if Milliseconds in plain:
            found[item.name] = int
        elif len(plain) == 1 and (only := plain.pop()) in (bool, int, float, str):
            found[item.name] = only
    return found
