"""What was seen of one ActiveMQ destination: the first and the last sight, with its subscriptions and its policy."""

from __future__ import annotations

from collections.abc import Iterator

from pyengine.backlog.diagnosis.evidence import HERE, DestinationState, Evidence, SubscriptionState
from pyengine.backlog.diagnosis.rules.policies import broker_of
from pyengine.backlog.diagnosis.rules.series import by_time, change, seconds
from pyengine.backlog.findings import Said, say
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination
from pyengine.topology import BrokerConfiguration, Policy

QUIET = 5.0  # seconds between two sights of what does not move


@dataclass(frozen=True, slots=True)
class Watched:
    """A destination with its subscriptions: the first and the last time it was seen (the same for one snapshot).

    came_since: a snapshot that had every other destination and not this dead-letter queue, or None.
    only_counted: no look showed its subscriptions, only their number.
    """

    first: DestinationState
    last: DestinationState
    subscriptions: tuple[tuple[SubscriptionState, SubscriptionState], ...]
    broker: BrokerConfiguration | None = None
    came_since: DestinationState | None = None
    only_counted: bool = False

    @property
    def policy(self) -> Policy | None:
        """The entry of the broker's configuration that counts here, if the configuration is known."""
        return None if self.broker is None else self.broker.policy_of(Destination(self.last.name, self.last.kind))

    @property
    def max_page_size(self) -> int | None:
        """By the view, else by the policy, else the broker's default; None: there is no window."""
        return self.last.max_page_size or (self.policy or Policy("")).max_page_size

    def exclusive(self, subscription: SubscriptionState) -> bool:
        """It asked to be exclusive, or the policy makes every consumer so."""
        return subscription.exclusive or (self.policy is not None and self.policy.all_consumers_exclusive_by_default)

    @property
    def where(self) -> Said:
        return (
            say("topic {name}", name=self.last.name)
            if self.last.kind == "topic"
            else say("queue {name}", name=self.last.name)
        )

    @property
    def period(self) -> float:
        return seconds(self.first, self.last)

    @property
    def undispatched(self) -> int | None:
        """Messages that no consumer holds."""
        in_flight = self.last.in_flight_count
        return None if in_flight is None else self.last.queue_size - in_flight

    def size_now(self) -> Said:
        return say(
            "QueueSize {queue_size}, ConsumerCount {consumer_count} ({file})",
            queue_size=self.last.queue_size,
            consumer_count=self.last.consumer_count,
            file=self.last.file,
        )

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
    # Those that are away share a consumer id, and one client may have several.
    subscriptions = by_time(
        evidence.subscriptions,
        lambda s: (s.broker, s.kind, s.destination, s.consumer_id, s.label, s.subscription_name),
    )
    shown = {(each.broker, each.kind, each.destination) for each in evidence.subscriptions}
    for states in by_time(
        [*evidence.destinations, *topics_alone(evidence)], lambda d: (d.broker, d.kind, d.name)
    ).values():
        last = states[-1]
        pairs = tuple(
            (series[0], series[-1])
            for series in subscriptions.values()
            if (series[-1].broker, series[-1].kind, series[-1].destination) == (last.broker, last.kind, last.name)
            and series[-1].time == last.time
        )
        came_since = before(evidence, states[0]) if is_dead_letter_queue(last) else None
        counted = (last.broker, last.kind, last.name) not in shown
        yield Watched(states[0], last, pairs, broker_of(evidence.brokers, last), came_since, counted)


def topics_alone(evidence: Evidence) -> Iterator[DestinationState]:
    """Topics of which only subscriptions were read: what waits lies with these."""
    known = {(each.broker, each.name) for each in evidence.destinations if each.kind == "topic"}
    for each in evidence.subscriptions:
        if each.kind == "topic" and (each.broker, each.destination) not in known:
            yield DestinationState(each.file, each.time, each.broker, each.destination, "topic", 0, int(each.active))


def before(evidence: Evidence, new: DestinationState) -> DestinationState | None:
    """Any state of the last snapshot of the same broker in which a dead-letter queue was not there yet.

    A snapshot without it proves that only if it had all the others: a file may hold a few of a broker's destinations.
    """
    snapshots: dict[tuple[str, int | None], list[DestinationState]] = {}
    for state in evidence.destinations:
        if state.broker == new.broker and state.time is not None:
            # One file is one snapshot, however long it took; a broker of this process has no file.
            snapshots.setdefault((state.file, state.time if state.file == HERE else None), []).append(state)
    others = {
        (each.kind, each.name)
        for states in snapshots.values()
        if new in states
        for each in states
        if not is_dead_letter_queue(each)
    }
    found: DestinationState | None = None
    for states in snapshots.values():
        last = max(states, key=lambda each: each.time or 0)
        earlier = (last.time or 0) < (new.time or 0)
        if earlier and others and others <= {(each.kind, each.name) for each in states}:
            found = last if found is None or (found.time or 0) < (last.time or 0) else found
    return found


def is_dead_letter_queue(state: DestinationState) -> bool:
    return state.dlq or state.name.startswith("ActiveMQ.DLQ")
