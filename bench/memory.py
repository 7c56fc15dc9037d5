"""memory: bytes a message in flight, in a process of its own where all of Python's memory comes from malloc.

``python -m bench.memory WHAT`` prints the bytes one of them holds, the allocator's own included (glibc's mallinfo2).
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.contest import RivalMissingError, Row

WINDOW, IN_FLIGHT, DESTINATIONS = 100_000, 20_000, 20_000
GAPS = (20, 100, 1000)
BODY = b"x" * 100


class Mallinfo(ctypes.Structure):
    """struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def allocated() -> int:
    """Bytes that malloc has given out. Raises AttributeError without glibc."""
    information = ctypes.CDLL(None).mallinfo2
    information.restype = Mallinfo
    gc.collect()
    now = information()
    return int(now.uordblks + now.hblkhd)


def held(build: Callable[[], Any]) -> int:
    build()  # what is made once and kept: caches, imports
    before = allocated()
    kept = build()
    after = allocated()
    del kept
    return after - before


def window() -> int:
    """A process queue of 100,000 offsets."""
    from pyengine.rocketmq import ProcessQueue

    def build() -> ProcessQueue:
        queue = ProcessQueue()
        for start in range(0, WINDOW, 32):
            queue.put_messages(range(start, min(start + 32, WINDOW)))
        return queue

    return held(build)


def sparse(gap: int, build: Callable[[], Any]) -> Callable[[], int]:
    """Every ``gap``-th of the offsets, as a filter by tags leaves them."""

    def measured() -> int:
        def filled() -> Any:
            queue = build()
            for start in range(0, WINDOW * gap, 32 * gap):
                queue.put_messages(range(start, min(start + 32 * gap, WINDOW * gap), gap))
            return queue

        return held(filled)

    return measured


class SetAndList:
    """What one writes by hand: the offsets in the order of their arrival, and those that are not finished."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.unfinished: set[int] = set()

    def put_messages(self, offsets: range) -> None:
        self.order.extend(offsets)
        self.unfinished.update(self.order[-len(offsets) :])


def queue_with_gaps(gap: int) -> Callable[[], int]:
    from pyengine.rocketmq import ProcessQueue

    return sparse(gap, ProcessQueue)


def sorted_dict() -> int:
    """The same offsets in a SortedDict."""
    from sortedcontainers import SortedDict

    return held(lambda: SortedDict(dict.fromkeys(range(WINDOW))))


def b_tree() -> int:
    """The same offsets in a LOBTree."""
    from BTrees.LOBTree import LOBTree

    return held(lambda: LOBTree(dict.fromkeys(range(WINDOW))))


def messages(count: int = IN_FLIGHT) -> list[Any]:
    """What a pull brings, made as the broker makes it."""
    from pyengine.rocketmq import MessageExt

    return [
        MessageExt(
            "orders", BODY[:-8] + b"%08d" % number, broker_name="broker-a", queue_offset=1000 + number,
            commit_log_offset=300 * number, msg_id=f"7F000001000078BF{number:016X}", born_timestamp=1_700_000_000_000,
            store_timestamp=1_700_000_000_000, properties={"MIN_OFFSET": "0", "MAX_OFFSET": "20000"},
        )
        for number in range(count)
    ]  # fmt: skip


def objects() -> int:
    """20,000 message objects and a list of them."""
    return held(messages)


def consumer() -> int:
    """A consumer with 20,000 messages in flight: its message objects, process queues, requests, tasks and threads."""
    from pyengine import rocketmq

    broker = rocketmq.Broker()
    broker.create_topic("orders", 1)
    producer = rocketmq.Producer(broker)
    for number in range(IN_FLIGHT):
        producer.send("orders", BODY[:-8] + b"%08d" % number)
    go_on = threading.Event()

    def listen(batch: Any, context: Any) -> rocketmq.ConsumeConcurrentlyStatus:
        go_on.wait()
        return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    made = rocketmq.DefaultMQPushConsumer(
        "G", broker=broker, consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        pull_threshold_for_queue=65535, consume_concurrently_max_span=65535,
    )  # fmt: skip
    made.subscribe("orders")
    made.register_message_listener(listen)
    before = allocated()
    made.start()
    queue = rocketmq.MessageQueue("orders", "broker-a", 0)
    for _ in range(600):
        time.sleep(0.1)
        info = made.consumer_running_info().mq_table.get(queue)
        if info is not None and info["cachedMsgCount"] == IN_FLIGHT:
            break
    else:
        raise RuntimeError(f"the consumer did not pull {IN_FLIGHT} messages: {info}")
    spent = allocated() - before
    go_on.set()
    made.shutdown()
    return spent


def destinations() -> int:
    """20,000 queues of a broker, each with a first message."""
    from pyengine import Message, activemq

    names = iter(("warm-up", "measured"))

    def build() -> list[Any]:
        broker = activemq.Broker(name=next(names))
        connection = activemq.ConnectionFactory("vm://localhost", broker=broker).create_connection()
        session = connection.create_session()
        producer, message = session.create_producer(), Message({"number": 0})
        for number in range(DESTINATIONS):
            producer.send(message, session.create_queue(f"d.{number}"))
        return [broker, connection, producer]

    return held(build)


def dict_of_queues() -> int:
    """The same names, each with a queue.Queue."""
    from queue import Queue

    from pyengine import Message

    def build() -> dict[str, Queue[Message]]:
        there: dict[str, Queue[Message]] = {f"d.{number}": Queue() for number in range(DESTINATIONS)}
        for each in there.values():
            each.put(Message({"number": 0}))
        return there

    return held(build)


MEASURED = {
    "window": window, "SortedDict": sorted_dict, "BTrees": b_tree, "objects": objects, "consumer": consumer,
    "destinations": destinations, "dict of queues": dict_of_queues,
    **{f"window, gap {gap}": lambda gap=gap: queue_with_gaps(gap)() for gap in GAPS},
    **{f"set and list, gap {gap}": sparse(gap, SetAndList) for gap in GAPS},
}  # fmt: skip


def measure(what: str, units: int) -> float:
    """Bytes a unit, measured in a process of its own."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        raise RivalMissingError("memory is measured with glibc's mallinfo2")
    done = subprocess.run(
        [sys.executable, "-m", "bench.memory", what],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONMALLOC": "malloc", "MALLOC_ARENA_MAX": "1"},
    )
    if done.returncode:
        raise RivalMissingError(f"measuring {what} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout) / units


def rows() -> Iterator[Row]:
    """Bytes an entry of the window, and a message in flight of a whole consumer."""
    question = f"process queue, {WINDOW:,} offsets in a row: memory"
    ours = measure("window", WINDOW)
    for rival in ("SortedDict", "BTrees"):
        try:
            theirs, note = measure(rival, WINDOW), ""
        except RivalMissingError as reason:
            theirs, note = None, str(reason)
        yield Row(question, "entry", rival, ours, ours, theirs, theirs, at_most=9.0, note=note, bytes=True)
    for gap in GAPS:
        question = f"process queue, {WINDOW:,} offsets, every {gap}th of a filtered topic: memory"
        ours, theirs = measure(f"window, gap {gap}", WINDOW), measure(f"set and list, gap {gap}", WINDOW)
        yield Row(question, "entry", "a set and a list", ours, ours, theirs, theirs, at_most=64.0, bytes=True)
    question = f"push consumer, {IN_FLIGHT:,} messages of 100 bytes in flight: memory, message objects included"
    whole, alone = measure("consumer", IN_FLIGHT), measure("objects", IN_FLIGHT)
    yield Row(question, "message", "the message objects alone, in a list", whole, whole, alone, alone, bytes=True)


if __name__ == "__main__":
    print(MEASURED[sys.argv[1]]())
