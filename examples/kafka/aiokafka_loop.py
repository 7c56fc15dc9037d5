"""A Kafka consumer whose tasks share the records of a key in order, on aiokafka.

    python examples/kafka/aiokafka_loop.py localhost:9092 orders billing

The same loop as confluent_kafka_loop.py with tasks in the place of threads: the client stays yours, a RecordWorker
says which record may be worked on, which partitions to pause and which offset is safe to commit.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from aiokafka import (  # pip install aiokafka
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    ConsumerRecord,
    TopicPartition,
)
from aiokafka.errors import KafkaError

from pyengine import rocketmq

log = logging.getLogger("loop")


class Loop(ConsumerRebalanceListener):
    """One member of a group. handle: awaited with a record; an exception means that it failed.

    tasks: how many records are worked on at once. attempts, delay_ms, dead_letters, order: as in
    confluent_kafka_loop.Loop. settings: of AIOKafkaConsumer.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        handle: Callable[[ConsumerRecord], Awaitable[None]],
        *,
        tasks: int = 64,
        attempts: int = 4,
        delay_ms: int = 1000,
        dead_letters: str | None = None,
        order: Any = "key",
        **settings: Any,
    ) -> None:
        self._servers, self._topic, self._handle = servers, topic, handle
        self._settings = {"auto_offset_reset": "earliest", **settings, "enable_auto_commit": False}
        self._tasks, self._attempts, self._delay_ms = tasks, attempts, delay_ms
        self._dead_letters = dead_letters or f"{topic}.dead"
        self.worker = rocketmq.RecordWorker(order, max_messages=1000, max_span=2000)
        self.assigned: set[TopicPartition] = set()
        self._generation = 0
        self._paused: set[TopicPartition] = set()
        self._uncommitted: dict[TopicPartition, int] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let :meth:`run` return."""
        self._stopping.set()

    async def run(self) -> None:
        """Consume until :meth:`stop`. What is in hand is finished and committed before it returns."""
        loop = asyncio.get_running_loop()
        self._consumer = AIOKafkaConsumer(bootstrap_servers=self._servers, **self._settings)
        self._producer = AIOKafkaProducer(bootstrap_servers=self._servers)
        self._consumer.subscribe([self._topic], listener=self)
        async with self._producer:
            await self._consumer.start()
            working = [asyncio.create_task(self._work()) for _ in range(self._tasks)]
            committed = loop.time()
            try:
                while not self._stopping.is_set():
                    generation = self._generation
                    polled = await self._consumer.getmany(timeout_ms=50, max_records=500)
                    if generation != self._generation:
                        continue  # fetched for an assignment that is over: its positions begin at what was committed
                    for records in polled.values():
                        self.worker.put(records)
                    self._pause_what_is_full()
                    if loop.time() - committed >= 1:
                        await self._commit()
                        committed = loop.time()
            finally:
                self._stopping.set()
                try:
                    await asyncio.gather(*working)
                    await self._commit()
                    for _ in range(100):  # up to ten seconds: until a rebalance that is going on lets it commit
                        if not self._uncommitted:
                            break
                        await asyncio.sleep(0.1)
                        await self._commit()
                finally:
                    await self._consumer.stop()

    def _pause_what_is_full(self) -> None:
        full = {TopicPartition(*each) for each in self.worker.full()}
        self._consumer.pause(*(full - self._paused))
        self._consumer.resume(*(self._paused - full))
        self._paused = full

    async def _commit(self) -> None:
        self._uncommitted.update((TopicPartition(*each), offset) for each, offset in self.worker.commits().items())
        if self._uncommitted:
            offsets = dict(self._uncommitted)
            try:
                await self._consumer.commit(offsets)
            except KafkaError as failure:  # a rebalance is going on, or nobody answers: the next time
                log.warning("not committed: %s", failure)
            else:
                for each, offset in offsets.items():
                    if self._uncommitted.get(each) == offset:
                        del self._uncommitted[each]

    # ---------------- partitions come and go, while getmany() waits

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Commit what is safe; what is in hand is done again by whoever has the partition."""
        self._generation += 1
        left = self.assigned & set(revoked)
        self.assigned -= left
        self._paused.clear()  # aiokafka resumes all of them
        offsets = {each: self._uncommitted.pop(each) for each in left if each in self._uncommitted}
        safe = offsets | {TopicPartition(*each): offset for each, offset in self.worker.revoke(left).items()}
        if safe:
            try:
                await self._consumer.commit(safe)
            except KafkaError as failure:  # the next owner does it again
                log.warning("not committed at the end: %s", failure)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """They begin at what was committed."""
        self.worker.assign(assigned)
        self.assigned = set(assigned)

    # ---------------- the tasks that work

    async def _work(self) -> None:
        while not self._stopping.is_set():
            work = await self.worker.take_async(timeout=0.2)
            if work is None:
                continue
            try:
                await self._handle(work.record)
            except Exception as failure:
                if work.attempts < self._attempts:
                    delay = self._delay_ms * 2 ** (work.attempts - 1)
                    log.info("%s@%d failed, again in %d ms: %r", work.queue, work.queue_offset, delay, failure)
                    self.worker.give_back(work, delay=delay)
                else:
                    await self._bury(work, failure)
            else:
                self.worker.complete(work)

    async def _bury(self, work: Any, failure: Exception) -> None:
        """To the dead letters; the record is done when the broker has it there."""
        origin = f"{work.queue.topic}/{work.queue.partition}@{work.queue_offset}"
        headers = [*work.record.headers, ("origin", origin.encode()), ("failure", repr(failure).encode())]
        record = work.record
        try:
            await self._producer.send_and_wait(self._dead_letters, record.value, record.key, headers=headers)
        except KafkaError as error:
            log.warning("dead letter not written: %s", error)
            self.worker.give_back(work, delay=self._delay_ms)
        else:
            self.worker.complete(work)


async def main() -> None:
    """Print each order; what is not a number fails, and ends in the dead letters."""
    logging.basicConfig(level=logging.INFO)
    servers, topic, group = sys.argv[1:]

    async def handle(record: ConsumerRecord) -> None:
        print("billed", record.key, int(record.value), flush=True)

    loop = Loop(servers, topic, handle, group_id=group)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, loop.stop)
    await loop.run()


if __name__ == "__main__":
    asyncio.run(main())
