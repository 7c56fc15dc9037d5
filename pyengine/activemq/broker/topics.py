"""The topics of the broker: drives the core's topics and carries out what they decided."""

from __future__ import annotations

from collections.abc import Iterable

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.topic.ledger import Event as Outcome
from pyengine._engine.activemq.topic.ledger import EventKind, TopicDelivery
from pyengine._engine.activemq.topic.message_audit import Audit
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine._engine.message.message import Message
from pyengine.activemq.broker.dead_letters import DeadLetters, Unconsumed, expiry_cause
from pyengine.activemq.broker.durable_subscriptions import DurableSubscriptions, Offline, Topic
from pyengine.activemq.broker.events import MessageConsumed, MessageDiscarded, NoConsumer, SelectorFailed, SlowConsumer
from pyengine.activemq.broker.services import BrokerServices, Routes
from pyengine.activemq.broker.subscription import Subscription
from pyengine.activemq.broker.transaction import Transaction
from pyengine.activemq.core_settings import NO_POLICY, eviction_of, limit_of, recovery_of
from pyengine.activemq.transport.commands import MessageAck, MessagePull
from pyengine.clock import Timer
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination
from pyengine.errors import JMSError
from pyengine.topology.policy import TimedSubscriptionRecoveryPolicy
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
TICK = 1000


@dataclass(slots=True, eq=False)
class TopicAcknowledged:
    """A step of a transaction: messages of topics that the core keeps unacknowledged, under ``key``, until it ends."""

    topics: Topics
    subscription: Subscription
    key: tuple[str, int]

    @property
    def together(self) -> None:
        """By itself."""

    def commit(self) -> None:
        """They are acknowledged."""
        self.topics.commit(self)

    def rollback(self) -> None:
        """Their consumer holds them as before."""
        self.topics.rollback(self)


class Topics:
    """The core's topics, which all subscriptions share. destinations: by number in the core; named: by name."""

    def __init__(self, services: BrokerServices, routes: Routes, dead_letters: DeadLetters, offline: Offline) -> None:
        self._services = services
        self._dead_letters = dead_letters
        self.destinations: dict[int, Topic] = {}
        self.named: dict[Destination, Topic] = {}
        self.durables = DurableSubscriptions(services, routes, self, offline)
        self.region = TopicRegion(
            expired_as_discarded=services.release == "5.17",
            pager=None if services.store is None else self.durables.page,
            page=max(1, services.cursor_limit),
        )
        self._tells_consumed: dict[str, Topic] = {}
        self._timed: list[int] = []
        self._subscriptions: dict[int, Subscription] = {}
        self._pulls: dict[int, Timer] = {}
        self._tick: Timer | None = None
        self._keys = 0
        self._cause = ""

    def add(self, topic: Topic) -> int:
        """A new topic; returns its number in the core."""
        policy = topic.policy
        number = self.region.add_topic(
            str(topic.destination),
            dispatch_policy="simple" if policy is None else policy.dispatch_policy,
            selector_errors="no_match" if policy is None else policy.selector_errors,
            recovery=recovery_of(policy, topic.destination),
            always_retroactive=policy is not None and policy.always_retroactive,
            minimum_message_size=(policy or NO_POLICY).minimum_message_size,
            now=self._services.clock.now(),
        )
        self.destinations[number] = self.named[topic.destination] = topic
        if policy is not None and policy.advisory_for_consumed:
            self._tells_consumed[str(topic.destination)] = topic
        if policy is not None and isinstance(policy.subscription_recovery_policy, TimedSubscriptionRecoveryPolicy):
            self._timed.append(number)
        return number

    def remove_topic(self, topic: Topic) -> None:
        """A topic is no more."""
        self.region.remove_topic(topic.number)
        del self.destinations[topic.number]
        del self.named[topic.destination]
        if topic.number in self._timed:
            self._timed.remove(topic.number)
        self._tells_consumed.pop(str(topic.destination), None)

    # Consumers

    def id_of(self, subscription: Subscription) -> int:
        """A subscription's id in the core, which is made on first use."""
        if subscription.topic is None:
            info, policy = subscription.info, subscription.policy
            audit = None
            if policy is not None and policy.enable_audit:
                audit = Audit(policy.max_audit_depth, policy.max_producers_to_audit)
            subscription.topic = self.region.add_subscription(
                selector=subscription.selector,
                priority=info.priority,
                prefetch=subscription.prefetch,
                no_local=info.no_local,
                connection=info.connection_id,
                client_id=subscription.connection.client_id or None,
                name=info.consumer_id,
                browser=info.browser,
                retroactive=info.retroactive,
                pending_limit_strategy=limit_of(policy),
                maximum_pending_message_limit=info.maximum_pending_message_limit,
                eviction=eviction_of(policy),
                audit=audit,
                use_prefetch_extension=policy is None or policy.use_prefetch_extension,
                now=self._services.clock.now(),
            )
            self._subscriptions[subscription.topic] = subscription
        return subscription.topic

    def seat(self, subscription: Subscription, number: int) -> None:
        """The consumer of a durable subscription of that id is there."""
        subscription.topic = number
        self._subscriptions[number] = subscription

    def handle_of(self, message_id: str | None, holders: Iterable[Subscription]) -> int | None:
        """The handle of a message that one of the ``holders`` has or acknowledged last; None: none of them."""
        if message_id is None:
            return None
        for subscription in holders:
            found = subscription.find(message_id, self)
            handle = subscription.acknowledged.get(message_id) if found is None else found[1]
            if handle is not None:
                return handle
        return None

    def remove(self, subscription: Subscription, *, last_delivered: int | None, lost: bool) -> None:
        """A consumer leaves: messages that wait for it are gone, except a durable subscription's, which stay.

        last_delivered: the handle of the last message that it, or who leaves with it, gave to its user, None: unknown.
        """
        if subscription.topic is None:
            return
        number, subscription.topic = subscription.topic, None
        timer = self._pulls.pop(number, None)
        if timer is not None:
            timer.cancel()
        for topic in self.region.topics_of(number):
            if subscription in self.destinations[topic].subscriptions:
                self.destinations[topic].subscriptions.remove(subscription)
        del self._subscriptions[number]
        if number not in self.durables.by_number:
            self.region.close(number)
            return
        self.region.deactivate(number, last_delivered=last_delivered, lost=lost, now=self._services.clock.now())
        self.durables.plan_cleanup()

    # Acknowledgements

    def acknowledge(self, subscription: Subscription, ack: MessageAck, transaction: Transaction | None) -> None:
        """A consumer acknowledges messages of topics."""
        number = self.id_of(subscription)
        now = self._services.clock.now()
        _, last = subscription.find(ack.last_message_id, self) or (None, -1)
        _, first = subscription.find(ack.first_message_id or "", self) or (None, -1)
        key = None
        if transaction is not None and ack.kind not in (AckKind.DELIVERED, AckKind.REDELIVERED):
            self._keys += 1
            key = (transaction.transaction_id, self._keys)
        outcome = self.region.acknowledge(
            number,
            last,
            kind=ack.kind,
            first=None if ack.first_message_id is None else first,
            count=ack.message_count,
            transaction=key,
            now=now,
        )
        if key is not None and transaction is not None:
            transaction.steps.append(TopicAcknowledged(self, subscription, key))
        else:
            self._acknowledged(subscription)
        self._cause = ack.poison_cause
        self.carry_out(outcome)
        self._cause = ""

    def commit(self, step: TopicAcknowledged) -> None:
        """The transaction of these acknowledgements is committed."""
        outcome = self.region.commit(step.key, now=self._services.clock.now())
        self._acknowledged(step.subscription)
        self.carry_out(outcome)

    def rollback(self, step: TopicAcknowledged) -> None:
        """The transaction of these acknowledgements is rolled back."""
        self.carry_out(self.region.rollback(step.key, now=self._services.clock.now()))

    def _acknowledged(self, subscription: Subscription) -> None:
        telling = self._tells_consumed if subscription.info.subscription_name else {}
        for handle, message in self.region.settled:
            subscription.release(message.message_id or "", self)
            topic = telling.get(message.destination or "")
            if topic is not None:
                self._services.report(MessageConsumed(topic.destination, message))
            if handle > max(subscription.acknowledged.values(), default=-1):
                subscription.acknowledged = {message.message_id or "": handle}

    def pull(self, subscription: Subscription, pull: MessagePull) -> None:
        """A consumer with prefetch 0 asks for a message."""
        number = self.id_of(subscription)
        now = self._services.clock.now()
        self.carry_out(self.region.pull(number, timeout=pull.timeout, now=now))
        timer = self._pulls.pop(number, None)
        if timer is not None:
            timer.cancel()
        if pull.timeout > 0 and subscription.prefetch == 0:
            mark = self.region.pull_mark(number)
            self._pulls[number] = self._services.call_at(now + pull.timeout, lambda: self._pull_timeout(number, mark))

    def set_prefetch(self, subscription: Subscription) -> None:
        """The prefetch of a consumer has changed; harmless for one of no topic."""
        if subscription.topic is not None:
            now = self._services.clock.now()
            self.carry_out(self.region.set_prefetch(self.id_of(subscription), subscription.prefetch, now=now))

    def _pull_timeout(self, number: int, mark: int) -> None:
        if number in self._subscriptions:
            self.carry_out(self.region.pull_timeout(number, mark))

    # What came of it

    def plan_tick(self) -> None:
        """Timed recovery looks at its messages every second, while there are any."""
        if (self._tick is None or not self._tick.pending) and any(map(self.region.recoverable, self._timed)):
            now = self._services.clock.now()
            self._tick = self._services.call_at(now - now % TICK + TICK, self._run_tick)

    def _run_tick(self) -> None:
        self.region.tick(self._services.clock.now())
        self.plan_tick()

    def carry_out(self, outcomes: Iterable[TopicDelivery | Outcome]) -> None:
        """Hand out deliveries and report the rest, in order."""
        now = self._services.clock.now()
        for outcome in outcomes:
            if isinstance(outcome, TopicDelivery):
                self._hand(outcome, now)
            else:
                self._happened(outcome)

    def _hand(self, delivery: TopicDelivery, now: int) -> None:
        subscription = self._subscriptions.get(delivery.consumer)
        if subscription is None:
            raise JMSError(f"the topics dispatched to subscription {delivery.consumer}, which is gone")
        if delivery.message is None:
            subscription.dispatch(self._services.outbox, None, None, 0)
            return
        delivery.body.broker_out_time = now  # for selectors of consumers to come
        message: Message = delivery.body.copy()
        # A durable subscription's own count, else the message's, of one that was sent again; others get none.
        if delivery.redeliveries or delivery.consumer not in self.durables.by_number:
            message.redelivery_counter = delivery.redeliveries
        subscription.hold(message.message_id or "", self, delivery.message)
        topic = self.destinations[delivery.topic]
        subscription.dispatch(self._services.outbox, topic.destination, message, message.redelivery_counter)
        topic.handed_out()

    def _happened(self, outcome: Outcome) -> None:
        subscription = None if outcome.consumer is None else self._subscriptions.get(outcome.consumer)
        if outcome.kind is EventKind.NOT_EVICTED and subscription is not None:
            consumer = subscription.info.consumer_id
            where = subscription.info.destination
            LOG.warning("the eviction strategy of %s of %s evicted nothing", consumer, where, exc_info=outcome.detail)
        if outcome.topic is None:
            return
        topic = self.destinations[outcome.topic]
        services, where = self._services, topic.destination
        durable = None if outcome.consumer is None else self.durables.by_number.get(outcome.consumer)
        match outcome.kind:
            case EventKind.SLOW if subscription is not None:
                services.report(SlowConsumer(where, subscription.info))
                topic.slow(subscription)
            case EventKind.DISCARDED if subscription is not None:
                services.report(MessageDiscarded(where, outcome.body, subscription.info, outcome.detail))
                cause = f"java.lang.Throwable: TopicSubDiscard. ID:{subscription.info.consumer_id}"
                self._unconsumed(topic, outcome.body, cause)
            case EventKind.EXPIRED:
                self._unconsumed(topic, outcome.body, expiry_cause(outcome.body))
            case EventKind.STORED:
                self.durables.keep(outcome)
            case EventKind.RELEASED if durable is not None:
                self.durables.release(outcome)
            case EventKind.POISONED if durable is not None:
                self._unconsumed(topic, outcome.body, self._cause, f"{durable.client_id}:{durable.name}")
            case EventKind.NO_CONSUMER:
                services.report(NoConsumer(where, outcome.body))
            case EventKind.SELECTOR_FAILED if subscription is not None:
                services.report(SelectorFailed(where, outcome.body, subscription.info, str(outcome.detail)))
            case _:
                pass

    def _unconsumed(self, topic: Topic, message: Message, cause: str, durable: str | None = None) -> None:
        count = message.redelivery_counter
        self._dead_letters.handle(Unconsumed(topic.destination, topic.policy, message, cause, count, durable))
