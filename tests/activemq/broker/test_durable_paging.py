"""Durable subscriptions with more waiting than the broker keeps in memory: the rest is paged from the store."""

from __future__ import annotations

import pytest

from pyengine.activemq import AckKind, Broker
from pyengine.errors import JMSError
from pyengine.topology.policy import Policy
from tests.activemq.wire import Wire

LIMIT = 5


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def opened(folder, clock, **settings):
    return Broker(folder, clock=clock, cursor_limit=LIMIT, **settings)


def drained(broker, name="sub", to="topic://T", **options):
    """Everything the subscription gets, each message acknowledged when it comes."""
    wire = Wire(broker, f"drain {name}", "client")
    wire.react = {name: AckKind.INDIVIDUAL}
    wire.consume(name, to, prefetch=3, subscription_name=name, **options)
    broker.remove_connection(f"drain {name}")
    return [int(body) for _, body in wire.got]


def away(broker, *names, to="topic://T", **options):
    wire = Wire(broker, "away", "client")
    for name in names:
        wire.consume(name, to, prefetch=1, subscription_name=name, **options)
    broker.remove_connection("away")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_backlog_is_served_in_order_and_never_all_in_memory(folder, clock, restarts):
    broker = opened(folder, clock)
    away(broker, "sub", "other")
    away(broker, "even", selector="n % 2 = 0")
    wire = Wire(broker)
    for n in range(100):
        wire.send("topic://T", n, properties={"n": n})
        assert broker.topics.region.messages <= 3 * LIMIT
    assert broker.view("topic://T").queue_size == 100
    assert [view.pending_queue_size for view in broker.subscriptions()] == [100, 100, 50]
    if restarts:
        broker.close()
        broker = opened(folder, clock)
        assert broker.topics.region.messages == 0
        assert [view.pending_queue_size for view in broker.subscriptions()] == [100, 100, 50]
    assert drained(broker) == [*range(100)]
    assert drained(broker, "even", selector="n % 2 = 0") == [*range(0, 100, 2)]
    assert broker.view("topic://T").queue_size == 100
    assert drained(broker, "other") == [*range(100)]
    assert broker.view("topic://T").queue_size == broker.topics.region.messages == 0
    assert broker.store.waiting() == []
    broker.close()


def test_new_messages_queue_up_behind_what_only_the_store_has(folder, clock):
    with opened(folder, clock) as broker:
        away(broker, "sub")
        Wire(broker).send("topic://T", *range(12))
        wire = Wire(broker, "client of sub", "client")
        wire.consume("sub", "topic://T", prefetch=4, subscription_name="sub")
        Wire(broker, "again").send("topic://T", *range(12, 15))
        for n in range(15):
            wire.acknowledge("sub", n)
        assert [int(body) for _, body in wire.taken()] == [*range(15)]
        Wire(broker, "direct").send("topic://T", 15)
        assert wire.taken() == [("sub", "15")]


@pytest.mark.parametrize("restarts", [False, True])
def test_higher_priorities_overtake_what_only_the_store_has(folder, clock, restarts):
    policies = [Policy("topic://>", prioritized_messages=True)]
    broker = opened(folder, clock, policies=policies)
    away(broker, "sub")
    wire = Wire(broker)
    for n in range(60):
        wire.send("topic://T", n, priority=n // 20 * 3)
        assert broker.topics.region.messages <= 2 * LIMIT
    if restarts:
        broker.close()
        broker = opened(folder, clock, policies=policies)
    assert drained(broker) == [*range(40, 60), *range(20, 40), *range(20)]
    broker.close()


def test_a_rolled_back_message_keeps_its_count_while_others_are_left_to_the_store(folder, clock):
    policies = [Policy("topic://>", prioritized_messages=True)]
    with opened(folder, clock, policies=policies) as broker:
        wire = Wire(broker, "first", "client")
        wire.consume("sub", "topic://T", prefetch=2, subscription_name="sub")
        Wire(broker).send("topic://T", *range(4), priority=1)
        last = wire.id_of("sub", 0)
        broker.remove_consumer("sub", last_delivered=last)
        Wire(broker, "more").send("topic://T", *range(4, 30), priority=8)
        wire.taken()
        wire.react = {"sub": AckKind.INDIVIDUAL}
        wire.consume("sub", "topic://T", prefetch=2, subscription_name="sub")
        assert [int(body) for _, body in wire.taken()] == [*range(4, 30), *range(4)]
        counts = {command.message.body: command.message.redelivery_counter for command in wire.dispatched}
        assert (counts["0"], counts["1"]) == (1, 0)


def test_a_wildcard_pages_each_of_its_topics(folder, clock):
    with opened(folder, clock) as broker:
        away(broker, "sub", to="topic://T.*")
        wire = Wire(broker)
        for n in range(40):
            wire.send(f"topic://T.{n % 2}", n)
        assert broker.topics.region.messages <= 2 * LIMIT
        got = drained(broker, to="topic://T.*")
        assert [n for n in got if n % 2] == [*range(1, 40, 2)]
        assert [n for n in got if not n % 2] == [*range(0, 40, 2)]


def test_a_retroactive_subscription_gets_what_is_stored_for_others(folder, clock):
    with opened(folder, clock) as broker:
        away(broker, "sub")
        Wire(broker).send("topic://T", *range(30))
        away(broker, "late", retroactive=True)
        assert broker.topics.region.messages <= 2 * LIMIT
        broker.remove_subscription("client", "sub")
        assert broker.view("topic://T").queue_size == 30
        assert drained(broker, "late", retroactive=True) == [*range(30)]


def test_unsubscribing_forgets_a_backlog_that_only_the_store_has(folder, clock):
    with opened(folder, clock) as broker:
        away(broker, "sub", "other")
        Wire(broker).send("topic://T", *range(30))
        broker.remove_subscription("client", "sub")
        assert broker.view("topic://T").queue_size == 30
        away(broker, "other", selector="TRUE")
        assert broker.view("topic://T").queue_size == 0
        assert broker.store.waiting() == []
    with opened(folder, clock) as broker:
        assert broker.view("topic://T").queue_size == 0
        assert drained(broker, "other", selector="TRUE") == []


def test_the_scan_for_expired_messages_looks_at_the_first_of_the_topic(folder, clock):
    with opened(folder, clock, policies=[Policy("topic://>", max_expire_page_size=20)]) as broker:
        away(broker, "sub")
        Wire(broker).send("topic://T", *range(50), expiration=clock.now() + 10)
        clock.advance(30_000)
        assert broker.view("topic://T").queue_size == 30
        clock.advance(60_000)
        assert broker.view("topic://T").queue_size == 0
        assert broker.view("ActiveMQ.DLQ").queue_size == 50


def test_what_a_transaction_acknowledged_is_not_brought_in_again(folder, clock):
    with opened(folder, clock) as broker:
        wire = Wire(broker, "first", "client")
        wire.consume("sub", "topic://T", prefetch=8, subscription_name="sub")
        Wire(broker).send("topic://T", *range(20))
        broker.begin("first", "TX")
        wire.acknowledge("sub", 7, AckKind.STANDARD, transaction_id="TX")
        broker.remove_consumer("sub")
        wire.taken()
        wire.react = {"sub": AckKind.INDIVIDUAL}
        wire.consume("sub", "topic://T", prefetch=3, subscription_name="sub")
        assert [int(body) for _, body in wire.taken()] == [*range(8, 20)]
        broker.rollback("TX")
        assert [int(body) for _, body in wire.taken()] == [*range(8)]


@pytest.mark.parametrize("to", ["temp-topic://x", "topic://ActiveMQ.Advisory.Connection"])
def test_no_durable_subscription_of_a_temporary_or_an_advisory_topic(make, to):
    with pytest.raises(JMSError, match="durable subscription"):
        Wire(make(), "c", "client").consume("sub", to, subscription_name="sub")
