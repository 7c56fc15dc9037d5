"""The broker under real threads: nothing is lost or doubled, each consumer gets its messages in order."""

from __future__ import annotations

import threading
from collections import Counter
from time import sleep

import pytest

import pyengine
from pyengine.activemq import AckKind, Broker, ConnectionFactory
from pyengine.activemq.client.tasks import SessionTasks
from pyengine.activemq.transport.commands import ConnectionInfo, ConnectionSink, ConsumerInfo, MessageAck
from pyengine.clock import SystemClock
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


def test_threads_of_the_session_pool_end_after_thirty_idle_seconds(broker, clock):
    with ConnectionFactory(broker=broker).create_connection() as connection:
        got = []
        sessions = [connection.create_session() for _ in range(2)]
        for session in sessions:
            session.create_consumer("q", listener=lambda message: got.append(message.body))
        producer = connection.create_session().create_producer("q")
        names = []
        for waited in (0, 20_000, 29_999, 1, 30_000):
            clock.advance(waited)
            names.append([worker._name for worker in connection.tasks._workers])
            if waited in (0, 20_000):
                producer.send("x")
        assert got == ["x", "x"]
        assert names == [[], ["ActiveMQ Session Task-1"], ["ActiveMQ Session Task-1"], [], []]
        producer.send("x")
        assert [worker._name for worker in connection.tasks._workers] == ["ActiveMQ Session Task-2"]


@pytest.mark.parametrize("dedicated", [False, True])
def test_work_that_comes_while_the_threads_end_is_done_by_whoever_asks_for_it(dedicated):
    """A session's thread finds more to do at the moment at which its connection closes."""
    done, in_work, closing = [], threading.Event(), threading.Event()

    def run():
        done.append(threading.current_thread().name)
        if len(done) == 1:
            in_work.set()
            assert closing.wait(10)
            while not tasks._closed:
                sleep(0.001)
            task.wake_up()
            return True
        return False

    clock = SystemClock()
    tasks = SessionTasks(clock, 2, dedicated=dedicated)
    task = tasks.task("own", run)
    task.wake_up()
    assert in_work.wait(10)
    closer = threading.Thread(target=tasks.close)
    closer.start()
    closing.set()
    closer.join(10)
    assert not closer.is_alive()
    task.wake_up()
    name = "own" if dedicated else "ActiveMQ Session Task-1"
    assert done == [name, name, threading.current_thread().name]
    clock.close()
