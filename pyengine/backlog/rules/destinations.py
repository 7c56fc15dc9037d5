"""Rules for ActiveMQ's queues, topics and subscriptions: snapshots of the broker's JMX view or of dstat.

What a rule says "does not move" was seen twice, at least QUIET seconds apart (STOPPED for a single consumer: one long
piece of work is not a stop); one snapshot never proves that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyengine import Selector
from pyengine.backlog.evidence import DestinationState, Evidence, SubscriptionState
from pyengine.backlog.findings import Finding, Severity
from pyengine.backlog.rules.series import by_time, change, clock, seconds, span
from pyengine.errors import InvalidSelectorError

QUIET = 5.0
STOPPED = 30.0
HOARD = 50


@dataclass(frozen=True, slots=True)
class Watched:
    """A destination with its subscriptions: the first and the last time it was seen (the same for one snapshot)."""

    first: DestinationState
    last: DestinationState
    subscriptions: tuple[tuple[SubscriptionState, SubscriptionState], ...]

    @property
    def where(self) -> str:
        return f"{self.last.kind} {self.last.name}"

    @property
    def period(self) -> float:
        return seconds(self.first, self.last)

    @property
    def undispatched(self) -> int | None:
        """Messages that nobody holds."""
        in_flight = self.last.in_flight_count
        return None if in_flight is None else self.last.queue_size - in_flight

    def size_now(self) -> str:
        return f"QueueSize {self.last.queue_size}, ConsumerCount {self.last.consumer_count} ({self.last.file})"

    @property
    def stands_still(self) -> bool:
        """Seen twice, with messages both times, and nothing was dequeued in between."""
        dequeued = change(self.first.dequeue_count, self.last.dequeue_count)
        return self.period >= QUIET and min(self.first.queue_size, self.last.queue_size) > 0 and dequeued == 0

    @property
    def consumers(self) -> list[tuple[SubscriptionState, SubscriptionState]]:
        return [pair for pair in self.subscriptions if pair[1].active]


def watch(evidence: Evidence) -> Iterator[Watched]:
    """Every destination with what was seen of its subscriptions that are still there."""
    subscriptions = by_time(evidence.subscriptions, lambda s: (s.broker, s.kind, s.destination, s.consumer_id, s.label))
    for states in by_time(evidence.destinations, lambda d: (d.broker, d.kind, d.name)).values():
        last = states[-1]
        pairs = tuple(
            (seen[0], seen[-1])
            for seen in subscriptions.values()
            if (seen[-1].broker, seen[-1].kind, seen[-1].destination) == (last.broker, last.kind, last.name)
            and seen[-1].time == last.time
        )
        yield Watched(states[0], last, pairs)


def still_held(pair: tuple[SubscriptionState, SubscriptionState]) -> bool:
    """The subscription holds messages and acknowledged none between two sights."""
    first, last = pair
    return (
        seconds(first, last) >= STOPPED
        and bool(first.awaiting)
        and bool(last.awaiting)
        and change(first.dequeue_counter, last.dequeue_counter) == 0
    )


def held_evidence(pair: tuple[SubscriptionState, SubscriptionState]) -> str:
    first, last = pair
    return (
        f"{last.label}: MessageCountAwaitingAcknowledge {last.awaiting}, DequeueCounter {last.dequeue_counter} "
        f"and {first.dequeue_counter} {span(seconds(first, last))} before"
    )


def no_consumer(queue: Watched) -> Iterator[Finding]:
    """no_consumer: a queue holds messages and nobody consumes from it."""
    if queue.last.kind == "queue" and queue.last.queue_size and not queue.last.consumer_count and not is_dlq(queue):
        grown = change(queue.first.queue_size, queue.last.queue_size)
        grows = f"; {grown:+} in {span(queue.period)}" if queue.period and grown else ""
        yield Finding(
            "no_consumer",
            Severity.ERROR if grown else Severity.WARNING,
            queue.where,
            (queue.size_now() + grows,),
            "Start a consumer on it, or delete the queue if nothing needs it any more.",
        )


def is_dlq(queue: Watched) -> bool:
    return queue.last.dlq or queue.last.name.startswith("ActiveMQ.DLQ")


def dead_letters(queue: Watched) -> Iterator[Finding]:
    """dead_letters: a dead-letter queue grew between two snapshots."""
    grown = change(queue.first.enqueue_count, queue.last.enqueue_count)
    if is_dlq(queue) and grown:
        yield Finding(
            "dead_letters",
            Severity.WARNING,
            queue.where,
            (f"EnqueueCount {queue.first.enqueue_count} -> {queue.last.enqueue_count} in {span(queue.period)}",),
            "Read the property dlqDeliveryFailureCause of these messages: it names what failed.",
        )


def paused(queue: Watched) -> Iterator[Finding]:
    """paused: someone paused the queue and messages wait."""
    if queue.last.paused and queue.last.queue_size:
        yield Finding(
            "paused",
            Severity.ERROR,
            queue.where,
            (f"Paused true, {queue.size_now()}",),
            "Call resume() on the queue's MBean once the reason for the pause is gone.",
        )


def exclusive_disjoint(queue: Watched) -> Iterator[Finding]:
    """exclusive_disjoint: an exclusive consumer's selector refuses what waits, and no other consumer may take it."""
    exclusive = [last for _, last in queue.consumers if last.exclusive and last.selector]
    owner = next((each for each in exclusive if each.awaiting or each.dispatched_counter), None)
    others = [last for _, last in queue.consumers if last is not owner]
    waiting = queue.undispatched
    if owner is None or not others or not waiting or (owner.awaiting or 0) >= owner.prefetch:
        return
    if all(other.selector == owner.selector for other in others) or any(o.dispatched_counter for o in others):
        return
    if queue.period < QUIET or queue.stands_still or (queue.last.dispatch_count == queue.first.dispatch_count):
        yield Finding(
            "exclusive_disjoint",
            Severity.ERROR,
            queue.where,
            (
                f"{waiting} of {queue.last.queue_size} messages are not dispatched to anybody",
                f"exclusive: {owner.label} with selector {owner.selector}, {owner.awaiting} of {owner.prefetch} held",
                *(f"standing by: {o.label} {o.selector or 'without a selector'}, was sent nothing" for o in others[:3]),
            ),
            "While an exclusive consumer is elected nobody else is served, matching or not. Remove its selector, or "
            "make the consumers not exclusive, or give each selection a queue of its own.",
        )


def selector_matches_nothing(queue: Watched) -> Iterator[Finding]:
    """selector_matches_nothing: a subscription with a selector was sent nothing while messages wait undispatched."""
    waiting = queue.undispatched
    if not waiting or any(last.exclusive for _, last in queue.consumers):
        return
    for _, last in queue.consumers:
        if not last.selector or last.dispatched_counter or last.awaiting or last.prefetch == 0:
            continue
        yield Finding(
            "selector_matches_nothing",
            Severity.WARNING,
            f"{queue.where}, consumer {last.label}",
            (
                f"selector {last.selector}",
                f"DispatchedCounter 0 while {waiting} messages wait undispatched",
                *_surprises(last.selector),
            ),
            "Compare the selector with the properties of a waiting message: names are case-sensitive, a string never "
            "equals a number. `pyengine match SELECTOR messages.jsonl` gives the broker's answer for each.",
        )


def _surprises(selector: str) -> tuple[str, ...]:
    """What in a selector means something else to the broker than to its reader."""
    try:
        return tuple(advice for _, advice in Selector(selector).surprises)
    except InvalidSelectorError as error:
        return (f"the broker itself refuses this selector: {error.problem}",)


def page_starved(queue: Watched) -> Iterator[Finding]:
    """page_starved: at least a page of messages nobody takes fills the paging window, and nothing moves behind it."""
    waiting, page = queue.undispatched, queue.last.max_page_size or 200
    free = [last for _, last in queue.consumers if (last.awaiting or 0) < last.prefetch]
    selective = [last for last in free if last.selector]
    if waiting is None or waiting < page or not free or len(selective) < len(free) or queue.last.paused:
        return
    if any(last.exclusive for _, last in queue.consumers) or not queue.stands_still:
        return
    yield Finding(
        "page_starved",
        Severity.ERROR,
        queue.where,
        (
            f"{waiting} messages wait undispatched, MaxPageSize {page}, nothing dequeued in {span(queue.period)}",
            *(
                f"{last.label} has room ({last.awaiting} of {last.prefetch}) for {last.selector}"
                for last in selective[:3]
            ),
        ),
        "The broker looks only at the first page: messages nobody's selector takes hide the rest for ever. Add a "
        "consumer for them, let them expire, or raise maxPageSize (which delays it, no more).",
    )


def group_owner_stopped(queue: Watched) -> Iterator[Finding]:
    """group_owner_stopped: a message group's owner holds messages and acknowledges none, while messages wait."""
    owners: dict[str, list[str]] = {}
    for group, consumer in queue.last.message_groups:
        owners.setdefault(consumer, []).append(group)
    if not owners or not queue.undispatched:
        return
    for pair in queue.consumers:
        groups = owners.get(pair[1].consumer_id, [])
        if groups and still_held(pair):
            yield Finding(
                "group_owner_stopped",
                Severity.ERROR,
                f"{queue.where}, consumer {pair[1].label}",
                (
                    held_evidence(pair),
                    f"owns {len(groups)} message groups: {', '.join(groups[:5])}",
                    f"{queue.undispatched} messages wait undispatched",
                ),
                "Groups go to their owner or to nobody. Restart that consumer, or remove its groups "
                "(removeMessageGroup on the queue's MBean) so that others take them over.",
            )


def consumer_stopped(queue: Watched) -> Iterator[Finding]:
    """consumer_stopped: connected, holding messages, acknowledging none between two snapshots."""
    owners = {consumer for _, consumer in queue.last.message_groups} if queue.undispatched else set()
    for pair in queue.consumers:
        if still_held(pair) and pair[1].consumer_id not in owners:
            others = [
                last.label for first, last in queue.consumers if change(first.dequeue_counter, last.dequeue_counter)
            ]
            moving = (f"others do acknowledge meanwhile: {', '.join(others[:3])}",) if others else ()
            yield Finding(
                "consumer_stopped",
                Severity.ERROR,
                f"{queue.where}, consumer {pair[1].label}",
                (held_evidence(pair), *moving),
                "It is connected but has stopped. Take three thread dumps of it some seconds apart and give them to "
                "`pyengine diagnose`: the line it stands at is the cause.",
            )


def prefetch_hoarding(queue: Watched) -> Iterator[Finding]:
    """prefetch_hoarding: one consumer's prefetch buffer holds the queue's messages while another has none."""
    if queue.last.kind != "queue" or queue.undispatched:
        return
    idle = [last for _, last in queue.consumers if not last.awaiting and last.prefetch > 0 and not last.selector]
    for _, last in queue.consumers:
        if last.awaiting and last.awaiting >= HOARD and idle and not any(i.exclusive or last.exclusive for i in idle):
            yield Finding(
                "prefetch_hoarding",
                Severity.WARNING,
                f"{queue.where}, consumer {last.label}",
                (
                    f"{last.label} holds {last.awaiting} unacknowledged messages (PrefetchSize {last.prefetch})",
                    f"idle beside it: {', '.join(i.label for i in idle[:3])}, holding 0",
                ),
                f"Lower its prefetch (?consumer.prefetchSize={max(1, last.prefetch // 100)}) so that work is shared; "
                "for slow work 1 is right.",
            )


def backlog_trend(queue: Watched) -> Iterator[Finding]:
    """slow / draining: consumers acknowledge, and the queue grows, or shrinks (then: until when)."""
    dequeued = change(queue.first.dequeue_count, queue.last.dequeue_count)
    grown = change(queue.first.queue_size, queue.last.queue_size)
    if queue.last.kind != "queue" or queue.period < QUIET or not dequeued or dequeued < 0 or not queue.last.queue_size:
        return
    rate = dequeued / queue.period
    seen = (
        f"QueueSize {queue.first.queue_size} -> {queue.last.queue_size} in {span(queue.period)}",
        f"dequeued {rate:.1f} a second by {queue.last.consumer_count} consumers",
    )
    if grown is not None and grown > 0:
        need = queue.last.consumer_count * (1 + grown / dequeued)
        yield Finding(
            "slow",
            Severity.WARNING,
            queue.where,
            seen,
            f"Consumers are slower than producers. At this speed about {need:.1f} consumers would keep up.",
        )
    elif grown is not None and grown < 0 and queue.last.queue_size > rate * 60:
        left = queue.last.queue_size / (-grown / queue.period)
        when = f", about {clock(queue.last.time + int(left * 1000))}" if queue.last.time else ""
        yield Finding("draining", Severity.INFO, queue.where, seen, f"Healthy: empty in {span(left)}{when}.")


def blocked_producers(queue: Watched) -> Iterator[Finding]:
    """blocked_producers: sends were blocked by memory limits between two snapshots, or memory is full now."""
    blocked = change(queue.first.blocked_sends, queue.last.blocked_sends)
    if (blocked and blocked > 0) or (queue.last.memory_percent or 0) >= 100:
        yield Finding(
            "blocked_producers",
            Severity.ERROR,
            queue.where,
            (f"BlockedSends {queue.last.blocked_sends}, MemoryPercentUsage {queue.last.memory_percent}",),
            "Producer flow control stops senders. Drain the slow consumer behind it, or raise the destination's memory "
            "limit; for topics set a pendingMessageLimitStrategy.",
        )


def expiring(queue: Watched) -> Iterator[Finding]:
    """expiring: messages expired unread between two snapshots."""
    expired = change(queue.first.expired_count, queue.last.expired_count)
    if expired and expired > 0:
        yield Finding(
            "expiring",
            Severity.WARNING,
            queue.where,
            (f"ExpiredCount {queue.first.expired_count} -> {queue.last.expired_count} in {span(queue.period)}",),
            "They wait longer than their time to live. Consume faster, or send with a longer time to live.",
        )


def slow_subscriber(topic: Watched) -> Iterator[Finding]:
    """slow_subscriber: a topic subscription is flagged slow, or messages were discarded from it."""
    for first, last in topic.subscriptions:
        lost = change(first.discarded, last.discarded) if first is not last else last.discarded
        if last.kind == "topic" and (last.slow or lost):
            yield Finding(
                "slow_subscriber",
                Severity.ERROR if lost else Severity.WARNING,
                f"{topic.where}, subscriber {last.label}",
                (f"SlowConsumer {last.slow}, pending {last.pending}, discarded {last.discarded}",),
                "A pending limit discards what it cannot hold. If these messages may not be dropped, use a durable "
                "subscription or a queue; if they may, an eviction strategy chooses which.",
            )


def durable_offline(topic: Watched) -> Iterator[Finding]:
    """durable_offline: an inactive durable subscription collects messages."""
    for first, last in topic.subscriptions:
        if last.durable and not last.active and last.pending:
            grown = change(first.pending, last.pending)
            yield Finding(
                "durable_offline",
                Severity.ERROR if grown else Severity.WARNING,
                f"{topic.where}, durable subscription {last.subscription_name or last.label}",
                (f"Active false, PendingQueueSize {last.pending}" + (f" ({grown:+})" if grown else ""),),
                "Its messages stay in the store until it comes back. Connect it, or unsubscribe it.",
            )


RULES = (
    no_consumer,
    dead_letters,
    paused,
    exclusive_disjoint,
    selector_matches_nothing,
    page_starved,
    group_owner_stopped,
    consumer_stopped,
    prefetch_hoarding,
    backlog_trend,
    blocked_producers,
    expiring,
    slow_subscriber,
    durable_offline,
)


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Every rule on every destination."""
    for destination in watch(evidence):
        for rule in RULES:
            yield from rule(destination)
