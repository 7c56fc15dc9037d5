"""Queues of the broker, command by command."""

from __future__ import annotations

import pytest

from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine.activemq import AckKind, ConnectionFactory
from pyengine.activemq.broker.broker import Broker, running_broker
from pyengine.activemq.broker.events import SelectorFailed
from pyengine.destinations import Destination
from pyengine.errors import IllegalStateError, InvalidClientIDError, JMSError
from pyengine.topology.policy import Policy
from tests.activemq.wire import Wire


def test_round_robin_prefetch_and_acknowledgement(broker):
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=1)
    wire.consume("b", "q", prefetch=1)
    wire.send("q", 1, 2, 3, 4)
    assert wire.taken() == [("a", "1"), ("b", "2")]
    wire.acknowledge("a", 1)
    assert wire.taken() == [("a", "3")]
    wire.acknowledge("b", 2, AckKind.STANDARD)
    assert wire.taken() == [("b", "4")]


@pytest.mark.parametrize("to", ["q", "topic://t", "q1,q2"])
def test_a_client_changes_a_prefetch(broker, to):
    wire = Wire(broker)
    wire.consume("a", to, prefetch=0)
    wire.send("q1" if "," in to else to, 1, 2, 3)
    assert wire.taken() == []
    broker.set_prefetch("a", 2)
    assert wire.taken() == [("a", "1"), ("a", "2")]
    broker.set_prefetch("a", 3)
    assert wire.taken() == [("a", "3")]
    broker.set_prefetch("nobody", 3)


def test_a_client_may_not_go_past_its_policy(clock):
    with Broker(clock=clock, policies=[Policy("q", queue_prefetch=1)]) as broker:
        wire = Wire(broker)
        wire.consume("a", "q", prefetch=1000)
        wire.send("q", 1, 2, 3)
        assert len(wire.taken()) == 1
        broker.set_prefetch("a", 1000)
        assert wire.taken() == []
        broker.set_prefetch("a", 2)
        assert len(wire.taken()) == 1


def test_a_sink_may_acknowledge_at_once(broker):
    wire = Wire(broker)
    wire.react["a"] = AckKind.STANDARD
    wire.consume("a", "q", prefetch=1)
    wire.send("q", *range(5))
    assert wire.taken() == [("a", str(n)) for n in range(5)]


def test_messages_wait_for_a_consumer_and_move_on_when_it_leaves(broker):
    wire = Wire(broker)
    wire.send("q", 1, 2, 3)
    wire.consume("a", "q")
    assert wire.taken() == [("a", "1"), ("a", "2"), ("a", "3")]
    wire.consume("b", "q")
    wire.broker.remove_consumer("a", last_delivered=wire.id_of("a", 2))
    assert wire.taken() == [("b", "1"), ("b", "2"), ("b", "3")]
    assert [command.redelivery_counter for command in wire.dispatched[3:]] == [1, 1, 0]


def test_a_lost_connection_counts_every_message(broker):
    wire, other = Wire(broker), Wire(broker, "other")
    wire.consume("a", "q")
    wire.send("q", 1, 2)
    other.consume("b", "q")
    broker.remove_connection("wire", lost=True)
    assert [command.redelivery_counter for command in other.dispatched] == [1, 1]


def test_transactions_apply_sends_and_acknowledgements_at_commit(broker):
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=1)
    broker.begin("wire", "TX:1")
    wire.send("q", 1, 2, transaction="TX:1")
    assert wire.taken() == []
    broker.commit("TX:1")
    assert wire.taken() == [("a", "1")]
    broker.begin("wire", "TX:2")
    wire.acknowledge("a", 1, AckKind.STANDARD, transaction_id="TX:2")
    assert wire.taken() == []
    broker.rollback("TX:2")
    wire.acknowledge("a", 1, AckKind.STANDARD)
    assert wire.taken() == [("a", "2")]
    with pytest.raises(JMSError, match="TX:2"):
        broker.commit("TX:2")


def test_pull_answers_with_null_at_its_timeout(broker, clock):
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=0)
    wire.pull("a", "q", -1)
    assert wire.taken() == [("a", None)]
    wire.pull("a", "q", 500)
    clock.advance(499)
    assert wire.taken() == []
    clock.advance(1)
    assert wire.taken() == [("a", None)]
    wire.pull("a", "q", 0)
    wire.send("q", 1, 2)
    assert wire.taken() == [("a", "1")]


def test_acknowledging_what_is_not_held_is_refused(broker):
    wire = Wire(broker)
    wire.consume("a", "q")
    wire.send("q", 1)
    wire.acknowledge("a", 1)
    with pytest.raises(JMSError, match="not held"):
        wire.acknowledge("a", 1)


def test_wildcard_consumers_share_one_prefetch_over_their_queues(broker):
    wire = Wire(broker)
    wire.send("q.1", "early")
    wire.consume("a", "q.*", prefetch=2)
    wire.send("q.2", "x", "y")
    wire.send("q.3", "z")
    assert wire.taken() == [("a", "early"), ("a", "x")]
    wire.acknowledge("a", "early")
    assert wire.taken() == [("a", "y")]
    wire.acknowledge("a", "x")
    assert wire.taken() == [("a", "z")]


def test_names_and_client_ids_are_taken_once(broker):
    assert running_broker("localhost") is broker
    with pytest.raises(IllegalStateError, match="localhost"):
        Broker()
    Wire(broker, "one", "me")
    with pytest.raises(InvalidClientIDError, match="one"):
        Wire(broker, "two", "me")


def test_a_selector_that_cannot_be_evaluated_matches_nothing_and_is_reported(broker):
    wire = Wire(broker)
    failures = []
    broker.on(SelectorFailed, lambda event: failures.append((event.consumer.consumer_id, event.message.body)))
    wire.send("q", "before", properties={"text": "a"})
    wire.consume("bad", "q", selector="text * 2 > 1")
    wire.consume("good", "q", selector="text = 'b'")
    wire.send("q", "after", properties={"text": "b"})
    assert failures == [("bad", "before"), ("bad", "after")]
    assert wire.taken() == [("good", "after")]
    assert broker.view("q").selector_errors == 2


def test_a_consumer_of_a_broker_s_queue_comes_with_its_subscription() -> None:
    with pytest.raises(TypeError, match=r"subscribe\(\)"):
        RegionQueue().add_consumer()
    with pytest.raises(TypeError, match="store"):
        RegionQueue().snapshot()


def test_persist_jms_redelivered_counts_the_first_dispatch_at_once(make):
    # Recorded with 6.3.1 and 5.17.2: what a consumer only held counts once, what it reported as delivered twice, and
    # what a browser saw counts as well. Other policies count what was delivered alone.
    for persist, counts in ((True, [2, 1, 1]), (False, [1, 0, 0])):
        wire = Wire(make(name=f"persist {persist}", policies=[Policy(">", persist_jms_redelivered=persist)]))
        wire.send("q", 1, 2, 3)
        wire.consume("a", "q")
        wire.broker.remove_consumer("a", last_delivered=wire.id_of("a", 1))
        wire.consume("b", "q")
        assert [each.redelivery_counter for each in wire.dispatched] == [0, 0, 0, *counts]
    wire = Wire(make(name="browsed", policies=[Policy(">", persist_jms_redelivered=True)]))
    wire.send("q", 1)
    wire.consume("browser", "q", browser=True)
    wire.consume("b", "q")
    assert [each.redelivery_counter for each in wire.dispatched if each.message] == [0, 1]


def test_the_look_for_expired_messages_pages_in_and_hands_out_what_lay_behind_the_page(make, clock):
    wire = Wire(make(policies=[Policy(">", max_page_size=2, max_expire_page_size=6)]))
    wire.consume("a", "q", selector="JMSPriority = 9")
    wire.send("q", 1, 2, 3, 4)
    wire.send("q", 5, 6, priority=9)
    wire.send("q", 7, 8)
    wire.send("q", 9, priority=9)
    clock.advance(29_999)
    assert wire.taken() == []
    clock.advance(1)
    assert wire.taken() == [("a", "5"), ("a", "6")]
    clock.advance(90_000)
    assert wire.taken() == []  # six are paged in, of which nobody takes four
    wire.broker.purge("q")
    wire.send("q", 10, priority=9)
    assert wire.taken() == [("a", "10")]


def test_no_start_delay_holds_back_what_the_look_hands_out(make, clock):
    # The real broker: 500 ms with expireMessagesPeriod 500 and timeBeforeDispatchStarts 4000, with 3 consumers to wait
    # for as well.
    for needed in (0, 3):
        policy = Policy(
            ">", consumers_before_dispatch_starts=needed, time_before_dispatch_starts=4000, expire_messages_period=500
        )
        wire = Wire(make(name=f"needed {needed}", policies=[policy]))
        wire.consume("a", "q")
        wire.send("q", 1)
        clock.advance(499)
        assert wire.taken() == []
        clock.advance(1)
        assert wire.taken() == [("a", "1")]


def test_a_paused_queue_looks_for_expired_messages_when_it_goes_on(make, clock):
    wire = Wire(make())
    wire.send("q", "stays")
    wire.send("q", "short", expiration=clock.now() + 10)
    wire.broker.pause("q")
    clock.advance(60_000)
    assert Destination("ActiveMQ.DLQ") not in wire.broker.destinations()
    wire.broker.resume("q")
    clock.advance(30_000)
    assert [letter.body for letter in wire.broker.browse("ActiveMQ.DLQ")] == ["short"]


def test_a_backlog_that_no_look_can_move_lets_a_clock_run_out(make):
    broker = make(policies=[Policy(">", max_expire_page_size=2)])
    Wire(broker).send("other", 1, 2, 3, 4)
    with ConnectionFactory("vm://localhost", broker=broker).create_connection() as connection:
        connection.start()
        consumer = connection.create_session().create_consumer("q")
        with pytest.raises(IllegalStateError, match="no timer"):
            consumer.receive()


def test_a_pull_from_several_queues_does_not_end_with_the_time_of_one_that_was_given_up(broker, clock):
    wire = Wire(broker)
    wire.send("q.a", "first")
    wire.send("q.b", "second")
    wire.consume("a", "q.*", prefetch=0)
    broker.purge("q.a")
    broker.purge("q.b")
    wire.pull("a", "q.*", timeout=50)
    wire.pull("a", "q.*", timeout=1000)
    clock.advance(999)
    assert wire.taken() == []
    clock.advance(1)
    assert wire.taken() == [("a", None)]
