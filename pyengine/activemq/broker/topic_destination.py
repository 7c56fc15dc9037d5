"""A topic of the broker: its consumers, and what is sent to it."""

from __future__ import annotations

from pyengine._engine.activemq.topic.ledger import Event as Outcome
from pyengine._engine.activemq.topic.ledger import EventKind
from pyengine._engine.message.message import Message
from pyengine.activemq.broker.events import MessageDelivered
from pyengine.activemq.broker.services import BrokerServices
from pyengine.activemq.broker.slow_consumers import SlowConsumers
from pyengine.activemq.broker.subscription import Subscription
from pyengine.activemq.broker.topics import Topics
from pyengine.activemq.core_settings import NO_POLICY
from pyengine.clock import Timer
from pyengine.destinations import Destination
from pyengine.errors import JMSError
from pyengine.topology.policy import Policy


class TopicDestination:
    """One topic. Every method runs inside a change of the broker."""

    def __init__(
        self,
        services: BrokerServices,
        topics: Topics,
        slow_consumers: SlowConsumers,
        destination: Destination,
        policy: Policy | None,
    ) -> None:
        self._services = services
        self._topics = topics
        self.destination = destination
        self.policy = policy
        self.subscriptions: list[Subscription] = []
        self.came = 0
        self.dlq = False
        self.number = topics.add(self)
        self.watch = slow_consumers.watch(self, policy)
        self._scan: Timer | None = None
        self._made = services.clock.now()

    def dispose(self) -> None:
        """The topic is removed."""
        if self._scan is not None:
            self._scan.cancel()
        if self.watch is not None:
            self.watch.destinations.remove(self)
        self._topics.remove_topic(self)

    def add(self, subscription: Subscription) -> None:
        """Attach a consumer; it gets at once what it is retroactive for."""
        topics = self._topics
        self.came += 1
        self.subscriptions.append(subscription)
        topics.carry_out(topics.region.attach(topics.id_of(subscription), self.number, now=self._services.clock.now()))
        if self.watch is not None:
            self.watch.plan()

    def attach_durable(self, subscription: Subscription) -> None:
        """The consumer of a durable subscription is there."""
        self.subscriptions.append(subscription)
        if self.watch is not None:
            self.watch.plan()

    def handed_out(self) -> None:
        """A message went to a consumer."""
        if self.watch is not None:
            self.watch.plan()

    def slow(self, subscription: Subscription) -> None:
        """A consumer was found slow."""
        if self.watch is not None:
            self.watch.slow(subscription)

    def consumers(self) -> list[Subscription]:
        """Its consumers that are there."""
        return list(self.subscriptions)

    def put(self, message: Message, now: int) -> None:
        """Send a message to the subscriptions."""
        topics = self._topics
        outcomes = topics.region.send(self.number, message, handle=topics.durables.next_handle(), now=now)
        topics.carry_out(outcomes)
        if self.policy is not None and self.policy.advisory_for_delivery:
            self._services.report(MessageDelivered(self.destination, message))
        topics.plan_tick()
        if message.expiration:
            self.plan_scan()
        if self.policy is not None and self.policy.selector_errors == "exact":
            for outcome in outcomes:
                if isinstance(outcome, Outcome) and outcome.kind is EventKind.SELECTOR_FAILED:
                    raise JMSError(f"the topic stopped serving the message: {outcome.detail}")

    def plan_scan(self) -> None:
        """The broker looks for expired messages for ever; a look that can find nothing is left out."""
        period = (self.policy or NO_POLICY).expire_messages_period
        counts = self._topics.region.statistics(self.number)
        if period > 0 and (counts["stored"] or counts["behind"]) and (self._scan is None or not self._scan.pending):
            now = self._services.clock.now()
            self._scan = self._services.call_at(now + period - (now - self._made) % period, self._expire)

    def _expire(self) -> None:
        topics, store = self._topics, self._services.store
        upto = None
        if store is not None:
            upto = store.sequence_at(str(self.destination), (self.policy or NO_POLICY).max_expire_page_size)
        topics.carry_out(topics.region.expire(self.number, self._services.clock.now(), upto=upto))
        self.plan_scan()

    @property
    def stored(self) -> int:
        """How many messages durable subscriptions wait for."""
        store = self._services.store
        if store is None:
            return self._topics.region.statistics(self.number)["stored"]
        return store.size(str(self.destination))
