"""The broker under real threads: nothing is lost or doubled, each consumer gets its messages in order."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

import pyengine
from pyengine.activemq import AckKind, Broker
from pyengine.activemq.commands import ConnectionInfo, ConnectionSink, ConsumerInfo, MessageAck
from pyengine.destinations import Destination

THREADS, EACH = 4, 150
QUEUE = Destination("q")


@pytest.mark.parametrize("dispatch_async", [True, False])
@pytest.mark.parametrize("durable", [True, False])
def test_producers_and_consumers_on_threads_of_their_own(tmp_path, durable, dispatch_async):
    got: list[tuple[str, str]] = []
    all_there = threading.Event()
    with Broker(tmp_path / "data" if durable else None, name="threads") as broker:

        def take(command):
            broker.acknowledge(
                MessageAck(command.consumer_id, command.destination, AckKind.STANDARD, command.message.message_id)
            )
            got.append((command.consumer_id, command.message.body))
            if len(got) == THREADS * EACH:
                all_there.set()

        for n in range(2):
            broker.add_connection(ConnectionInfo(f"c{n}"), ConnectionSink(take))
            consumer = ConsumerInfo(f"consumer {n}", "s", f"c{n}", QUEUE, 7, dispatch_async=dispatch_async)
            broker.add_consumer(consumer)
        broker.add_connection(ConnectionInfo("producers"), ConnectionSink(take))

        def produce(thread):
            for n in range(EACH):
                message = pyengine.Message(body=f"{thread}.{n}", message_id=f"ID:{thread}:{n}")
                broker.send("producers", QUEUE, message)

        threads = [threading.Thread(target=produce, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all_there.wait(30)
        assert broker.view("q").queue_size == 0
    counts = Counter(body for _, body in got)
    assert set(counts) == {f"{thread}.{n}" for thread in range(THREADS) for n in range(EACH)}
    assert set(counts.values()) == {1}
    for consumer in ("consumer 0", "consumer 1"):
        for thread in range(THREADS):
            order = [
                int(body.split(".")[1]) for name, body in got if name == consumer and body.startswith(f"{thread}.")
            ]
            assert order == sorted(order)
    if durable:
        with Broker(tmp_path / "data", name="threads") as broker:
            assert broker.view("q").queue_size == 0
