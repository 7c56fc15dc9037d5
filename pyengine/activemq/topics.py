"""The topics of the broker: drives the core's topics and carries out what they decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyengine._engine.audit import Audit
from pyengine._engine.eviction import (
    ConstantPendingLimit,
    CustomEviction,
    Eviction,
    LowestPriorityEviction,
    OldestEviction,
    PendingLimit,
    PrefetchRatePendingLimit,
    UniquePropertyEviction,
)
from pyengine._engine.message import Message
from pyengine._engine.queue import AckKind
from pyengine._engine.recovery import (
    FixedCountRecovery,
    FixedSizedRecovery,
    LastImageRecovery,
    NoRecovery,
    QueryRecovery,
    Recovery,
    TimedRecovery,
)
from pyengine._engine.topic import TopicRegion
from pyengine._engine.topic_ledger import Event as Outcome
from pyengine._engine.topic_ledger import EventKind, TopicDelivery
from pyengine.activemq.commands import MessageAck, MessagePull
from pyengine.activemq.dead_letters import Unconsumed, expiry_cause
from pyengine.activemq.events import MessageDiscarded, NoConsumer, SelectorFailed, SlowConsumer
from pyengine.activemq.subscription import Subscription
from pyengine.activemq.transaction import TopicAcknowledged, Transaction
from pyengine.clock import Timer
from pyengine.destinations import Destination
from pyengine.errors import JMSError
from pyengine.topology.policy import (
    ConstantPendingMessageLimitStrategy,
    FixedCountSubscriptionRecoveryPolicy,
    FixedSizedSubscriptionRecoveryPolicy,
    LastImageSubscriptionRecoveryPolicy,
    OldestMessageEvictionStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    Policy,
    QueryBasedSubscriptionRecoveryPolicy,
    TimedSubscriptionRecoveryPolicy,
    UniquePropertyMessageEvictionStrategy,
)

if TYPE_CHECKING:
    from pyengine.activemq.broker import Broker

TICK = 1000


def limit_of(policy: Policy | None) -> PendingLimit | None:
    """The core's pending limit of a policy."""
    strategy = None if policy is None else policy.pending_message_limit_strategy
    if strategy is None:
        return None
    if isinstance(strategy, ConstantPendingMessageLimitStrategy):
        return ConstantPendingLimit(strategy.limit)
    return PrefetchRatePendingLimit(strategy.multiplier)


def eviction_of(policy: Policy | None) -> Eviction | None:
    """The core's eviction strategy of a policy."""
    if policy is None:
        return None
    strategy = policy.message_eviction_strategy
    watermark = getattr(strategy, "evict_expired_messages_high_watermark", 1000)
    if isinstance(strategy, OldestMessageEvictionStrategy):
        return OldestEviction(high_watermark=watermark)
    if isinstance(strategy, OldestMessageWithLowestPriorityEvictionStrategy):
        return LowestPriorityEviction(high_watermark=watermark)
    if isinstance(strategy, UniquePropertyMessageEvictionStrategy):
        return UniquePropertyEviction(strategy.property_name, high_watermark=watermark)
    return CustomEviction(strategy.evict_messages, high_watermark=watermark)


def recovery_of(policy: Policy | None, destination: Destination) -> Recovery | None:
    """The core's recovery policy of a policy."""
    given = None if policy is None else policy.subscription_recovery_policy
    if given is None:
        return None
    if isinstance(given, FixedCountSubscriptionRecoveryPolicy):
        return FixedCountRecovery(given.maximum_size)
    if isinstance(given, FixedSizedSubscriptionRecoveryPolicy):
        return FixedSizedRecovery(given.maximum_size, given.use_shared_buffer)
    if isinstance(given, LastImageSubscriptionRecoveryPolicy):
        return LastImageRecovery()
    if isinstance(given, TimedSubscriptionRecoveryPolicy):
        return TimedRecovery(given.recover_duration)
    if isinstance(given, QueryBasedSubscriptionRecoveryPolicy):
        query = given.query
        return QueryRecovery(lambda name: query.query(destination), query.validate_update)
    return NoRecovery()


class TopicDestination:
    """One topic. Every method runs inside a change of the broker."""

    def __init__(self, broker: Broker, destination: Destination, policy: Policy | None) -> None:
        self.broker = broker
        self.destination = destination
        self.policy = policy
        self.subscriptions: list[Subscription] = []
        self.number = broker.topics.add(self)

    def dispose(self) -> None:
        """The topic is removed."""
        self.broker.topics.region.remove_topic(self.number)
        del self.broker.topics.destinations[self.number]

    def add(self, subscription: Subscription) -> None:
        """Attach a consumer; it gets at once what it is retroactive for."""
        topics = self.broker.topics
        self.subscriptions.append(subscription)
        topics.carry_out(topics.region.attach(topics.id_of(subscription), self.number, now=self.broker.clock.now()))

    def put(self, message: Message) -> None:
        """Send a message to the subscriptions."""
        topics = self.broker.topics
        outcomes = topics.region.send(self.number, message, now=self.broker.clock.now())
        topics.carry_out(outcomes)
        topics.plan_tick()
        if self.policy is not None and self.policy.selector_errors == "exact":
            for outcome in outcomes:
                if isinstance(outcome, Outcome) and outcome.kind is EventKind.SELECTOR_FAILED:
                    raise JMSError(f"the topic stopped serving the message: {outcome.detail}")


class Topics:
    """The core's topics, which all subscriptions share."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.region = TopicRegion()
        self.destinations: dict[int, TopicDestination] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._pulls: dict[int, Timer] = {}
        self._tick: Timer | None = None
        self._keys = 0

    def add(self, topic: TopicDestination) -> int:
        """A new topic; returns its number in the core."""
        policy = topic.policy
        number = self.region.add_topic(
            str(topic.destination),
            dispatch_policy="simple" if policy is None else policy.dispatch_policy,
            selector_errors="no_match" if policy is None else policy.selector_errors,
            recovery=recovery_of(policy, topic.destination),
            always_retroactive=policy is not None and policy.always_retroactive,
            now=self.broker.clock.now(),
        )
        self.destinations[number] = topic
        return number

    # Consumers

    def id_of(self, subscription: Subscription) -> int:
        """A subscription's id in the core, where it is made on first use."""
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
                now=self.broker.clock.now(),
            )
            self._subscriptions[subscription.topic] = subscription
        return subscription.topic

    def remove(self, subscription: Subscription) -> None:
        """A consumer leaves: what waits for it is gone."""
        if subscription.topic is None:
            return
        number, subscription.topic = subscription.topic, None
        timer = self._pulls.pop(number, None)
        if timer is not None:
            timer.cancel()
        for topic in self.destinations.values():
            if subscription in topic.subscriptions:
                topic.subscriptions.remove(subscription)
        self.region.close(number)
        del self._subscriptions[number]

    def acknowledge(self, subscription: Subscription, ack: MessageAck, transaction: Transaction | None) -> None:
        """What a consumer says of messages from topics."""
        number = self.id_of(subscription)
        now = self.broker.clock.now()
        _, last = subscription.held.get(ack.last_message_id, (None, -1))
        _, first = subscription.held.get(ack.first_message_id or "", (None, -1))
        key = None
        if transaction is not None and ack.kind is not AckKind.DELIVERED:
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
        if ack.kind is not AckKind.DELIVERED:
            subscription.last_acknowledged = now
        if key is not None and transaction is not None:
            transaction.steps.append(TopicAcknowledged(subscription, key))
        else:
            self._forget_acknowledged(subscription)
        self.carry_out(outcome)

    def commit(self, step: TopicAcknowledged) -> None:
        """The transaction of these acknowledgements is committed."""
        outcome = self.region.commit(step.key, now=self.broker.clock.now())
        self._forget_acknowledged(step.subscription)
        self.carry_out(outcome)

    def rollback(self, step: TopicAcknowledged) -> None:
        """The transaction of these acknowledgements is rolled back."""
        self.region.rollback(step.key)

    def _forget_acknowledged(self, subscription: Subscription) -> None:
        if subscription.topic is None:
            return
        for _, message in self.region.settled:
            subscription.held.pop(message.message_id or "", None)

    def pull(self, subscription: Subscription, pull: MessagePull) -> None:
        """A consumer with prefetch 0 asks for a message."""
        number = self.id_of(subscription)
        now = self.broker.clock.now()
        self.carry_out(self.region.pull(number, timeout=pull.timeout, now=now))
        timer = self._pulls.pop(number, None)
        if timer is not None:
            timer.cancel()
        if pull.timeout > 0 and subscription.prefetch == 0:
            mark = self.region.pull_mark(number)
            self._pulls[number] = self.broker.call_at(now + pull.timeout, lambda: self._pull_timeout(number, mark))

    def _pull_timeout(self, number: int, mark: int) -> None:
        if number in self._subscriptions:
            self.carry_out(self.region.pull_timeout(number, mark))

    # What came of it

    def plan_tick(self) -> None:
        """Timed recovery looks at its messages every second, while there are any."""
        if (self._tick is None or not self._tick.pending) and any(
            topic.policy is not None
            and isinstance(topic.policy.subscription_recovery_policy, TimedSubscriptionRecoveryPolicy)
            and self.region.recoverable(topic.number)
            for topic in self.destinations.values()
        ):
            now = self.broker.clock.now()
            self._tick = self.broker.call_at(now - now % TICK + TICK, self._run_tick)

    def _run_tick(self) -> None:
        self.region.tick(self.broker.clock.now())
        self.plan_tick()

    def carry_out(self, outcomes: Iterable[TopicDelivery | Outcome]) -> None:
        """Hand out deliveries and report the rest, in order."""
        now = self.broker.clock.now()
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
            subscription.dispatch(self.broker.outbox, None, None, 0)
            return
        message: Message = delivery.body.copy()
        message.redelivery_counter = delivery.redeliveries
        message.broker_out_time = now
        subscription.held[message.message_id or ""] = (self, delivery.message)
        destination = self.destinations[delivery.topic].destination
        subscription.dispatch(self.broker.outbox, destination, message, delivery.redeliveries)

    def _happened(self, outcome: Outcome) -> None:
        if outcome.topic is None:
            return
        topic = self.destinations[outcome.topic]
        subscription = None if outcome.consumer is None else self._subscriptions.get(outcome.consumer)
        broker, where = self.broker, topic.destination
        match outcome.kind:
            case EventKind.SLOW if subscription is not None:
                broker.report(SlowConsumer(where, subscription.info))
            case EventKind.DISCARDED if subscription is not None:
                broker.report(MessageDiscarded(where, outcome.body, subscription.info))
                cause = f"java.lang.Throwable: TopicSubDiscard. ID:{subscription.info.consumer_id}"
                self._unconsumed(topic, outcome.body, cause)
            case EventKind.EXPIRED:
                self._unconsumed(topic, outcome.body, expiry_cause(outcome.body))
            case EventKind.NO_CONSUMER:
                broker.report(NoConsumer(where, outcome.body))
            case EventKind.SELECTOR_FAILED if subscription is not None:
                broker.report(SelectorFailed(where, outcome.body, subscription.info, str(outcome.detail)))
            case _:
                pass

    def _unconsumed(self, topic: TopicDestination, message: Message, cause: str) -> None:
        self.broker.dead_letters.handle(Unconsumed(topic.destination, topic.policy, message, cause))
