"""The stories people tell, played on the live embedded brokers: the cause is named, and its neighbour is not."""

from __future__ import annotations

import socket

import pytest

import pyengine
from pyengine import activemq, rocketmq
from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import Evidence, ProcessQueueState, live
from pyengine.backlog.diagnosis.watch import Watch
from pyengine.clock import ManualClock
from pyengine.topology.policy import (
    ConstantPendingMessageLimitStrategy,
    OldestMessageEvictionStrategy,
    Policy,
    PolicyMap,
)
from tests.backlog.diagnosis.live_groups import HurriedClock, until

FIRST = rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def codes(*sights: Evidence) -> set[str]:
    together = Evidence()
    for sight in sights:
        together.add(sight)
    return {finding.code for finding in diagnose(together)}


def queue_of(consumer: rocketmq.DefaultMQPushConsumer) -> ProcessQueueState:
    """Its one process queue of the topic; the other one is the retry topic's."""
    (queue,) = (each for each in live.of_consumer(consumer).clients[0].queues if each.topic == "orders")
    return queue


def test_the_http_call_without_a_timeout_pins_the_offset() -> None:
    """Real threads: one listener waits for an answer that does not come, the others go on; the commit stays behind."""
    done: list[int] = []
    clock = HurriedClock()
    with socket.create_server(("127.0.0.1", 0)) as silent, rocketmq.Broker(clock=clock) as broker:

        def call_tax_service() -> None:
            with socket.create_connection(silent.getsockname()) as connection:
                connection.recv(1)

        def listen(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
            for message in messages:
                if message.queue_offset == 3:
                    call_tax_service()
                done.append(message.queue_offset)
            return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        broker.create_topic("orders", 1)
        producer = rocketmq.Producer(broker)
        for number in range(50):
            producer.send("orders", b"%d" % number)
        consumer = rocketmq.DefaultMQPushConsumer("billing", broker=broker, consume_from_where=FIRST)
        consumer.subscribe("orders")
        consumer.register_message_listener(listen)
        with consumer:
            clock.hurry(1_500)
            until(lambda: bool(consumer.consumer_running_info().mq_table))
            clock.hurry(1_000)
            until(lambda: len(done) == 49)
            queue = queue_of(consumer)
            assert (queue.commit_offset, queue.min_offset, queue.max_offset, queue.count) == (3, 3, 3, 1)
            told: list[str] = []
            with Watch(
                "ConsumeMessageThread_billing_", samples=3, every=20, report=lambda f: told.append(f.evidence[0])
            ):
                until(lambda: bool(told))
            assert "call_tax_service" in told[0]
            answer, _ = silent.accept()
            answer.close()
            until(lambda: len(done) == 50)
            until(lambda: queue_of(consumer).count == 0)


@pytest.mark.parametrize(("members", "shares"), [(2, [2, 2]), (3, [1, 1, 2]), (5, [0, 1, 1, 1, 1])])
def test_four_queues_and_two_three_five_consumers(members: int, shares: list[int]) -> None:
    clock = ManualClock()
    broker = rocketmq.Broker(clock=clock)
    broker.create_topic("orders", 4)
    consumers = []
    for number in range(members):
        consumer = rocketmq.DefaultMQPushConsumer("g", broker=broker, instance_name=f"c{number}")
        consumer.subscribe("orders")
        consumer.register_message_listener(lambda messages, context: rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        consumer.start()
        consumers.append(consumer)
    clock.advance(60_000)
    sights = [live.of_consumer(consumer) for consumer in consumers]
    owned = [sum(queue.topic == "orders" for queue in sight.clients[0].queues) for sight in sights]
    assert sorted(owned) == shares
    assert ("idle_clients" in codes(*sights)) == (members > 4)
    for consumer in consumers:
        consumer.shutdown()
    broker.close()


def test_exclusive_consumers_with_disjoint_selectors() -> None:
    clock = ManualClock()
    with activemq.Broker(clock=clock) as broker:
        factory = activemq.ConnectionFactory("vm://localhost", broker=broker)
        with factory.create_connection() as connection:
            session = connection.create_session(activemq.AUTO_ACKNOWLEDGE)
            eu = session.create_consumer("orders?consumer.exclusive=true", "region = 'EU'")
            producer = session.create_producer("orders")
            for number in range(20):
                producer.send(pyengine.Message({"region": ("EU", "US")[number % 2]}))
            while eu.receive_no_wait() is not None:
                pass
            alone = live.of_activemq(broker)
            us = session.create_consumer("orders", "region = 'US'")
            assert us.receive_no_wait() is None
            both = live.of_activemq(broker)
            assert "exclusive_disjoint" not in codes(alone)
            assert "exclusive_disjoint" in codes(both)
            assert {held.reason.name for held in broker.held("orders")} == {"EXCLUSIVE_SELECTOR"}
            eu.close()
            assert us.receive_no_wait() is not None


def test_a_slow_topic_consumer_loses_prices_and_keeps_orders() -> None:
    """Prices may be dropped: the newest stay. Orders may not: nothing is discarded, the backlog is shown."""
    prices = Policy(
        "topic://prices.>",
        pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(5),
        message_eviction_strategy=OldestMessageEvictionStrategy(),
    )
    with activemq.Broker(clock=ManualClock(), policies=PolicyMap((prices,))) as broker:
        factory = activemq.ConnectionFactory("vm://localhost?jms.prefetchPolicy.topicPrefetch=2", broker=broker)
        with factory.create_connection() as connection:
            session = connection.create_session(activemq.AUTO_ACKNOWLEDGE)
            for topic in ("prices.EUR", "orders"):
                name = session.create_topic(topic)
                slow, fast = session.create_consumer(name), session.create_consumer(name)
                producer = session.create_producer(name)
                got = []
                for number in range(20):
                    producer.send(pyengine.Message({"n": number}))
                    received = fast.receive_no_wait()
                    assert received is not None
                    got.append(received.get_int_property("n"))
                assert got == list(range(20))
                late = []
                while (message := slow.receive_no_wait()) is not None:
                    late.append(message.get_int_property("n"))
                if topic == "orders":
                    assert late == list(range(20))
                    lost = 0
                else:
                    assert late == [0, 1, *range(15, 20)]
                    lost = 13
                discarded = {
                    view.consumer_id: view.discarded_count for view in broker.subscriptions(f"topic://{topic}")
                }
                assert sorted(discarded.values()) == [0, lost]


def test_a_consumer_that_holds_a_group_and_stops() -> None:
    clock = ManualClock()
    with activemq.Broker(clock=clock) as broker:
        factory = activemq.ConnectionFactory("vm://localhost?jms.prefetchPolicy.queuePrefetch=2", broker=broker)
        with factory.create_connection() as connection:
            session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
            stopped = session.create_consumer("orders")
            producer = session.create_producer("orders")
            for _ in range(10):
                message = pyengine.Message(group_id="customer 7")
                producer.send(message)
            assert stopped.receive_no_wait() is not None
            before = live.of_activemq(broker)
            clock.advance(60_000)
            after = live.of_activemq(broker)
            assert "group_owner_stopped" in codes(before, after)
            assert "group_owner_stopped" not in codes(after)
