"""Traps in one policy entry: settings that do nothing, or something else than their names say.

Each rule has the class of ActiveMQ that decides it. Rules about who consumes with which selector need consumers: they
are in queues.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal

from pyengine._engine.activemq.topic.eviction_strategies import maximum_pending_messages
from pyengine.activemq.core_settings import limit_of
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.dataclass import dataclass
from pyengine.destinations import KINDS, entry_pattern
from pyengine.topology import Policy
from pyengine.topology.policy import (
    AbortSlowAckConsumerStrategy,
    DiscardingDeadLetterStrategy,
)
from pyengine.topology.schema import java_name

DEFAULTS = Policy("")
QUEUE_ONLY = (
    "all_consumers_exclusive_by_default",
    "consumers_before_dispatch_starts",
    "lazy_dispatch",
    "max_browse_page_size",
    "message_group_map_factory_type",
    "queue_browser_prefetch",
    "queue_prefetch",
    "strict_order_dispatch",
    "time_before_dispatch_starts",
    "use_consumer_priority",
)
TOPIC_ONLY = (
    "always_retroactive",
    "dispatch_policy",
    "durable_topic_prefetch",
    "message_eviction_strategy",
    "pending_message_limit_strategy",
    "subscription_recovery_policy",
    "topic_prefetch",
)
PREFETCHES = {
    "queue": ("queue_prefetch", "queue_browser_prefetch"),
    "topic": ("topic_prefetch", "durable_topic_prefetch"),
}
WIDE = 100  # a prefetch beyond which one consumer's buffer hides work from the others


@dataclass(frozen=True, slots=True)
class Entry:
    """A policy entry as a file has it. left_out: attributes that pyengine lists and does not model, by name."""

    policy: Policy
    where: Said
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> Literal["queue", "topic", "any"]:
        """What it is for; the default entry is for both."""
        if not self.policy.destination:
            return "any"
        return "topic" if entry_pattern(self.policy.destination).kind.endswith("topic") else "queue"

    @property
    def for_queues(self) -> bool:
        return self.kind != "topic"

    @property
    def for_topics(self) -> bool:
        return self.kind != "queue"

    @property
    def pending_limit(self) -> int:
        """Messages a topic consumer with the entry's prefetch may leave pending; -1: any number."""
        return maximum_pending_messages(limit_of(self.policy), self.policy.topic_prefetch)

    def trap(self, code: str, severity: Severity, evidence: tuple[Said, ...], advice: Said, source: str) -> Finding:
        return Finding(code, severity, self.where, evidence, advice, source)


def wrong_kind(entry: Entry) -> Iterator[Finding]:
    """wrong_kind: settings for topics in an entry for queues, or the other way round: they have no effect."""
    if entry.kind == "any":
        return
    foreign = TOPIC_ONLY if entry.kind == "queue" else QUEUE_ONLY
    given = [java_name(key) for key in foreign if getattr(entry.policy, key) != getattr(DEFAULTS, key)]
    if given:
        yield entry.trap(
            "wrong_kind",
            Severity.WARNING,
            (
                say("{names}: only topics have this", names=", ".join(given))
                if entry.kind == "queue"
                else say("{names}: only queues have this", names=", ".join(given)),
            ),
            say(
                "It has no effect here. Move it to an entry of the other kind; for the order in which a "
                "queue serves its consumers there are strictOrderDispatch and useConsumerPriority."
            ),
            "PolicyEntry.configure",
        )


def prefix_in_name(entry: Entry) -> Iterator[Finding]:
    """prefix_in_name: an entry for queue="queue://A", whose name has the prefix, and so no queue that people use."""
    name = entry_pattern(entry.policy.destination).name
    if "," not in name and name.startswith(tuple(f"{kind}://" for kind in KINDS)):
        yield entry.trap(
            "prefix_in_name",
            Severity.WARNING,
            (say("the name is {name}, prefix included", name=name),),
            say("It covers no destination that is written as usual, and counts for none. Leave the prefix out."),
            "DestinationMapEntry.setQueue, ActiveMQDestination.setPhysicalName",
        )


def prefetch_below_zero(entry: Entry) -> Iterator[Finding]:
    """prefetch_below_zero: not without a limit, as elsewhere: consumers with the client's default get nothing."""
    keys = [key for kind in PREFETCHES if entry.kind in (kind, "any") for key in PREFETCHES[kind]]
    below = {java_name(key): value for key in keys if (value := getattr(entry.policy, key)) < 0}
    if below:
        yield entry.trap(
            "prefetch_below_zero",
            Severity.ERROR,
            tuple(say("{name} {value}", name=name, value=value) for name, value in below.items()),
            say(
                "A consumer with the client's default gets it, counts as full and is given nothing. Give a number of "
                "messages, 0 for consumers that pull."
            ),
            "PrefetchSubscription.isFull, TopicSubscription.isFull",
        )


def exclusive_by_default(entry: Entry) -> Iterator[Finding]:
    """exclusive_by_default: every queue of a wildcard has one working consumer."""
    if entry.for_queues and entry.policy.all_consumers_exclusive_by_default:
        yield entry.trap(
            "exclusive_by_default",
            Severity.WARNING,
            (say("allConsumersExclusiveByDefault true"),),
            say(
                "Of each queue only one consumer works, the first that came or the one with the higher "
                "priority; what its selector refuses waits for ever. When a consumer that asked for "
                "exclusive=true itself leaves, the queue is exclusive no longer until another consumer "
                "comes. Use it only where order needs it."
            ),
            "Queue.addSubscription, QueueDispatchSelector",
        )


def strict_order(entry: Entry) -> Iterator[Finding]:
    """strict_order_fills_one: strictOrderDispatch serves the first consumer to its prefetch, groups included."""
    policy = entry.policy
    if not (entry.for_queues and policy.strict_order_dispatch):
        return
    if policy.queue_prefetch > WIDE:
        yield entry.trap(
            "strict_order_fills_one",
            Severity.WARNING,
            (say("strictOrderDispatch true, queuePrefetch {prefetch}", prefetch=policy.queue_prefetch),),
            say(
                "It does not order messages: it ends the rotation of consumers. The first one gets "
                "everything until it holds {prefetch} messages. Set queuePrefetch to 1, or use an "
                "exclusive consumer.",
                prefetch=policy.queue_prefetch,
            ),
            "Queue.doActualDispatch",
        )
    if policy.message_group_map_factory_type != "cached" or policy.consumers_before_dispatch_starts:
        yield entry.trap(
            "strict_order_and_groups",
            Severity.WARNING,
            (
                say(
                    "strictOrderDispatch true with message groups: messageGroupMapFactoryType {map}, "
                    "consumersBeforeDispatchStarts {count}",
                    map=policy.message_group_map_factory_type,
                    count=policy.consumers_before_dispatch_starts,
                ),
            ),
            say(
                "Without rotation the first consumer that is not full becomes the owner of every new "
                "group. Remove strictOrderDispatch: groups keep their order by themselves."
            ),
            "Queue.doActualDispatch, Queue.assignMessageGroup",
        )


def group_map(entry: Entry) -> Iterator[Finding]:
    """group_map_forgets, few_buckets: a group map that is smaller than the broker's default."""
    kind, size = entry.policy.group_map
    if not entry.for_queues or entry.policy.message_group_map_factory_type == "cached":
        return
    if kind == "cached" and size < 1024:
        yield entry.trap(
            "group_map_forgets",
            Severity.WARNING,
            (say("messageGroupMapFactoryType cached, cacheSize {size}", size=size),),
            say(
                "With more than {size:group|groups} at once the least recently used one loses its owner "
                "although it is alive: two consumers then work on one group. Raise cacheSize above the "
                "number of groups, or use simple.",
                size=size,
            ),
            "CachedMessageGroupMap",
        )
    if kind == "bucket" and size < 64:
        yield entry.trap(
            "few_buckets",
            Severity.WARNING,
            (say("messageGroupMapFactoryType bucket, bucketCount {size}", size=size),),
            say(
                "A bucket has one owner: at most {size:consumer|consumers} can work, and closing one group "
                "releases all groups of its bucket. Use many times more buckets than consumers.",
                size=size,
            ),
            "MessageGroupHashBucket",
        )


def small_page(entry: Entry) -> Iterator[Finding]:
    """small_page: a paging window below the default: a few messages that no consumer takes hide all others."""
    page = entry.policy.max_page_size
    if entry.for_queues and page is not None and page < 200:
        yield entry.trap(
            "small_page",
            Severity.WARNING,
            (say("maxPageSize {page}", page=page),),
            say(
                "The broker looks at {page:message|messages} at a time: as many that no selector or group owner "
                "takes hide everything behind them, and a consumer is never sent more than {page} in one "
                "round. Leave it at 200 or raise it.",
                page=page,
            ),
            "Queue.doPageInForDispatch",
        )


def start_delay(entry: Entry) -> Iterator[Finding]:
    """start_not_guaranteed, start_waits: what delays the first dispatch, and what does not."""
    policy = entry.policy
    needed, wait = policy.consumers_before_dispatch_starts, policy.time_before_dispatch_starts
    if entry.for_queues and needed > 0 and wait <= 0:
        yield entry.trap(
            "start_not_guaranteed",
            Severity.WARNING,
            (say("consumersBeforeDispatchStarts {needed}, timeBeforeDispatchStarts {wait}", needed=needed, wait=wait),),
            say(
                "It waits for {needed:consumer|consumers}, but only for one second (timeBeforeDispatchStarts 0 "
                "means 1000 ms), then starts with those there are. Set timeBeforeDispatchStarts to how "
                "long consumers need to come.",
                needed=needed,
            ),
            "Queue.iterate",
        )
    if entry.for_queues and wait > 60_000:
        yield entry.trap(
            "start_waits",
            Severity.WARNING,
            (say("timeBeforeDispatchStarts {wait} ms", wait=wait),),
            say(
                "Whenever a queue has been without consumers, the first one that comes back waits "
                "{seconds} s before it is sent anything, a restart included.",
                seconds=wait // 1000,
            ),
            "Queue.iterate",
        )


def prefetch_extension(entry: Entry) -> Iterator[Finding]:
    """prefetch_extension_off: a transaction or client acknowledgement larger than the prefetch never ends."""
    policy = entry.policy
    if not policy.use_prefetch_extension:
        yield entry.trap(
            "prefetch_extension_off",
            Severity.WARNING if policy.queue_prefetch <= WIDE and entry.for_queues else Severity.INFO,
            (say("usePrefetchExtension false, queuePrefetch {prefetch}", prefetch=policy.queue_prefetch),),
            say(
                "A consumer is sent no more than {prefetch:message|messages} until it acknowledges: a "
                "transaction, or a batch acknowledged by the client, of more messages than that waits "
                "for ever. Keep it only where batches are smaller.",
                prefetch=policy.queue_prefetch,
            ),
            "AbstractSubscription, PrefetchSubscription.acknowledge",
        )


def priorities(entry: Entry) -> Iterator[Finding]:
    """priority_behind_prefetch: messages by priority, behind buffers that were filled before."""
    policy = entry.policy
    if entry.for_queues and policy.prioritized_messages and policy.queue_prefetch > WIDE:
        yield entry.trap(
            "priority_behind_prefetch",
            Severity.INFO,
            (say("prioritizedMessages true, queuePrefetch {prefetch}", prefetch=policy.queue_prefetch),),
            say(
                "An urgent message overtakes what waits in the broker, not the {prefetch} messages that "
                "a consumer may hold already. Lower queuePrefetch, and set messagePrioritySupported in "
                "the client (it is off by default). KahaDB knows only three levels.",
                prefetch=policy.queue_prefetch,
            ),
            "Queue, PrioritizedPendingList",
        )


def expiry_off(entry: Entry) -> Iterator[Finding]:
    """expiry_off: the broker does not look for expired messages."""
    if entry.policy.expire_messages_period == 0:
        yield entry.trap(
            "expiry_off",
            Severity.WARNING,
            (say("expireMessagesPeriod 0"),),
            say(
                "Expired messages are then noticed only when they are paged in or dispatched: without "
                "consumers they stay, and take memory and disk. The default is 30000 ms."
            ),
            "BaseDestination.setExpireMessagesPeriod",
        )


def dead_letters_dropped(entry: Entry) -> Iterator[Finding]:
    """dead_letters_dropped: poison and expired messages vanish."""
    strategy = entry.policy.dead_letter_strategy
    if strategy is None or isinstance(strategy, DiscardingDeadLetterStrategy):
        yield entry.trap(
            "dead_letters_dropped",
            Severity.WARNING,
            (say("deadLetterStrategy none") if strategy is None else say("deadLetterStrategy discarding"),),
            say(
                "A message that fails seven times, or expires, is gone without a trace. Use "
                "individualDeadLetterStrategy unless that is what you want."
            ),
            "RegionBroker.sendToDeadLetterQueue",
        )


def collected(entry: Entry) -> Iterator[Finding]:
    """gc_never_runs, gc_loses_copies: deleting inactive destinations."""
    policy = entry.policy
    if not policy.gc_inactive_destinations:
        return
    if entry.left_out.get("schedulePeriodForDestinationPurge", "0").strip() in ("0", ""):
        yield entry.trap(
            "gc_never_runs",
            Severity.WARNING,
            (say("gcInactiveDestinations true, the broker's schedulePeriodForDestinationPurge is 0"),),
            say("Nothing is ever deleted: set schedulePeriodForDestinationPurge (ms) on the broker element too."),
            "RegionBroker.start, BaseDestination.markForGC",
        )
    elif policy.inactive_timeout_before_gc <= 0:
        yield entry.trap(
            "gc_never_runs",
            Severity.WARNING,
            (
                say(
                    "gcInactiveDestinations true, inactiveTimeoutBeforeGC {timeout}",
                    timeout=policy.inactive_timeout_before_gc,
                ),
            ),
            say("Nothing is ever deleted: inactiveTimeoutBeforeGC (ms) must be positive."),
            "BaseDestination.markForGC",
        )


def abort_slow(entry: Entry) -> Iterator[Finding]:
    """abort_never, abort_first_look, abort_idle: what an abort strategy really aborts."""
    strategy = entry.policy.slow_consumer_strategy
    if strategy is None:
        return
    acks = isinstance(strategy, AbortSlowAckConsumerStrategy)
    if strategy.max_slow_count <= 0 and strategy.max_slow_duration <= 0:
        yield entry.trap(
            "abort_never",
            Severity.WARNING,
            (
                say(
                    "maxSlowCount {count}, maxSlowDuration {duration}",
                    count=strategy.max_slow_count,
                    duration=strategy.max_slow_duration,
                ),
            ),
            say("Without either limit no consumer is ever aborted. Set maxSlowDuration (ms)."),
            "AbortSlowConsumerStrategy.run",
        )
        return
    if not acks and entry.kind == "queue":
        yield entry.trap(
            "abort_never",
            Severity.WARNING,
            (say("abortSlowConsumerStrategy on a queue"),),
            say(
                "A queue gives a full consumer nothing more, so it never tells the strategy that one is "
                "slow. Use abortSlowAckConsumerStrategy for queues."
            ),
            "PrefetchSubscription, Queue.doActualDispatch",
        )
    if isinstance(strategy, AbortSlowAckConsumerStrategy):
        if 0 < strategy.max_slow_duration <= strategy.check_period:
            yield entry.trap(
                "abort_first_look",
                Severity.WARNING,
                (
                    say(
                        "maxSlowDuration {duration}, checkPeriod {period}, maxTimeSinceLastAck {last}",
                        duration=strategy.max_slow_duration,
                        period=strategy.check_period,
                        last=strategy.max_time_since_last_ack,
                    ),
                ),
                say(
                    "A delivery does not reset the time of the last acknowledgement, and one look counts as "
                    "{period} ms: a consumer that had nothing to do for {last} ms is aborted at the next "
                    "look although it just got its message. Make maxSlowDuration several times checkPeriod.",
                    period=strategy.check_period,
                    last=strategy.max_time_since_last_ack,
                ),
                "AbortSlowAckConsumerStrategy.run",
            )
        if not strategy.ignore_idle_consumers:
            yield entry.trap(
                "abort_idle",
                Severity.WARNING,
                (say("abortSlowAckConsumerStrategy, ignoreIdleConsumers false"),),
                say(
                    "Consumers of a queue where nothing happens are aborted too, just for having nothing to "
                    "acknowledge."
                ),
                "AbortSlowAckConsumerStrategy.updateSlowConsumersList",
            )
        if entry.for_queues and entry.policy.queue_prefetch == 0:
            yield entry.trap(
                "abort_waiting_pull",
                Severity.WARNING,
                (say("abortSlowAckConsumerStrategy, queuePrefetch 0"),),
                say(
                    "A consumer that pulls holds one message at most: every piece of work longer than "
                    "maxTimeSinceLastAck ({last} ms), or the first message after as long a pause, makes it "
                    "slow. Set maxTimeSinceLastAck and maxSlowDuration above the longest work.",
                    last=strategy.max_time_since_last_ack,
                ),
                "AbortSlowAckConsumerStrategy.updateSlowConsumersList",
            )


def prefetch_for_slow_work(entry: Entry) -> Iterator[Finding]:
    """prefetch_for_slow_work: consumers expected to be slow, each with a large buffer of its own."""
    policy = entry.policy
    if entry.for_queues and policy.slow_consumer_strategy is not None and policy.queue_prefetch > WIDE:
        yield entry.trap(
            "prefetch_for_slow_work",
            Severity.WARNING,
            (say("slowConsumerStrategy set, queuePrefetch {prefetch}", prefetch=policy.queue_prefetch),),
            say(
                "A consumer that is slow takes {prefetch} messages with it before it is aborted, and "
                "they are redelivered then. For slow work set queuePrefetch to 1 .. 10.",
                prefetch=policy.queue_prefetch,
            ),
            "Queue.doActualDispatch",
        )


RULES = (
    wrong_kind,
    prefix_in_name,
    prefetch_below_zero,
    exclusive_by_default,
    strict_order,
    group_map,
    small_page,
    start_delay,
    prefetch_extension,
    priorities,
    expiry_off,
    dead_letters_dropped,
    collected,
    abort_slow,
    prefetch_for_slow_work,
)
