"""Every key of a policy entry changes what a broker does, and its default is ActiveMQ's (spec activemq 4.5).

One small scene for each key, played with the broker's default and with another value.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine.activemq import AckKind, Broker
from pyengine.activemq.broker.events import ConsumerAborted, DeadLetter, Event, MessageDiscarded, Redelivery
from pyengine.clock import ManualClock
from pyengine.destinations import Destination
from pyengine.errors import JMSError
from pyengine.topology import Policy
from pyengine.topology import policy as model
from pyengine.topology.keys import STRATEGIES as STRATEGY_TYPES
from pyengine.topology.policy import (
    AbortSlowAckConsumerStrategy,
    AbortSlowConsumerStrategy,
    CompositeQueue,
    ConstantPendingMessageLimitStrategy,
    FilteredDestination,
    FixedCountSubscriptionRecoveryPolicy,
    FixedSizedSubscriptionRecoveryPolicy,
    IndividualDeadLetterStrategy,
    LastImageSubscriptionRecoveryPolicy,
    OldestMessageEvictionStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    PrefetchRatePendingMessageLimitStrategy,
    RedeliveryPlugin,
    SharedDeadLetterStrategy,
    TimedSubscriptionRecoveryPolicy,
    UniquePropertyMessageEvictionStrategy,
    VirtualTopic,
)
from tests.activemq.wire import Wire


@dataclass
class Scene:
    """A broker whose entry for queue q and topic t has the settings given. events: all that it reports."""

    broker: Broker
    clock: ManualClock
    folder: Path
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        self.wire = Wire(self.broker, client_id="client")
        self.events: list[Event] = []
        self.broker.on(Event, self.events.append)

    def bodies(self, consumer: str) -> list[Any]:
        return [body for name, body in self.wire.got if name == consumer]

    def takers(self) -> str:
        return "".join(name for name, _ in self.wire.got)

    def letters(self) -> list[str | None]:
        return [
            None if each.sent_to is None else str(each.sent_to) for each in self.events if isinstance(each, DeadLetter)
        ]

    def poison(self, to: str = "q", body: int = 1, **headers: Any) -> None:
        self.wire.consume("p", to)
        self.wire.send(to, body, **headers)
        self.wire.acknowledge("p", body, AckKind.POISON)
        self.broker.remove_consumer("p")


Observe = Callable[[Scene], object]


def policies(**settings: Any) -> list[Policy]:
    return [Policy("q", **settings), Policy("topic://t", **settings)]


def play(folder: Path, observe: Observe, settings: dict[str, Any], **broker: Any) -> object:
    clock = ManualClock()
    with Broker(policies=policies(**settings), clock=clock, **broker) as made:
        return observe(Scene(made, clock, folder, settings))


# What is seen


def two_consumers(scene: Scene) -> object:
    """Who gets four messages, the second one having the higher priority as a consumer."""
    scene.wire.consume("a", "q")
    scene.wire.consume("b", "q", priority=1)
    scene.wire.send("q", 1, 2, 3, 4)
    return scene.takers()


def alike(scene: Scene) -> object:
    scene.wire.consume("a", "q")
    scene.wire.consume("b", "q")
    scene.wire.send("q", 1, 2, 3, 4)
    return scene.takers()


def first_dispatch(scene: Scene) -> object:
    """Messages there before the first consumer: when it gets them, in ms."""
    scene.wire.send("q", 1)
    scene.wire.consume("a", "q")
    for waited in (0, 250, 1000):
        scene.clock.advance(waited)
        if scene.wire.got:
            return waited
    return None


def paged_in(scene: Scene) -> object:
    scene.wire.consume("a", "q", prefetch=2)
    scene.wire.send("q", *range(6))
    return scene.broker.view("q").cursor_size


def browsed(scene: Scene) -> object:
    scene.wire.send("q", *range(6))
    scene.wire.consume("b", "q", browser=True, prefetch=500)
    return len([body for body in scene.bodies("b") if body is not None])


def behind_a_page(scene: Scene) -> object:
    scene.wire.consume("a", "q", selector="JMSPriority = 9")
    scene.wire.send("q", 1, 2, 3)
    scene.wire.send("q", 4, priority=9)
    return scene.bodies("a")


def by_priority(scene: Scene) -> object:
    scene.wire.send("q", 1)
    scene.wire.send("q", 2, priority=9)
    scene.wire.consume("a", "q")
    return scene.bodies("a")


def held_of_queue(scene: Scene) -> object:
    scene.wire.send("q", *range(6))
    scene.wire.consume("a", "q", prefetch=1000)
    return len(scene.wire.got)


def prefetch_of_browser(scene: Scene) -> object:
    scene.wire.consume("b", "q", browser=True, prefetch=500)
    return scene.broker.subscriptions()[0].prefetch_size


def held_of_topic(scene: Scene) -> object:
    scene.wire.consume("a", "topic://t", prefetch=32767)
    scene.wire.send("topic://t", *range(6))
    return len(scene.wire.got)


def held_of_durable(scene: Scene) -> object:
    scene.wire.consume("a", "topic://t", prefetch=100, subscription_name="s")
    scene.wire.send("topic://t", *range(6))
    return len(scene.wire.got)


def after_delivered(scene: Scene) -> object:
    scene.wire.consume("a", "q", prefetch=1)
    scene.wire.send("q", 1, 2)
    scene.wire.acknowledge("a", 1, AckKind.DELIVERED, message_count=1)
    return scene.bodies("a")


def groups(scene: Scene) -> object:
    """Which of two groups have an owner of their own."""
    for name in "ab":
        scene.wire.consume(name, "q")
    for group in ("x", "y"):
        scene.wire.send("q", group, properties={"JMSXGroupID": group})
    return sorted(scene.takers())


def advisories(name: str) -> Observe:
    def observe(scene: Scene) -> object:
        scene.wire.consume("advised", "topic://ActiveMQ.Advisory.>")
        scene.wire.send("q", 1, delivery_mode="NON_PERSISTENT")
        scene.wire.consume("a", "q")
        scene.wire.acknowledge("a", 1)
        scene.wire.consume("s", "topic://t", prefetch=2)
        scene.wire.send("topic://t", *range(8), delivery_mode="NON_PERSISTENT")
        found = [each.message for each in scene.wire.dispatched if each.consumer_id == "advised" and each.message]
        found = [each for each in found if str(each.destination).startswith(f"topic://ActiveMQ.Advisory.{name}.")]
        assert all(each.type == ("Advisory" if "NoConsumer" not in name else None) for each in found)
        return {str(each.destination).removeprefix("topic://ActiveMQ.Advisory.") for each in found}

    return observe


def retroactive(scene: Scene) -> object:
    scene.wire.send("topic://t", 1)
    scene.wire.consume("a", "topic://t")
    return scene.bodies("a")


def recovered(scene: Scene) -> object:
    for number in range(1, 6):
        scene.wire.send("topic://t", number)
        scene.clock.advance(2000)
    scene.wire.consume("a", "topic://t", retroactive=True)
    return scene.bodies("a")


def in_turns(scene: Scene) -> object:
    scene.wire.consume("a", "topic://t")
    scene.wire.consume("b", "topic://t")
    scene.wire.send("topic://t", 1, 2)
    return scene.takers()


def duplicates(scene: Scene) -> object:
    """One producer's ids again, before and after another producer's and a far later one."""
    scene.wire.consume("a", "topic://t")
    for body, given in ((1, "p:1"), (2, "p:1"), (3, "o:1"), (4, "p:1")):
        scene.wire.send("topic://t", body, message_id=given)
    return scene.bodies("a")


def late_duplicate(scene: Scene) -> object:
    scene.wire.consume("a", "topic://t")
    for body, given in ((1, "p:1"), (2, "p:5000"), (3, "p:1")):
        scene.wire.send("topic://t", body, message_id=given)
    return scene.bodies("a")


def expired_after(scene: Scene) -> object:
    scene.wire.send("q", 1, expiration=scene.clock.now() + 5)
    for waited in (30_000, 30_000):
        scene.clock.advance(waited)
        if scene.letters():
            return waited
    return None


def expired_behind(scene: Scene) -> object:
    scene.wire.send("q", 1, 2)
    scene.wire.send("q", 3, expiration=scene.clock.now() + 5)
    scene.clock.advance(30_000)
    return scene.letters()


def purged(scene: Scene) -> object:
    scene.wire.send("q", 1)
    scene.wire.consume("a", "q")
    scene.wire.acknowledge("a", 1)
    scene.broker.remove_consumer("a")
    for waited in range(20_000, 100_001, 20_000):
        scene.clock.advance(20_000)
        if Destination("q") not in scene.broker.destinations():
            return waited
    return None


def evicted(scene: Scene) -> object:
    scene.wire.consume("a", "topic://t", prefetch=1)
    for number, (priority, symbol) in enumerate([(4, "x"), (5, "y"), (4, "x"), (6, "x"), (5, "y")]):
        scene.wire.send("topic://t", number, priority=priority, properties={"symbol": symbol}, timestamp=number)
    return [each.message.body for each in scene.events if isinstance(each, MessageDiscarded)]


def evicted_or_expired(scene: Scene) -> object:
    """What happens to expired messages when there is no room: they go first where the watermark is reached."""
    scene.wire.consume("a", "topic://t", prefetch=1)
    scene.wire.send("topic://t", 0, 1)
    scene.wire.send("topic://t", 2, expiration=scene.clock.now() + 5)
    scene.clock.advance(10)
    scene.wire.send("topic://t", 3)
    return [type(each).__name__ for each in scene.events if isinstance(each, (MessageDiscarded, DeadLetter))][:1]


def room(scene: Scene) -> object:
    scene.wire.consume("a", "topic://t", prefetch=2)
    scene.wire.send("topic://t", *range(8))
    return sum(isinstance(each, MessageDiscarded) for each in scene.events)


def sizes(scene: Scene) -> object:
    scene.wire.send("q", "xx")
    return scene.broker.view("q").memory_usage_byte_count


def after_restart(scene: Scene) -> object:
    """Whether a message that was dispatched once is redelivered when the broker has started anew."""
    scene.broker.close()
    for _ in range(2):
        with Broker(scene.folder / "store", policies=policies(**scene.settings), clock=ManualClock()) as broker:
            wire = Wire(broker)
            if Destination("q") not in broker.destinations():
                wire.send("q", 1)
            wire.consume("a", "q")
    return wire.dispatched[0].redelivery_counter


def letters_of(**headers: Any) -> Observe:
    def observe(scene: Scene) -> object:
        scene.poison(**headers)
        return scene.letters()

    return observe


def letters_of_ids(*ids: str) -> Observe:
    """Whether each of the ids made a dead letter."""

    def observe(scene: Scene) -> object:
        for each in ids:
            scene.poison(message_id=each)
        return [each is not None for each in scene.letters()]

    return observe


def expired_letter(scene: Scene) -> object:
    scene.wire.send("q", 1, expiration=scene.clock.now() + 5)
    scene.clock.advance(30_000)
    return scene.letters()


def life_of_a_letter(scene: Scene) -> object:
    scene.poison()
    (letter,) = scene.broker.browse("ActiveMQ.DLQ")
    return letter.expiration - scene.clock.now() if letter.expiration else 0


def durable_letters(scene: Scene) -> object:
    scene.wire.consume("a", "topic://t", subscription_name="s")
    scene.wire.send("topic://t", 1)
    scene.wire.acknowledge("a", 1, AckKind.POISON, first_message_id=scene.wire.id_of("a", 1))
    return scene.letters()


def aborted(scene: Scene, *, bridge: bool = False) -> object:
    """A consumer that holds its one message and lets another wait: when it is aborted, and how."""
    scene.wire.consume("a", "topic://t", prefetch=2, network_subscription=bridge)
    scene.wire.send("topic://t", *range(8))
    for waited in range(0, 200_001, 10_000):
        for event in scene.events:
            if isinstance(event, ConsumerAborted):
                return waited, event.connection
        scene.clock.advance(10_000)
    return None


def aborted_bridge(scene: Scene) -> object:
    return aborted(scene, bridge=True) is not None


def often_slow(scene: Scene) -> object:
    """A consumer that is slow again and again, but never for long."""
    scene.wire.consume("a", "topic://t", prefetch=2)
    for turn in range(3):
        scene.wire.send("topic://t", *(f"{turn}{number}" for number in range(4)))
        for body in list(scene.bodies("a"))[-2:]:
            scene.wire.acknowledge("a", body, AckKind.STANDARD, message_count=1)
    scene.clock.advance(31_000)
    return any(isinstance(each, ConsumerAborted) for each in scene.events)


def idle(scene: Scene) -> object:
    scene.wire.consume("a", "q")
    scene.clock.advance(100_000)
    return any(isinstance(each, ConsumerAborted) for each in scene.events)


def mixed(scene: Scene) -> list[Any]:
    scene.wire.send("q", 1, delivery_mode="NON_PERSISTENT")
    scene.wire.send("q", 2, delivery_mode="PERSISTENT")
    scene.wire.consume("a", "q")
    return scene.bodies("a")


def refused(scene: Scene) -> object:
    """Whether a send fails because a selector cannot be evaluated."""
    scene.wire.consume("a", "topic://t", selector="k * 2 > 1")
    try:
        scene.wire.send("topic://t", 1, properties={"k": "x"})
    except JMSError:
        return True
    return False


QUEUE, TOPIC = "queue://ActiveMQ.DLQ", "topic://t"
SLOW = AbortSlowConsumerStrategy()
KEEP_TWO = ConstantPendingMessageLimitStrategy(2)
NO_CONSUMER = "NoConsumer.Queue.q"
# Key, what is seen, with the default, another value, with that; settings that both have.
KEYS: list[tuple[str, Observe, object, Any, object, dict[str, Any]]] = [
    ("all_consumers_exclusive_by_default", alike, "abab", True, "aaaa", {}),
    ("consumers_before_dispatch_starts", first_dispatch, 0, 2, 1000, {"time_before_dispatch_starts": 0}),
    ("time_before_dispatch_starts", first_dispatch, 0, 250, 250, {"consumers_before_dispatch_starts": 0}),
    ("lazy_dispatch", paged_in, 0, True, 4, {}),
    ("max_browse_page_size", browsed, 6, 2, 2, {}),
    ("max_page_size", behind_a_page, ["4"], 3, [], {}),
    ("message_group_map_factory_type", groups, ["a", "b"], "bucket?bucketCount=1", ["a", "a"], {}),
    ("prioritized_messages", by_priority, ["1", "2"], True, ["2", "1"], {}),
    ("queue_prefetch", held_of_queue, 6, 2, 2, {}),
    ("queue_browser_prefetch", prefetch_of_browser, 500, 2, 2, {}),
    ("topic_prefetch", held_of_topic, 6, 2, 2, {}),
    ("durable_topic_prefetch", held_of_durable, 6, 2, 2, {}),
    ("strict_order_dispatch", alike, "abab", True, "aaaa", {}),
    ("use_consumer_priority", two_consumers, "bbbb", False, "abab", {}),
    ("use_prefetch_extension", after_delivered, ["1", "2"], False, ["1"], {}),
    ("advisory_for_consumed", advisories("MessageConsumed"), set(), True, {"MessageConsumed.Queue.q"}, {}),
    (
        "advisory_for_delivery", advisories("MessageDelivered"), set(), True,
        {"MessageDelivered.Queue.q", "MessageDelivered.Topic.t"}, {},
    ),
    (
        "advisory_for_discarding_messages", advisories("MessageDiscarded"), set(), True,
        {"MessageDiscarded.Topic.t"}, {"pending_message_limit_strategy": KEEP_TWO},
    ),
    ("advisory_for_slow_consumers", advisories("SlowConsumer"), set(), True, {"SlowConsumer.Topic.t"}, {}),
    ("send_advisory_if_no_consumers", advisories("NoConsumer"), set(), True, {NO_CONSUMER}, {}),
    ("always_retroactive", retroactive, [], True, ["1"],
     {"subscription_recovery_policy": LastImageSubscriptionRecoveryPolicy()}),
    ("dead_letter_strategy", letters_of(), [QUEUE], None, [None], {}),
    ("dispatch_policy", in_turns, "abab", "round_robin", "abba", {}),
    ("enable_audit", duplicates, ["1", "3"], False, ["1", "2", "3", "4"], {}),
    ("max_producers_to_audit", duplicates, ["1", "3"], 1, ["1", "3", "4"], {}),
    ("max_audit_depth", late_duplicate, ["1", "2"], 10, ["1", "2", "3"], {}),
    ("expire_messages_period", expired_after, 30_000, 0, None, {}),
    ("max_expire_page_size", expired_behind, [QUEUE], 2, [], {}),
    ("gc_inactive_destinations", purged, None, True, 80_000, {}),
    ("inactive_timeout_before_gc", purged, 80_000, 30_000, 60_000, {"gc_inactive_destinations": True}),
    ("message_eviction_strategy", evicted, ["1", "2"], OldestMessageWithLowestPriorityEvictionStrategy(),
     ["2", "1"], {"pending_message_limit_strategy": KEEP_TWO}),
    ("minimum_message_size", sizes, 1028, 100, 104, {}),
    ("pending_message_limit_strategy", room, 0, KEEP_TWO, 4, {}),
    ("pending_queue_policy", mixed, ["2", "1"], "vm", ["1", "2"], {}),
    ("persist_jms_redelivered", after_restart, 0, True, 1, {}),
    ("slow_consumer_strategy", aborted, None, SLOW, (30_000, False), {}),
    ("subscription_recovery_policy", recovered, [], LastImageSubscriptionRecoveryPolicy(), ["5"], {}),
    ("selector_errors", refused, False, "exact", True, {}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "observe", "default", "other", "then", "settings"), KEYS, ids=[row[0] for row in KEYS])
def test_a_key_does_something(
    tmp_path: Path, key: str, observe: Observe, default: object, other: Any, then: object, settings: dict[str, Any]
) -> None:
    period = {"schedule_period_for_destination_purge": 20_000} if observe is purged else {}
    assert play(tmp_path / "default", observe, settings, **period) == default
    assert play(tmp_path / "other", observe, {**settings, key: other}, **period) == then


def test_no_key_is_left_out() -> None:
    assert {row[0] for row in KEYS} == {each.name for each in fields(Policy)} - {"destination"}


RECOVERY, DLQ, SLOWNESS = "subscription_recovery_policy", "dead_letter_strategy", "slow_consumer_strategy"
EVICTION, LIMIT = "message_eviction_strategy", "pending_message_limit_strategy"
Q, IQ, IT = "queue://ActiveMQ.DLQ", "queue://ActiveMQ.DLQ.Queue.q", "queue://ActiveMQ.DLQ.Topic.t"
NON_PERSISTENT = {"delivery_mode": "NON_PERSISTENT"}
IDS = ("p:1", "o:1", "p:1")
FAR = ("p:1", "p:100", "p:1")
WATERMARKS = ["DeadLetter"]
# Strategy, field, what is seen, with the default, another value, with that; settings and fields that both have.
STRATEGIES: list[tuple[str, type, str, Observe, object, Any, object, dict[str, Any], dict[str, Any]]] = [
    (DLQ, SharedDeadLetterStrategy, "process_non_persistent", letters_of(**NON_PERSISTENT), [None], True, [Q], {}, {}),
    (DLQ, SharedDeadLetterStrategy, "process_expired", expired_letter, [Q], False, [None], {}, {}),
    (DLQ, SharedDeadLetterStrategy, "enable_audit", letters_of_ids("p:1", "p:1"), [True, False], False, [True, True],
     {}, {}),
    (DLQ, SharedDeadLetterStrategy, "expiration", life_of_a_letter, 0, 500, 500, {}, {}),
    (DLQ, SharedDeadLetterStrategy, "max_producers_to_audit", letters_of_ids(*IDS), [True, True, False], 1,
     [True, True, True], {}, {}),
    (DLQ, SharedDeadLetterStrategy, "max_audit_depth", letters_of_ids(*FAR), [True, True, False], 10,
     [True, True, True], {}, {}),
    (DLQ, SharedDeadLetterStrategy, "dead_letter_queue", letters_of(), [Q], "topic://D", ["topic://D"], {}, {}),
    (DLQ, IndividualDeadLetterStrategy, "queue_prefix", letters_of(), [IQ], "A.", ["queue://A.q"], {}, {}),
    (DLQ, IndividualDeadLetterStrategy, "queue_suffix", letters_of(), [IQ], ".Z", [IQ + ".Z"], {}, {}),
    (DLQ, IndividualDeadLetterStrategy, "use_queue_for_queue_messages", letters_of(), [IQ], False,
     ["topic://ActiveMQ.DLQ.Queue.q"], {}, {}),
    (DLQ, IndividualDeadLetterStrategy, "topic_prefix", durable_letters, [IT], "A.", ["queue://A.t"], {}, {}),
    (DLQ, IndividualDeadLetterStrategy, "topic_suffix", durable_letters, [IT], ".Z", [IT + ".Z"], {}, {}),
    (DLQ, IndividualDeadLetterStrategy, "use_queue_for_topic_messages", durable_letters, [IT], False,
     ["topic://ActiveMQ.DLQ.Topic.t"], {}, {}),
    (DLQ, IndividualDeadLetterStrategy, "destination_per_durable_subscriber", durable_letters, [IT], True,
     [IT + ".client:s"], {}, {}),
    (LIMIT, ConstantPendingMessageLimitStrategy, "limit", room, 0, 2, 4, {}, {}),
    (LIMIT, PrefetchRatePendingMessageLimitStrategy, "multiplier", room, 5, 2.0, 2, {}, {}),
    (EVICTION, OldestMessageEvictionStrategy, "evict_expired_messages_high_watermark", evicted_or_expired,
     [], 1, WATERMARKS, {LIMIT: ConstantPendingMessageLimitStrategy(4)}, {}),
    (EVICTION, OldestMessageWithLowestPriorityEvictionStrategy, "evict_expired_messages_high_watermark",
     evicted_or_expired, [], 1, WATERMARKS, {LIMIT: ConstantPendingMessageLimitStrategy(4)}, {}),
    (EVICTION, UniquePropertyMessageEvictionStrategy, "evict_expired_messages_high_watermark", evicted_or_expired,
     [], 1, WATERMARKS, {LIMIT: ConstantPendingMessageLimitStrategy(4)}, {"property_name": "symbol"}),
    (EVICTION, UniquePropertyMessageEvictionStrategy, "property_name", evicted, ["1", "2"], "symbol", ["2", "1"],
     {LIMIT: KEEP_TWO}, {"property_name": "none"}),
    (SLOWNESS, AbortSlowConsumerStrategy, "max_slow_duration", aborted, (30_000, False), 90_000, (90_000, False),
     {}, {}),
    (SLOWNESS, AbortSlowConsumerStrategy, "check_period", aborted, (30_000, False), 20_000, (40_000, False), {}, {}),
    (SLOWNESS, AbortSlowConsumerStrategy, "abort_connection", aborted, (30_000, False), True, (30_000, True), {}, {}),
    (SLOWNESS, AbortSlowConsumerStrategy, "ignore_network_consumers", aborted_bridge, False, False, True, {}, {}),
    (SLOWNESS, AbortSlowConsumerStrategy, "max_slow_count", often_slow, False, 1, True, {}, {"max_slow_duration": -1}),
    (SLOWNESS, AbortSlowAckConsumerStrategy, "max_time_since_last_ack", aborted, (60_000, False), 70_000,
     (90_000, False), {}, {}),
    (SLOWNESS, AbortSlowAckConsumerStrategy, "ignore_idle_consumers", idle, False, False, True, {}, {}),
    (SLOWNESS, AbortSlowAckConsumerStrategy, "max_slow_duration", aborted, (60_000, False), 60_000,
     (90_000, False), {}, {}),
    (SLOWNESS, AbortSlowAckConsumerStrategy, "check_period", aborted, (60_000, False), 50_000, (50_000, False), {}, {}),
    (SLOWNESS, AbortSlowAckConsumerStrategy, "abort_connection", aborted, (60_000, False), True, (60_000, True), {},
     {}),
    (SLOWNESS, AbortSlowAckConsumerStrategy, "ignore_network_consumers", aborted_bridge, False, False, True, {}, {}),
    (SLOWNESS, AbortSlowAckConsumerStrategy, "max_slow_count", aborted, None, 2, (90_000, False), {},
     {"max_slow_duration": -1}),
    (RECOVERY, FixedCountSubscriptionRecoveryPolicy, "maximum_size", recovered, ["1", "2", "3", "4", "5"], 2,
     ["4", "5"], {}, {}),
    (RECOVERY, FixedSizedSubscriptionRecoveryPolicy, "maximum_size", recovered, ["1", "2", "3", "4", "5"], 3000,
     ["4", "5"], {}, {}),
    (RECOVERY, FixedSizedSubscriptionRecoveryPolicy, "maximum_size", recovered, ["1", "2", "3", "4", "5"], 3000,
     ["1", "2", "3", "4", "5"], {"minimum_message_size": 100}, {}),
    (RECOVERY, TimedSubscriptionRecoveryPolicy, "recover_duration", recovered, ["1", "2", "3", "4", "5"], 5000,
     ["4", "5"], {}, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "kind", "name", "observe", "default", "other", "then", "settings", "given"),
    STRATEGIES,
    ids=[f"{row[1].__name__}.{row[2]}" for row in STRATEGIES],
)
def test_a_strategy_s_field_does_something(
    tmp_path: Path, key: str, kind: type, name: str, observe: Observe, default: object, other: Any, then: object,
    settings: dict[str, Any], given: dict[str, Any],
) -> None:  # fmt: skip
    assert play(tmp_path, observe, {**settings, key: kind(**given)}) == default
    assert play(tmp_path, observe, {**settings, key: kind(**{**given, name: other})}) == then


def test_no_field_of_a_strategy_is_left_out() -> None:
    """The fields that dead-letter strategies share are asked of one of them."""
    shared = {each.name for each in fields(model.AbstractDeadLetterStrategy)}
    kinds = {kind for known in STRATEGY_TYPES.values() for kind in known.values()}
    wanted = {
        (kind, each.name)
        for kind in kinds
        for each in fields(kind)
        if each.name not in shared or kind is SharedDeadLetterStrategy
    }
    assert wanted <= {(row[1], row[2]) for row in STRATEGIES}


# Virtual destinations and the redelivery plugin


def sent(virtual: object, to: str = "topic://T.x", extra: str | None = None) -> dict[str, list[str | None]]:
    """Where messages 1 and 9 go, and the destination that they show there."""
    with Broker(virtual_destinations=[virtual], clock=ManualClock()) as broker:  # type: ignore[list-item]
        wire = Wire(broker)
        for queue in ("C.a.T.x", "D.a.T.x", "C.a.T.x.Z", "one", "in"):
            wire.consume(queue, queue, selector=extra if queue == "C.a.T.x" else None)
        for number in (1, 9):
            wire.send(to, number, properties={"n": number})
        return {
            name: [each.message.body for each in wire.dispatched if each.consumer_id == name and each.message]
            for name in dict(wire.got)
        }


BOTH = ["1", "9"]


@pytest.mark.parametrize(
    ("name", "seen", "then"),
    [
        ("prefix", lambda value: sent(VirtualTopic("T.>", value)), {"D.a.T.x": BOTH}),
        ("postfix", lambda value: sent(VirtualTopic("T.>", "C.*.", value)), {"C.a.T.x.Z": BOTH}),
    ],
)
def test_prefix_and_postfix_of_a_virtual_topic(name: str, seen: Callable[[str], object], then: object) -> None:
    assert sent(VirtualTopic("T.>", "C.*.")) == {"C.a.T.x": BOTH}
    assert seen("D.*." if name == "prefix" else ".Z") == then


def test_the_fields_of_a_virtual_topic() -> None:
    assert (VirtualTopic().name, VirtualTopic().prefix, VirtualTopic().postfix) == (">", "Consumer.*.", "")
    topic = {"prefix": "C.*."}
    assert sent(VirtualTopic("Other", **topic)) == {}
    assert sent(VirtualTopic("T.>", **topic), extra="n > 5") == {"C.a.T.x": ["9"]}
    with Broker(virtual_destinations=[VirtualTopic("T.>", selector_aware=True)], clock=ManualClock()) as broker:
        assert _left(broker, "n > 5") == 1
    with Broker(virtual_destinations=[VirtualTopic("T.>")], clock=ManualClock()) as broker:
        assert _left(broker, "n > 5") == 2
    for shows, destination in ((True, "queue://Consumer.a.T.x"), (False, "topic://T.x")):
        virtual = VirtualTopic("T.>", set_original_destination=shows)
        with Broker(virtual_destinations=[virtual], clock=ManualClock()) as broker:
            _left(broker, "n > 5")
            assert broker.browse("Consumer.a.T.x")[-1].destination == destination
    for local, number in ((False, 2), (True, 0)):
        with Broker(virtual_destinations=[VirtualTopic("T.>", local=local)], clock=ManualClock()) as broker:
            assert _left(broker, None, broker_path=["ID:elsewhere"]) == number


def _left(broker: Broker, selector: str | None, **headers: Any) -> int:
    wire = Wire(broker)
    wire.consume("a", "Consumer.a.T.x", selector=selector)
    for number in (1, 9):
        wire.send("topic://T.x", number, properties={"n": number}, **headers)
    return broker.view("Consumer.a.T.x").queue_size  # type: ignore[union-attr]


def test_the_fields_of_a_composite() -> None:
    assert sent(CompositeQueue("in", ("one",)), "in") == {"one": BOTH}
    assert sent(CompositeQueue("in", ("one",), forward_only=False), "in") == {"one": BOTH, "in": BOTH}
    some = (FilteredDestination("one", "n > 5"),)
    assert sent(CompositeQueue("in", some), "in") == {"one": ["9"]}
    assert sent(CompositeQueue("in", some, send_when_not_matched=True), "in") == {"one": ["9"], "in": ["1"]}


def resent(policy: RedeliveryPolicy | None, *, default: RedeliveryPolicy | None = None, **plugin: Any) -> list[object]:
    """The delays after which a poison message comes again, and what ends it."""
    clock = ManualClock()
    found: list[object] = []
    rules = RedeliveryPlugin((("q", policy),) if policy else (), default, **plugin)
    with Broker(redelivery_plugin=rules, clock=clock) as broker:
        broker.on(Redelivery, lambda event: found.append(event.delay))
        broker.on(DeadLetter, lambda event: found.append(str(event.sent_to)))
        wire = Wire(broker)
        wire.consume("a", "q")
        wire.send("q", 1)
        for _ in range(8):
            if broker.view("q").queue_size:  # type: ignore[union-attr]
                wire.acknowledge("a", 1, AckKind.POISON)
            clock.advance(100_000)
    return found


def test_the_redelivery_plugin() -> None:
    policy = RedeliveryPolicy
    assert resent(None) == [Q] == resent(None, fallback_to_dead_letter=True)
    assert resent(None, fallback_to_dead_letter=False) == []
    assert resent(None, default=policy(maximum_redeliveries=1)) == [1000, Q]
    assert resent(policy()) == [1000] * 6 + [Q]
    assert resent(policy(maximum_redeliveries=2)) == [1000, 1000, Q]
    assert resent(policy(maximum_redeliveries=2), send_to_dlq_if_max_retries_exceeded=False) == [1000, 1000]
    assert resent(policy(maximum_redeliveries=3, initial_redelivery_delay=3000)) == [3000, 1000, 1000, Q]
    assert resent(policy(maximum_redeliveries=3, redelivery_delay=2000)) == [1000, 2000, 2000, Q]
    back_off = {"maximum_redeliveries": 3, "use_exponential_back_off": True}
    assert resent(policy(**back_off)) == [1000, 5000, 25_000, Q]
    assert resent(policy(**back_off, back_off_multiplier=2.0)) == [1000, 2000, 4000, Q]
    assert resent(policy(**back_off, maximum_redelivery_delay=7000)) == [1000, 5000, 7000, Q]
    random.seed(1)
    spread = resent(policy(use_collision_avoidance=True, collision_avoidance_percent=50, redelivery_delay=10_000))
    assert len({*spread[1:6]}) > 1
    assert all(5000 <= int(str(each)) <= 15_000 for each in spread[1:6])
