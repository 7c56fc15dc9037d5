"""Traps of topics in one policy entry: pending limits, eviction, slow consumers that go unnoticed, recovery."""

from __future__ import annotations

from collections.abc import Iterator

from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.backlog.lint.rules.entries import Entry
from pyengine.topology import Policy
from pyengine.topology.policy import (
    AbortSlowAckConsumerStrategy,
    AbortSlowConsumerStrategy,
    OldestMessageEvictionStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    PrefetchRatePendingMessageLimitStrategy,
    UniquePropertyMessageEvictionStrategy,
)


def eviction_never_asked(entry: Entry) -> Iterator[Finding]:
    """eviction_never_asked: an eviction strategy, and no limit that would ask it."""
    strategy = entry.policy.message_eviction_strategy
    if entry.for_topics and not isinstance(strategy, OldestMessageEvictionStrategy) and entry.pending_limit <= 0:
        yield entry.trap(
            "eviction_never_asked",
            Severity.WARNING,
            (
                say(
                    "messageEvictionStrategy {name}, pending limit {limit}",
                    name=type(strategy).__name__,
                    limit="0" if entry.pending_limit == 0 else say("none"),
                ),
            ),
            say(
                "It is asked only when more messages are pending than a positive limit. Add "
                '<constantPendingMessageLimitStrategy limit="1000"/>.'
            ),
            "TopicSubscription.add",
        )


def eviction_surprises(entry: Entry) -> Iterator[Finding]:
    """eviction_drops_others: strategies that discard more, or others, than their names say."""
    if not entry.for_topics or entry.pending_limit <= 0:
        return
    match entry.policy.message_eviction_strategy:
        case UniquePropertyMessageEvictionStrategy(name):
            yield entry.trap(
                "eviction_drops_others",
                Severity.INFO,
                (say("uniquePropertyMessageEvictionStrategy, propertyName {name}", name=name),),
                say(
                    "One round keeps the newest of each {name} and discards all others, every message "
                    "without the property included.",
                    name=name,
                ),
                "UniquePropertyMessageEvictionStrategy",
            )
        case OldestMessageWithLowestPriorityEvictionStrategy():
            yield entry.trap(
                "eviction_drops_others",
                Severity.INFO,
                (say("oldestMessageWithLowestPriorityEvictionStrategy"),),
                say(
                    "The message that just came is a candidate: if its priority is the lowest, it is the one discarded."
                ),
                "OldestMessageWithLowestPriorityEvictionStrategy",
            )


def limit_zero(entry: Entry) -> Iterator[Finding]:
    """limit_zero_drops: a pending limit of 0 drops new messages without a trace."""
    if entry.for_topics and entry.pending_limit == 0:
        strategy = entry.policy.pending_message_limit_strategy
        how = (
            say(
                "prefetchRatePendingMessageLimitStrategy: topicPrefetch {prefetch} x {rate} is cut to 0",
                prefetch=entry.policy.topic_prefetch,
                rate=strategy.multiplier,
            )
            if isinstance(strategy, PrefetchRatePendingMessageLimitStrategy)
            else say("constantPendingMessageLimitStrategy limit 0")
        )
        yield entry.trap(
            "limit_zero_drops",
            Severity.WARNING,
            (how,),
            say(
                "What comes while a consumer's prefetch is full is dropped silently: no discard counter, "
                "no advisory, no dead letter. Give a limit of 1 or more to see what is lost, or -1 to "
                "keep all."
            ),
            "TopicSubscription.add",
        )


def limit_behind_prefetch(entry: Entry) -> Iterator[Finding]:
    """limit_behind_prefetch: the limit counts only what is beyond a large prefetch."""
    limit, prefetch = entry.pending_limit, entry.policy.topic_prefetch
    if entry.for_topics and 0 < limit < prefetch:
        yield entry.trap(
            "limit_behind_prefetch",
            Severity.INFO,
            (say("pending limit {limit}, topicPrefetch {prefetch}", limit=limit, prefetch=prefetch),),
            say(
                "A slow consumer first gets {prefetch} messages into its own memory; only then the limit "
                "counts, so what it sees is {prefetch} messages old. For newest values set topicPrefetch "
                "to 1 .. 100.",
                prefetch=prefetch,
            ),
            "TopicSubscription.add",
        )


def slow_never_noticed(entry: Entry) -> Iterator[Finding]:
    """slow_never_noticed: a strategy or advisory for slow consumers that no topic consumer can ever become."""
    policy, limit = entry.policy, entry.pending_limit
    asked = _asked_when_slow(policy)
    if not entry.for_topics or not asked:
        return
    if policy.topic_prefetch == 1:
        yield entry.trap(
            "slow_never_noticed",
            Severity.WARNING,
            (say("{asked}, topicPrefetch 1", asked=asked),),
            say(
                "A topic consumer with a prefetch of 1 is never marked slow. Use a prefetch of 2 or "
                "more, or abortSlowAckConsumerStrategy, which looks at acknowledgements."
            ),
            "TopicSubscription.add",
        )
    elif 0 <= limit <= policy.topic_prefetch:
        yield entry.trap(
            "slow_never_noticed",
            Severity.WARNING,
            (
                say(
                    "{asked}, pending limit {limit}, topicPrefetch {prefetch}",
                    asked=asked,
                    limit=limit,
                    prefetch=policy.topic_prefetch,
                ),
            ),
            say(
                "A consumer is marked slow when more than its prefetch is pending, which a limit up to "
                "the prefetch prevents. Make the limit larger than the prefetch, or use "
                "abortSlowAckConsumerStrategy."
            ),
            "TopicSubscription.add",
        )


def _asked_when_slow(policy: Policy) -> Said | None:
    strategy = policy.slow_consumer_strategy
    if isinstance(strategy, AbortSlowConsumerStrategy) and not isinstance(strategy, AbortSlowAckConsumerStrategy):
        return say("abortSlowConsumerStrategy")
    return say("advisoryForSlowConsumers true") if policy.advisory_for_slow_consumers else None


def slow_subscriber_blocks(entry: Entry) -> Iterator[Finding]:
    """slow_subscriber_blocks: no pending limit, no abort, and producers that wait when memory is full."""
    policy = entry.policy
    if entry.kind != "topic" or entry.pending_limit >= 0 or policy.slow_consumer_strategy is not None:
        return
    if entry.left_out.get("producerFlowControl", "true").strip().lower() not in ("false", "off", "no", "0"):
        memory = entry.left_out.get("memoryLimit")
        yield entry.trap(
            "slow_subscriber_blocks",
            Severity.WARNING if memory else Severity.INFO,
            (
                say("pending messages without a limit, no slowConsumerStrategy, producerFlowControl true"),
                *((say("memoryLimit {memory}", memory=memory),) if memory else ()),
            ),
            say(
                "One slow consumer fills the memory, then the producers wait and every other consumer "
                "with them. Where messages may be dropped (prices) add a pending limit and an eviction "
                "strategy; where they may not (orders) use a queue or a durable subscription."
            ),
            "Topic.send, TopicSubscription.add",
        )


def retroactive(entry: Entry) -> Iterator[Finding]:
    """retroactive_recovers_nothing, recovery_not_used: the two halves of recovery, one without the other."""
    policy = entry.policy
    if not entry.for_topics:
        return
    if policy.always_retroactive and policy.subscription_recovery_policy is None:
        yield entry.trap(
            "retroactive_recovers_nothing",
            Severity.WARNING,
            (say("alwaysRetroactive true, no subscriptionRecoveryPolicy"),),
            say(
                "Nothing old is kept, so nothing is recovered (but messages sent with ActiveMQ.Retain). "
                "Add for instance <lastImageSubscriptionRecoveryPolicy/>."
            ),
            "Topic, RetainedMessageSubscriptionRecoveryPolicy",
        )
    elif policy.subscription_recovery_policy is not None and not policy.always_retroactive:
        yield entry.trap(
            "recovery_not_used",
            Severity.INFO,
            (say("{name}, alwaysRetroactive false", name=type(policy.subscription_recovery_policy).__name__),),
            say(
                "Only consumers that ask for it (?consumer.retroactive=true) get what is kept; it takes memory for all."
            ),
            "Topic.addSubscription",
        )


RULES = (
    eviction_never_asked,
    eviction_surprises,
    limit_zero,
    limit_behind_prefetch,
    slow_never_noticed,
    slow_subscriber_blocks,
    retroactive,
)
