"""Strategies against slow consumers: when they look, and how a consumer is aborted (spec activemq 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from pyengine._engine.activemq.topic.abort_strategies import AbortSlowAckConsumer, AbortSlowConsumer
from pyengine.activemq.broker.events import ConsumerAborted, SlowConsumer
from pyengine.activemq.broker.services import BrokerServices
from pyengine.activemq.broker.subscription import Connection, Subscription
from pyengine.activemq.broker.topics import Topics
from pyengine.activemq.transport.commands import ConsumerControl
from pyengine.clock import Timer
from pyengine.topology.policy import AbortSlowAckConsumerStrategy, Policy, SlowConsumerStrategy

FORCED_AFTER = 1000
Rule: TypeAlias = "AbortSlowConsumer[Subscription]"


class Watched(Protocol):
    """A destination that a strategy looks at."""

    def consumers(self) -> list[Subscription]:
        """Its consumers that are there."""


def rule_of(strategy: SlowConsumerStrategy) -> Rule:
    """The core's rule of a strategy."""
    if isinstance(strategy, AbortSlowAckConsumerStrategy):
        return AbortSlowAckConsumer(
            max_slow_count=strategy.max_slow_count,
            max_slow_duration=strategy.max_slow_duration,
            check_period=strategy.check_period,
            abort_connection=strategy.abort_connection,
            ignore_network_consumers=strategy.ignore_network_consumers,
            max_time_since_last_ack=strategy.max_time_since_last_ack,
            ignore_idle_consumers=strategy.ignore_idle_consumers,
        )
    return AbortSlowConsumer(
        max_slow_count=strategy.max_slow_count,
        max_slow_duration=strategy.max_slow_duration,
        check_period=strategy.check_period,
        abort_connection=strategy.abort_connection,
        ignore_network_consumers=strategy.ignore_network_consumers,
    )


class Watch:
    """One strategy at work at its destinations.

    Its looks begin with its first destination, or without acknowledgements to look at with the first slow consumer. The
    broker's looks for ever once it has begun; here a look that could change nothing is left out.
    """

    def __init__(self, services: BrokerServices, consumers: SlowConsumers, strategy: SlowConsumerStrategy) -> None:
        self.strategy = strategy
        self.rule = rule_of(strategy)
        self.destinations: list[Watched] = []
        self._services = services
        self._slow = consumers
        self._begun = services.clock.now() if isinstance(self.rule, AbortSlowAckConsumer) else -1
        self._timer: Timer | None = None

    def slow(self, subscription: Subscription) -> None:
        """A consumer was found slow."""
        if self.rule.slow(subscription):
            if self._begun < 0:
                self._begun = self._services.clock.now()
            self.plan()

    def plan(self) -> None:
        """Look again at the next turn, if there is something to see then."""
        period = self.strategy.check_period
        if period <= 0 or self._begun < 0 or (self._timer is not None and self._timer.pending) or not self._worth():
            return
        now = self._services.clock.now()
        self._timer = self._services.call_at(now + period - (now - self._begun) % period, self._look)

    def _worth(self) -> bool:
        if self.rule.slow_consumers:
            return True
        return isinstance(self.rule, AbortSlowAckConsumer) and any(
            held or not self.rule.ignore_idle_consumers for _, held, _ in self._consumers()
        )

    def _consumers(self) -> list[tuple[Subscription, int, int]]:
        found: list[tuple[Subscription, int, int]] = []
        for destination in self.destinations:
            for subscription in destination.consumers():
                if subscription.topic is None:
                    found.append((subscription, len(subscription.held), subscription.last_acknowledged))
                    continue
                counts = self._slow.topics.region.subscription_statistics(subscription.topic)
                found.append((subscription, counts["in_flight"], counts["last_ack"]))
        return found

    def _look(self) -> None:
        services, topics = self._services, self._slow.topics
        bridges = [each for where in self.destinations for each in where.consumers() if each.info.network_subscription]
        if isinstance(self.rule, AbortSlowAckConsumer):
            found, aborted = self.rule.check_acknowledgements(
                self._slow.is_slow, self._consumers(), services.clock.now(), network_consumers=bridges
            )
            for subscription in found:
                subscription.slow = True
                if subscription.topic is not None:
                    topics.carry_out(topics.region.mark_slow(subscription.topic))
                for queue in subscription.queues:
                    services.report(SlowConsumer(queue.destination, subscription.info))
        else:
            aborted = self.rule.check(self._slow.is_slow, network_consumers=bridges)
        self._abort(aborted)
        self.plan()

    def _abort(self, aborted: list[Subscription]) -> None:
        services, strategy = self._services, self.strategy
        now = services.clock.now()
        connections: dict[Connection, int] = {}
        for subscription in aborted:
            connection = subscription.connection
            services.report(
                ConsumerAborted(subscription.info.destination, subscription.info, strategy.abort_connection)
            )
            if strategy.abort_connection:
                connections[connection] = connections.get(connection, 0) + 1
            else:
                services.outbox.post(connection.sink.control, ConsumerControl(subscription.info.consumer_id))
                consumer = subscription.info.consumer_id
                services.call_at(now + FORCED_AFTER, partial(self._slow.remove_consumer, consumer))
        for connection, number in connections.items():
            reason = (
                f"{number} Consumers was slow too often (>{strategy.max_slow_count}) or too long "
                f"(>{strategy.max_slow_duration}): "
            )
            services.outbox.post(connection.sink.failed, reason)
            services.call_at(now, partial(self._slow.remove_connection, connection.connection_id))


class SlowConsumers:
    """The strategies of one broker; destinations whose entries name the same strategy object share it.

    remove_consumer, remove_connection: called with an id when a strategy has one leave, as if it were lost.
    """

    def __init__(
        self,
        services: BrokerServices,
        topics: Topics,
        *,
        remove_consumer: Callable[[str], None],
        remove_connection: Callable[[str], None],
    ) -> None:
        self.topics = topics
        self.remove_consumer = remove_consumer
        self.remove_connection = remove_connection
        self._services = services
        self._watches: dict[int, Watch] = {}

    def watch(self, destination: Watched, policy: Policy | None) -> Watch | None:
        """The strategy that looks at a new destination, or None."""
        strategy = None if policy is None else policy.slow_consumer_strategy
        if strategy is None:
            return None
        watch = self._watches.get(id(strategy))
        if watch is None:
            watch = self._watches[id(strategy)] = Watch(self._services, self, strategy)
        watch.destinations.append(destination)
        return watch

    def forget(self, subscription: Subscription) -> None:
        """A consumer is gone."""
        for watch in self._watches.values():
            watch.rule.forget(subscription)

    def is_slow(self, subscription: Subscription) -> bool:
        """Whether a consumer is marked slow."""
        if subscription.topic is not None:
            return self.topics.region.is_slow(subscription.topic)
        if subscription.slow or self._services.release == "5.17":
            return subscription.slow
        if subscription.credit is not None:
            return subscription.credit.slow
        return any(bool(queue.core.counters_of(number)["slow"]) for queue, number in subscription.queues.items())
