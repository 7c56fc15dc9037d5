"""The topics of the broker: drives the core's topics and carries out what they decided."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
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
from pyengine.activemq.events import (
    MessageConsumed,
    MessageDelivered,
    MessageDiscarded,
    NoConsumer,
    SelectorFailed,
    SlowConsumer,
)
from pyengine.activemq.store import SqliteStore
from pyengine.activemq.subscription import Subscription
from pyengine.activemq.transaction import TopicAcknowledged, Transaction
from pyengine.clock import Timer
from pyengine.destinations import ADVISORY, Destination, parse_destination
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

LOG = logging.getLogger("pyengine.activemq")
TICK = 1000
NO_POLICY = Policy("")


@dataclass(slots=True, eq=False)
class Durable:
    """A durable subscription, with or without its consumer. number: its id in the core. stored: its number in the
    store. subscription: as its last consumer asked for it."""

    client_id: str
    name: str
    number: int
    stored: int
    subscription: Subscription


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
        return FixedSizedRecovery(given.maximum_size)
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
        self.came = 0
        self.dlq = False
        self.number = broker.topics.add(self)
        self.watch = broker.slow_consumers.watch(self, policy)
        self._scan: Timer | None = None
        self._made = broker.clock.now()

    def dispose(self) -> None:
        """The topic is removed."""
        if self._scan is not None:
            self._scan.cancel()
        if self.watch is not None:
            self.watch.destinations.remove(self)
        self.broker.topics.remove_topic(self)

    def add(self, subscription: Subscription) -> None:
        """Attach a consumer; it gets at once what it is retroactive for."""
        topics = self.broker.topics
        self.came += 1
        self.subscriptions.append(subscription)
        topics.carry_out(topics.region.attach(topics.id_of(subscription), self.number, now=self.broker.clock.now()))
        if self.watch is not None:
            self.watch.plan()

    def attach_durable(self, subscription: Subscription) -> None:
        """The consumer of a durable subscription is there."""
        self.subscriptions.append(subscription)
        if self.watch is not None:
            self.watch.plan()

    def consumers(self) -> list[Subscription]:
        """Its consumers that are there."""
        return list(self.subscriptions)

    def put(self, message: Message, now: int) -> None:
        """Send a message to the subscriptions."""
        topics = self.broker.topics
        outcomes = topics.region.send(self.number, message, handle=topics.next_handle(), now=now)
        topics.carry_out(outcomes)
        if self.policy is not None and self.policy.advisory_for_delivery:
            self.broker.report(MessageDelivered(self.destination, message))
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
        counts = self.broker.topics.region.statistics(self.number)
        if period > 0 and (counts["stored"] or counts["behind"]) and (self._scan is None or not self._scan.pending):
            now = self.broker.clock.now()
            self._scan = self.broker.call_at(now + period - (now - self._made) % period, self._expire)

    def _expire(self) -> None:
        topics, store = self.broker.topics, self.broker.store
        upto = None
        if store is not None:
            upto = store.sequence_at(str(self.destination), (self.policy or NO_POLICY).max_expire_page_size)
        topics.carry_out(topics.region.expire(self.number, self.broker.clock.now(), upto=upto))
        self.plan_scan()

    @property
    def stored(self) -> int:
        """How many messages durable subscriptions wait for."""
        store = self.broker.store
        if store is None:
            return self.broker.topics.region.statistics(self.number)["stored"]
        return store.size(str(self.destination))


class Topics:
    """The core's topics, which all subscriptions share."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._store = broker.store
        self.region = TopicRegion(
            expired_as_discarded=broker.release == "5.17",
            pager=None if broker.store is None else self._page,
            page=max(1, broker.cursor_limit),
        )
        self.destinations: dict[int, TopicDestination] = {}
        self._tells_consumed: dict[str, TopicDestination] = {}
        self._timed: list[int] = []
        self._subscriptions: dict[int, Subscription] = {}
        self._pulls: dict[int, Timer] = {}
        self._tick: Timer | None = None
        self._cleanup: Timer | None = None
        self._keys = 0
        self._cause = ""
        self.durables: dict[tuple[str, str], Durable] = {}
        self._durable_of: dict[int, Durable] = {}
        self._spread: dict[int, Durable] = {}  # those of patterns, which wait for topics that others make
        self._newest = 0

    def add(self, topic: TopicDestination) -> int:
        """A new topic; returns its number in the core."""
        policy = topic.policy
        number = self.region.add_topic(
            str(topic.destination),
            dispatch_policy="simple" if policy is None else policy.dispatch_policy,
            selector_errors="no_match" if policy is None else policy.selector_errors,
            recovery=recovery_of(policy, topic.destination),
            always_retroactive=policy is not None and policy.always_retroactive,
            minimum_message_size=(policy or NO_POLICY).minimum_message_size,
            now=self.broker.clock.now(),
        )
        self.destinations[number] = topic
        if policy is not None and policy.advisory_for_consumed:
            self._tells_consumed[str(topic.destination)] = topic
        if policy is not None and isinstance(policy.subscription_recovery_policy, TimedSubscriptionRecoveryPolicy):
            self._timed.append(number)
        return number

    def remove_topic(self, topic: TopicDestination) -> None:
        """A topic is no more."""
        self.region.remove_topic(topic.number)
        del self.destinations[topic.number]
        if topic.number in self._timed:
            self._timed.remove(topic.number)
        self._tells_consumed.pop(str(topic.destination), None)

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
        """A consumer leaves: what waits for it is gone, but for a durable subscription's, which waits on.

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
        if number not in self._durable_of:
            self.region.close(number)
            return
        self.region.deactivate(number, last_delivered=last_delivered, lost=lost, now=self.broker.clock.now())
        self._plan_cleanup()

    # Durable subscriptions

    def subscribe(self, subscription: Subscription) -> None:
        """The consumer of a durable subscription comes. Raises JMSError if another one is there."""
        info, policy = subscription.info, subscription.policy
        if any(pattern.is_temporary for pattern in subscription.patterns):
            raise JMSError("A durable subscription cannot be created for a temporary topic.")
        if any(pattern.name.startswith(ADVISORY) for pattern in subscription.patterns):
            raise JMSError("Cannot create a durable subscription for an advisory Topic")
        client_id = subscription.connection.client_id or info.connection_id
        key = (client_id, info.subscription_name)
        if self._store is not None:
            self._store.check_text(*key, str(info.destination), info.selector)
        topics = [
            topic
            for _, topic in self.broker.router.candidates(subscription.patterns)
            if isinstance(topic, TopicDestination) and subscription.covers(topic.destination)
        ]
        now = self.broker.clock.now()
        number, outcome = self.region.subscribe(
            *key,
            [topic.number for topic in topics],
            destination=str(info.destination),
            selector=subscription.selector,
            priority=info.priority,
            prefetch=subscription.prefetch,
            no_local=info.no_local,
            connection=info.connection_id,
            name=info.consumer_id or None,
            retroactive=info.retroactive,
            prioritized_messages=policy is not None and policy.prioritized_messages,
            use_prefetch_extension=policy is None or policy.use_prefetch_extension,
            active=False,
            now=now,
        )
        durable = self.durables.get(key)
        if durable is None or durable.number != number:
            if durable is not None:
                self._forget_durable(durable)
            stored = 0
            if self.broker.store is not None:
                stored = self.broker.store.add_subscription(*key, str(info.destination), info.selector, info.no_local)
            durable = self._remember_durable(Durable(*key, number, stored, subscription))
        else:
            # The policy is asked when a subscription is made; whoever comes back counts with the client's own prefetch.
            subscription.prefetch = info.prefetch_size
        durable.subscription = subscription
        subscription.topic = number
        self._subscriptions[number] = subscription
        for topic in topics:
            topic.attach_durable(subscription)
        self.carry_out(outcome)
        self.carry_out(self.region.activate(number, prefetch=subscription.prefetch, now=now))

    def unsubscribe(self, client_id: str, name: str) -> None:
        """Delete a durable subscription. Raises InvalidDestinationError, JMSError if its consumer is there."""
        self.region.unsubscribe(client_id, name)
        self._forget_durable(self.durables[client_id, name])

    def awaited(self, topic: TopicDestination) -> bool:
        """Whether a durable subscription covers the topic."""
        return any(durable.subscription.covers(topic.destination) for durable in self.durables.values())

    def attach_durables(self, topic: TopicDestination) -> None:
        """A topic is new: durable subscriptions of patterns that cover it, also those whose consumer is away."""
        for durable in self._spread.values():
            subscription = durable.subscription
            if subscription.covers(topic.destination):
                if subscription.topic is not None:
                    topic.attach_durable(subscription)
                self.carry_out(self.region.attach(durable.number, topic.number, now=self.broker.clock.now()))

    def recover(self, store: SqliteStore) -> None:
        """Bring back the durable subscriptions of a store and what each still has to get."""
        by_stored: dict[int, Durable] = {}
        now = self.broker.clock.now()
        for kept in store.subscriptions():
            subscription = self.broker.absent_subscriber(kept)
            topics = [
                topic.number
                for _, topic in self.broker.router.candidates(subscription.patterns)
                if isinstance(topic, TopicDestination) and subscription.covers(topic.destination)
            ]
            policy = subscription.policy
            number, outcome = self.region.subscribe(
                kept.client_id,
                kept.name,
                topics,
                destination=kept.destination,
                selector=subscription.selector,
                no_local=kept.no_local,
                connection=("away", kept.number),
                prioritized_messages=policy is not None and policy.prioritized_messages,
                use_prefetch_extension=policy is None or policy.use_prefetch_extension,
                active=False,
                now=now,
            )
            self.carry_out(outcome)
            durable = Durable(kept.client_id, kept.name, number, kept.number, subscription)
            by_stored[kept.number] = self._remember_durable(durable)
        for stored, name, count in store.waiting():
            (destination,) = parse_destination(name)
            topic = self.broker.router.find(destination)
            assert isinstance(topic, TopicDestination)
            self.region.leave_behind(by_stored[stored].number, topic.number, count)
            topic.plan_scan()
        self._newest = store.reserve()
        self._plan_cleanup()

    def _remember_durable(self, durable: Durable) -> Durable:
        self.durables[durable.client_id, durable.name] = self._durable_of[durable.number] = durable
        if durable.subscription.spread:
            self._spread[durable.number] = durable
        return durable

    def _forget_durable(self, durable: Durable) -> None:
        del self.durables[durable.client_id, durable.name]
        del self._durable_of[durable.number]
        self._spread.pop(durable.number, None)
        if self._store is not None:
            self._store.remove_subscription(durable.stored)

    def next_handle(self) -> int:
        """The handle of the next message, its number in the store too; -1: as the core counts."""
        return -1 if self._store is None else self._store.reserve(self.region.next_handle)

    def _keep(self, outcome: Outcome) -> None:
        """A durable subscription waits for a message: the store has it as long as one does."""
        if self._store is None or outcome.topic is None or outcome.consumer is None or outcome.message is None:
            return
        where = self._store.destination(str(self.destinations[outcome.topic].destination))
        if outcome.message > self._newest:
            self._newest = self._store.add(where, outcome.body, sequence=outcome.message)
        self._store.refer(self._durable_of[outcome.consumer].stored, where, outcome.message)

    def _release(self, outcome: Outcome) -> None:
        """It waits no more."""
        if self._store is None or outcome.topic is None or outcome.consumer is None or outcome.message is None:
            return
        where = self._store.destination(str(self.destinations[outcome.topic].destination))
        self._store.release(self._durable_of[outcome.consumer].stored, where, outcome.message)

    def _page(
        self, changes: list[Outcome], subscription: int | None, topic: int, after: tuple[int, int], limit: int
    ) -> list[tuple[int, Message]]:
        """What the core asks for when it comes to messages that only the store has."""
        store = self._store
        assert store is not None
        for change in changes:
            if change.kind is EventKind.STORED:
                self._keep(change)
            else:
                self._release(change)
        where = store.destination(str(self.destinations[topic].destination))
        if subscription is None:
            found = store.load(where, after, limit)
        else:
            durable = self._durable_of[subscription]
            found = store.load_waiting(
                durable.stored, where, after, limit, by_priority=self.region.is_prioritized(subscription)
            )
        return [(stored.sequence, stored.message) for stored in found]

    def _plan_cleanup(self) -> None:
        """offlineDurableSubscriberTimeout: looked at every offlineDurableSubscriberTaskSchedule ms while it matters."""
        broker = self.broker
        timeout, schedule = broker.offline_durable_subscriber_timeout, broker.offline_durable_subscriber_task_schedule
        if timeout < 0 or schedule <= 0 or (self._cleanup is not None and self._cleanup.pending):
            return
        if any(durable.subscription.topic is None for durable in self.durables.values()):
            now = broker.clock.now()
            self._cleanup = broker.call_at(now + schedule - (now - broker.started) % schedule, self._run_cleanup)

    def _run_cleanup(self) -> None:
        timeout = self.broker.offline_durable_subscriber_timeout
        for key in self.region.remove_offline(timeout, now=self.broker.clock.now()):
            self._forget_durable(self.durables[key])
        self._plan_cleanup()

    # Acknowledgements

    def acknowledge(self, subscription: Subscription, ack: MessageAck, transaction: Transaction | None) -> None:
        """What a consumer says of messages from topics."""
        number = self.id_of(subscription)
        now = self.broker.clock.now()
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
            transaction.steps.append(TopicAcknowledged(subscription, key))
        else:
            self._acknowledged(subscription)
        self._cause = ack.poison_cause
        self.carry_out(outcome)
        self._cause = ""

    def commit(self, step: TopicAcknowledged) -> None:
        """The transaction of these acknowledgements is committed."""
        outcome = self.region.commit(step.key, now=self.broker.clock.now())
        self._acknowledged(step.subscription)
        self.carry_out(outcome)

    def rollback(self, step: TopicAcknowledged) -> None:
        """The transaction of these acknowledgements is rolled back."""
        self.carry_out(self.region.rollback(step.key, now=self.broker.clock.now()))

    def _acknowledged(self, subscription: Subscription) -> None:
        telling = self._tells_consumed if subscription.info.subscription_name else {}
        for handle, message in self.region.settled:
            subscription.release(message.message_id or "", self)
            topic = telling.get(message.destination or "")
            if topic is not None:
                self.broker.report(MessageConsumed(topic.destination, message))
            if handle > max(subscription.acknowledged.values(), default=-1):
                subscription.acknowledged = {message.message_id or "": handle}

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
        if (self._tick is None or not self._tick.pending) and any(map(self.region.recoverable, self._timed)):
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
        # A durable subscription's own count, else the message's, of one that was sent again; others are told none.
        if delivery.redeliveries or delivery.consumer not in self._durable_of:
            message.redelivery_counter = delivery.redeliveries
        message.broker_out_time = now
        subscription.hold(message.message_id or "", self, delivery.message)
        topic = self.destinations[delivery.topic]
        subscription.dispatch(self.broker.outbox, topic.destination, message, message.redelivery_counter)
        if topic.watch is not None:
            topic.watch.plan()

    def _happened(self, outcome: Outcome) -> None:
        subscription = None if outcome.consumer is None else self._subscriptions.get(outcome.consumer)
        if outcome.kind is EventKind.NOT_EVICTED and subscription is not None:
            consumer = subscription.info.consumer_id
            LOG.warning("the eviction strategy of %s evicted nothing", consumer, exc_info=outcome.detail)
        if outcome.topic is None:
            return
        topic = self.destinations[outcome.topic]
        broker, where = self.broker, topic.destination
        match outcome.kind:
            case EventKind.SLOW if subscription is not None:
                broker.report(SlowConsumer(where, subscription.info))
                if topic.watch is not None:
                    topic.watch.slow(subscription)
            case EventKind.DISCARDED if subscription is not None:
                broker.report(MessageDiscarded(where, outcome.body, subscription.info, outcome.detail))
                cause = f"java.lang.Throwable: TopicSubDiscard. ID:{subscription.info.consumer_id}"
                self._unconsumed(topic, outcome.body, cause)
            case EventKind.EXPIRED:
                self._unconsumed(topic, outcome.body, expiry_cause(outcome.body))
            case EventKind.STORED:
                self._keep(outcome)
            case EventKind.RELEASED if outcome.consumer in self._durable_of:
                self._release(outcome)
            case EventKind.POISONED if outcome.consumer in self._durable_of:
                durable = self._durable_of[outcome.consumer]
                self._unconsumed(topic, outcome.body, self._cause, f"{durable.client_id}:{durable.name}")
            case EventKind.NO_CONSUMER:
                broker.report(NoConsumer(where, outcome.body))
            case EventKind.SELECTOR_FAILED if subscription is not None:
                broker.report(SelectorFailed(where, outcome.body, subscription.info, str(outcome.detail)))
            case _:
                pass

    def _unconsumed(self, topic: TopicDestination, message: Message, cause: str, durable: str | None = None) -> None:
        count = message.redelivery_counter
        self.broker.dead_letters.handle(Unconsumed(topic.destination, topic.policy, message, cause, count, durable))
