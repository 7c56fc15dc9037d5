"""The consumers of a broker: which destinations each is attached to, and how they leave (AbstractRegion)."""

from __future__ import annotations

from dataclasses import replace

from pyengine import Selector
from pyengine.activemq.broker.advisories import Advisories
from pyengine.activemq.broker.event_listeners import EventListeners
from pyengine.activemq.broker.events import ConsumerClosed, ConsumerStarted
from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.broker.router import AnyDestination, Router
from pyengine.activemq.broker.services import BrokerServices
from pyengine.activemq.broker.slow_consumers import SlowConsumers
from pyengine.activemq.broker.subscription import Connection, Source, Subscription
from pyengine.activemq.broker.topic_destination import TopicDestination
from pyengine.activemq.broker.topics import Topics
from pyengine.activemq.transport.commands import ConsumerInfo, MessagePull
from pyengine.destinations import Destination, composite_parts
from pyengine.errors import JMSError
from pyengine.topology.policy import Policy


class Consumers:
    """The subscriptions of one broker's clients, by consumer id; every method runs inside a change of the broker.

    subscriptions: the region's own dict, which the compiled send and acknowledgement read. spread: those of several
    destinations, which are attached to each destination that is made later and that they cover.
    """

    def __init__(
        self,
        services: BrokerServices,
        router: Router,
        topics: Topics,
        slow_consumers: SlowConsumers,
        advisories: Advisories,
        listeners: EventListeners,
        subscriptions: dict[str, Subscription],
    ) -> None:
        self._services = services
        self._router = router
        self._topics = topics
        self._slow_consumers = slow_consumers
        self._advisories = advisories
        self._listeners = listeners
        self.subscriptions = subscriptions
        self.spread: dict[str, Subscription] = {}

    # Joining

    def add(self, info: ConsumerInfo, connection: Connection) -> int:
        """Attach a consumer to its destinations. Returns its prefetch under the policy."""
        # A region has destinations of its own kind only (RegionBroker.addConsumer).
        kind = info.destination.kind
        patterns = tuple(part for part in composite_parts(info.destination) if part.kind == kind)
        # Of a composite the entry that covers its whole name.
        policy = self._services.policies.policy_of(info.destination)
        subscription = Subscription(
            info=info,
            connection=connection,
            patterns=patterns,
            selector=None if info.selector is None else Selector(info.selector),
            policy=policy,
            prefetch=info.prefetch_size if policy is None else _prefetch_under(policy, info),
        )
        subscription.last_acknowledged = self._services.clock.now()
        if not subscription.spread:
            with self._router.on_behalf_of(info.connection_id):
                self._router.find(patterns[0], create_temporary=True)
        elif "," not in info.destination.name:
            self._router.make_wildcard(patterns[0])
        if info.subscription_name:
            self._topics.durables.subscribe(subscription)
        self.subscriptions[info.consumer_id] = subscription
        connection.subscriptions[info.consumer_id] = subscription
        self._advisories.join(subscription)
        self._listeners.update_region()
        self._services.report(ConsumerStarted(info.destination, info))
        if not info.subscription_name:
            met = [
                found
                for name, found in self._router.candidates(patterns)
                if subscription.meets(name) and self._router.lets_in(info.destination, name)
            ]
            # A queue may have a wildcard's name: it serves consumers of what it covers, too.
            subscription.spread |= len(met) > 1
            if subscription.spread:
                self.spread[info.consumer_id] = subscription
            for found in met:
                found.add(subscription)
        self._advisories.consumer_added(subscription)
        return subscription.prefetch

    def attach(self, destination: AnyDestination) -> None:
        """Attach a new destination to the consumers of patterns that cover it, in the order in which they came."""
        if isinstance(destination, TopicDestination):
            self._topics.durables.attach(destination)
        for subscription in list(self.spread.values()):
            if subscription.covers(destination.destination) and self._router.lets_in(
                subscription.info.destination, destination.destination
            ):
                destination.add(subscription)
        self._advisories.destination_added(destination.destination, self._router.creator)

    # Asking

    def of(self, destination: Destination) -> list[Subscription]:
        """The consumers that are attached to a destination."""
        found = self._router.destinations.get(destination)
        return [] if found is None else found.consumers()

    def count_at(self, destination: Destination) -> int:
        """How many consumers a destination has, durable subscriptions without their consumer included."""
        durables = sum(each.subscription.covers(destination) for each in self._topics.durables)
        return durables + sum(not each.info.subscription_name for each in self.of(destination))

    def user_of(self, destination: Destination) -> str | None:
        """The id of a consumer that keeps a destination from being removed; None: there is none."""
        users = {each.info.consumer_id: each for each in (*self.of(destination), *self.spread.values())}
        # A durable subscription counts though its consumer is away (TopicRegion.removeConsumer keeps it).
        if destination.kind == "topic":
            users |= {f"{each.client_id}:{each.name}": each.subscription for each in self._topics.durables}
        return next((name for name, each in users.items() if each.covers(destination)), None)

    # Credit

    def set_prefetch(self, consumer_id: str, prefetch: int) -> None:
        """See ``Broker.set_prefetch``."""
        subscription = self.subscriptions.get(consumer_id)
        if subscription is None:
            return
        if subscription.policy is not None:
            prefetch = _prefetch_under(subscription.policy, replace(subscription.info, prefetch_size=prefetch))
        subscription.prefetch = prefetch
        if subscription.credit is not None:
            subscription.credit.set_prefetch(prefetch)
        self._topics.set_prefetch(subscription)
        for queue, number in list(subscription.queues.items()):
            queue.core.set_prefetch(number, prefetch)
            queue.run()

    def pull(self, pull: MessagePull) -> None:
        """A consumer with prefetch 0 asks for a message. Raises JMSError for an unknown consumer."""
        subscription = self.subscriptions.get(pull.consumer_id)
        if subscription is None:
            raise JMSError(f"pull: there is no subscription {pull.consumer_id!r}")
        if subscription.topic is not None:
            self._topics.pull(subscription, pull)
        elif subscription.spread:
            self._pull_several(subscription, pull)
        for queue in () if subscription.spread else list(subscription.queues):
            queue.pull(subscription, pull)

    def _pull_several(self, subscription: Subscription, pull: MessagePull) -> None:
        """One message of any of its queues, or the null dispatch when the time is over."""
        if subscription.prefetch:
            return
        if subscription.asked is not None:  # a receive that was cancelled: its timeout does not end this one
            subscription.asked.cancel()
        credit, before = subscription.credit, subscription.given
        if credit is not None:
            credit.extend(1)
            for queue in credit.wakes():
                queue.owner.offer(subscription)
                if subscription.given != before:
                    return

        def end() -> None:
            if subscription.info.consumer_id in self.subscriptions and subscription.given == before:
                if subscription.credit is not None:
                    subscription.credit.extend(0)
                subscription.dispatch(self._services.outbox, None, None, 0)

        if pull.timeout < 0:
            end()
        elif pull.timeout > 0:
            subscription.asked = self._services.call_at(self._services.clock.now() + pull.timeout, end)

    # Leaving

    def remove(self, leaving: list[Subscription], last_delivered: str | None = None, *, lost: bool = False) -> None:
        """Remove consumers that leave together, session by session. What one held goes to the next at once; the rounds
        that this asks for come when all have left, as the broker makes them on another thread.

        lost: their connection broke, so that all that they held counts as redelivered.
        """
        queues: dict[Source, None] = {}
        # A durable subscription compares the place of that message with its own, whichever of them had it.
        last_of_topics = self._topics.handle_of(last_delivered, leaving)
        sessions = list(dict.fromkeys(each.info.session_id for each in leaving))
        for subscription in sorted(leaving, key=lambda each: sessions.index(each.info.session_id)):
            del self.subscriptions[subscription.info.consumer_id]
            self.spread.pop(subscription.info.consumer_id, None)
            subscription.connection.subscriptions.pop(subscription.info.consumer_id, None)
            queues.update(dict.fromkeys(subscription.queues))
            for queue in list(subscription.queues):
                queue.remove(subscription, last_delivered=last_delivered, lost=lost)
            self._topics.remove(subscription, last_delivered=last_of_topics, lost=lost)
            subscription.forget()
            self._slow_consumers.forget(subscription)
            self._advisories.leave(subscription)
            self._listeners.update_region()
            self._advisories.consumer_removed(subscription)
            self._services.report(ConsumerClosed(subscription.info.destination, subscription.info))
        for queue in queues:
            queue.run()

    def release(self, queue: QueueDestination) -> None:
        """The queue is removed, its consumers stay: a queue of that name that is made later has them."""
        for subscription in queue.consumers():
            queue.remove(subscription, lost=True)
            subscription.spread = True
            self.spread[subscription.info.consumer_id] = subscription


def _prefetch_under(policy: Policy, info: ConsumerInfo) -> int:
    durable = bool(info.subscription_name)
    return policy.prefetch_of(info.prefetch_size, info.destination.kind, browser=info.browser, durable=durable)
