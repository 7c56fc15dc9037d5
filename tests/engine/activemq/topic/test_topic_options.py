"""Every option of topics and their subscriptions: its default, what it does, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from pyengine import Message
from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.topic.eviction_strategies import (
    ConstantPendingLimit,
    CustomEviction,
    LowestPriorityEviction,
    OldestEviction,
    PrefetchRatePendingLimit,
    UniquePropertyEviction,
    maximum_pending_messages,
)
from pyengine._engine.activemq.topic.message_audit import Audit
from pyengine._engine.activemq.topic.recovery_policies import (
    FixedCountRecovery,
    FixedSizedRecovery,
    LastImageRecovery,
    NoRecovery,
    QueryRecovery,
    TimedRecovery,
)
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidMessageError,
    InvalidTopologyError,
    JMSError,
    SelectorEvaluationError,
)
from tests.engine.activemq.topic.test_topics import events, given, subscribed


def kinds(outcome: list[Any]) -> list[str]:
    return [kind for kind, _, _ in events(outcome)]


def retroactive(region: TopicRegion, topic: int, **settings: Any) -> list[Any]:
    subscription = region.add_subscription(retroactive=True, **settings)
    return [body for _, body in given(region.attach(subscription, topic))]


def test_limits() -> None:
    assert maximum_pending_messages(None, 100, 5) == -1
    assert maximum_pending_messages(ConstantPendingLimit(), 100) == -1
    assert maximum_pending_messages(ConstantPendingLimit(3), 100, 5) == 3
    assert maximum_pending_messages(ConstantPendingLimit(5), 100, 3) == 3
    assert maximum_pending_messages(ConstantPendingLimit(-1), 100, 3) == 3
    assert maximum_pending_messages(ConstantPendingLimit(3), 100, 0) == 3
    assert maximum_pending_messages(ConstantPendingLimit(3), 100, -2) == 3
    assert maximum_pending_messages(PrefetchRatePendingLimit(), 1) == 0
    assert maximum_pending_messages(PrefetchRatePendingLimit(), 5) == 2
    assert maximum_pending_messages(PrefetchRatePendingLimit(1e300), 5) == 2**31 - 1
    assert maximum_pending_messages(PrefetchRatePendingLimit(float("nan")), 5) == 0
    assert maximum_pending_messages(PrefetchRatePendingLimit(0.5), -3) == -1
    assert maximum_pending_messages(lambda prefetch: prefetch + 1, 5) == 6
    for limit in ("many", -(2**31) - 1, 2**31):
        with pytest.raises(ConfigurationError, match=f"limit={limit}"):
            ConstantPendingLimit(limit)  # type: ignore[arg-type]
    for watermark in (-(2**31) - 1, 2**31):
        with pytest.raises(ConfigurationError, match=f"evictExpiredMessagesHighWatermark={watermark}"):
            OldestEviction(high_watermark=watermark)


def test_strategies_are_values() -> None:
    for strategy in (OldestEviction(), UniquePropertyEviction("key", high_watermark=7, expiry_check=False)):
        again = pickle.loads(pickle.dumps(strategy))
        assert type(again) is type(strategy)
        assert (again.high_watermark, again.expiry_check) == (strategy.high_watermark, strategy.expiry_check)
    assert OldestEviction().high_watermark == 1000
    assert FixedCountRecovery().maximum_size == 100
    assert FixedSizedRecovery().maximum_size == 65536
    assert TimedRecovery().recover_duration == 60_000
    assert pickle.loads(pickle.dumps(FixedCountRecovery(7))).maximum_size == 7
    assert pickle.loads(pickle.dumps(PrefetchRatePendingLimit(0.25))).multiplier == 0.25
    with pytest.raises(ConfigurationError, match="must be callable"):
        CustomEviction("newest")  # type: ignore[arg-type]


def test_limit_zero_drops_silently() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    full = subscribed(region, topic, prefetch=1, pending_limit_strategy=PrefetchRatePendingLimit())
    region.send(topic, 1)
    assert events(region.send(topic, 2)) == [("DROPPED", full, 2)]
    assert region.subscription_statistics(full)["discarded"] == 0
    assert region.statistics(topic)["dequeues"] == 0


def test_no_limit_never_discards() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    full = subscribed(region, topic, prefetch=1)
    for number in range(3000):
        region.send(topic, number)
    assert region.subscription_statistics(full)["pending"] == 2999


def test_prefetch_1_is_never_slow_and_limits_within_the_prefetch_neither() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    one = subscribed(region, topic, prefetch=1)
    four = subscribed(region, topic, prefetch=4, pending_limit_strategy=ConstantPendingLimit(4))
    five = subscribed(region, topic, prefetch=4, pending_limit_strategy=ConstantPendingLimit(5))
    for number in range(20):
        region.send(topic, number)
    assert [region.is_slow(each) for each in (one, four, five)] == [False, False, True]


def test_lowest_priority_goes_even_if_it_is_the_newcomer() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    subscribed(
        region, topic, prefetch=1, pending_limit_strategy=ConstantPendingLimit(2), eviction=LowestPriorityEviction()
    )
    for number, priority in enumerate([4, 5, 3]):
        region.send(topic, number, priority=priority)
    assert [body for kind, _, body in events(region.send(topic, 3, priority=2)) if kind == "DISCARDED"] == [3]
    assert [body for kind, _, body in events(region.send(topic, 4, priority=9)) if kind == "DISCARDED"] == [2]


def test_unique_property_tells_javas_types_apart_and_frees_several_at_once() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    eviction = UniquePropertyEviction("key")
    subscribed(region, topic, prefetch=1, pending_limit_strategy=ConstantPendingLimit(3), eviction=eviction)
    region.send(topic, {"n": 0})
    for number, key in enumerate([1, 1.0, True], start=1):
        region.send(topic, {"n": number, "key": key}, timestamp=number)
    # All three are different values, so that the oldest goes.
    assert [body["n"] for _, _, body in events(region.send(topic, {"n": 4, "key": "1"}, timestamp=4))] == [1]
    # The first double goes, and nothing has to go for the one without the property but itself.
    assert [body["n"] for _, _, body in events(region.send(topic, {"n": 5, "key": 1.0}, timestamp=5))] == [2]
    assert [body["n"] for _, _, body in events(region.send(topic, {"n": 6}, timestamp=6))] == [6]


def test_a_strategy_of_the_users_own() -> None:
    asked: list[int] = []

    def newest(candidates: list[int]) -> list[int]:
        asked.append(len(candidates))
        return candidates[-1:]

    region = TopicRegion()
    topic = region.add_topic("t")
    subscribed(
        region, topic, prefetch=1, pending_limit_strategy=ConstantPendingLimit(2), eviction=CustomEviction(newest)
    )
    for number in range(3):
        region.send(topic, number)
    assert events(region.send(topic, 3)) == [("DISCARDED", 0, 3)]
    assert asked == [3]


def test_a_strategy_that_fails_is_reported_and_loses_nothing() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    limit = ConstantPendingLimit(1)
    wrong = subscribed(
        region, topic, prefetch=1, pending_limit_strategy=limit, eviction=CustomEviction(lambda candidates: ["other"])
    )
    for number in range(2):
        region.send(topic, number)
    (event,) = region.send(topic, 2)
    assert event.kind.name == "NOT_EVICTED"  # type: ignore[union-attr]
    assert "is not one of the messages" in str(event.detail)  # type: ignore[union-attr]
    assert len(region.waiting(wrong)) == 2
    region._check()


def test_user_code_cannot_call_back() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    subscribed(region, topic, selector=lambda message: region.send(topic, "again"))
    with pytest.raises(IllegalStateError, match="cannot call the region"):
        region.send(topic, "a")
    region._check()


def test_no_call_comes_back_from_a_selector() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    durable, _ = region.subscribe("client", "name", [topic])
    offline, _ = region.subscribe("client", "offline", [topic], active=False)
    calls: list[Callable[[], object]] = [
        lambda: region.add_topic("u"),
        lambda: region.remove_topic(topic),
        lambda: region.add_subscription(),
        lambda: region.attach(asking, topic),
        lambda: region.close(asking),
        lambda: region.subscribe("client", "other", [topic]),
        lambda: region.activate(offline),
        lambda: region.leave_behind(offline, topic, 0),
        lambda: region.deactivate(durable),
        lambda: region.unsubscribe("client", "offline"),
        lambda: region.remove_offline(0, now=1),
        lambda: region.expire(topic, 1),
        lambda: region.send(topic, "again"),
        lambda: region.send_each(topic, ["again"]),
        lambda: region.acknowledge(durable),
        lambda: region.acknowledge_each([]),
        lambda: region.mark_slow(durable),
        lambda: region.commit("transaction"),
        lambda: region.rollback("transaction"),
        lambda: region.pull(durable),
        lambda: region.pull_timeout(durable, 0),
        lambda: region.tick(1),
    ]

    def selector(message: object) -> bool:
        for call in calls:
            with pytest.raises(IllegalStateError, match="cannot call the region"):
                call()
        return True

    asking = subscribed(region, topic, selector=selector)
    assert given(region.send(topic, "a")) == [(durable, "a"), (asking, "a")]
    region._check()


@pytest.mark.parametrize(("before", "kind"), [(False, "EXPIRED"), (True, "DISCARDED")])
def test_expired_while_waiting_counts_as_expired_or_as_older_brokers_did(before: bool, kind: str) -> None:
    region = TopicRegion(expired_as_discarded=before)
    topic = region.add_topic("t")
    waiting = subscribed(region, topic, prefetch=1)
    region.send(topic, 1)
    region.send(topic, 2, expiration=10)
    region.send(topic, 3)
    outcome = region.acknowledge(waiting, 1, now=11)
    assert events(outcome) == [(kind, waiting, 2)]
    assert given(outcome) == [(waiting, 3)]
    assert region.statistics(topic)["expired"] == (not before)
    assert region.subscription_statistics(waiting)["discarded"] == before


def test_expired_on_arrival() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    subscribed(region, topic)
    assert events(region.send(topic, 1, expiration=5, now=6)) == [("EXPIRED", None, 1)]
    assert (region.statistics(topic)["enqueues"], region.statistics(topic)["expired"]) == (0, 1)
    assert given(region.send(topic, 2, expiration=6, now=6)) == [(0, 2)]


def test_a_selector_as_bare_text_is_refused_and_changes_nothing() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    kept, _ = region.subscribe("client", "kept", [topic], now=0)
    with pytest.raises(TypeError, match=r"give pyengine.Selector\('a = 1'\)"):
        region.add_subscription(selector="a = 1")
    with pytest.raises(TypeError, match=r"give pyengine.Selector\('a = 1'\)"):
        region.subscribe("client", "kept", [topic], selector="a = 1", now=0)
    assert given(region.send(topic, 1)) == [(kept, 1)]


def test_an_audit_refuses_what_it_saw_and_is_off_by_default() -> None:
    region = TopicRegion()
    first, second = region.add_topic("a"), region.add_topic("b")
    careful = region.add_subscription(audit=Audit())
    careless = region.add_subscription()
    for subscription in (careful, careless):
        for topic in (first, second):
            region.attach(subscription, topic)
    message = Message(message_id="ID:host-1-1:1:1:1:1")
    assert len(given(region.send(first, message))) == 2
    assert [consumer for consumer, _ in given(region.send(second, message))] == [careless]
    beyond_long = {"JMSMessageID": f"ID:host-1-1:1:1:1:{2**63}"}
    assert len(given(region.send(first, beyond_long))) == 2


def test_an_audit_remembers_so_many_numbers_of_so_many_producers() -> None:
    audit = Audit(depth=63, producers=1)
    assert [audit.is_duplicate("p", number) for number in (0, 0, 64, 0, 128, 64, 1)] == [
        False, True, False, True, False, True, False,
    ]  # fmt: skip
    assert not audit.is_duplicate("q", 0)
    assert not audit.is_duplicate("p", 128)
    audit.rollback("p", 128)
    assert not audit.is_duplicate("p", 128)
    audit._check()


def test_a_durable_subscribers_message_lands_at_the_commit_and_is_dequeued_before() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    it, _ = region.subscribe("client", "name", [topic])
    ((_, body),) = given(region.send(topic, 1))
    (handle,) = region.unacknowledged(it)
    told = []
    region.acknowledge(it, handle, kind=AckKind.STANDARD, transaction="t")
    told.append(region.statistics(topic))
    region.commit("t")
    told.append(region.statistics(topic))
    assert body == 1
    assert [(each["dequeues"], each["in_flight"]) for each in told] == [(1, 1), (1, 0)]


def test_only_an_individual_acknowledgement_may_name_what_a_durable_subscriber_does_not_hold() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    it, _ = region.subscribe("client", "name", [topic])
    region.send(topic, 1)
    held = region.unacknowledged(it)
    assert region.acknowledge(it, 99, kind=AckKind.INDIVIDUAL) == []
    with pytest.raises(JMSError, match="Unmatched acknowledge"):
        region.acknowledge(it, 99, kind=AckKind.STANDARD)
    assert region.unacknowledged(it) == held


def test_acknowledgements_widen_and_narrow_the_window() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    it = subscribed(region, topic, prefetch=2)
    fixed = subscribed(region, topic, prefetch=2, use_prefetch_extension=False)
    for number in range(1, 9):
        region.send(topic, number)
    assert given(region.acknowledge(it, kind=AckKind.DELIVERED, count=2)) == [(it, 3), (it, 4)]
    assert region.acknowledge(fixed, kind=AckKind.DELIVERED, count=2) == []
    # Two slots are free and the extension shrinks by two: nothing can be handed out.
    assert region.acknowledge(it, 2, kind=AckKind.STANDARD) == []
    assert [handle for handle, _ in region.settled] == [1, 2]
    assert given(region.acknowledge(fixed, 1, kind=AckKind.INDIVIDUAL)) == [(fixed, 3)]
    region._check()


def test_acknowledgements_in_a_transaction_count_at_its_end() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    it = subscribed(region, topic, prefetch=1)
    for number in range(1, 4):
        region.send(topic, number)
    assert region.acknowledge(it, 1, kind=AckKind.STANDARD, transaction="t") == []
    assert region.unacknowledged(it) == [1]
    region.rollback("t")
    assert region.acknowledge(it, 1, kind=AckKind.STANDARD, transaction="t") == []
    assert given(region.commit("t")) == [(it, 2)]
    with pytest.raises(IllegalStateError, match="poison"):
        region.acknowledge(it, 2, kind=AckKind.POISON, transaction="t")


def test_serving_orders() -> None:
    expected = {
        "simple": [[0, 1, 2], [0, 1, 2]],
        "strict_order": [[0, 1, 2], [0, 1, 2]],
        "round_robin": [[0, 1, 2], [1, 2, 0]],
        "priority": [[1, 0, 2], [1, 0, 2]],
    }
    for policy, orders in expected.items():
        region = TopicRegion()
        topic = region.add_topic("t", dispatch_policy=policy)  # type: ignore[arg-type]
        for priority in (1, 9, 1):
            subscribed(region, topic, priority=priority)
        assert [[consumer for consumer, _ in given(region.send(topic, n))] for n in range(2)] == orders
    with pytest.raises(InvalidTopologyError, match="known: simple"):
        TopicRegion().add_topic("t", dispatch_policy="fair")  # type: ignore[arg-type]


def test_of_several_ways_to_a_bridged_consumer_the_most_preferred_is_served() -> None:
    region = TopicRegion()
    topic = region.add_topic("t", dispatch_policy="priority_network")
    subscribed(region, topic, priority=1, network_consumers=["x", "y"])
    subscribed(region, topic, priority=5, network_consumers=["y"])
    subscribed(region, topic, priority=3, network_consumers=["y", "z"])
    subscribed(region, topic)
    assert [consumer for consumer, _ in given(region.send(topic, "a"))] == [1, 3]


def test_client_id_filter() -> None:
    region = TopicRegion()
    topic = region.add_topic("topic://a.PTP", dispatch_policy="client_id_filter")
    other = region.add_topic("topic://a", dispatch_policy="client_id_filter")
    for client in ("x", "y"):
        subscription = region.add_subscription(client_id=client)
        region.attach(subscription, topic)
        region.attach(subscription, other)
    assert len(given(region.send(topic, {}))) == 2
    assert [consumer for consumer, _ in given(region.send(topic, {"PTP_CLIENTID": "y"}))] == [1]
    assert kinds(region.send(other, {"PTP_CLIENTID": "y"})) == ["NO_CONSUMER"]


def test_a_selector_that_cannot_be_evaluated() -> None:
    def broken(message: object) -> bool:
        raise SelectorEvaluationError("x > 1", "fails")

    for errors, takers in (("no_match", [0, 2]), ("exact", [0])):
        region = TopicRegion()
        topic = region.add_topic("t", selector_errors=errors)  # type: ignore[arg-type]
        subscribed(region, topic)
        subscribed(region, topic, selector=broken)
        subscribed(region, topic)
        outcome = region.send(topic, "a")
        assert [consumer for consumer, _ in given(outcome)] == takers
        assert kinds(outcome) == ["SELECTOR_FAILED"] + ["CUT"] * (errors == "exact")
        assert region.selector_errors == 1


def test_recovery_policies() -> None:
    policies = [
        (None, []),
        (NoRecovery(), []),
        (LastImageRecovery(), [4]),
        (FixedCountRecovery(2), [3, 4]),
        (FixedSizedRecovery(3 * 1024), [2, 3, 4]),
        (TimedRecovery(1000), [1, 2, 3, 4]),
        (QueryRecovery(lambda name: [name, "b"]), ["topic://t", "b"]),
    ]
    for policy, expected in policies:
        region = TopicRegion()
        topic = region.add_topic("topic://t", recovery=policy)
        for number in range(1, 5):
            region.send(topic, number)
        assert retroactive(region, topic) == expected
        assert retroactive(region, topic, selector=lambda body: body == 4) == ([4] if 4 in expected else [])
        region._check()


def test_every_message_counts_with_the_minimum_of_its_topic() -> None:
    for sent in (5, {"n": 5}, Message({"n": 5})):
        region = TopicRegion()
        topic = region.add_topic("t", recovery=FixedSizedRecovery(300), minimum_message_size=100)
        for _ in range(4):
            region.send(topic, sent)
        assert retroactive(region, topic) == [sent] * 3


def test_timed_recovery_ages_with_the_ticks() -> None:
    region = TopicRegion()
    topic = region.add_topic("t", recovery=TimedRecovery(1000), now=500)
    region.send(topic, 1, now=1400)
    region.tick(1500)
    assert retroactive(region, topic) == [1]
    region.tick(1501)
    assert retroactive(region, topic) == []


def test_a_query_may_veto_what_is_sent() -> None:
    region = TopicRegion()
    topic = region.add_topic("t", recovery=QueryRecovery(lambda name: [], lambda body: body != "bad"))
    subscribed(region, topic)
    assert kinds(region.send(topic, "bad")) == ["REFUSED"]
    assert given(region.send(topic, "good")) == [(0, "good")]


def test_always_retroactive() -> None:
    region = TopicRegion()
    topic = region.add_topic("t", recovery=LastImageRecovery(), always_retroactive=True)
    region.send(topic, 1)
    assert given(region.attach(region.add_subscription(), topic)) == [(0, 1)]


def test_a_retained_message_waits_for_retroactive_consumers_until_an_empty_one_comes() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    subscribed(region, topic)
    ((_, shown),) = given(region.send(topic, Message({"ActiveMQ.Retain": "TRUE", "n": 1}, body="x")))
    assert shown.properties() == {"n": 1}
    (kept,) = retroactive(region, topic)
    assert kept.properties() == {"n": 1, "ActiveMQ.Retained": True}
    assert retroactive(region, topic, selector=lambda body: False) == []
    region.send(topic, Message({"n": 2}, body="y"))
    assert len(retroactive(region, topic)) == 1
    region.send(topic, Message({"ActiveMQ.Retain": True}))
    assert retroactive(region, topic) == []
    region._check()


def test_durable_subscriptions_keep_what_comes_while_their_consumer_is_away() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic])
    with pytest.raises(JMSError, match="in use for client: client and subscriptionName: name"):
        region.subscribe("client", "name", [topic])
    with pytest.raises(JMSError, match="Durable consumer is in use"):
        region.unsubscribe("client", "name")
    region.deactivate(number, now=100)
    assert events(region.send(topic, 1, persistent=False)) == []
    assert events(region.send(topic, 2, persistent=True)) == [("STORED", number, 2)]
    again, outcome = region.subscribe("client", "name", [topic])
    assert again == number
    assert given(outcome) == [(number, 2), (number, 1)]
    assert kinds(region.acknowledge(number, 2, kind=AckKind.INDIVIDUAL)) == ["RELEASED"]
    region._check()
    region.deactivate(number, now=200)
    assert region.remove_offline(-1, now=10**9) == []
    assert region.remove_offline(100, now=299) == []
    assert region.remove_offline(100, now=300) == [("client", "name")]
    with pytest.raises(InvalidDestinationError, match="No durable subscription exists for clientID: client"):
        region.unsubscribe("client", "name")
    assert region.messages == 0


def test_another_selector_makes_a_durable_subscription_anew() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic])
    region.deactivate(number)
    region.send(topic, 1)
    again, outcome = region.subscribe("client", "name", [topic], selector=lambda body: True)
    assert again != number
    assert outcome == []
    assert region.durable_subscriptions() == {("client", "name"): again}


def test_redelivery_counts_go_up_to_what_was_delivered() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic])
    for body in range(1, 4):
        region.send(topic, body)
    region.deactivate(number, last_delivered=2)
    _, outcome = region.subscribe("client", "name", [topic])
    assert [(item.body, item.redeliveries) for item in outcome] == [(1, 1), (2, 1), (3, 0)]  # type: ignore[union-attr]
    region.deactivate(number, lost=True)
    _, outcome = region.subscribe("client", "name", [topic])
    assert [item.redeliveries for item in outcome] == [2, 2, 1]  # type: ignore[union-attr]
    region.deactivate(number)
    _, outcome = region.subscribe("client", "name", [topic])
    assert [item.redeliveries for item in outcome] == [2, 2, 1]  # type: ignore[union-attr]


def test_no_local_follows_the_connection_of_a_durable_subscription() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic], no_local=True, connection="c1")
    assert given(region.send(topic, 1, connection="c1")) == []
    region.deactivate(number)
    region.subscribe("client", "name", [topic], no_local=True, connection="c2")
    assert given(region.send(topic, 2, connection="c1")) == [(number, 2)]
    assert given(region.send(topic, 3, connection="c2")) == []


def test_a_new_retroactive_durable_subscription_gets_what_is_stored_for_others() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    first, _ = region.subscribe("x", "x", [topic])
    for body in range(1, 4):
        region.send(topic, body)
    region.acknowledge(first, 1, kind=AckKind.STANDARD)
    _, outcome = region.subscribe("y", "y", [topic], retroactive=True)
    assert [body for _, body in given(outcome)] == [2, 3]


def test_without_keep_active_only_persistent_messages_wait() -> None:
    region = TopicRegion(keep_durable_subscriptions_active=False)
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic])
    plain = subscribed(region, topic)
    region.deactivate(number)
    region.send(topic, 1, persistent=False)
    region.send(topic, 2)
    _, outcome = region.subscribe("client", "name", [topic])
    assert given(outcome) == [(number, 2)]
    assert region.consumers(topic) == [plain, number]


def test_what_a_store_kept_is_brought_in() -> None:
    kept = [(7, "a"), (9, "b"), (12, "c")]
    region = TopicRegion(
        page=2, pager=lambda changes, it, topic, after, limit: [row for row in kept if row[0] > after[1]][:limit]
    )
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic], prefetch=2, active=False)
    region.leave_behind(number, topic, 4)
    assert region.subscription_statistics(number)["pending"] == 4
    assert given(region.activate(number)) == [(number, "a"), (number, "b")]
    assert region.statistics(topic)["behind"] == 2
    assert given(region.acknowledge(number, 7)) == [(number, "c")]
    region._check()
    with pytest.raises(IllegalStateError, match="lacks 1 message that waits"):
        region.acknowledge(number, 9)
    with pytest.raises(IllegalStateError, match="ascend from 13"):
        region.send(topic, "d", handle=12)
    with pytest.raises(IllegalStateError, match="no pager"):
        region.leave_behind(subscribed(region, topic), topic, 1)


def test_the_periodic_scan_expires_what_waits_for_absent_consumers() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic])
    region.deactivate(number)
    for body in range(3):
        region.send(topic, body, expiration=10)
    assert kinds(region.expire(topic, 11, upto=2)) == ["EXPIRED", "RELEASED", "EXPIRED", "RELEASED"]
    assert kinds(region.expire(topic, 11)) == ["EXPIRED", "RELEASED"]
    assert region.statistics(topic)["expired"] == 3


def test_durable_acknowledgements_must_fit_what_was_dispatched() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    number, _ = region.subscribe("client", "name", [topic])
    for body in range(1, 4):
        region.send(topic, body)
    with pytest.raises(JMSError, match="Unmatched acknowledge"):
        region.acknowledge(number, 9, kind=AckKind.STANDARD)
    with pytest.raises(JMSError, match="counts 3 messages, the range has 2"):
        region.acknowledge(number, 2, kind=AckKind.STANDARD, count=3)
    assert kinds(region.acknowledge(number, 2, kind=AckKind.POISON)) == ["POISONED", "RELEASED"] * 2


def test_messages_that_no_topic_takes() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    with pytest.raises(InvalidMessageError, match="JMSPriority"):
        region.send(topic, {"JMSPriority": 12})
    with pytest.raises(InvalidTopologyError, match="noLocal needs"):
        region.add_subscription(no_local=True)
    region.remove_topic(topic)
    with pytest.raises(IllegalStateError, match="topic 0 is not here"):
        region.send(topic, "a")
    assert region.messages == 0
