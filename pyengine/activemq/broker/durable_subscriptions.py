"""The durable subscriptions of the broker, and what its store keeps for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pyengine import Selector
from pyengine._engine.activemq.topic.ledger import Event as Outcome
from pyengine._engine.activemq.topic.ledger import EventKind, TopicDelivery
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.dispatch_task import DispatchTask
from pyengine.activemq.broker.services import BrokerServices, Routes
from pyengine.activemq.broker.subscription import Connection, Subscription
from pyengine.activemq.transport.commands import ConnectionSink, ConsumerInfo
from pyengine.clock import Timer
from pyengine.dataclass import dataclass
from pyengine.destinations import ADVISORY, Destination, composite_parts, parse_destination
from pyengine.errors import JMSError
from pyengine.topology.policy import Policy

if TYPE_CHECKING:
    from pyengine.activemq.store.store import SqliteStore, StoredSubscription


class Topic(Protocol):
    """A topic (topic_destination.TopicDestination), as what is decided for its subscriptions uses it.

    number: in the core. subscriptions: those whose consumers are there.
    """

    destination: Destination
    policy: Policy | None
    number: int
    subscriptions: list[Subscription]

    def attach_durable(self, subscription: Subscription) -> None:
        """The consumer of a durable subscription is there."""

    def plan_scan(self) -> None:
        """Look for expired messages when it is time."""

    def handed_out(self) -> None:
        """A message went to a consumer."""

    def slow(self, subscription: Subscription) -> None:
        """A consumer was found slow."""


class Served(Protocol):
    """The topics (topics.Topics), as their durable subscriptions use them. destinations: by number in the core."""

    region: TopicRegion

    @property
    def destinations(self) -> Mapping[int, Topic]:
        """By number in the core."""

    @property
    def named(self) -> Mapping[Destination, Topic]:
        """By name."""

    def seat(self, subscription: Subscription, number: int) -> None:
        """The consumer of a durable subscription of that id is there."""

    def carry_out(self, outcomes: Iterable[TopicDelivery | Outcome]) -> None:
        """Hand out deliveries and report the rest, in order."""


@dataclass(frozen=True, slots=True)
class Offline:
    """When durable subscriptions without their consumers are deleted: after ``timeout`` ms, -1 never; looked at every
    ``schedule`` ms from ``started`` on."""

    timeout: int
    schedule: int
    started: int


@dataclass(slots=True, eq=False)
class Durable:
    """A durable subscription, with or without its consumer. number: its id in the core. stored: its number in the
    store. subscription: as its last consumer asked for it."""

    client_id: str
    name: str
    number: int
    stored: int
    subscription: Subscription

    @property
    def active(self) -> bool:
        """Whether its consumer is there."""
        return self.subscription.topic is not None


class DurableSubscriptions:
    """Every durable subscription; by_number: by its id in the core. Every method runs inside a change of the broker."""

    def __init__(self, services: BrokerServices, routes: Routes, topics: Served, offline: Offline) -> None:
        self._services = services
        self._routes = routes
        self._topics = topics
        self._offline = offline
        self._store = services.store
        self._by_key: dict[tuple[str, str], Durable] = {}
        self.by_number: dict[int, Durable] = {}
        self._spread: dict[int, Durable] = {}  # those of patterns, which wait for topics that others make
        self._newest = 0
        self._cleanup: Timer | None = None
        self._nobody = ConnectionSink(lambda command: None)
        self._no_task = DispatchTask(services.clock, "", self._nobody, lambda ack, failed: None)

    def __iter__(self) -> Iterator[Durable]:
        return iter(self._by_key.values())

    def subscribe(self, subscription: Subscription) -> None:
        """The consumer of a durable subscription comes. Raises JMSError if another one is there."""
        info = subscription.info
        if any(pattern.is_temporary for pattern in subscription.patterns):
            raise JMSError("A durable subscription cannot be created for a temporary topic.")
        if any(pattern.name.startswith(ADVISORY) for pattern in subscription.patterns):
            raise JMSError("Cannot create a durable subscription for an advisory Topic")
        client_id = subscription.connection.client_id or info.connection_id
        key = (client_id, info.subscription_name)
        if self._store is not None:
            self._store.check_text(*key, str(info.destination), info.selector)
        topics = self._covered_by(subscription)
        number, outcome = self._enter(
            key,
            subscription,
            topics,
            priority=info.priority,
            prefetch=subscription.prefetch,
            connection=info.connection_id,
            name=info.consumer_id or None,
            retroactive=info.retroactive,
        )
        durable = self._by_key.get(key)
        if durable is None or durable.number != number:
            if durable is not None:
                self._forget(durable)
            stored = 0
            if self._store is not None:
                stored = self._store.add_subscription(*key, str(info.destination), info.selector, info.no_local)
            durable = self._remember(Durable(*key, number, stored, subscription))
        else:
            # The policy is asked when a subscription is made; a subscriber that comes back has the client's own
            # prefetch.
            subscription.prefetch = info.prefetch_size
        durable.subscription = subscription
        self._topics.seat(subscription, number)
        for topic in topics:
            topic.attach_durable(subscription)
        self._topics.carry_out(outcome)
        now = self._services.clock.now()
        self._topics.carry_out(self._topics.region.activate(number, prefetch=subscription.prefetch, now=now))

    def _enter(
        self, key: tuple[str, str], subscription: Subscription, topics: list[Topic], **consumer: Any
    ) -> tuple[int, list[Any]]:
        """Make a durable subscription in the core, or find it again: its id, and what came of it."""
        info, policy = subscription.info, subscription.policy
        return self._topics.region.subscribe(
            *key,
            [topic.number for topic in topics],
            destination=str(info.destination),
            selector=subscription.selector,
            no_local=info.no_local,
            prioritized_messages=policy is not None and policy.prioritized_messages,
            use_prefetch_extension=policy is None or policy.use_prefetch_extension,
            active=False,
            now=self._services.clock.now(),
            **consumer,
        )

    def _covered_by(self, subscription: Subscription) -> list[Topic]:
        names = (name for name, _ in self._routes.candidates(subscription.patterns))
        return [self._topics.named[name] for name in names if subscription.covers(name)]

    def unsubscribe(self, client_id: str, name: str) -> Durable:
        """Delete a durable subscription, which is returned. Raises InvalidDestinationError, JMSError if its consumer is
        there."""
        self._topics.region.unsubscribe(client_id, name)
        durable = self._by_key[client_id, name]
        self._forget(durable)
        return durable

    def covers(self, topic: Topic) -> bool:
        """Whether one of them covers the topic."""
        return any(durable.subscription.covers(topic.destination) for durable in self)

    def attach(self, topic: Topic) -> None:
        """A topic is new: those of patterns that cover it have it from now on, also those whose consumer is away."""
        for durable in self._spread.values():
            subscription = durable.subscription
            if subscription.covers(topic.destination):
                if durable.active:
                    topic.attach_durable(subscription)
                now = self._services.clock.now()
                self._topics.carry_out(self._topics.region.attach(durable.number, topic.number, now=now))

    def recover(self, store: SqliteStore) -> None:
        """Bring back those of a store and what each still has to get."""
        by_stored: dict[int, Durable] = {}
        for kept in store.subscriptions():
            subscription = self._absent(kept)
            key = (kept.client_id, kept.name)
            number, outcome = self._enter(
                key, subscription, self._covered_by(subscription), connection=("away", kept.number)
            )
            self._topics.carry_out(outcome)
            by_stored[kept.number] = self._remember(Durable(*key, number, kept.number, subscription))
        for stored, name, count in store.waiting():
            (destination,) = parse_destination(name)
            self._routes.find(destination)
            topic = self._topics.named[destination]
            self._topics.region.leave_behind(by_stored[stored].number, topic.number, count)
            topic.plan_scan()
        self._newest = store.reserve()
        self.plan_cleanup()

    def _absent(self, kept: StoredSubscription) -> Subscription:
        """One of the store, whose consumer has not come yet."""
        destination = parse_destination(kept.destination)[0]
        patterns = composite_parts(destination)
        info = ConsumerInfo(
            consumer_id="",
            session_id="",
            connection_id="",
            destination=destination,
            prefetch_size=0,  # what the real broker shows of it until the consumer has come
            selector=kept.selector,
            subscription_name=kept.name,
            no_local=kept.no_local,
        )
        for pattern in patterns:
            if not pattern.is_pattern:
                self._routes.find(pattern)
        nobody = Connection("", kept.client_id, self._nobody, self._no_task)
        policy = self._services.policies.policy_of(destination)
        selector = None if kept.selector is None else Selector(kept.selector)
        return Subscription(info, nobody, patterns, selector, policy, info.prefetch_size)

    def _remember(self, durable: Durable) -> Durable:
        self._by_key[durable.client_id, durable.name] = self.by_number[durable.number] = durable
        if durable.subscription.spread:
            self._spread[durable.number] = durable
        return durable

    def _forget(self, durable: Durable) -> None:
        del self._by_key[durable.client_id, durable.name]
        del self.by_number[durable.number]
        self._spread.pop(durable.number, None)
        if self._store is not None:
            self._store.remove_subscription(durable.stored)

    # What the store keeps

    def next_handle(self) -> int:
        """The handle of the next message, its number in the store too; -1: as the core counts."""
        return -1 if self._store is None else self._store.reserve(self._topics.region.next_handle)

    def keep(self, outcome: Outcome) -> None:
        """One waits for a message: the store has it as long as one does."""
        if self._store is None or outcome.topic is None or outcome.consumer is None or outcome.message is None:
            return
        where = self._place_of(outcome.topic, self._store)
        if outcome.message > self._newest:
            self._newest = self._store.add(where, outcome.body, sequence=outcome.message)
        self._store.refer(self.by_number[outcome.consumer].stored, where, outcome.message)

    def release(self, outcome: Outcome) -> None:
        """It waits no more."""
        if self._store is None or outcome.topic is None or outcome.consumer is None or outcome.message is None:
            return
        where = self._place_of(outcome.topic, self._store)
        self._store.release(self.by_number[outcome.consumer].stored, where, outcome.message)

    def page(
        self, changes: list[Outcome], subscription: int | None, topic: int, after: tuple[int, int], limit: int
    ) -> list[tuple[int, Message]]:
        """What the core asks for when it comes to messages that only the store has."""
        store = self._store
        assert store is not None
        for change in changes:
            if change.kind is EventKind.STORED:
                self.keep(change)
            else:
                self.release(change)
        where = self._place_of(topic, store)
        if subscription is None:
            found = store.load(where, after, limit)
        else:
            by_priority = self._topics.region.is_prioritized(subscription)
            durable = self.by_number[subscription]
            found = store.load_waiting(durable.stored, where, after, limit, by_priority=by_priority)
        return [(stored.sequence, stored.message) for stored in found]

    def _place_of(self, topic: int, store: SqliteStore) -> int:
        return store.destination(str(self._topics.destinations[topic].destination))

    # Those whose consumer stays away

    def plan_cleanup(self) -> None:
        """offlineDurableSubscriberTimeout: looked at every offlineDurableSubscriberTaskSchedule ms while it matters."""
        timeout, schedule = self._offline.timeout, self._offline.schedule
        if timeout < 0 or schedule <= 0 or (self._cleanup is not None and self._cleanup.pending):
            return
        if not all(durable.active for durable in self):
            now = self._services.clock.now()
            due = now + schedule - (now - self._offline.started) % schedule
            self._cleanup = self._services.call_at(due, self._run_cleanup)

    def _run_cleanup(self) -> None:
        for key in self._topics.region.remove_offline(self._offline.timeout, now=self._services.clock.now()):
            self._forget(self._by_key[key])
        self.plan_cleanup()
