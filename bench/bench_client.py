"""client: the calls that programs make on one thread: send and receive, wildcards, aio, a new destination, a worker."""

from __future__ import annotations

import asyncio
import functools
import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench import memory
from bench.contest import Contest, RivalMissingError, Row, Side, speed_test
from bench.latency import STEPS, Latency, Run, timed
from pyengine import Message, activemq, rocketmq
from pyengine.activemq import aio

DESTINATIONS, RECORDS, POLLED, KEYS = 5_000, 20_000, 500, 100
BROKERS = itertools.count()
QUEUE, KOMBU = "queue.Queue", "kombu, memory transport"


@functools.cache
def messages() -> list[Message]:
    return [Message({"number": number}) for number in range(STEPS)]


def number_of(message: Message | None) -> int:
    assert message is not None
    return message.get_int_property("number")


# Send and receive on one thread


@contextmanager
def one_thread(queues: int = 1, pattern: str = "q.0") -> Iterator[Run]:
    """A producer for each of the queues, a consumer of ``pattern``; a step sends to one queue and receives."""
    with (
        activemq.Broker(name=f"client{next(BROKERS)}") as broker,
        activemq.ConnectionFactory("vm://localhost", broker=broker).create_connection() as connection,
    ):
        session = connection.create_session()
        producers = [session.create_producer(f"q.{number}") for number in range(queues)]
        consumer, given, place = session.create_consumer(pattern), messages(), itertools.count(step=7919)

        def step(number: int) -> int:
            producers[next(place) % queues].send(given[number])
            return number_of(consumer.receive(1.0))

        yield timed(step)


@contextmanager
def with_queue() -> Iterator[Run]:
    waiting: queue.Queue[Message] = queue.Queue()
    given = messages()

    def step(number: int) -> int:
        waiting.put(given[number])
        return number_of(waiting.get(timeout=1.0))

    yield timed(step)


@contextmanager
def with_kombu() -> Iterator[Run]:
    try:
        from kombu import Connection
    except ImportError as missing:
        raise RivalMissingError(f"kombu is not installed: {missing}") from missing
    with Connection("memory://") as connection, connection.SimpleQueue("q") as waiting:

        def step(number: int) -> object:
            waiting.put({"number": number})
            message = waiting.get(timeout=1.0)
            message.ack()
            return message.payload["number"]

        yield timed(step)


@contextmanager
def by_hand(queues: int) -> Iterator[Run]:
    """No broker: a dict from the queue's name to the deque of the wildcard's consumer."""
    names = [f"q.{number}" for number in range(queues)]
    waiting: deque[Message] = deque()
    readers = {name: waiting for name in names if name.startswith("q.")}
    given, place = messages(), itertools.count(step=7919)

    def step(number: int) -> int:
        readers[names[next(place) % queues]].append(given[number])
        return number_of(waiting.popleft())

    yield timed(step)


# aio


@contextmanager
def with_aio() -> Iterator[Run]:
    given = messages()
    with activemq.Broker(name=f"client{next(BROKERS)}") as broker, asyncio.Runner() as runner:
        connection = aio.ConnectionFactory("vm://localhost", broker=broker).create_connection()

        async def begin() -> tuple[aio.MessageProducer, aio.MessageConsumer]:
            await connection.start()
            session = await connection.create_session()
            return await session.create_producer("q"), await session.create_consumer("q")

        producer, consumer = runner.run(begin())

        async def steps(count: int) -> tuple[list[object], list[int]]:
            answers: list[object] = []
            spent, clock = [], time.process_time_ns
            for number in range(count):
                start = clock()
                await producer.send(given[number])
                answer = number_of(await consumer.receive(1.0))
                spent.append(clock() - start)
                answers.append(answer)
            return answers, spent

        yield lambda count: runner.run(steps(count))
        runner.run(connection.close())


@contextmanager
def with_asyncio_queue() -> Iterator[Run]:
    given = messages()

    async def steps(count: int) -> tuple[list[object], list[int]]:
        waiting: asyncio.Queue[Message] = asyncio.Queue()
        answers: list[object] = []
        spent, clock = [], time.process_time_ns
        for number in range(count):
            start = clock()
            await waiting.put(given[number])
            answer = number_of(await asyncio.wait_for(waiting.get(), 1.0))
            spent.append(clock() - start)
            answers.append(answer)
        return answers, spent

    with asyncio.Runner() as runner:
        yield lambda count: runner.run(steps(count))


@contextmanager
def with_faststream() -> Iterator[Run]:
    try:
        from faststream.kafka import KafkaBroker, TestKafkaBroker
    except ImportError as missing:
        raise RivalMissingError(f"faststream[kafka] is not installed: {missing}") from missing
    broker = KafkaBroker()
    received: list[object] = []

    @broker.subscriber("q")
    async def receive(body: dict[str, int]) -> None:
        received.append(body["number"])

    async def steps(count: int) -> tuple[list[object], list[int]]:
        received.clear()
        spent, clock = [], time.process_time_ns
        async with TestKafkaBroker(broker):
            for number in range(count):
                start = clock()
                await broker.publish({"number": number}, "q")
                spent.append(clock() - start)
        return list(received), spent

    with asyncio.Runner() as runner:
        yield lambda count: runner.run(steps(count))


def latencies() -> Iterator[Latency]:
    yield Latency(
        "one thread, default options, no store: a message is sent to a queue and received",
        "message",
        {"pyengine": one_thread, QUEUE: with_queue, KOMBU: with_kombu},
        at_most=5e-6,
        goals={KOMBU: 4.0},
    )
    for queues in (500, 16_000):
        yield Latency(
            f"wildcard consumer of {queues:,} queues: a message is sent to one of them and received",
            "message",
            {
                "pyengine": functools.partial(one_thread, queues, "q.>"),
                "a consumer of one queue": one_thread,
                "dict and deque by hand": functools.partial(by_hand, queues),
            },
            at_most=20e-6,
        )
    yield Latency(
        "aio, one task: a message is sent to a queue and received",
        "message",
        {"pyengine": with_aio, "asyncio.Queue": with_asyncio_queue, "FastStream's TestKafkaBroker": with_faststream},
        at_most=12e-6,
        goals={"FastStream's TestKafkaBroker": 10.0},
    )


# A new destination


def destinations() -> tuple[int, float]:
    """How many there are, and processor seconds for each: its name, the destination and a first message."""
    with (
        activemq.Broker(name=f"client{next(BROKERS)}") as broker,
        activemq.ConnectionFactory("vm://localhost", broker=broker).create_connection() as connection,
    ):
        session = connection.create_session()
        producer, message = session.create_producer(), messages()[0]
        start = time.process_time()
        for number in range(DESTINATIONS):
            producer.send(message, session.create_queue(f"d.{number}"))
        spent = time.process_time() - start
        found = sum(broker.view(f"d.{number}").queue_size for number in range(DESTINATIONS))
    return found, spent / DESTINATIONS


def dict_of_queues() -> tuple[int, float]:
    there: dict[str, queue.Queue[Message]] = {}
    message = messages()[0]
    start = time.process_time()
    for number in range(DESTINATIONS):
        name = f"d.{number}"
        if name not in there:
            there[name] = queue.Queue()
        there[name].put(message)
    spent = time.process_time() - start
    return sum(each.qsize() for each in there.values()), spent / DESTINATIONS


def by_clock(run: Callable[[], tuple[int, float]]) -> Side:
    return Side(call=run, answer=lambda: run()[0], units=DESTINATIONS, clock=lambda: run()[1])


# A worker


@dataclass(slots=True)
class Record:
    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes


@functools.cache
def polls() -> list[list[Record]]:
    records = [Record("t", 0, offset, b"k%d" % (offset % KEYS), b"") for offset in range(RECORDS)]
    return [records[first : first + POLLED] for first in range(0, RECORDS, POLLED)]


def with_record_worker() -> tuple[list[int], list[int]]:
    """The offsets in the order in which they are taken, and what is safe to commit after each poll."""
    worker = rocketmq.RecordWorker("key")
    partition = rocketmq.TopicPartition("t", 0)
    worker.assign([partition])
    taken, committed = [], []
    for records in polls():
        worker.put(records)
        for _ in records:
            work = worker.take()
            assert work is not None
            taken.append(work.record.offset)
            worker.complete(work)
        committed.append(worker.commits()[partition])
    return taken, committed


def with_dict_and_deque() -> tuple[list[int], list[int]]:
    """The same without a lock: a deque a key, a deque of what is ready, a set of what was completed ahead."""
    behind: dict[bytes, deque[Record]] = {}
    ready: deque[Record] = deque()
    ahead: set[int] = set()
    low = 0
    taken, committed = [], []
    for records in polls():
        for record in records:
            if record.key in behind:
                behind[record.key].append(record)
            else:
                behind[record.key] = deque()
                ready.append(record)
        for _ in records:
            record = ready.popleft()
            taken.append(record.offset)
            waiting = behind[record.key]
            if waiting:
                ready.append(waiting.popleft())
            else:
                del behind[record.key]
            if record.offset != low:
                ahead.add(record.offset)
                continue
            low += 1
            while low in ahead:
                ahead.discard(low)
                low += 1
        committed.append(low)
    return taken, committed


def contests() -> Iterator[Contest]:
    yield Contest(
        question="a new destination: its name is parsed, the queue is made and gets its first message",
        unit="destination",
        sides={"pyengine": lambda: by_clock(destinations), "dict of queue.Queue": lambda: by_clock(dict_of_queues)},
        goals={},
        at_most=30e-6,
    )
    yield Contest(
        question=f"RecordWorker, {KEYS} keys, polls of {POLLED}: put, take and complete a record, commit a poll",
        unit="record",
        sides={
            "pyengine": lambda: Side(call=with_record_worker, answer=with_record_worker, units=RECORDS),
            "dict and deque by hand, no lock": lambda: Side(
                call=with_dict_and_deque, answer=with_dict_and_deque, units=RECORDS
            ),
        },
        goals={},
        at_most=600e-9,
    )


def rows() -> Iterator[Row]:
    for latency in latencies():
        yield from latency.rows()
    for contest in contests():
        yield from contest.rows()
    ours, theirs = (memory.measure(what, memory.DESTINATIONS) for what in ("destinations", "dict of queues"))
    yield Row(
        "a new destination with its first message: memory", "destination", "dict of queue.Queue",
        ours, ours, theirs, theirs, at_most=4000.0, bytes=True,
    )  # fmt: skip


test_speed = speed_test(contests)
