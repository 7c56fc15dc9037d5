"""The loops of examples/kafka: on the real broker in ``make kafka``, on librdkafka's own in ``make test``.

On the real one two members share the partitions, and one leaves while it works. librdkafka's is a server of Kafka's
protocol in this process whose groups take 3 s to rebalance and then refuse commits, so there one member works alone.
On both, failures come again later, what fails each time is a dead letter, and every offset is committed at the end.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.examples.real_kafka import RealKafka
from tests.house.examples import ROOT

confluent_kafka = pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install confluent-kafka")
pytest.importorskip("aiokafka", reason="no aiokafka: pip install aiokafka")

REAL = "PYENGINE_KAFKA" in os.environ
PARTITIONS, KEYS, EACH = 4, 12, 10


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if REAL:
        broker = RealKafka(tmp_path_factory.mktemp("kafka"))
        yield broker.servers
        broker.close()
    else:
        cluster = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (found,) = cluster.list_topics(timeout=10).brokers.values()
        yield f"{found.host}:{found.port}"
        del cluster


def fill(servers: str, topic: str) -> None:
    """KEYS * EACH orders; of each key the third fails twice, of key 5 the fourth each time."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for name in (topic, f"{topic}.dead"):
        producer.list_topics(name, timeout=10)  # which makes it
    for number in range(EACH):
        for key in range(KEYS):
            producer.produce(topic, f"{key}:{number}", f"key-{key}", headers=[("trace", b"t")])
    assert producer.flush(10) == 0


class Seen:
    """What the handlers of all members did."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tries: dict[tuple[int, int], int] = defaultdict(int)
        self.done: dict[int, list[int]] = defaultdict(list)

    def handle(self, value: bytes) -> None:
        key, number = map(int, value.split(b":"))
        with self.lock:
            self.tries[key, number] += 1
            if (number == 3 and self.tries[key, number] < 3) or (key, number) == (5, 4):
                raise ValueError(f"{key}:{number} cannot be billed")
            self.done[key].append(number)

    def wait(self, enough: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not enough():
            assert time.monotonic() < end, {key: len(done) for key, done in self.done.items()}
            time.sleep(0.02)

    def all_done(self) -> bool:
        with self.lock:
            return sum(len(set(done)) for done in self.done.values()) == KEYS * EACH - 1

    def check(self) -> None:
        for key in range(KEYS):
            done = self.done[key]
            # A member that leaves lets records come again, from one on: without those, each in its order, once.
            assert [number for place, number in enumerate(done) if number not in done[:place]] == [
                number for number in range(EACH) if (key, number) != (5, 4)
            ]
        assert self.tries[0, 3] >= 3
        assert self.tries[5, 4] >= 4


def check_offsets(servers: str, topic: str, group: str) -> None:
    """All is committed; the one dead letter names its origin."""
    settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    reader = confluent_kafka.Consumer({**settings, "group.id": "reader", "enable.auto.commit": False})
    partitions = [confluent_kafka.TopicPartition(topic, number) for number in range(PARTITIONS)]
    same = confluent_kafka.Consumer(settings)
    committed = sum(max(each.offset, 0) for each in same.committed(partitions, timeout=10))
    assert committed == KEYS * EACH
    dead = f"{topic}.dead"
    reader.assign(
        [confluent_kafka.TopicPartition(dead, n, confluent_kafka.OFFSET_BEGINNING) for n in range(PARTITIONS)]
    )
    letters: list[Any] = []
    end = time.monotonic() + 10
    while not letters and time.monotonic() < end:
        letters += [letter for letter in reader.consume(1, timeout=0.1) if letter.error() is None]
    letters += reader.consume(3, timeout=0.1)
    reader.close()
    same.close()
    assert {letter.value() for letter in letters} == {b"5:4"}
    headers = dict(letters[0].headers())
    assert headers["trace"] == b"t"
    assert headers["origin"].startswith(topic.encode())
    assert b"cannot be billed" in headers["failure"]


def loop_of(name: str) -> Any:
    return runpy.run_path(str(ROOT / f"examples/kafka/{name}.py"))["Loop"]


def test_threads_share_partitions_and_lose_nothing(servers: str) -> None:
    topic, group = "orders-confluent", "billing-confluent"
    fill(servers, topic)
    seen = Seen()
    settings = {"bootstrap.servers": servers, "group.id": group, "session.timeout.ms": 6000}
    settings |= {"heartbeat.interval.ms": 100, "partition.assignment.strategy": "cooperative-sticky"}
    make = loop_of("confluent_kafka_loop")

    def member() -> tuple[Any, threading.Thread]:
        loop = make(settings, topic, lambda message: (time.sleep(0.01), seen.handle(message.value())), delay_ms=20)
        thread = threading.Thread(target=loop.run)
        thread.start()
        return loop, thread

    last, thread = member()
    try:
        if REAL:
            seen.wait(lambda: len(seen.tries) > 5, 15)
            first, first_thread = last, thread
            last, thread = member()
            seen.wait(lambda: bool(last.assigned) or seen.all_done(), 15)
            first.stop()
            first_thread.join(20)
            assert not first_thread.is_alive()
        seen.wait(seen.all_done, 20)
        seen.wait(lambda: len(last.assigned) == PARTITIONS, 20)
        seen.wait(lambda: not any(map(last.worker.unfinished, last.assigned)), 20)
    finally:
        last.stop()
        thread.join(20)
    assert not thread.is_alive()
    seen.check()
    check_offsets(servers, topic, group)


def test_tasks_share_partitions_and_lose_nothing(servers: str) -> None:
    topic, group = "orders-aiokafka", "billing-aiokafka"
    fill(servers, topic)
    seen = Seen()
    make = loop_of("aiokafka_loop")

    async def handle(record: Any) -> None:
        await asyncio.sleep(0.01)
        seen.handle(record.value)

    async def until(enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not enough():
                await asyncio.sleep(0.02)

    async def script() -> None:
        settings = {"group_id": group, "heartbeat_interval_ms": 100, "session_timeout_ms": 6000, "delay_ms": 20}
        last = make(servers, topic, handle, tasks=8, **settings)
        running = asyncio.create_task(last.run())
        if REAL:
            await until(lambda: len(seen.tries) > 5)
            first, first_running = last, running
            last = make(servers, topic, handle, tasks=8, **settings)
            running = asyncio.create_task(last.run())
            await until(lambda: bool(last.assigned) or seen.all_done())
            first.stop()
            await first_running
        await until(seen.all_done)
        await until(lambda: len(last.assigned) == PARTITIONS)
        await until(lambda: not any(map(last.worker.unfinished, last.assigned)))
        last.stop()
        await running

    asyncio.run(script())
    seen.check()
    check_offsets(servers, topic, group)
