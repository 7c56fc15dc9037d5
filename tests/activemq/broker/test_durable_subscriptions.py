"""Durable topic subscriptions at the broker, in memory and in its store (spec activemq 3.8)."""

from __future__ import annotations

import pytest

from pyengine.activemq import CLIENT_ACKNOWLEDGE, AckKind, Broker, ConnectionFactory
from pyengine.activemq.broker.events import MessageConsumed
from pyengine.errors import InvalidDestinationError, JMSError
from pyengine.topology.policy import IndividualDeadLetterStrategy, Policy
from tests.activemq.wire import Wire, destination


@pytest.fixture(params=["memory", "store"])
def restart(request, tmp_path, clock):
    """Starts the broker; with a store again and again, in memory the second start is the same broker."""
    running = []

    def broker(**settings):
        if request.param == "memory":
            if not running:
                running.append(Broker(clock=clock, **settings))
            else:
                for connection in list(running[0]._connections):
                    running[0].remove_connection(connection)
        else:
            while running:
                running.pop().close()
            running.append(Broker(tmp_path / "data", clock=clock, **settings))
        return running[0]

    yield broker
    running.pop().close()


def subscriber(broker, *, name="sub", to="topic://T", consumer="d", **options):
    wire = Wire(broker, f"connection of {consumer}", "client")
    wire.consume(consumer, to, prefetch=100, subscription_name=name, **options)
    return wire


def test_what_is_sent_while_the_consumer_is_away_waits_for_it(restart):
    wire = subscriber(restart())
    sender = Wire(wire.broker)
    sender.send("topic://T", 1, 2)
    assert wire.taken() == [("d", "1"), ("d", "2")]
    wire.acknowledge("d", 1)
    wire.broker.remove_connection("connection of d")
    sender.send("topic://T", 3)
    broker = restart()
    (view,) = broker.subscriptions()
    assert (view.active, view.client_id, view.subscription_name) == (False, "client", "sub")
    assert view.pending_queue_size == 2
    wire = subscriber(broker)
    assert wire.taken() == [("d", "2"), ("d", "3")]
    assert broker.subscriptions()[0].active
    wire.acknowledge("d", 3, AckKind.STANDARD, message_count=2)
    broker = restart()
    assert subscriber(broker).taken() == []
    assert broker.store is None or broker.store.waiting() == []


def test_a_pattern_covers_the_same_topics_after_a_restart(restart):
    wire = subscriber(restart(), to="topic://a.*")
    wire.consume("e", "topic://c.d", subscription_name="other")
    sender = Wire(wire.broker)
    for name in ("a.b", "c.d"):
        sender.send(f"topic://{name}", name)
    assert wire.taken() == [("d", "a.b"), ("e", "c.d")]
    wire.acknowledge("d", "a.b")
    broker = restart()
    sender = Wire(broker, "again")
    for name in ("c.d", "a.b", "a.e"):
        sender.send(f"topic://{name}", name)
    assert subscriber(broker, to="topic://a.*").taken() == [("d", "a.b"), ("d", "a.e")]


def test_a_selector_decides_when_a_message_comes_and_a_changed_one_starts_anew(restart):
    wire = subscriber(restart(), selector="n > 1")
    sender = Wire(wire.broker)
    for n in range(4):
        sender.send("topic://T", n, properties={"n": n})
    assert wire.taken() == [("d", "2"), ("d", "3")]
    wire = subscriber(restart(), selector="n > 2")
    assert wire.taken() == []
    sender = Wire(wire.broker, "again")
    sender.send("topic://T", 5, properties={"n": 5})
    wire = subscriber(restart(), selector="n > 2")
    assert wire.taken() == [("d", "5")]


def test_unsubscribing_forgets_the_backlog(restart):
    wire = subscriber(restart())
    Wire(wire.broker).send("topic://T", 1)
    with pytest.raises(JMSError, match="in use"):
        wire.broker.remove_subscription("client", "sub")
    broker = restart()
    broker.remove_subscription("client", "sub")
    with pytest.raises(InvalidDestinationError, match="sub"):
        broker.remove_subscription("client", "sub")
    assert subscriber(restart()).taken() == []


def test_two_subscriptions_share_a_message_until_both_have_acknowledged(restart):
    broker = restart()
    one = subscriber(broker)
    one.consume("e", "topic://T", prefetch=100, subscription_name="other")
    Wire(broker).send("topic://T", 1)
    one.acknowledge("d", 1)
    broker = restart()
    one = subscriber(broker)
    one.consume("e", "topic://T", prefetch=100, subscription_name="other")
    assert one.taken() == [("e", "1")]


def test_a_wildcard_durable_gets_topics_made_later(restart):
    wire = subscriber(restart(), to="topic://T.>")
    wire.broker.remove_connection("connection of d")
    Wire(wire.broker).send("topic://T.later", 1)
    assert subscriber(restart(), to="topic://T.>").taken() == [("d", "1")]


def test_a_transaction_acknowledges_at_commit(restart):
    wire = subscriber(restart())
    Wire(wire.broker).send("topic://T", 1)
    wire.broker.begin("connection of d", "TX:1")
    wire.acknowledge("d", 1, AckKind.STANDARD, transaction_id="TX:1")
    wire = subscriber(restart())
    assert wire.taken() == [("d", "1")]
    wire.broker.begin("connection of d", "TX:2")
    wire.acknowledge("d", 1, AckKind.STANDARD, transaction_id="TX:2")
    wire.broker.commit("TX:2")
    assert subscriber(restart()).taken() == []


def test_poison_of_a_durable_goes_to_a_queue_of_its_own_if_the_strategy_says_so(restart):
    strategy = IndividualDeadLetterStrategy(destination_per_durable_subscriber=True)
    wire = subscriber(restart(policies=[Policy("topic://>", dead_letter_strategy=strategy)]))
    Wire(wire.broker).send("topic://T", "bad")
    wire.acknowledge("d", "bad", AckKind.POISON, poison_cause="bad")
    (letter,) = wire.broker.browse("ActiveMQ.DLQ.Topic.T.client:sub")
    assert letter.body == "bad"
    assert wire.broker.view("topic://T").queue_size == 0


def test_an_offline_subscription_is_deleted_after_its_timeout(restart, clock):
    settings = {"offline_durable_subscriber_timeout": 5000, "offline_durable_subscriber_task_schedule": 1000}
    wire = subscriber(restart(**settings))
    wire.broker.remove_connection("connection of d")
    clock.advance(4999)
    assert len(wire.broker.subscriptions()) == 1
    clock.advance(1001)
    assert wire.broker.subscriptions() == ()


def test_expired_messages_leave_a_subscription_whose_consumer_is_away(restart, clock):
    wire = subscriber(restart())
    wire.broker.remove_connection("connection of d")
    Wire(wire.broker).send("topic://T", "short", expiration=clock.now() + 10)
    assert wire.broker.view("topic://T").queue_size == 1
    clock.advance(30_000)
    assert wire.broker.view("topic://T").queue_size == 0
    assert [letter.body for letter in wire.broker.browse("ActiveMQ.DLQ")] == ["short"]


def test_what_a_durable_subscription_acknowledges_is_told_where_the_entry_of_the_topic_asks_for_it(make):
    broker = make(policies=[Policy("topic://told.>", advisory_for_consumed=True)])
    told, wire = [], Wire(broker, client_id="client")
    broker.on(MessageConsumed, lambda event: told.append((str(event.destination), event.message.body)))
    for consumer, name in (("plain", ""), ("durable", "sub")):
        wire.react[consumer] = AckKind.STANDARD
        wire.consume(consumer, "topic://*.*", subscription_name=name)
    wire.send("topic://told.a,silent.a", 1)
    wire.send("topic://told.b", 2)
    broker.remove_consumer("plain")
    broker.remove_consumer("durable")
    broker.remove_subscription("client", "sub")
    broker.remove_destination("wire", destination("topic://told.b"))
    wire.consume("durable", "topic://*.*", subscription_name="sub")
    wire.send("topic://told.b", 3)
    assert told == [("topic://told.a", "1"), ("topic://told.b", "2"), ("topic://told.b", "3")]


def test_a_topic_that_a_durable_subscription_covers_is_not_removed(restart):
    subscriber(restart())
    wire = Wire(restart())
    with pytest.raises(JMSError, match=r"topic://T still has an active subscription: client:sub"):
        wire.broker.remove_destination("wire", destination("topic://T"))
    wire.send("topic://T", 1)
    assert wire.broker.view("topic://T").queue_size == 1
    wire.broker.remove_subscription("client", "sub")
    wire.broker.remove_destination("wire", destination("topic://T"))
    assert destination("topic://T") not in wire.broker.destinations()


def test_a_policy_gives_a_prefetch_to_the_consumer_with_which_a_subscription_is_made(restart):
    # Seen at 6.3.1: the default of 100 is replaced once; whoever comes back has it as the client sent it.
    settings = {"policies": [Policy("topic://>", durable_topic_prefetch=2)]}
    wire = subscriber(restart(**settings))
    wire.send("topic://T", 1, 2, 3)
    assert wire.taken() == [("d", "1"), ("d", "2")]
    wire = subscriber(restart(**settings), consumer="again")
    assert [body for _, body in wire.taken()] == ["1", "2", "3"]
    wire.broker.remove_consumer("again")
    wire.consume("new", "topic://T", prefetch=100, subscription_name="sub", selector="TRUE")
    wire.send("topic://T", 4, 5, 6)
    assert wire.taken() == [("new", "4"), ("new", "5")]


def test_a_subscription_whose_consumer_is_away_has_the_prefetch_that_it_last_had(tmp_path, clock):
    # Seen at 6.3.1: 0 where the broker was started since.
    settings = {"clock": clock, "policies": [Policy("topic://>", durable_topic_prefetch=2)]}
    for asked, counts, starts in ((100, 2, None), (7, 7, 0), (100, 100, 0)):
        with Broker(tmp_path, **settings) as broker:
            if starts is not None:
                assert [view.prefetch_size for view in broker.subscriptions()] == [starts]
            wire = Wire(broker, "connection", "client")
            wire.consume("d", "topic://T", prefetch=asked, subscription_name="sub")
            assert [(view.active, view.prefetch_size) for view in broker.subscriptions()] == [(True, counts)]
            broker.remove_connection("connection")
            assert [(view.active, view.prefetch_size) for view in broker.subscriptions()] == [(False, counts)]


def test_what_is_not_persistent_waits_from_the_consumers_first_visit_on(tmp_path, clock):
    # Seen at 6.3.1 with KahaDB: the cursor of a subscription from the store takes nothing else before it is started.
    with Broker(tmp_path, clock=clock) as broker:
        subscriber(broker)
    with Broker(tmp_path, clock=clock) as broker:
        wire = Wire(broker)
        wire.send("topic://T", 1, delivery_mode="NON_PERSISTENT")
        wire.send("topic://T", 2)
        assert subscriber(broker).taken() == [("d", "2")]
        broker.remove_connection("connection of d")
        wire.send("topic://T", 3, delivery_mode="NON_PERSISTENT")
        assert ("d", "3") in subscriber(broker).taken()


@pytest.mark.parametrize("closing", ["connection", "session"])
def test_what_came_before_the_last_message_of_any_topic_consumer_that_leaves_counts_as_delivered(broker, closing):
    # Seen at 6.3.1: a durable subscription compares places in the broker's order, a queue looks for the very message.
    with ConnectionFactory(broker=broker).create_connection("client") as connection:
        session = connection.create_session(CLIENT_ACKNOWLEDGE)
        session.create_durable_subscriber("T?consumer.prefetchSize=2", "sub")
        plain = session.create_consumer("topic://T")
        session.create_producer("topic://T").send_batch(list("abcd"))
        assert [plain.receive(0).body for _ in range(3)] == ["a", "b", "c"]
        (connection if closing == "connection" else session).close()
    with ConnectionFactory(broker=broker).create_connection("client") as connection:
        again = connection.create_session().create_durable_subscriber("T", "sub").receive_batch(4)
    assert [(message.body, message.redelivery_counter) for message in again] == [("a", 1), ("b", 1), ("c", 0), ("d", 0)]


def test_a_subscription_of_the_store_has_the_prefetch_extension_that_its_policy_allows(restart):
    settings = {"policies": [Policy("topic://>", use_prefetch_extension=False)]}
    subscriber(restart(**settings))
    wire = Wire(restart(**settings), client_id="client")
    wire.consume("again", "topic://T", prefetch=1, subscription_name="sub")
    wire.send("topic://T", 1, 2)
    wire.acknowledge("again", 1, AckKind.DELIVERED)
    assert wire.taken() == [("again", "1")]
