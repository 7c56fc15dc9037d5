"""Rules for ActiveMQ's queues, topics and subscriptions: snapshots of the broker's JMX view or of dstat.

What a rule says "does not move" was seen twice, at least QUIET seconds apart (STOPPED for a single consumer: one long
piece of work is not a stop); one snapshot never proves that.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyengine import Selector
from pyengine.backlog.diagnosis.evidence import Evidence, SubscriptionState
from pyengine.backlog.diagnosis.rules.policies import explained
from pyengine.backlog.diagnosis.rules.series import BREATH, change, empty_in, seconds, span
from pyengine.backlog.diagnosis.rules.watched import QUIET, Watched, is_dead_letter_queue, watch
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.backlog.sentence_templates import heard
from pyengine.errors import InvalidSelectorError

STOPPED = 30.0
HOARD = 50
FLOW_CONTROL = say(
    "Producer flow control stops senders. Drain the slow consumer behind it, or raise the destination's memory limit; "
    "for topics set a pendingMessageLimitStrategy."
)
READ_CAUSE = say("Read the property dlqDeliveryFailureCause of these messages: it names what failed.")


def still_held(pair: tuple[SubscriptionState, SubscriptionState]) -> bool:
    """The subscription holds messages and acknowledged none between two sights."""
    first, last = pair
    return (
        seconds(first, last) >= STOPPED
        and bool(first.awaiting)
        and bool(last.awaiting)
        and change(first.dequeue_counter, last.dequeue_counter) == 0
    )


def held_evidence(pair: tuple[SubscriptionState, SubscriptionState]) -> Said:
    first, last = pair
    return say(
        "{label}: MessageCountAwaitingAcknowledge {awaiting}, DequeueCounter {dequeue_counter} "
        "and {first_dequeue_counter} {span} before",
        label=last.label,
        awaiting=last.awaiting,
        dequeue_counter=last.dequeue_counter,
        first_dequeue_counter=first.dequeue_counter,
        span=span(seconds(first, last)),
    )


def no_consumer(queue: Watched) -> Iterator[Finding]:
    """no_consumer: a queue holds messages and has no consumer."""
    if queue.last.kind == "queue" and queue.last.queue_size and not queue.last.consumer_count and not is_dlq(queue):
        grown = change(queue.first.queue_size, queue.last.queue_size)
        size = queue.size_now()
        if queue.period and grown:
            size = say("{size_now}; {grown:+} in {span}", size_now=size, grown=grown, span=span(queue.period))
        yield Finding(
            "no_consumer",
            Severity.ERROR if grown else Severity.WARNING,
            queue.where,
            (size,),
            say("Start a consumer on it, or delete the queue if nothing needs it any more."),
        )


def is_dlq(queue: Watched) -> bool:
    return is_dead_letter_queue(queue.last)


def dead_letters(queue: Watched) -> Iterator[Finding]:
    """dead_letters: a dead-letter queue came or grew between two snapshots."""
    if queue.came_since is not None and queue.last.queue_size:
        yield Finding(
            "dead_letters",
            Severity.WARNING,
            queue.where,
            (
                say(
                    "EnqueueCount {after}; {span} before there was no such queue ({file})",
                    after=queue.last.enqueue_count,
                    span=span(seconds(queue.came_since, queue.last)),
                    file=queue.came_since.file,
                ),
            ),
            READ_CAUSE,
        )
        return
    grown = change(queue.first.enqueue_count, queue.last.enqueue_count)
    if is_dlq(queue) and grown and grown > 0:  # less after a restart of the broker
        yield Finding(
            "dead_letters",
            Severity.WARNING,
            queue.where,
            (
                say(
                    "EnqueueCount {before} -> {after} in {span}",
                    before=queue.first.enqueue_count,
                    after=queue.last.enqueue_count,
                    span=span(queue.period),
                ),
            ),
            READ_CAUSE,
        )


def paused(queue: Watched) -> Iterator[Finding]:
    """paused: someone paused the queue and messages wait."""
    if queue.last.paused and queue.last.queue_size:
        yield Finding(
            "paused",
            Severity.ERROR,
            queue.where,
            (say("Paused true, {size_now}", size_now=queue.size_now()),),
            say("Call resume() on the queue's MBean once the reason for the pause is gone."),
        )


def exclusive_disjoint(queue: Watched) -> Iterator[Finding]:
    """exclusive_disjoint: an exclusive consumer's selector refuses what waits, and no other consumer may take it."""
    asked = [last for _, last in queue.consumers if queue.exclusive(last)]
    exclusive = [last for last in asked if last.selector]
    owner = next((each for each in exclusive if each.awaiting or each.dispatched_counter), None)
    if owner is None and len(asked) == 1 and queue.stands_still and not queue.last.paused:
        owner = next(iter(exclusive), None)  # which is elected, whether or not it was ever sent something
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
                say(
                    "{waiting} of {queue_size:message|messages} {waiting:|is|are} not dispatched",
                    waiting=waiting,
                    queue_size=queue.last.queue_size,
                ),
                say(
                    "exclusive: {label} with selector {selector}, {awaiting} of {prefetch} held",
                    label=owner.label,
                    selector=owner.selector,
                    awaiting=owner.awaiting,
                    prefetch=owner.prefetch,
                ),
                *(
                    say(
                        "standing by: {label} {selector}, was sent nothing",
                        label=o.label,
                        selector=o.selector or say("without a selector"),
                    )
                    for o in others[:3]
                ),
            ),
            say(
                "While an exclusive consumer is elected no other one is served, matching or not. Remove "
                "its selector, or make the consumers not exclusive, or give each selection a queue of "
                "its own."
            ),
        )


def selector_matches_nothing(queue: Watched) -> Iterator[Finding]:
    """selector_matches_nothing: a subscription with a selector was sent nothing while messages wait undispatched."""
    waiting = queue.undispatched
    alone = len(queue.consumers) == 1  # an exclusive one beside others may stand by
    if not waiting or (not alone and any(queue.exclusive(last) for _, last in queue.consumers)):
        return
    for _, last in queue.consumers:
        if not last.selector or last.dispatched_counter or last.awaiting or last.prefetch == 0:
            continue
        yield Finding(
            "selector_matches_nothing",
            Severity.WARNING,
            say("{where}, consumer {label}", where=queue.where, label=last.label),
            (
                say("selector {selector}", selector=last.selector),
                say("DispatchedCounter 0 while {waiting:message waits|messages wait} undispatched", waiting=waiting),
                *_surprises(last.selector),
            ),
            say(
                "Compare the selector with the properties of a waiting message: names are "
                "case-sensitive, a string never equals a number. `pyengine match SELECTOR "
                "messages.jsonl` gives the broker's answer for each."
            ),
        )


def _surprises(selector: str) -> tuple[Said, ...]:
    """What in a selector means something else to the broker than to its reader."""
    try:
        return tuple(heard(advice) for _, advice in Selector(selector).surprises)
    except InvalidSelectorError as error:
        return (say("the broker itself refuses this selector: {problem}", problem=error.problem),)


def page_starved(queue: Watched) -> Iterator[Finding]:
    """page_starved: at least a page of messages that no consumer takes fills the paging window, and nothing moves
    behind it."""
    waiting, page = queue.undispatched, queue.max_page_size
    free = [last for _, last in queue.consumers if (last.awaiting or 0) < last.prefetch]
    selective = [last for last in free if last.selector]
    if waiting is None or page is None or waiting < page or not free or len(selective) < len(free) or queue.last.paused:
        return
    if any(queue.exclusive(last) for _, last in queue.consumers) or not queue.stands_still:
        return
    yield Finding(
        "page_starved",
        Severity.ERROR,
        queue.where,
        (
            say(
                "{waiting:message waits|messages wait} undispatched, MaxPageSize {page}, nothing dequeued in {span}",
                waiting=waiting,
                page=page,
                span=span(queue.period),
            ),
            *(
                say(
                    "{label} has room ({awaiting} of {prefetch}) for {selector}",
                    label=last.label,
                    awaiting=last.awaiting,
                    prefetch=last.prefetch,
                    selector=last.selector,
                )
                for last in selective[:3]
            ),
        ),
        say(
            "The broker looks only at the first page, and every expireMessagesPeriod pages in up to maxExpirePageSize "
            "(400) more: messages that no selector takes hide the rest. Add a consumer for them, let them expire, or "
            "raise maxPageSize (which delays it, no more)."
        ),
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
                say("{where}, consumer {label}", where=queue.where, label=pair[1].label),
                (
                    held_evidence(pair),
                    say(
                        "owns message groups: {groups} ({count_groups} in all)",
                        count_groups=len(groups),
                        groups=", ".join(groups[:5]),
                    ),
                    say("{undispatched:message waits|messages wait} undispatched", undispatched=queue.undispatched),
                ),
                say(
                    "Groups go to their owner only. Restart that consumer, or remove its groups "
                    "(removeMessageGroup on the queue's MBean) so that others take them over."
                ),
            )


def consumer_stopped(queue: Watched) -> Iterator[Finding]:
    """consumer_stopped: connected, holding messages, acknowledging none between two snapshots."""
    owners = {consumer for _, consumer in queue.last.message_groups} if queue.undispatched else set()
    for pair in queue.consumers:
        if still_held(pair) and pair[1].consumer_id not in owners:
            others = [
                last.label for first, last in queue.consumers if change(first.dequeue_counter, last.dequeue_counter)
            ]
            moving = (say("others do acknowledge meanwhile: {others}", others=", ".join(others[:3])),) if others else ()
            yield Finding(
                "consumer_stopped",
                Severity.ERROR,
                say("{where}, consumer {label}", where=queue.where, label=pair[1].label),
                (held_evidence(pair), *moving),
                say(
                    "It is connected but has stopped. Take three thread dumps of it some seconds apart and "
                    "give them to `pyengine diagnose`: the line it stands at is the cause."
                ),
            )


def _sizes(queue: Watched) -> Said:
    return say(
        "QueueSize {before} -> {after} in {span}",
        before=queue.first.queue_size,
        after=queue.last.queue_size,
        span=span(queue.period),
    )


def nothing_taken(queue: Watched) -> Iterator[Finding]:
    """consumer_stopped, of a queue whose consumers are only counted (dstat, MBeans of queues alone): messages wait,
    consumers were there both times, and nothing was dequeued."""
    counted = min(queue.first.consumer_count, queue.last.consumer_count)
    if queue.last.kind != "queue" or not queue.only_counted or not counted or queue.period < STOPPED:
        return
    if queue.last.paused or is_dlq(queue) or not queue.stands_still:
        return
    yield Finding(
        "consumer_stopped",
        Severity.ERROR,
        queue.where,
        (
            _sizes(queue),
            say(
                "{consumer_count:consumer is|consumers are} connected, and nothing was dequeued",
                consumer_count=queue.last.consumer_count,
            ),
        ),
        say(
            "They stand still, acknowledge nothing, or their selectors take none of what waits; what was read counts "
            "them and no more. Three thread dumps, some seconds apart, and Jolokia JSON of the broker's MBeans "
            "(type=Broker,*), given to `pyengine diagnose`, tell which."
        ),
    )


def prefetch_hoarding(queue: Watched) -> Iterator[Finding]:
    """prefetch_hoarding: one consumer's prefetch buffer holds the queue's messages while another has none."""
    if queue.last.kind != "queue" or queue.undispatched:
        return
    idle = [last for _, last in queue.consumers if not last.awaiting and last.prefetch > 0 and not last.selector]
    for _, last in queue.consumers:
        if (
            last.awaiting
            and last.awaiting >= HOARD
            and idle
            and not any(queue.exclusive(i) or queue.exclusive(last) for i in idle)
        ):
            yield Finding(
                "prefetch_hoarding",
                Severity.WARNING,
                say("{where}, consumer {label}", where=queue.where, label=last.label),
                (
                    say(
                        "{label} holds {awaiting:unacknowledged message|unacknowledged messages} "
                        "(PrefetchSize {prefetch})",
                        label=last.label,
                        awaiting=last.awaiting,
                        prefetch=last.prefetch,
                    ),
                    say("idle beside it: {idle}, holding 0", idle=", ".join(i.label for i in idle[:3])),
                ),
                say(
                    "Lower its prefetch (?consumer.prefetchSize={fewer}) so that work is shared; for slow "
                    "work 1 is right.",
                    fewer=max(1, last.prefetch // 100),
                ),
            )


def backlog_trend(queue: Watched) -> Iterator[Finding]:
    """slow / draining: consumers acknowledge, and the queue grows or stays, or shrinks (then: until when)."""
    dequeued = change(queue.first.dequeue_count, queue.last.dequeue_count)
    grown = change(queue.first.queue_size, queue.last.queue_size)
    if queue.last.kind != "queue" or queue.period < QUIET or not dequeued or dequeued < 0 or not queue.last.queue_size:
        return
    rate = dequeued / queue.period
    evidence = (
        _sizes(queue),
        say(
            "dequeued {rate:.1f} a second by {consumer_count:consumer|consumers}",
            rate=rate,
            consumer_count=queue.last.consumer_count,
        ),
    )
    slow = None
    if grown is not None and grown > 0 and queue.last.queue_size > rate * BREATH:
        slow = say(
            "Consumers are slower than producers. At this speed about {need:.1f} consumers would keep up.",
            need=queue.last.consumer_count * (1 + grown / dequeued),
        )
    elif grown == 0 and _for_those_who_work(queue) > max(dequeued, rate * BREATH):
        slow = say(
            "Consumers are as fast as producers and no faster: what waits stays, each message for about {span}. "
            "One more consumer lets it drain.",
            span=span(queue.last.queue_size / rate),
        )
    if slow is not None:
        yield Finding("slow", Severity.WARNING, queue.where, evidence, slow)
    elif grown is not None and grown < 0 and queue.last.queue_size > rate * 60:
        left = queue.last.queue_size / (-grown / queue.period)
        yield Finding(
            "draining",
            Severity.INFO,
            queue.where,
            evidence,
            empty_in(left, queue.last.time),
        )


def _for_those_who_work(queue: Watched) -> int:
    """How many of the messages go to consumers that acknowledge, 0 if that is not known.

    Of a queue that stays as long as it was the rest may be messages that no consumer takes: by their selectors, as an
    owner of its group holds it up, or as it was sent to a consumer that stands still. If one that takes everything is
    at work, only the last is left.
    """
    moving = [(change(first.dequeue_counter, last.dequeue_counter) or 0) > 0 for first, last in queue.consumers]
    at_work = [last for (_, last), moves in zip(queue.consumers, moving, strict=True) if moves]
    if queue.last.paused or queue.last.message_groups or all(each.selector or each.no_local for each in at_work):
        return 0
    stands = [last for (_, last), moves in zip(queue.consumers, moving, strict=True) if not moves]
    return queue.last.queue_size - sum(each.awaiting or 0 for each in stands)


def blocked_producers(queue: Watched) -> Iterator[Finding]:
    """blocked_producers: sends were blocked by memory limits between two snapshots, or memory is full now."""
    blocked = change(queue.first.blocked_sends, queue.last.blocked_sends)
    if (blocked and blocked > 0) or (queue.last.memory_percent or 0) >= 100:
        yield Finding(
            "blocked_producers",
            Severity.ERROR,
            queue.where,
            (
                say(
                    "BlockedSends {blocked_sends}, MemoryPercentUsage {memory_percent}",
                    blocked_sends=queue.last.blocked_sends,
                    memory_percent=queue.last.memory_percent,
                ),
            ),
            FLOW_CONTROL,
        )


def expiring(queue: Watched) -> Iterator[Finding]:
    """expiring: messages expired unread between two snapshots."""
    expired = change(queue.first.expired_count, queue.last.expired_count)
    if expired and expired > 0:
        yield Finding(
            "expiring",
            Severity.WARNING,
            queue.where,
            (
                say(
                    "ExpiredCount {before} -> {after} in {span}",
                    before=queue.first.expired_count,
                    after=queue.last.expired_count,
                    span=span(queue.period),
                ),
            ),
            say("They wait longer than their time to live. Consume faster, or send with a longer time to live."),
        )


def slow_subscriber(topic: Watched) -> Iterator[Finding]:
    """slow_subscriber: a topic subscription is flagged slow, or messages were discarded from it."""
    for first, last in topic.subscriptions:
        lost = change(first.discarded, last.discarded) if first is not last else last.discarded
        if last.kind == "topic" and (last.slow or lost):
            yield Finding(
                "slow_subscriber",
                Severity.ERROR if lost else Severity.WARNING,
                say("{where}, subscriber {label}", where=topic.where, label=last.label),
                (
                    say(
                        "SlowConsumer {slow}, pending {pending}, discarded {discarded}",
                        slow=last.slow,
                        pending=last.pending,
                        discarded=last.discarded,
                    ),
                ),
                say(
                    "A pending limit discards what it cannot hold. If these messages may not be dropped, use "
                    "a durable subscription or a queue; if they may, an eviction strategy chooses which."
                ),
            )


def durable_offline(topic: Watched) -> Iterator[Finding]:
    """durable_offline: an inactive durable subscription collects messages."""
    for first, last in topic.subscriptions:
        if last.durable and not last.active and last.pending:
            grown = change(first.pending, last.pending)
            yield Finding(
                "durable_offline",
                Severity.ERROR if grown else Severity.WARNING,
                say(
                    "{where}, durable subscription {subscription_name}",
                    where=topic.where,
                    subscription_name=last.subscription_name or last.label,
                ),
                (
                    say("Active false, PendingQueueSize {pending} ({grown:+})", pending=last.pending, grown=grown)
                    if grown
                    else say("Active false, PendingQueueSize {pending}", pending=last.pending),
                ),
                say("Its messages stay in the store until it comes back. Connect it, or unsubscribe it."),
            )


def start_delayed(queue: Watched) -> Iterator[Finding]:
    """start_delayed: the policy waits for more consumers than there are, or for time, and messages wait with it."""
    policy, waiting = queue.policy, queue.undispatched
    if policy is None or queue.last.kind != "queue" or not waiting or not queue.last.consumer_count:
        return
    needed = policy.consumers_before_dispatch_starts
    if (
        needed > queue.last.consumer_count or policy.time_before_dispatch_starts > 0
    ) and not queue.last.in_flight_count:
        yield Finding(
            "start_delayed",
            Severity.WARNING,
            queue.where,
            (
                queue.size_now(),
                say("{waiting:message waits|messages wait} undispatched, none is with a consumer", waiting=waiting),
            ),
            say(
                "Dispatch has not begun: the broker waits for more consumers or for the time to pass. Lower "
                "consumersBeforeDispatchStarts or timeBeforeDispatchStarts if that is too long."
            ),
        )


RULES = (
    no_consumer,
    start_delayed,
    dead_letters,
    paused,
    exclusive_disjoint,
    selector_matches_nothing,
    page_starved,
    group_owner_stopped,
    consumer_stopped,
    nothing_taken,
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
            for finding in rule(destination):
                broker = destination.broker
                yield finding if broker is None else explained(finding, destination.last, broker)
