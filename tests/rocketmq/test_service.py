"""A service over TCP: it ends in order at SIGTERM, and RecordWorker works on what a lite pull consumer polls."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pyengine import rocketmq
from pyengine.rocketmq import ConsumeFromWhere, Message, MessageQueue
from tests.waiting import until

PROGRAM = """
import signal, sys, threading, time
from pyengine import rocketmq

done = threading.Event()
signal.signal(signal.SIGTERM, lambda *signalled: done.set())

def handle(messages, context):
    print("begins", flush=True)
    time.sleep(1)
    print("ends", flush=True)
    return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

consumer = rocketmq.DefaultMQPushConsumer(
    "billing", namesrv_addr=sys.argv[1], consume_thread_min=1, consume_thread_max=1,
    await_termination_millis_when_shutdown=10_000,
    consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
)
consumer.subscribe("orders")
consumer.register_message_listener(handle)
with consumer:
    done.wait()
"""


@pytest.fixture
def broker() -> Iterator[rocketmq.Broker]:
    with rocketmq.Broker(listen="127.0.0.1:0") as made:
        made.create_topic("orders", 1)
        yield made


def test_at_sigterm_it_finishes_commits_and_leaves(broker: rocketmq.Broker) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    producer = rocketmq.Producer(broker)
    producer.send(Message("orders", b"1"))
    command = [sys.executable, "-c", PROGRAM, broker.name_server_address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        process.send_signal(signal.SIGTERM)
        producer.send(Message("orders", b"2"))
        rest = process.stdout.read()
        assert process.wait(20) == 0
    begun = 1 + rest.count("begins")
    assert rest.count("ends") == begun  # what was begun was finished
    assert broker.consumer_offsets("billing", "orders") == {queue: begun}
    with pytest.raises(rocketmq.MQBrokerError, match="no consumer for this group"):
        broker.get_consumer_id_list("orders", "billing")


def test_a_record_worker_works_on_what_is_polled(broker: rocketmq.Broker) -> None:
    with rocketmq.Producer(namesrv_addr=broker.name_server_address) as producer:
        for number in range(6):
            producer.send(Message("orders", b"%d" % number, keys="ab"[number % 2]))
    worker = rocketmq.RecordWorker(order="key")
    seen: dict[str, list[bytes | None]] = {}
    with rocketmq.DefaultLitePullConsumer(
        "audit", namesrv_addr=broker.name_server_address, auto_commit=False,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ) as consumer:  # fmt: skip
        consumer.assign(consumer.fetch_message_queues("orders"))
        worker.assign(consumer.assignment())
        while sum(map(len, seen.values())) < 6:
            worker.put(consumer.poll(1000))
            while (work := worker.take(0)) is not None:
                seen.setdefault(work.record.keys, []).append(work.record.body)
                worker.complete(work)
            consumer.commit(worker.commits(), persist=True)
    assert seen == {"a": [b"0", b"2", b"4"], "b": [b"1", b"3", b"5"]}
    until(lambda: list(broker.consumer_offsets("audit", "orders").values()) == [6])
