"""Composites, virtual destinations, wildcards and temporary destinations (spec activemq 4)."""

from __future__ import annotations

import pytest

from pyengine._engine.activemq.region.virtual_destinations import lets_in
from pyengine.activemq import AckKind
from pyengine.activemq.broker.events import ConsumerClosed, ConsumerStarted, Event, MessageDiscarded, NoConsumer
from pyengine.errors import InvalidDestinationError, JMSError
from pyengine.topology.policy import (
    CompositeQueue,
    CompositeTopic,
    ConstantPendingMessageLimitStrategy,
    FilteredDestination,
    Policy,
    UniquePropertyMessageEvictionStrategy,
    VirtualTopic,
)
from tests.activemq.wire import Wire, destination


def test_a_composite_send_reaches_every_part(broker):
    wire = Wire(broker)
    wire.consume("a", "A")
    wire.consume("t", "topic://T")
    wire.send("A,topic://T,A", "x")
    assert wire.taken() == [("t", "x"), ("a", "x")]
    assert [command.message.destination for command in wire.dispatched] == ["topic://T", "queue://A"]


def test_a_composite_consumer_waits_for_queues_that_others_make(broker):
    wire = Wire(broker)
    wire.consume("both", "A,B,topic://T", prefetch=2)
    assert broker.destinations() == ()
    broker.add_producer("wire", "producer", destination("B"))
    assert [str(each) for each in broker.destinations()] == ["queue://B"]
    wire.send("A", 1)
    wire.send("topic://T", 2)
    wire.send("B", 3, 4)
    assert wire.taken() == [("both", "1"), ("both", "3")]


def test_no_part_of_a_composite_consumer_is_removed_while_it_is_there(broker):
    # Seen at 6.3.1.
    wire = Wire(broker)
    wire.consume("both", "A,B")
    wire.send("A,B,C", 1)
    for name in "AB":
        with pytest.raises(JMSError, match=rf"queue://{name} still has an active subscription: both"):
            broker.remove_destination("wire", destination(name))
    broker.remove_destination("wire", destination("C"))
    assert [str(each) for each in broker.destinations()] == ["queue://A", "queue://B"]
    wire.send("B", 2)
    assert wire.taken() == [("both", "1"), ("both", "1"), ("both", "2")]
    broker.remove_consumer("both")
    broker.remove_destination("wire", destination("A,B"))
    assert broker.destinations() == ()


@pytest.mark.parametrize(
    ("asked", "queue", "lets"),
    [
        ("B", "A", True),
        ("A", "A", True),
        ("A", "B", False),
        ("AB", "A", True),
        ("ABC", "A", False),
        ("\U00010000", "\uffff", False),  # by UTF-16 units it comes before
        ("\uffff", "\ufffe", True),
    ],
)
def test_names_are_one_apart_as_in_java(asked, queue, lets):
    assert lets_in(asked, False, queue, False) == lets


@pytest.mark.parametrize(
    ("consumer", "got"),
    [
        ("Consumer.A.VirtualTopic.T", [1, 2]),
        ("Consumer.*.VirtualTopic.T", [1, 1, 2]),  # a queue of this very name is fed too
        ("Consumer.A.VirtualTopic.>", [1, 1, 2]),
        ("Consumer.>", [1, 1, 2]),
        ("Q,Consumer.A.VirtualTopic.T", []),
        ("D,Consumer.A.VirtualTopic.T", [1, 2]),  # one more than the queue's name in String.compareTo
    ],
)
def test_who_is_let_to_the_queue_of_a_virtual_topic(broker, consumer, got):
    wire = Wire(broker)
    broker.add_producer("wire", "producer", destination("Consumer.A.VirtualTopic.T"))
    wire.consume("a", consumer)
    wire.send("topic://VirtualTopic.T", 1)
    wire.send("Consumer.A.VirtualTopic.T", 2)
    assert sorted(wire.taken()) == [("a", str(n)) for n in got]


def test_any_virtual_topic_stands_before_its_queues(make):
    broker = make(virtual_destinations=[VirtualTopic("VirtualTopic.>"), VirtualTopic("Other.>", prefix="Feed.*.")])
    wire = Wire(broker)
    for queue in ("Consumer.A.VirtualTopic.T", "Feed.A.Other.T", "plain"):
        broker.add_producer("wire", queue, destination(queue))
        wire.consume(f"a of {queue}", f"Q,{queue}")
        wire.send(queue, 1)
    assert wire.taken() == [("a of plain", "1")]


def test_a_wildcard_consumer_is_attached_to_later_destinations(broker):
    wire = Wire(broker)
    wire.consume("a", "q.>")
    wire.consume("t", "topic://t.*")
    wire.send("q.x.y", 1)
    wire.send("topic://t.z", 2)
    assert wire.taken() == [("a", "1"), ("t", "2")]
    assert str(wire.dispatched[0].destination) == "queue://q.x.y"


def test_a_virtual_topic_feeds_existing_consumer_queues(broker):
    wire = Wire(broker)
    wire.consume("a", "Consumer.A.VirtualTopic.T")
    wire.consume("b", "Consumer.B.VirtualTopic.T")
    wire.consume("other", "Consumer.A.VirtualTopic.U")
    wire.consume("t", "topic://VirtualTopic.T", selector="JMSDestination = 'topic://VirtualTopic.T'")
    wire.consume("s", "Consumer.A.VirtualTopic.T", selector="JMSDestination = 'topic://VirtualTopic.T'")
    wire.send("topic://VirtualTopic.T", 1, 2)
    assert sorted(wire.taken()) == [("a", "1"), ("b", "1"), ("b", "2"), ("s", "2"), ("t", "1"), ("t", "2")]


def test_a_selector_aware_virtual_topic_copies_only_what_somebody_wants(make):
    broker = make(virtual_destinations=[VirtualTopic("VirtualTopic.>", selector_aware=True)])
    wire = Wire(broker)
    wire.consume("a", "Consumer.A.VirtualTopic.T", selector="n > 1")
    for n in (1, 2):
        wire.send("topic://VirtualTopic.T", n, properties={"n": n})
    assert wire.taken() == [("a", "2")]
    wire.broker.remove_consumer("a")
    wire.send("topic://VirtualTopic.T", 3, properties={"n": 3})
    wire.consume("all", "Consumer.A.VirtualTopic.T")
    assert wire.taken() == [("all", "2")]


@pytest.mark.parametrize(
    ("composite", "expected"),
    [
        (CompositeQueue("in", ("x", "topic://y")), {"x": [1, 5], "y": [1, 5]}),
        (CompositeQueue("in", ("x",), forward_only=False), {"x": [1, 5], "in": [1, 5]}),
        (CompositeQueue("in", (FilteredDestination("x", "n > 3"),)), {"x": [5]}),
        (CompositeQueue("in", (FilteredDestination("x", "n > 3"),), send_when_not_matched=True), {"x": [5], "in": [1]}),
        (CompositeQueue("in", (FilteredDestination("x"), "topic://y")), {"y": [1, 5]}),
    ],
)
def test_composite_queues(make, composite, expected):
    wire = Wire(make(virtual_destinations=[composite]))
    wire.consume("x", "x")
    wire.consume("in", "in")
    wire.consume("y", "topic://y")
    for n in (1, 5):
        wire.send("in", n, properties={"n": n})
    got = {}
    for consumer, body in wire.taken():
        got.setdefault(consumer, []).append(int(body))
    assert got == expected


def test_what_a_virtual_topic_feeds_may_be_a_composite(make):
    broker = make(virtual_destinations=[VirtualTopic("VT.>"), CompositeQueue("Consumer.A.VT.a", ("x",))])
    wire = Wire(broker)
    wire.consume("x", "x")
    wire.consume("a", "Consumer.A.VT.a")
    wire.consume("b", "Consumer.B.VT.a")
    wire.send("topic://VT.a", 1)
    assert wire.taken() == [("x", "1"), ("b", "1")]


def test_the_queue_of_a_wildcard_consumer_is_forwarded_by_the_composites_it_covers(make):
    broker = make(virtual_destinations=[VirtualTopic("VT.>"), CompositeQueue("Consumer.A.VT.a", ("x",))])
    wire = Wire(broker)
    wire.consume("x", "x")
    wire.consume("any", "Consumer.*.VT.a")
    wire.send("topic://VT.a", 1)
    assert wire.taken() == [("x", "1")]


@pytest.mark.parametrize(
    ("composites", "way"),
    [
        ((CompositeQueue("a", ("y", "a")),), "queue://a -> queue://a"),
        ((CompositeQueue("a", ("y", "b")), CompositeQueue("b", ("a",))), "queue://a -> queue://b -> queue://a"),
        ((CompositeQueue("a", ("topic://VT.t",)), CompositeTopic("VT.t", ("a",))),
         "queue://a -> topic://VT.t -> queue://a"),
    ],
)  # fmt: skip
def test_a_composite_that_forwards_to_itself_is_named(make, composites, way):
    wire = Wire(make(virtual_destinations=composites))
    for _ in range(2):
        with pytest.raises(JMSError, match=f"forwards to itself: {way}; take one"):
            wire.send("a", 1)


def test_composite_topics(make):
    wire = Wire(make(virtual_destinations=[CompositeTopic("in", ("x",), forward_only=False)]))
    wire.consume("x", "x", selector="JMSDestination = 'topic://in'")
    wire.consume("in", "topic://in")
    wire.send("topic://in", 1)
    assert sorted(wire.taken()) == [("in", "1"), ("x", "1")]


def test_temporary_destinations_end_with_their_connection(broker):
    wire, other = Wire(broker), Wire(broker, "other")
    with pytest.raises(InvalidDestinationError, match="temp-queue://wire:1"):
        other.send("temp-queue://wire:1", 1)
    broker.add_destination("wire", destination("temp-queue://wire:1"))
    wire.consume("a", "temp-queue://wire:1")
    other.send("temp-queue://wire:1", 1)
    assert wire.taken() == [("a", "1")]
    with pytest.raises(JMSError, match="active subscription"):
        broker.remove_destination("wire", destination("temp-queue://wire:1"))
    broker.remove_connection("wire")
    with pytest.raises(InvalidDestinationError):
        other.send("temp-queue://wire:1", 2)


def test_policies_by_wildcard_decide_the_prefetch(make):
    policies = [Policy(">", queue_prefetch=1), Policy("big", queue_prefetch=3), Policy("topic://>", topic_prefetch=2)]
    wire = Wire(make(policies=policies))
    wire.consume("s", "small")
    wire.consume("b", "big")
    wire.consume("c", "chosen", prefetch=2)
    wire.consume("t", "topic://t", prefetch=32_767)
    for to in ("small", "big", "chosen", "topic://t"):
        wire.send(to, *range(5))
    got = [consumer for consumer, _ in wire.taken()]
    assert {name: got.count(name) for name in "sbct"} == {"s": 1, "b": 3, "c": 2, "t": 2}


def test_events_come_in_order_and_end_when_told(broker):
    wire = Wire(broker)
    seen = []
    end = broker.on(Event, seen.append)
    wire.send("q", 1)
    wire.consume("a", "q")
    broker.remove_consumer("a")
    assert [type(event) for event in seen] == [NoConsumer, ConsumerStarted, ConsumerClosed]
    end()
    wire.send("q", 2)
    assert len(seen) == 3


def held_by(broker, consumer):
    return broker._subscriptions[consumer].held


def test_messages_discarded_together_are_counted_one_by_one(make):
    strategy, limit = UniquePropertyMessageEvictionStrategy("symbol"), ConstantPendingMessageLimitStrategy(3)
    policy = Policy(
        "topic://t",
        message_eviction_strategy=strategy,
        pending_message_limit_strategy=limit,
        advisory_for_discarding_messages=True,
    )
    broker = make(policies=[policy])
    told, wire = [], Wire(broker)
    broker.on(MessageDiscarded, told.append)
    wire.consume("advisories", "topic://ActiveMQ.Advisory.MessageDiscarded.Topic.t")
    wire.consume("a", "topic://t", prefetch=1)
    for n in range(5):
        wire.send("topic://t", n, properties={"symbol": "x"}, timestamp=n)
    assert [(each.message.body, each.count) for each in told] == [("1", 1), ("2", 2), ("3", 3)]
    heard = [each.message for each in wire.dispatched if each.consumer_id == "advisories"]
    assert [each.get_int_property("discardedCount") for each in heard] == [1, 2, 3]


def test_a_consumer_of_several_queues_acknowledges_across_them(broker):
    """One walk through all it holds, queue by queue in the order of dispatch (PrefetchSubscription.acknowledge)."""
    wire = Wire(broker)
    wire.consume("c", "A,B")
    for number, queue in enumerate("ABBA"):
        wire.send(queue, number)
    wire.acknowledge("c", 2, AckKind.STANDARD, first_message_id=wire.id_of("c", 0), message_count=3)
    assert (broker.view("A").in_flight_count, broker.view("B").in_flight_count) == (1, 0)
    with pytest.raises(JMSError, match="holds 1"):
        wire.acknowledge("c", 3, AckKind.STANDARD, first_message_id=wire.id_of("c", 3), message_count=2)
    wire.acknowledge("c", 3, AckKind.POISON, first_message_id=wire.id_of("c", 3))
    assert not held_by(broker, "c")
    assert [broker.view(queue).queue_size for queue in "AB"] == [0, 0]


@pytest.mark.parametrize("source", ["A,B", "*"])
@pytest.mark.parametrize("transacted", [False, True])
def test_copies_of_one_message_are_acknowledged_one_by_one(broker, source, transacted):
    """The parts of a composite get copies with one id; each acknowledgement takes the first copy, none stays."""
    wire = Wire(broker)
    wire.send("A", "before")
    wire.send("B", "before")
    wire.consume("c", source)
    for number in range(3):
        wire.send("A,B", number)
    for number in (0, 1, 1, 0, 2, 2):
        if transacted:
            broker.begin("wire", "t")
        wire.acknowledge("c", number, transaction_id="t" if transacted else None)
        if transacted:
            broker.commit("t")
    assert [broker.view(queue).in_flight_count for queue in "AB"] == [1, 1]
    with pytest.raises(JMSError, match="unmatched"):
        wire.acknowledge("c", 0)
    wire.acknowledge("c", "before", AckKind.DELIVERED)
    wire.broker.remove_consumer("c")
    assert [broker.view(queue).queue_size for queue in "AB"] == [1, 1]
    wire.taken()
    wire.consume("next", "A,B")
    assert wire.taken() == [("next", "before"), ("next", "before")]


def test_of_copies_only_the_one_delivered_last_counts_as_redelivered(broker):
    """The consumer that closes names its last message; the queue of the other copy does not hold that one."""
    wire = Wire(broker)
    wire.consume("c", "A,B")
    wire.send("A,B", "x")
    broker.remove_consumer("c", last_delivered=wire.id_of("c", "x"))
    wire.consume("next", "A,B")
    assert [(str(each.destination), each.redelivery_counter) for each in wire.dispatched[2:]] == [
        ("queue://A", 0),
        ("queue://B", 1),
    ]


def test_copies_are_acknowledged_one_by_one_within_a_transaction(broker):
    wire = Wire(broker)
    wire.consume("c", "A,B")
    wire.send("A,B", "x")
    broker.begin("wire", "t")
    for _ in range(2):
        wire.acknowledge("c", "x", transaction_id="t")
    broker.rollback("t")
    assert len(held_by(broker, "c")) == 2
    broker.begin("wire", "u")
    for _ in range(2):
        wire.acknowledge("c", "x", transaction_id="u")
    broker.commit("u")
    assert not held_by(broker, "c")
    assert [broker.view(queue).queue_size for queue in "AB"] == [0, 0]


def test_copies_for_a_wildcard_subscriber_of_topics(broker):
    wire = Wire(broker)
    wire.consume("c", "topic://*", prefetch=2)
    for number in range(3):
        wire.send("topic://S,topic://T", number)
    assert wire.taken() == [("c", "0"), ("c", "0")]
    for number in (0, 0, 1, 1, 2, 2):
        wire.acknowledge("c", number)
    assert not held_by(broker, "c")
    assert len(wire.taken()) == 4
