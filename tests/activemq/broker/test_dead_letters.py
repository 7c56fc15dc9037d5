"""Poison, expiry, strategies and the redelivery plugin (spec activemq 2.13)."""

from __future__ import annotations

import pytest

from pyengine.activemq import AckKind, RedeliveryPolicy
from pyengine.activemq.broker.events import DeadLetter, MessageExpired, Redelivery
from pyengine.errors import ConfigurationError
from pyengine.topology.policy import (
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    Policy,
    RedeliveryPlugin,
    SharedDeadLetterStrategy,
    VirtualTopic,
)
from tests.activemq.wire import Wire


def letters(wire, queue="ActiveMQ.DLQ"):
    """What lies in a dead-letter queue."""
    before = len(wire.dispatched)
    wire.consume(f"reader {before}", queue)
    return [command.message for command in wire.dispatched[before:]]


def test_a_poison_message_goes_to_the_shared_queue(broker):
    wire = Wire(broker)
    seen = []
    broker.on(DeadLetter, seen.append)
    wire.consume("a", "q")
    wire.send("q", "bad", expiration=broker.clock.now() + 50_000)
    expiration = wire.dispatched[0].message.expiration
    wire.acknowledge("a", "bad", AckKind.POISON, poison_cause="java.lang.Throwable: it is bad")
    (letter,) = letters(wire)
    assert letter.body == "bad"
    assert letter.original_destination == "queue://q"
    assert letter.get_string_property("dlqDeliveryFailureCause") == "java.lang.Throwable: it is bad"
    assert letter.get_long_property("originalExpiration") == expiration
    assert letter.expiration == 0
    assert [(str(event.sent_to), event.cause) for event in seen] == [
        ("queue://ActiveMQ.DLQ", "java.lang.Throwable: it is bad")
    ]


def test_a_poison_range_goes_in_order(broker):
    wire = Wire(broker)
    wire.consume("a", "q")
    wire.send("q", 1, 2, 3)
    wire.acknowledge("a", 2, AckKind.POISON, message_count=2)
    assert [letter.body for letter in letters(wire)] == ["1", "2"]


@pytest.mark.parametrize(("release", "second"), [("newest", 1), ("5.17", 0)])
def test_each_copy_of_a_message_gets_into_a_dead_letter_queue_of_its_own(make, release, second):
    broker = make(policies=[Policy(">", dead_letter_strategy=IndividualDeadLetterStrategy())], release=release)
    wire = Wire(broker)
    for name in ("a", "b"):
        wire.consume(name, f"Consumer.{name}.VirtualTopic.t")
    wire.send("topic://VirtualTopic.t", "bad")
    for name in ("a", "b"):
        wire.acknowledge(name, "bad", AckKind.POISON)
    assert len(letters(wire, "ActiveMQ.DLQ.Queue.Consumer.a.VirtualTopic.t")) == 1
    assert len(letters(wire, "ActiveMQ.DLQ.Queue.Consumer.b.VirtualTopic.t")) == second
    if second:
        assert broker.view("ActiveMQ.DLQ.Queue.Consumer.b.VirtualTopic.t").dlq


def test_a_copy_that_kept_its_topic_gets_the_prefix_of_topics(make):
    broker = make(
        policies=[Policy(">", dead_letter_strategy=IndividualDeadLetterStrategy())],
        virtual_destinations=[VirtualTopic("VirtualTopic.>", set_original_destination=False)],
    )
    wire = Wire(broker)
    wire.consume("a", "Consumer.a.VirtualTopic.t")
    wire.send("topic://VirtualTopic.t", "bad")
    wire.acknowledge("a", "bad", AckKind.POISON)
    assert len(letters(wire, "ActiveMQ.DLQ.Topic.Consumer.a.VirtualTopic.t")) == 1


@pytest.mark.parametrize(
    ("strategy", "persistent", "queue"),
    [
        (SharedDeadLetterStrategy(), False, None),
        (SharedDeadLetterStrategy(process_non_persistent=True), False, "ActiveMQ.DLQ"),
        (SharedDeadLetterStrategy(dead_letter_queue="Dead"), True, "Dead"),
        (IndividualDeadLetterStrategy(), True, "ActiveMQ.DLQ.Queue.q"),
        (IndividualDeadLetterStrategy(queue_prefix="DLQ.", queue_suffix=".dead"), True, "DLQ.q.dead"),
        (DiscardingDeadLetterStrategy(), True, None),
        (None, True, None),
    ],
)
def test_strategies(make, strategy, persistent, queue):
    broker = make(policies=[Policy(">", dead_letter_strategy=strategy)])
    wire = Wire(broker)
    seen = []
    broker.on(DeadLetter, seen.append)
    wire.consume("a", "q")
    wire.send("q", "bad", delivery_mode="PERSISTENT" if persistent else "NON_PERSISTENT")
    wire.acknowledge("a", "bad", AckKind.POISON)
    assert [event.sent_to and event.sent_to.name for event in seen] == [queue]
    if queue:
        (letter,) = letters(wire, queue)
        assert letter.persistent
        if not persistent:
            assert letter.get_string_property("originalDeliveryMode") == "NON_PERSISTENT"


def test_the_audit_moves_an_id_once_and_a_dead_letter_never_goes_back_to_its_queue(broker):
    wire = Wire(broker)
    seen = []
    broker.on(DeadLetter, seen.append)
    wire.consume("a", "q")
    wire.send("q", "bad", message_id="ID:p:1")
    wire.acknowledge("a", "bad", AckKind.POISON)
    wire.send("q", "again", message_id="ID:p:1")
    wire.acknowledge("a", "again", AckKind.POISON)
    wire.consume("d", "ActiveMQ.DLQ")
    wire.acknowledge("d", "bad", AckKind.POISON)
    wire.send("ActiveMQ.DLQ", "loop")
    wire.acknowledge("d", "loop", AckKind.POISON)
    assert [event.sent_to is not None for event in seen] == [True, False, False, False]


def test_expired_messages_become_dead_letters_at_send_at_dispatch_and_by_the_scan(broker, clock):
    wire = Wire(broker)
    expired = []
    broker.on(MessageExpired, expired.append)
    wire.send("q", "late", expiration=clock.now() - 1)
    wire.send("q", "short", expiration=clock.now() + 10)
    wire.send("q", "scanned", expiration=clock.now() + 20_000)
    clock.advance(11)
    wire.consume("a", "q")
    broker.remove_consumer("a")
    clock.advance(30_000)
    assert [event.message.body for event in expired] == ["late", "short", "scanned"]
    assert [letter.body for letter in letters(wire)] == ["late", "short", "scanned"]


def test_expired_messages_are_dropped_if_the_strategy_says_so(make, clock):
    broker = make(policies=[Policy(">", dead_letter_strategy=SharedDeadLetterStrategy(process_expired=False))])
    wire = Wire(broker)
    wire.send("q", "late", expiration=clock.now() - 1)
    assert letters(wire) == []


def test_the_redelivery_plugin_sends_again_and_gives_up_in_the_end(make, clock):
    policy = RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=1000, redelivery_delay=3000)
    broker = make(redelivery_plugin=RedeliveryPlugin(policies=(("q", policy),)))
    wire = Wire(broker)
    seen = []
    broker.on(Redelivery, seen.append)
    wire.consume("a", "q")
    wire.send("q", "bad")
    for wait in (1000, 3000):
        wire.acknowledge("a", "bad", AckKind.POISON)
        wire.taken()
        clock.advance(wait - 1)
        assert wire.taken() == []
        clock.advance(1)
        assert wire.taken() == [("a", "bad")]
    assert [(event.delay, event.count) for event in seen] == [(1000, 1), (3000, 2)]
    assert wire.dispatched[-1].redelivery_counter == 2
    assert wire.dispatched[-1].message.get_long_property("redeliveryDelay") == 3000
    wire.acknowledge("a", "bad", AckKind.POISON)
    assert [letter.body for letter in letters(wire)] == ["bad"]


def test_the_redelivery_plugin_refuses_short_delays(make):
    with pytest.raises(ConfigurationError, match="1000"):
        make(redelivery_plugin=RedeliveryPlugin(default=RedeliveryPolicy(initial_redelivery_delay=999)))


def test_the_redelivery_plugin_counts_what_a_durable_subscription_gives_up(make, clock):
    # Recorded with 6.3.1 and 5.17.2; of the subscriptions only the durable ones are told the count.
    plugin = RedeliveryPlugin(default=RedeliveryPolicy(maximum_redeliveries=2))
    broker = make(redelivery_plugin=plugin)
    seen = []
    broker.on(DeadLetter, seen.append)
    wire = Wire(broker, client_id="c")
    wire.consume("a", "topic://t", subscription_name="d")
    wire.consume("plain", "topic://t")
    wire.send("topic://t", "bad", delivery_mode="NON_PERSISTENT")
    for _ in range(2):
        wire.acknowledge("a", "bad", AckKind.POISON)
        clock.advance(1000)
    wire.acknowledge("a", "bad", AckKind.POISON)
    clock.advance(10_000)
    counts = {name: [each.redelivery_counter for each in wire.dispatched if each.consumer_id == name]
              for name in ("a", "plain")}  # fmt: skip
    assert counts == {"a": [0, 1, 2], "plain": [0, 0, 0]}
    assert [event.message.body for event in seen] == ["bad"]


def test_the_redelivery_plugin_counts_a_dispatch_that_persist_jms_redelivered_counts(make, clock):
    # Recorded with 6.3.1 and 5.17.2: the first dispatch is one of the two.
    plugin = RedeliveryPlugin(default=RedeliveryPolicy(maximum_redeliveries=2))
    wire = Wire(make(redelivery_plugin=plugin, policies=[Policy(">", persist_jms_redelivered=True)]))
    wire.consume("a", "q")
    wire.send("q", "bad")
    wire.acknowledge("a", "bad", AckKind.POISON)
    clock.advance(1000)
    wire.acknowledge("a", "bad", AckKind.POISON)
    assert [each.redelivery_counter for each in wire.dispatched] == [0, 2]
    assert [letter.body for letter in letters(wire)] == ["bad"]
