"""What articles say of RocketMQ, and what it does: each function shows one row of docs/articles.md.

python examples/articles/rocketmq.py            all rows
python examples/articles/rocketmq.py NAME ...   some of them
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.rocketmq import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    FlowControl,
    MessageExt,
    MessageQueue,
)

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(9)]
MEMBERS = [f"192.168.1.{number}@1" for number in range(1, 6)]


def consumer_of(
    broker: rocketmq.Broker, listener: Callable[..., object], group: str = "billing", **parameters: object
) -> rocketmq.DefaultMQPushConsumer:
    """A started consumer of the topic ``orders``."""
    consumer = rocketmq.DefaultMQPushConsumer(group, broker=broker, **parameters)  # type: ignore[arg-type]
    consumer.subscribe("orders")
    consumer.register_message_listener(listener)
    consumer.start()
    return consumer


def safe_offset_is_the_largest_consumed() -> None:
    """The offset that is committed is the smallest that is not consumed; behind one slow message nothing is."""
    queue = rocketmq.ProcessQueue()
    queue.put_messages(range(5))
    assert [queue.finish(offset) for offset in (3, 0, 1, 2, 4)] == [0, 1, 2, 4, 5]


def size_limit_in_bytes() -> None:
    """The size of a queue's cache is looked at in whole MiB: 100 MiB and a half do not exceed 100."""
    queue = rocketmq.ProcessQueue()
    half = MessageExt("orders", bytes(2**19), queue_offset=0)
    for offset in range(201):
        half.queue_offset = offset
        queue.put_messages([half])
    assert queue.flow_control(pull_threshold_size_for_queue=100) is FlowControl.PULL
    half.queue_offset = 201
    queue.put_messages([half])
    assert queue.flow_control(pull_threshold_size_for_queue=100) is FlowControl.SIZE


def limits_are_reached_at_their_value() -> None:
    """A limit is exceeded, not reached: 1000 cached messages are pulled on, 1001 are not."""
    queue = rocketmq.ProcessQueue()
    queue.put_messages(range(1000))
    assert queue.flow_control() is FlowControl.PULL
    queue.put_messages([1000])
    assert queue.flow_control() is FlowControl.COUNT


def averagely_gives_the_rest_to_the_first() -> None:
    """AVG gives the first members one queue more; MACHINE_ROOM takes the rest from the tail."""
    first = MEMBERS[0]
    average = rocketmq.allocate("AVG", "billing", first, QUEUES, MEMBERS)
    assert [queue.queue_id for queue in average] == [0, 1]
    room = rocketmq.AllocateMessageQueueByMachineRoom(frozenset({"broker"}))
    named = [MessageQueue("orders", "broker@a", number) for number in range(9)]
    shared = rocketmq.allocate(room, "billing", first, named, MEMBERS)
    assert [queue.queue_id for queue in shared] == [0, 5]


def circle_takes_turns() -> None:
    """CIRCLE is the position modulo the members."""
    circle = rocketmq.allocate("AVG_BY_CIRCLE", "billing", MEMBERS[1], QUEUES, MEMBERS)
    assert [queue.queue_id for queue in circle] == [1, 6]


def ids_are_sorted_as_numbers() -> None:
    """Members are sorted as texts: 10.0.0.10 comes before 10.0.0.9."""
    assert rocketmq.sort_client_ids(["10.0.0.9@1", "10.0.0.10@1"]) == ["10.0.0.10@1", "10.0.0.9@1"]


def consistent_hash_is_even() -> None:
    """Consistent hash is uneven: of 64 members that share 1024 queues one gets several times as many as another."""
    queues = [MessageQueue("TopicTest", "broker-a", number) for number in range(1024)]
    members = [f"192.168.1.{number}@{999 + number}" for number in range(1, 65)]
    skew = rocketmq.allocate_topics("CONSISTENT_HASH", queues, members).skew()
    assert skew.mean == 16
    assert skew.most > 2 * skew.fewest


def last_offset_skips_what_is_there() -> None:
    """CONSUME_FROM_LAST_OFFSET, the default, reads a young topic from its beginning."""
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("orders", 1)
        rocketmq.Producer(broker).send("orders", b"17")
        seen: list[bytes | None] = []

        def listen(messages: list[MessageExt], context: object) -> ConsumeConcurrentlyStatus:
            seen.extend(message.body for message in messages)
            return SUCCESS

        consumer = consumer_of(broker, listen)
        clock.advance(5_000)
        assert seen == [b"17"]
        consumer.shutdown()


def timestamp_is_the_message_before() -> None:
    """A start by time is at the first message that was stored then or later."""
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("orders", 1)
        producer = rocketmq.Producer(broker)
        for body in (b"17", b"18"):
            producer.send("orders", body)
            clock.advance(1_000)
        (queue,) = broker.publish_queues("orders")
        assert broker.search_offset(queue, clock.now() - 1_500) == 1


def failed_messages_come_sixteen_times() -> None:
    """A message that always fails is delivered 17 times in 4 h 45 min 40 s, then it is a dead letter."""
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("orders", 1)
        rocketmq.Producer(broker).send("orders", b"17")
        tries: list[int] = []
        consumer = consumer_of(broker, lambda messages, context: tries.append(messages[0].reconsume_times))
        clock.advance(4 * 3_600_000)
        assert len(tries) < 17
        clock.advance(3_600_000)
        assert tries == list(range(17))
        assert [message.body for message in broker.messages("%DLQ%billing")] == [b"17"]
        consumer.shutdown()


def consume_thread_max() -> None:
    """consumeThreadMax is never reached: the pool's queue has no bound, so consumeThreadMin threads work."""
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("orders", 1)
        consumer = consumer_of(broker, lambda messages, context: SUCCESS, consume_thread_min=2, consume_thread_max=64)
        rows = {row.name: row.value for row in consumer.metrics()}
        assert rows["pyengine_rocketmq_consume_threads"] == 2
        consumer.shutdown()


def a_batch_fails_message_by_message() -> None:
    """A failed batch comes again whole; after a good one ack_index says how far it went, and the rest comes again."""
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("orders", 1)
        producer = rocketmq.Producer(broker)
        for body in (b"1", b"2", b"3"):
            producer.send("orders", body)
        calls: list[list[bytes | None]] = []

        def listen(messages: list[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
            calls.append([message.body for message in messages])
            if len(calls) == 1:
                return ConsumeConcurrentlyStatus.RECONSUME_LATER
            if len(calls) == 2:
                context.ack_index = 0
            return SUCCESS

        consumer = consumer_of(broker, listen, consume_message_batch_max_size=3)
        clock.advance(120_000)
        assert calls == [[b"1", b"2", b"3"], [b"1", b"2", b"3"], [b"2", b"3"]]
        consumer.shutdown()


ROWS = (
    safe_offset_is_the_largest_consumed,
    limits_are_reached_at_their_value,
    size_limit_in_bytes,
    averagely_gives_the_rest_to_the_first,
    circle_takes_turns,
    ids_are_sorted_as_numbers,
    consistent_hash_is_even,
    last_offset_skips_what_is_there,
    timestamp_is_the_message_before,
    failed_messages_come_sixteen_times,
    consume_thread_max,
    a_batch_fails_message_by_message,
)

if __name__ == "__main__":
    for row in ROWS:
        if row.__name__ in (sys.argv[1:] or row.__name__):
            row()
            print(f"{row.__name__:42} {row.__doc__}")
