"""A short run of the embedded brokers with real threads, written down: what the simulation is compared with.

``python -m tests.backlog.simulate.record OUT.json`` takes about twenty seconds. Times in the file are
microseconds since the start.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import pyengine
from pyengine import activemq, rocketmq
from pyengine.backlog.simulate.queues import NS, Workload

RATE = 100.0
MESSAGES = 600
WARM_UP = 3.0  # a RocketMQ client has its queues 1 s after its start and pulls from them 0.5 s later


@dataclass(frozen=True, slots=True)
class Worker:
    """A consumer of the run. Seconds since the start; joins_at 0: it was there before."""

    name: str
    limit: int  # ActiveMQ: prefetch; RocketMQ: threads
    joins_at: float = 0.0
    leaves_at: float | None = None


ACTIVEMQ = (Worker("a", 40), Worker("b", 1, leaves_at=4.5), Worker("c", 5, joins_at=2.0))
ROCKETMQ = (Worker("a", 2), Worker("b", 1, leaves_at=4.5), Worker("c", 1, joins_at=1.5))
QUEUES = 4


class Recording:
    """The clock of a run, and what its listeners did."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.start = 0
        self.arrivals: list[int] = []
        self.attempts: list[tuple[int, str, int, int]] = []
        self.changes: dict[str, dict[str, int]] = {}

    def now(self) -> int:
        return time.perf_counter_ns() - self.start

    def sleep_until(self, moment: int) -> None:
        time.sleep(max(0, moment - self.now()) / NS)

    def work(self, row: int, name: str) -> None:
        """What a listener does; nothing for the messages that start its threads."""
        if row < 0:
            return
        begun = self.now()
        time.sleep(self.workload.services[row] / NS)
        self.attempts.append((row, name, begun, self.now()))

    def play(
        self,
        workers: Sequence[Worker],
        send: Callable[[int], object],
        join: Callable[[Worker], Callable[[], object]],
        warm_up: float,
    ) -> None:
        """join gives what makes the worker leave."""
        leave = {worker.name: join(worker) for worker in workers if not worker.joins_at}
        for _ in range(10 * len(leave)):
            send(-1)
        time.sleep(warm_up)
        self.start = time.perf_counter_ns()

        def produce() -> None:
            for row, arrival in enumerate(self.workload.arrivals):
                self.sleep_until(int(arrival))
                self.arrivals.append(self.now())
                send(row)

        pool = ThreadPoolExecutor(1)
        producing = pool.submit(produce)
        moments = [(worker.joins_at, "joins_at", worker) for worker in workers if worker.joins_at]
        moments += [(worker.leaves_at, "leaves_at", worker) for worker in workers if worker.leaves_at is not None]
        for second, what, worker in sorted(moments, key=lambda moment: moment[0]):
            self.sleep_until(int(second * NS))
            self.changes.setdefault(worker.name, {})[what] = self.now()
            if what == "joins_at":
                leave[worker.name] = join(worker)
            else:
                leave.pop(worker.name)()
        producing.result()
        pool.shutdown()
        end = time.monotonic() + 30
        while len({attempt[0] for attempt in self.attempts}) < len(self.workload):
            if time.monotonic() > end:
                raise TimeoutError("30 s after the last message some are not consumed")
            time.sleep(0.05)

    def written(self, workers: Sequence[Worker], limit: str, **settings: Any) -> dict[str, Any]:
        """What goes into the file."""

        def micros(moments: dict[str, int]) -> dict[str, int]:
            return {what: moment // 1000 for what, moment in moments.items()}

        return {
            **settings,
            "consumers": [
                {"name": each.name, limit: each.limit, **micros(self.changes.get(each.name, {}))} for each in workers
            ],
            "arrivals": [moment // 1000 for moment in self.arrivals],
            "services": [int(work) // 1000 for work in self.workload.services],
            "attempts": [[row, name, begun // 1000, end // 1000] for row, name, begun, end in self.attempts],
        }


def record_activemq(workload: Workload) -> dict[str, Any]:
    """One queue; every consumer has a connection of its own and acknowledges each message."""
    recording = Recording(workload)
    with ExitStack() as stack:
        broker = stack.enter_context(activemq.Broker())
        factory = activemq.ConnectionFactory("vm://localhost", broker=broker)
        sending = stack.enter_context(factory.create_connection())
        producer = sending.create_session(activemq.AUTO_ACKNOWLEDGE).create_producer("orders")

        def join(worker: Worker) -> Callable[[], object]:
            connection = stack.enter_context(factory.create_connection())
            session = connection.create_session(activemq.AUTO_ACKNOWLEDGE)
            session.create_consumer(
                f"orders?consumer.prefetchSize={worker.limit}",
                listener=lambda message: recording.work(message.get_int_property("row"), worker.name),
            )
            return connection.close

        recording.play(ACTIVEMQ, lambda row: producer.send(pyengine.Message({"row": row})), join, 1.0)
    return recording.written(ACTIVEMQ, "prefetch")


def record_rocketmq(workload: Workload) -> dict[str, Any]:
    """One topic of four queues that take turns, one group that consumes concurrently."""
    recording = Recording(workload)
    with ExitStack() as stack:
        broker = stack.enter_context(rocketmq.Broker())
        broker.create_topic("orders", QUEUES)
        producer = rocketmq.Producer(broker)
        queues: list[int] = []

        def send(row: int) -> None:
            queue = producer.send("orders", b"%d" % row).queue
            if row >= 0:
                queues.append(queue.queue_id)

        def join(worker: Worker) -> Callable[[], object]:
            def listen(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
                for message in messages:
                    recording.work(int(message.body or b""), worker.name)
                return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

            consumer = rocketmq.DefaultMQPushConsumer(
                "billing", broker=broker, instance_name=worker.name, consume_thread_min=worker.limit,
                consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            )  # fmt: skip
            consumer.subscribe("orders")
            consumer.register_message_listener(listen)
            consumer.start()
            stack.callback(consumer.shutdown)
            return consumer.shutdown

        recording.play(ROCKETMQ, send, join, WARM_UP)
    return recording.written(ROCKETMQ, "threads", queues=queues)


def main(out: str) -> None:
    """Record both and write the file."""
    services = np.random.default_rng(6).uniform(0.012, 0.036, MESSAGES) * NS
    workload = replace(Workload.from_rate(RATE, 0.024, MESSAGES, seed=6), services=services.astype(np.int64))
    written = {
        "python": platform.python_version(),
        "activemq": record_activemq(workload),
        "rocketmq": record_rocketmq(workload),
    }
    Path(out).write_text(json.dumps(written, separators=(",", ":")) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
