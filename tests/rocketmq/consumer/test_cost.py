"""What a step costs where many others are that it does not concern: the same as with few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, MessageListenerOrderly, MessageQueue
from pyengine.rocketmq.remoting.mq_client_api import HeartbeatData
from tests.bytecodes import bytecodes

Q0 = MessageQueue("T", "broker-a", 0)
FIRST = rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
FEW, MANY = 20, 120


class World:
    """A durable broker with one consumer, which takes the step."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.broker = rocketmq.Broker(folder, clock=self.clock)
        self.broker.create_topic("T", 1)
        self.producer = rocketmq.Producer(self.broker)
        self.consumer = self.member("G")
        self.consumer.start()
        self.clock.advance(3000)

    def member(self, group: str) -> rocketmq.DefaultMQPushConsumer:
        consumer = rocketmq.DefaultMQPushConsumer(
            group, broker=self.broker, consume_from_where=FIRST, consume_thread_min=1
        )
        consumer.subscribe("T")
        consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        return consumer

    def close(self) -> None:
        self.consumer.shutdown()
        self.broker.close()


def topics(world: World, number: int) -> None:
    world.broker.create_topic(f"other-{number}", 1)


def groups(world: World, number: int) -> None:
    heartbeat = HeartbeatData(f"client-{number}", "other", rocketmq.MessageModel.CLUSTERING, FIRST, ())
    world.broker.send_heartbeat(heartbeat)


def offsets(world: World, number: int) -> None:
    world.broker.update_consumer_offset(f"other-{number}", Q0, 1)


def locks(world: World, number: int) -> None:
    world.broker.lock_batch_mq(f"other-{number}", "client", [Q0])


def delayed(world: World, number: int) -> None:
    world.producer.send("T", b"x", delay_time_level=18)


def send(world: World) -> None:
    world.producer.send("T", b"x")
    world.clock.advance(5)


def commit(world: World) -> None:
    world.broker.update_consumer_offset("G", Q0, 1)


def join_and_leave(world: World) -> None:
    consumer = world.member("another")
    consumer.start()
    consumer.shutdown()


def rebalance(world: World) -> None:
    world.consumer.suspend()
    world.consumer.resume()


def ask(world: World) -> None:
    rocketmq.consume_stats(world.broker, "G", "T")


@pytest.mark.parametrize("step", [send, commit, join_and_leave, rebalance, ask])
@pytest.mark.parametrize("other", [topics, groups, offsets, locks, delayed])
def test_a_step_costs_as_much_beside_many_others(
    tmp_path: Path, other: Callable[[World, int], None], step: Callable[[World], None]
) -> None:
    world = World(tmp_path)
    for number in range(FEW):
        other(world, number)
    step(world)  # what only the first one makes is there
    step(world)
    few = bytecodes(lambda: step(world))
    for number in range(FEW, MANY):
        other(world, number)
    step(world)
    assert abs(bytecodes(lambda: step(world)) - few) <= few // 50
    world.close()


def test_a_queue_that_rests_costs_as_much_beside_many_that_do() -> None:
    def each(queues: int) -> float:
        clock = ManualClock(1_700_000_000_000)
        broker = rocketmq.Broker(clock=clock)
        broker.create_topic("T", queues)
        for number in range(queues):
            broker.send_message("P", rocketmq.Message("T", b"x"), MessageQueue("T", "broker-a", number))
        consumer = rocketmq.DefaultMQPushConsumer("G", broker=broker, consume_from_where=FIRST)
        consumer.subscribe("T")
        rest = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        consumer.register_message_listener(MessageListenerOrderly(lambda *_: rest))
        consumer.start()
        clock.advance(1400)  # the queues are taken on
        taken = bytecodes(lambda: clock.advance(200))
        consumer.shutdown()
        broker.close()
        return taken / queues

    assert each(200) <= each(20)
