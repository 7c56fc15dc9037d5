"""Views, reasons, pausing, purging, moving (QueueViewMBean, SubscriptionViewMBean)."""

from __future__ import annotations

import pytest

from pyengine.activemq import AckKind, HoldReason, Verdict
from pyengine.activemq.broker.views import QueueView, TopicView
from pyengine.errors import InvalidDestinationError, JMSError, PyengineError
from pyengine.topology.policy import ConstantPendingMessageLimitStrategy, Policy, SharedDeadLetterStrategy
from tests.activemq.wire import Wire, destination


def test_a_queue_view_counts_what_jmx_counts(broker):
    wire = Wire(broker)
    broker.add_producer("wire", "ID:wire-1:1:1", destination("q"))
    wire.send("q", *range(6), group_id="g")
    wire.consume("a", "q", prefetch=3, exclusive=True)
    wire.acknowledge("a", 0)
    view = broker.view("q")
    assert isinstance(view, QueueView)
    assert (view.queue_size, view.enqueue_count, view.dequeue_count, view.dispatch_count) == (5, 6, 1, 4)
    assert (view.in_flight_count, view.consumer_count, view.producer_count, view.expired_count) == (3, 1, 1, 0)
    assert view.message_groups == {"g": "a"}
    assert view.exclusive_consumer == "a"
    assert view.hold_reasons == {HoldReason.EXCLUSIVE_NO_CREDIT: 2}
    assert view.memory_usage_byte_count == 5 * view.average_message_size > 0
    (subscription,) = broker.subscriptions("q")
    assert (subscription.dequeue_counter, subscription.consumed_count) == (1, 0)
    wire.acknowledge("a", 1, AckKind.POISON)
    assert broker.view("ActiveMQ.DLQ").dlq
    assert not broker.view("q").dlq


def test_a_topic_view_and_its_subscriptions(make):
    strategy = ConstantPendingMessageLimitStrategy(2)
    broker = make(
        policies=[Policy("topic://>", pending_message_limit_strategy=strategy, advisory_for_slow_consumers=True)]
    )
    wire = Wire(broker)
    wire.consume("t", "topic://T", prefetch=1, selector="JMSPriority = 4")
    wire.send("topic://T", *range(5), delivery_mode="NON_PERSISTENT")
    view = broker.view("topic://T")
    assert isinstance(view, TopicView)
    assert (view.enqueue_count, view.dispatch_count, view.consumer_count, view.discarded_count) == (5, 1, 1, 2)
    (subscription,) = broker.subscriptions("topic://T")
    assert subscription.consumer_id == "t"
    assert (subscription.matched, subscription.discarded_count, subscription.maximum_pending_queue_size) == (2, 2, 2)
    assert subscription.selector == "JMSPriority = 4"
    assert not subscription.slow_consumer


def test_messages_are_shown_and_chosen_as_they_are_now(broker):
    """Real ActiveMQ 6.3.1: see tests/differential/found/changing.jsonl."""
    wire = Wire(broker)
    wire.send("q", "given back", group_id="g")
    wire.consume("a", "q", prefetch=1)
    broker.remove_consumer("a", lost=True)
    wire.send("q", "new", group_id="g")
    shown = [(m.body, m.redelivered, m.delivery_count, m.group_first_for_consumer) for m in broker.browse("q")]
    assert shown == [("given back", True, 2, True), ("new", False, 1, False)]
    for selector in ("JMSRedelivered", "JMSXDeliveryCount > 1", "JMSXGroupFirstForConsumer"):
        assert [message.body for message in broker.browse("q", selector)] == ["given back"]
        assert [message.body for message in broker.browse("q", f"NOT ({selector})")] == ["new"]
        assert broker.copy_messages("q", "copies", selector) == 1
    assert [message.redelivered for message in broker.browse("copies")] == [False] * 3
    assert broker.move_messages("q", "moved", "JMSXDeliveryCount = 2 AND JMSActiveMQBrokerOutTime > 0") == 1
    assert broker.remove_messages("q", "JMSRedelivered") == 0
    assert broker.remove_messages("q", "JMSRedelivered = FALSE") == 1


def test_why_messages_wait(broker):
    wire = Wire(broker)
    wire.send("q", "x")
    wire.send("q", "y", properties={"n": 1})
    assert [held.reason for held in broker.held("q")] == [HoldReason.NO_CONSUMER] * 2
    wire.consume("a", "q", selector="n = 1", prefetch=1)
    (held,) = broker.held("q")
    assert held.reason is HoldReason.SELECTOR
    assert broker.verdicts("q", held.message_id) == {"a": Verdict.FULL}
    wire.acknowledge("a", "y")
    assert broker.verdicts("q", held.message_id) == {"a": Verdict.REFUSES}
    assert broker.verdicts("q", "ID:of:none") == {}


def test_pause_and_resume(broker):
    wire = Wire(broker)
    wire.consume("a", "q")
    broker.pause("q")
    wire.send("q", 1)
    assert wire.taken() == []
    assert broker.view("q").paused
    assert [held.reason for held in broker.held("q")] == [HoldReason.PAUSED]
    broker.resume("q")
    assert wire.taken() == [("a", "1")]


def test_purge_removes_what_consumers_hold_too_and_their_acknowledgements_still_fit(broker):
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=2)
    wire.send("q", *range(5))
    assert broker.purge("q") == 5
    assert (broker.view("q").queue_size, broker.view("q").memory_usage_byte_count) == (0, 0)
    wire.acknowledge("a", 1, AckKind.STANDARD, message_count=2)
    assert broker.view("q").memory_usage_byte_count == 0
    wire.send("q", "new")
    assert wire.taken()[-1] == ("a", "new")


def test_a_purge_of_some_takes_those_that_came_first(broker):
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=1)
    wire.send("q", *range(5))
    assert [broker.purge("q", maximum) for maximum in (0, -1, 3)] == [0, 0, 3]
    assert [message.body for message in broker.browse("q")] == ["3", "4"]
    assert broker.purge("q", 9) == 2
    with pytest.raises(PyengineError, match="maximum"):
        broker.purge("q", "all")


def test_remove_copy_and_move_by_selector_and_id(broker):
    wire = Wire(broker)
    for n in range(6):
        wire.send("q", n, properties={"n": n})
    assert broker.remove_messages("q", "n < 2") == 2
    assert broker.remove_messages("q", "n > 2", maximum=1) == 1
    assert broker.copy_messages("q", "copy", "n = 5") == 1
    first = broker.browse("q")[0].message_id
    assert broker.move_messages("q", "other", message_id=first) == 1
    assert not broker.remove_message("q", "ID:nobody")
    assert [message.body for message in broker.browse("q")] == ["4", "5"]
    assert [message.body for message in broker.browse("copy")] == ["5"]
    (moved,) = broker.browse("other")
    assert (moved.body, moved.original_destination) == ("2", "queue://q")


@pytest.mark.parametrize(
    ("change", "dead"),
    [
        (lambda broker: broker.remove_messages("q"), 1),
        (lambda broker: broker.move_messages("q", "other"), 1),
        (lambda broker: broker.purge("q"), 0),
    ],
)
def test_what_expired_dies_before_it_is_removed_or_moved(broker, clock, change, dead):
    wire = Wire(broker)
    wire.send("q", "old", expiration=clock.now() + 5)
    wire.send("q", "young")
    clock.advance(6)
    assert change(broker) == 2 - dead
    assert (broker.view("q").expired_count, broker.view("q").queue_size) == (dead, 0)
    assert len(broker.browse("ActiveMQ.DLQ") if dead else ()) == dead


def test_dead_letters_are_retried_and_may_die_again(broker):
    wire = Wire(broker)
    wire.consume("a", "q")
    wire.send("q", "bad")
    wire.acknowledge("a", "bad", AckKind.POISON)
    assert broker.retry_messages("ActiveMQ.DLQ") == 1
    assert wire.taken() == [("a", "bad"), ("a", "bad")]
    wire.acknowledge("a", "bad", AckKind.POISON)
    assert broker.view("ActiveMQ.DLQ").queue_size == 1


def test_one_message_is_retried_whatever_its_queue(broker):
    wire = Wire(broker)
    wire.consume("a", "q")
    for n in range(3):
        wire.send("q", n)
        wire.acknowledge("a", n, AckKind.POISON)
    _, second, _ = broker.browse("ActiveMQ.DLQ")
    broker.retry_message("ActiveMQ.DLQ", second.message_id)
    assert wire.taken()[-1] == ("a", "1")
    broker.copy_messages("ActiveMQ.DLQ", "copies", message_id=broker.browse("ActiveMQ.DLQ")[0].message_id)
    broker.retry_message("copies", broker.browse("copies")[0].message_id)
    assert [broker.view(name).queue_size for name in ("ActiveMQ.DLQ", "copies", "q")] == [3, 0, 1]
    with pytest.raises(JMSError, match="queue://q has no message 'ID:nobody'"):
        broker.retry_message("q", "ID:nobody")
    wire.send("other", "new")
    with pytest.raises(JMSError, match="of queue://other has no original destination"):
        broker.retry_message("other", broker.browse("other")[0].message_id)


def test_only_dead_letter_queues_are_retried(make):
    broker = make(policies=[Policy(">", dead_letter_strategy=SharedDeadLetterStrategy(dead_letter_queue="dead"))])
    wire = Wire(broker)
    wire.send("q,dead", 1)
    with pytest.raises(InvalidDestinationError, match=r"queue://dead is not a dead-letter queue.*set_dlq"):
        broker.retry_messages("dead")
    assert not broker.view("dead").dlq
    broker.set_dlq("dead")
    assert broker.view("dead").dlq
    assert broker.retry_messages("dead") == 1
    assert [len(broker.browse(name)) for name in ("q", "dead")] == [2, 1]


def test_only_what_leaves_a_dead_letter_queue_may_die_again(broker):
    wire = Wire(broker)
    wire.consume("a", "q")
    wire.send("q", "bad")
    broker.copy_messages("q", "copies")
    wire.acknowledge("a", "bad", AckKind.POISON)
    broker.move_messages("copies", "more")
    wire.consume("b", "more")
    wire.acknowledge("b", "bad", AckKind.POISON)
    assert broker.view("ActiveMQ.DLQ").queue_size == 1


def test_forgetting_message_groups(broker):
    wire = Wire(broker)
    wire.consume("a", "q", prefetch=10)
    wire.send("q", 1, group_id="g")
    wire.send("q", 2, group_id="h")
    wire.consume("b", "q", prefetch=10)
    broker.remove_message_group("q", "g")
    assert broker.view("q").message_groups == {"h": "a"}
    wire.send("q", 3, group_id="g")
    assert wire.taken()[-1] == ("b", "3")
    broker.remove_message_groups("q")
    assert broker.view("q").message_groups == {}


def test_names_that_do_not_exist_are_refused_with_a_hint(broker):
    Wire(broker).send("orders", 1)
    with pytest.raises(InvalidDestinationError, match="orders"):
        broker.view("order")
    Wire(broker, "other").send("topic://t", 1)
    with pytest.raises(InvalidDestinationError, match="not a queue"):
        broker.purge("topic://t")


@pytest.mark.parametrize("name", ["q", "topic://t"])
def test_a_destination_that_is_made_again_is_idle_from_then_on(make, clock, name):
    policy = Policy(">", gc_inactive_destinations=True, inactive_timeout_before_gc=60_000)
    topics = Policy("topic://>", gc_inactive_destinations=True, inactive_timeout_before_gc=60_000)
    broker = make(policies=[policy, topics], schedule_period_for_destination_purge=20_000)
    Wire(broker)
    broker.add_destination("wire", destination(name))
    clock.advance(70_000)
    broker.remove_destination("wire", destination(name))
    broker.add_destination("wire", destination(name))
    clock.advance(60_000)
    assert destination(name) in broker.destinations()
    clock.advance(20_000)
    assert destination(name) not in broker.destinations()
