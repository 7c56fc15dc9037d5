"""Who is slow, who is told, and who is aborted (spec activemq 3.3, 3.6, 7)."""

from __future__ import annotations

import pytest

from pyengine.activemq import SESSION_TRANSACTED, ConnectionFactory
from pyengine.activemq.broker.events import ConsumerAborted, SlowConsumer
from pyengine.topology.policy import AbortSlowAckConsumerStrategy, AbortSlowConsumerStrategy, Policy
from tests.activemq.wire import Wire


@pytest.fixture
def watched(make):
    """A broker with a policy for everything, and what it says about slow consumers."""

    def broker(strategy=None, **settings):
        policies = [Policy(name, slow_consumer_strategy=strategy) for name in (">", "topic://>")]
        made = make(policies=policies, **settings)
        seen = []
        made.on(SlowConsumer, lambda event: seen.append(("slow", event.consumer.consumer_id)))
        made.on(ConsumerAborted, lambda event: seen.append(("aborted", event.consumer.consumer_id)))
        return made, seen

    return broker


def test_a_queue_consumer_without_credit_is_slow_until_it_has_some(watched):
    broker, seen = watched()
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=1)
    wire.send("q", 1)
    assert seen == []
    wire.send("q", 2)
    wire.send("q", 3)
    assert seen == [("slow", "a")]
    assert broker.subscriptions()[0].slow_consumer
    wire.consume("b", "q", prefetch=2)
    wire.acknowledge("a", 1)
    assert [view.slow_consumer for view in broker.subscriptions()] == [False, False]


def test_release_5_17_never_marks_a_queue_consumer(watched):
    broker, seen = watched(release="5.17")
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=1)
    wire.send("q", 1, 2)
    assert seen == []
    assert not broker.subscriptions()[0].slow_consumer


def test_a_slow_topic_consumer_is_closed_after_its_time_and_removed_if_it_stays(watched, clock):
    broker, seen = watched(AbortSlowConsumerStrategy(max_slow_duration=2000, check_period=1000))
    wire = Wire(broker)
    wire.consume("t", "topic://T", prefetch=2)
    wire.send("topic://T", *range(6))
    assert seen == [("slow", "t")]
    clock.advance(1999)
    assert wire.controls == []
    clock.advance(1)
    assert [(control.consumer_id, control.close) for control in wire.controls] == [("t", True)]
    assert seen == [("slow", "t"), ("aborted", "t")]
    assert len(broker.subscriptions()) == 1
    clock.advance(1000)
    assert broker.subscriptions() == ()


def test_one_that_catches_up_is_left_alone(watched, clock):
    broker, seen = watched(AbortSlowConsumerStrategy(max_slow_duration=2000, check_period=1000))
    wire = Wire(broker)
    wire.consume("t", "topic://T", prefetch=2)
    wire.send("topic://T", *range(6))
    clock.advance(1500)
    for n in range(6):
        wire.acknowledge("t", n)
    wire.send("topic://T", 6)
    clock.advance(10_000)
    assert seen == [("slow", "t")]


def test_a_whole_connection_is_ended(watched, clock):
    broker, _ = watched(AbortSlowConsumerStrategy(max_slow_count=1, check_period=1000, abort_connection=True))
    wire = Wire(broker)
    wire.consume("t", "topic://T", prefetch=2)
    wire.consume("u", "topic://U", prefetch=2)
    wire.send("topic://T", *range(6))
    clock.advance(1000)
    (reason,) = wire.failures
    assert reason.startswith("1 Consumers was slow too often (>1)")
    assert broker.subscriptions() == ()


def test_an_acknowledgement_that_is_too_old_makes_a_queue_consumer_slow(watched, clock):
    strategy = AbortSlowAckConsumerStrategy(max_slow_duration=2000, check_period=1000, max_time_since_last_ack=1500)
    broker, seen = watched(strategy)
    wire = Wire(broker)
    wire.consume("idle", "other")
    wire.consume("a", "q")
    clock.advance(10_000)
    assert seen == []
    wire.send("q", 1)
    clock.advance(1000)
    assert seen == [("slow", "a")]
    clock.advance(1000)
    assert seen == [("slow", "a"), ("aborted", "a")]
    wire.consume("b", "q")
    clock.advance(1000)
    assert wire.taken() == [("a", "1"), ("b", "1")]
    wire.acknowledge("b", 1)
    clock.advance(10_000)
    assert len(seen) == 2
    assert [view.consumer_id for view in broker.subscriptions()] == ["idle", "b"]


def test_idle_consumers_are_slow_too_if_they_count(watched, clock):
    strategy = AbortSlowAckConsumerStrategy(
        max_slow_duration=1000, check_period=1000, max_time_since_last_ack=500, ignore_idle_consumers=False
    )
    broker, seen = watched(strategy)
    Wire(broker).consume("idle", "q")
    clock.advance(5000)
    assert seen == [("slow", "idle"), ("aborted", "idle")]


def test_looks_at_acknowledgements_begin_with_the_first_destination(watched, clock):
    # Recorded with 6.3.1 and 5.17.2: a destination made 200 ms after the start, looks at 800, 1400 and 2000 ms.
    strategy = AbortSlowAckConsumerStrategy(
        max_slow_count=1, max_slow_duration=300, check_period=600, max_time_since_last_ack=1225
    )
    broker, seen = watched(strategy)
    began = clock.now()
    broker.on(ConsumerAborted, lambda event: seen.append(clock.now() - began))
    clock.advance(200)
    wire = Wire(broker)
    wire.consume("a", "topic://u", prefetch=1)
    clock.advance(800)
    wire.send("topic://u", 1)
    clock.advance(3000)
    assert seen[:3] == [("slow", "a"), ("aborted", "a"), 2000]


def test_what_a_consumer_held_that_had_to_be_removed_counts_as_redelivered(watched, clock):
    # Its open transaction keeps the client from closing; the broker's own removal says nothing of what its user got.
    strategy = AbortSlowAckConsumerStrategy(max_slow_duration=1000, check_period=1000, max_time_since_last_ack=500)
    broker, seen = watched(strategy)
    errors = []
    with ConnectionFactory(broker=broker).create_connection() as connection:
        connection.exception_listener = errors.append
        session = connection.create_session(SESSION_TRANSACTED)
        consumer = session.create_consumer("q")
        with connection.create_session() as other:
            other.create_producer("q").send("a")
            other.create_producer("q").send("b")
        assert consumer.receive_no_wait().body == "a"
        clock.advance(1999)
        assert [what for what, _ in seen] == ["slow", "aborted"]
        assert len(broker.subscriptions()) == 1
        clock.advance(1)
        assert broker.subscriptions() == ()
        session.rollback()
        assert errors == []
        with connection.create_session() as other:
            again = other.create_consumer("q").receive_batch(2)
    assert [(message.body, message.redelivery_counter) for message in again] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("pattern", ["T", "*"])
def test_idle_durable_subscribers_are_slow_too_if_they_count(watched, clock, pattern):
    strategy = AbortSlowAckConsumerStrategy(
        max_slow_duration=1000, check_period=1000, max_time_since_last_ack=500, ignore_idle_consumers=False
    )
    broker, seen = watched(strategy)
    with ConnectionFactory(broker=broker).create_connection("client") as connection:
        session = connection.create_session()
        session.create_durable_subscriber(pattern, "s")
        session.create_producer(session.create_topic("T"))
        clock.advance(1000)
        assert [what for what, _ in seen] == ["slow", "aborted"]
