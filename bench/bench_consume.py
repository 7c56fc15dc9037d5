"""consume: a whole consumer, and what keeps the offset that is safe to commit, in messages.

Every message is handled by the same listener, and the committed offset is the same in all. pyrallel-consumer and
faststream-concurrent-aiokafka are measured by what tracks their commits; their polling and their threads or tasks are
not. pyrallel-consumer wants Python 3.12.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from bench.contest import Contest, RivalMissingError, Row, Side
from pyengine import rocketmq

MESSAGES, POLLED, THREADS, QUEUES, ROUNDS = 20_000, 500, 4, 4, 5
PLACE = ("orders", 0)


class Record:
    """As confluent-kafka's Message: methods."""

    __slots__ = ("_offset", "_partition")

    def __init__(self, partition: int, offset: int) -> None:
        self._partition, self._offset = partition, offset

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"0123456789"


@functools.cache
def polls() -> list[tuple[list[Record], list[int]]]:
    """Batches as a poll brings them, and the random order in which each is completed; the first of one comes last."""
    random = Random(3)
    made = []
    for start in range(0, MESSAGES, POLLED):
        order = list(range(1, POLLED))
        random.shuffle(order)
        made.append(([Record(0, offset) for offset in range(start, start + POLLED)], [*order, 0]))
    return made


def with_record_worker() -> list[int]:
    worker = rocketmq.RecordWorker("none")
    worker.assign([PLACE])
    committed = []
    for records, order in polls():
        worker.put(records)
        works = [work for _ in records if (work := worker.take()) is not None]
        for place in order:
            worker.complete(works[place])
        committed.append(worker.commits()[PLACE])
    return committed


def with_process_queue() -> list[int]:
    queue = rocketmq.ProcessQueue()
    committed = []
    for records, order in polls():
        queue.put_messages([record.offset() for record in records])
        safe = 0
        for place in order:
            safe = queue.finish(records[place].offset())
        committed.append(safe)
    return committed


def pyrallel() -> Side:
    try:
        from pyrallel_consumer.control_plane.offset_tracker import OffsetTracker
        from pyrallel_consumer.dto import TopicPartition
    except ImportError as missing:
        raise RivalMissingError(f"pyrallel-consumer is not installed (it needs Python 3.12): {missing}") from missing

    def track() -> list[int]:
        tracker = OffsetTracker(TopicPartition(*PLACE), 0, 0)
        committed = []
        for records, order in polls():
            for record in records:
                tracker.update_last_fetched_offset(record.offset())
            for place in order:
                tracker.mark_complete(records[place].offset())
            tracker.advance_high_water_mark()
            committed.append(tracker.last_committed_offset + 1)
        return committed

    return Side(call=track, answer=track, units=MESSAGES)


def faststream() -> Side:
    try:
        from aiokafka.structs import TopicPartition
        from faststream_concurrent_aiokafka._pending_state import KafkaCommitTask, PendingCommits
    except ImportError as missing:
        raise RivalMissingError(f"faststream-concurrent-aiokafka is not installed: {missing}") from missing
    loop = asyncio.new_event_loop()
    place = TopicPartition(*PLACE)

    def track() -> list[int]:
        pending = PendingCommits()
        committed = []
        for records, order in polls():
            tasks = [loop.create_future() for _ in records]
            for record, task in zip(records, tasks, strict=True):
                pending.absorb(
                    KafkaCommitTask(asyncio_task=task, topic_partition=place, offset=record.offset(), consumer=loop)
                )
            for done in order:
                tasks[done].set_result(None)
            committed.append(pending.take_ready()[0].offsets[place])
        return committed

    return Side(call=track, answer=track, units=MESSAGES)


def contests() -> Iterator[Contest]:
    rivals = {
        "pyrallel-consumer's OffsetTracker": pyrallel,
        "faststream-concurrent-aiokafka's PendingCommits": faststream,
    }
    for name, ours in (("RecordWorker", with_record_worker), ("ProcessQueue", with_process_queue)):
        side = Side(call=ours, answer=ours, units=MESSAGES)
        yield Contest(
            question=f"{name}: {POLLED} records polled, completed in random order, one commit a poll",
            unit="message",
            sides={"pyengine": functools.partial(lambda side: side, side), **rivals},
            goals=dict.fromkeys(rivals, 1.0),
        )


class Handled:
    """A listener's work: it keeps what it saw."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.all = threading.Event()

    def __call__(self, body: bytes) -> None:
        self.bodies.append(body)
        if len(self.bodies) == MESSAGES:
            self.all.set()


def bodies() -> list[bytes]:
    return [b"%010d" % number for number in range(MESSAGES)]


def push_consumer() -> tuple[float, list[bytes], int]:
    """CPU seconds from start() to the last commit, what was handled, and the sum of the committed offsets."""
    broker = rocketmq.Broker()
    broker.create_topic("orders", QUEUES)
    producer = rocketmq.Producer(broker)
    for body in bodies():
        producer.send("orders", body)
    handled = Handled()

    def listen(messages: Any, context: Any) -> rocketmq.ConsumeConcurrentlyStatus:
        for message in messages:
            handled(message.body)
        return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = rocketmq.DefaultMQPushConsumer(
        "G", broker=broker, consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_thread_min=THREADS, consume_thread_max=THREADS, await_termination_millis_when_shutdown=10_000,
    )  # fmt: skip
    consumer.subscribe("orders")
    consumer.register_message_listener(listen)
    start = time.process_time()
    consumer.start()
    assert handled.all.wait(60), f"{len(handled.bodies)} of {MESSAGES} messages were handled"
    consumer.shutdown()
    spent = time.process_time() - start
    return spent, sorted(handled.bodies), sum(broker.consumer_offsets("G", "orders").values())


def records() -> list[tuple[Record, bytes]]:
    return [(Record(number % QUEUES, number // QUEUES), body) for number, body in enumerate(bodies())]


def record_worker() -> tuple[float, list[bytes], int]:
    """The same with a RecordWorker and threads that take from it; the polling is a slice of a list."""
    polled = records()
    body_of = {id(record): body for record, body in polled}
    waiting = [record for record, _ in polled]
    handled = Handled()
    worker = rocketmq.RecordWorker("none")
    worker.assign([("orders", number) for number in range(QUEUES)])
    committed: dict[Any, int] = {}

    def work() -> None:
        while not handled.all.is_set():
            taken = worker.take(0.05)
            if taken is not None:
                handled(body_of[id(taken.record)])
                worker.complete(taken)

    start = time.process_time()
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for first in range(0, MESSAGES, POLLED):
        worker.put(waiting[first : first + POLLED])
        committed |= worker.commits()
    for thread in threads:
        thread.join()
    committed |= worker.commits()
    return time.process_time() - start, sorted(handled.bodies), sum(committed.values())


def plain_loop() -> tuple[float, list[bytes], int]:
    """One thread, record by record, the offset kept after each."""
    polled = records()
    handled = Handled()
    committed: dict[int, int] = {}
    start = time.process_time()
    for record, body in polled:
        handled(body)
        committed[record.partition()] = record.offset() + 1
    return time.process_time() - start, sorted(handled.bodies), sum(committed.values())


def rows() -> Iterator[Row]:
    for contest in contests():
        yield from contest.rows()
    loop = "a plain loop over records, one thread, no broker"
    sides: dict[str, Callable[[], tuple[float, list[bytes], int]]] = {
        f"push consumer and embedded broker, {QUEUES} queues, {THREADS} threads: pull, dispatch, complete, commit": (
            push_consumer
        ),
        f"RecordWorker, {QUEUES} partitions, {THREADS} threads: put, take, complete, commit": record_worker,
        loop: plain_loop,
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _, (name, side) in itertools.product(range(ROUNDS), sides.items()):
        spent, handled, committed = side()
        assert (handled, committed) == (bodies(), MESSAGES), f"{name}: {len(handled)} handled, {committed} committed"
        times[name].append(spent / MESSAGES)
    theirs = times.pop(loop)
    for name, ours in times.items():
        yield Row(
            name, "message", loop, min(ours), statistics.median(ours), min(theirs), statistics.median(theirs)
        )  # fmt: skip
