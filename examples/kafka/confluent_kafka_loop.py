"""A Kafka consumer whose threads share the records of a key in order, on confluent-kafka.

    python examples/kafka/confluent_kafka_loop.py localhost:9092 orders billing

The client stays yours: this loop polls it, and a RecordWorker says which record may be worked on, which partitions to
pause and which offset is safe to commit. A record whose handler raises comes again after a delay, then goes to the
topic NAME.dead. When partitions leave, what is safe is committed first; what is still in hand then is done again by
whoever has the partition.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition  # pip install confluent-kafka

from pyengine import rocketmq

log = logging.getLogger("loop")


class Loop:
    """One member of a group: the thread that calls :meth:`run` polls, ``threads`` others work.

    handle: called with a message; an exception means that it failed. settings: of confluent-kafka. attempts: how often
    a record is tried; delay_ms: before its second time, doubled for each further one. dead_letters: topic for what
    failed each time, in which its headers name where it came from. order: ``"key"``, ``"queue"`` or ``"none"``.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        handle: Callable[[Message], None],
        *,
        threads: int = 8,
        attempts: int = 4,
        delay_ms: int = 1000,
        dead_letters: str | None = None,
        order: Any = "key",
    ) -> None:
        self._consumer = Consumer({"auto.offset.reset": "earliest", **settings, "enable.auto.commit": False})
        self._producer = Producer({"bootstrap.servers": settings["bootstrap.servers"]})
        self._topic, self._handle = topic, handle
        self._attempts, self._delay_ms = attempts, delay_ms
        self._dead_letters = dead_letters or f"{topic}.dead"
        self.worker = rocketmq.RecordWorker(order, max_messages=1000, max_span=2000)
        self.assigned: set[tuple[str, int]] = set()
        self._paused: set[tuple[str, int]] = set()
        self._uncommitted: dict[tuple[str, int], int] = {}
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._work, name=f"worker-{n}") for n in range(threads)]

    def stop(self) -> None:
        """Let :meth:`run` return; from any thread, or a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Consume until :meth:`stop`. What is in hand is finished and committed before it returns."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        for thread in self._threads:
            thread.start()
        committed = time.monotonic()
        try:
            while not self._stopping.is_set():
                self._take_in(self._consumer.consume(500, timeout=0.05))
                self._producer.poll(0)  # calls _buried
                self._pause_what_is_full()
                if time.monotonic() - committed >= 1:
                    self._commit()
                    committed = time.monotonic()
        finally:
            self._stopping.set()
            for thread in self._threads:
                thread.join()
            self._producer.flush(10)
            self._commit()
            for _ in range(100):  # up to ten seconds: until a rebalance that is going on lets it commit
                if not self._uncommitted:
                    break
                self._consumer.poll(0.1)  # what comes is not taken in
                self._commit()
            self._consumer.close()  # calls _on_revoke

    def _take_in(self, messages: list[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is None:
                if (message.topic(), message.partition()) in self.assigned:
                    self.worker.put([message])
            elif error.fatal() or not error.retriable():
                raise KafkaException(error)
            else:
                log.warning("kafka: %s", error)

    def _pause_what_is_full(self) -> None:
        full = set(self.worker.full())
        if more := full - self._paused:
            self._consumer.pause([TopicPartition(*each) for each in more])
        if fewer := self._paused - full:
            self._consumer.resume([TopicPartition(*each) for each in fewer])
        self._paused = full

    def _commit(self) -> None:
        self._uncommitted.update(self.worker.commits())
        if self._uncommitted:
            offsets = [TopicPartition(*each, offset) for each, offset in self._uncommitted.items()]
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
                self._uncommitted.clear()
            except KafkaException as failure:  # a rebalance is going on, or nobody answers: the next time
                log.warning("not committed: %s", failure)

    # ---------------- partitions come and go, inside consume() and close()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.worker.assign(partitions)
        self.assigned.update((each.topic, each.partition) for each in partitions)

    def _leave(self, partitions: list[TopicPartition]) -> dict[Any, int]:
        left = {(each.topic, each.partition) for each in partitions} & self.assigned
        self.assigned -= left
        self._paused -= left
        offsets = {each: self._uncommitted.pop(each) for each in left if each in self._uncommitted}
        return offsets | self.worker.revoke(left)

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        safe = self._leave(partitions)
        if safe:
            try:
                offsets = [TopicPartition(*each, offset) for each, offset in safe.items()]
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as failure:  # the next owner does it again
                log.warning("not committed at the end: %s", failure)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._leave(partitions)  # they have another owner already, whose commits count

    # ---------------- the threads that work

    def _work(self) -> None:
        while not self._stopping.is_set():
            work = self.worker.take(timeout=0.2)
            if work is None:
                continue
            try:
                self._handle(work.record)
            except Exception as failure:
                if work.attempts < self._attempts:
                    delay = self._delay_ms * 2 ** (work.attempts - 1)
                    log.info("%s@%d failed, again in %d ms: %r", work.queue, work.queue_offset, delay, failure)
                    self.worker.give_back(work, delay=delay)
                else:
                    self._bury(work, failure)
            else:
                self.worker.complete(work)

    def _bury(self, work: Any, failure: Exception) -> None:
        """To the dead letters; the record is done when the broker has it there."""
        headers = [
            *(work.record.headers() or []),
            ("origin", f"{work.queue.topic}/{work.queue.partition}@{work.queue_offset}".encode()),
            ("failure", repr(failure).encode()),
        ]

        def buried(error: Any, _: Message) -> None:
            if error is None:
                self.worker.complete(work)
            else:
                log.warning("dead letter not written: %s", error)
                self.worker.give_back(work, delay=self._delay_ms)

        record = work.record
        self._producer.produce(self._dead_letters, record.value(), record.key(), headers=headers, on_delivery=buried)


def main() -> None:
    """Print each order; what is not a number fails, and ends in the dead letters."""
    logging.basicConfig(level=logging.INFO)
    servers, topic, group = sys.argv[1:]

    def handle(message: Message) -> None:
        print("billed", message.key(), int(message.value()), flush=True)

    loop = Loop({"bootstrap.servers": servers, "group.id": group}, topic, handle)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: loop.stop())
    loop.run()


if __name__ == "__main__":
    main()
