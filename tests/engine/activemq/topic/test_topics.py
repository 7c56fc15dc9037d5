"""Topics: fan-out, the window of a subscription, limits, slow flags and acknowledgements."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.topic.eviction_strategies import ConstantPendingLimit, LowestPriorityEviction
from pyengine._engine.activemq.topic.ledger import Event, EventKind, TopicDelivery
from pyengine._engine.activemq.topic.message_audit import Audit
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine._engine.message.message import Message
from pyengine.errors import IllegalStateError, InvalidMessageError


def given(outcome: list[TopicDelivery | Event]) -> list[tuple[int, Any]]:
    """Consumer and body of each delivery."""
    return [(item.consumer, item.body) for item in outcome if isinstance(item, TopicDelivery)]


def events(outcome: list[TopicDelivery | Event]) -> list[tuple[str, int | None, Any]]:
    """Kind, consumer and body of each event."""
    return [(item.kind.name, item.consumer, item.body) for item in outcome if isinstance(item, Event)]


def subscribed(region: TopicRegion, topic: int, **settings: Any) -> int:
    subscription = region.add_subscription(**settings)
    assert region.attach(subscription, topic) == []
    return subscription


def test_everybody_who_matches_gets_it_in_the_order_of_subscription() -> None:
    region = TopicRegion()
    topic = region.add_topic("prices")
    first = subscribed(region, topic, priority=1)
    subscribed(region, topic, selector=lambda message: message == "other")
    third = subscribed(region, topic, priority=9)
    assert given(region.send(topic, "a")) == [(first, "a"), (third, "a")]
    region._check()


def test_a_slow_consumer_is_marked_once_and_its_oldest_message_goes() -> None:
    region = TopicRegion()
    topic = region.add_topic("prices")
    slow = subscribed(region, topic, prefetch=2, pending_limit_strategy=ConstantPendingLimit(3))
    for number in range(5):
        region.send(topic, number)
    assert events(region.send(topic, 5)) == [("SLOW", slow, None), ("DISCARDED", slow, 2)]
    assert events(region.send(topic, 6)) == [("DISCARDED", slow, 3)]
    region._check()
    oldest = region.unacknowledged(slow)[0]
    assert given(region.acknowledge(slow, oldest, kind=AckKind.STANDARD)) == [(slow, 4)]
    assert region.is_slow(slow)
    region._check()


def test_nobody_there_is_reported() -> None:
    region = TopicRegion()
    topic = region.add_topic("prices")
    assert events(region.send(topic, "a")) == [("NO_CONSUMER", None, "a")]
    assert region.messages == 0
    with pytest.raises(IllegalStateError, match="topic 7 is not here"):
        region.send(7, "a")


def test_event_kinds_are_numbers_that_stay() -> None:
    assert EventKind.SLOW == 1
    assert EventKind.NOT_EVICTED == 12


class Named(str):
    """A name that is no exact str."""


SENT: list[Any] = [
    {"n": 1},
    {"n": 2, "JMSPriority": 9},
    {Named("JMSPriority"): 8},
    {"n": 3, "": "", "JMSExpiration": 5},
    {"n": 4, "JMSDeliveryMode": 1},
    {"n": 5, "ActiveMQ.Retain": True, "body": "kept"},
    {f"k{number}": number for number in range(16)},
    {f"k{number}": number for number in range(16)} | {"JMSPriority": 7},
    {"n": 6, "JMSMessageID": "p:1"},
    {"n": 6, "JMSMessageID": "p:1"},
    MappingProxyType({"JMSPriority": 1}),
    Message({"n": 7, "ActiveMQ.Retain": "true"}, body="kept too", priority=2),
    "a body alone",
    None,
]


def test_sending_messages_at_once_is_sending_each() -> None:
    told = []
    for at_once in (True, False):
        region = TopicRegion()
        topic = region.add_topic("t")
        subscribed(region, topic, selector=lambda body: body != {"n": 1}, prefetch=3, audit=Audit())
        subscribed(region, topic, prefetch=4, maximum_pending_message_limit=2, eviction=LowestPriorityEviction())
        durable, _ = region.subscribe("c", "s", [topic], prioritized_messages=True, prefetch=0)
        if at_once:
            outcome = region.send_each(topic, SENT, now=10)
        else:
            outcome = [item for message in SENT for item in region.send(topic, message, now=10)]
        region._check()
        shown = [(type(item), item.consumer, item.message, item.body) for item in outcome]
        told.append((shown, region.waiting(durable), region.recoverable(topic), region.statistics(topic)))
    assert told[0] == told[1]
    assert told[0][3]["expired"] == 1
    assert len(told[0][2]) == 1
    # By handle: what is not persistent, then by priority; what the topic retains has handles of its own (7, 14).
    assert told[0][1] == [5, 2, 3, 9, 1, 6, 8, 10, 11, 15, 16, 13, 12]


def test_what_was_sent_before_a_message_that_raises_is_told_by_the_next_call() -> None:
    region = TopicRegion()
    topic = region.add_topic("t")
    first = subscribed(region, topic)
    with pytest.raises(InvalidMessageError, match="JMSPriority"):
        region.send_each(topic, ["a", {"JMSPriority": 11}, "b"])
    assert given(region.send_each(topic, ["c"])) == [(first, "a"), (first, "c")]


def test_acknowledging_deliveries_at_once_is_acknowledging_each() -> None:
    regions = [TopicRegion(), TopicRegion()]
    counts = []
    for region in regions:
        topic = region.add_topic("t")
        consumers = [subscribed(region, topic, prefetch=2) for _ in range(3)]
        heard = []
        for n in range(6):
            outcome = region.send(topic, {"n": n})
            while outcome:
                heard.append(given(outcome))
                if region is regions[0]:
                    outcome = region.acknowledge_each(outcome)
                    continue
                rest: list[TopicDelivery | Event] = []
                for item in outcome:
                    if isinstance(item, TopicDelivery):
                        rest += region.acknowledge(item.consumer, item.message or 0, kind=AckKind.STANDARD)
                outcome = rest
        region._check()
        counts.append((heard, region.statistics(topic), [region.subscription_statistics(each) for each in consumers]))
    assert counts[0] == counts[1]


def test_the_number_of_a_removed_topic_is_taken_again_and_its_counts_are_new() -> None:
    region = TopicRegion()
    stays = region.add_topic("stays")
    subscribed(region, stays)
    for turn in range(200):
        number = region.add_topic(f"t{turn}")
        assert not any(region.statistics(number).values())
        consumer = subscribed(region, number)
        assert given(region.send(number, turn)) == [(consumer, turn)]
        region.send(stays, turn)  # which is not acknowledged
        region.close(consumer)
        region.remove_topic(number)
        region._check()
        with pytest.raises(IllegalStateError, match=f"topic {number} is not here"):
            region.send(number, turn)
    assert number < 60
