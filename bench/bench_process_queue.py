"""process_queue: put 32 messages, finish them in random order, ask for the offset to commit after each.

One call a message from Python, so the calls cost more than the work: a queue that does nothing is measured in the same
run, and its time taken off both sides.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from bench import jvm
from bench.contest import ROUNDS, RivalMissingError, Row
from pyengine.rocketmq import MessageExt, ProcessQueue

MESSAGES = 20_000


class Nothing:
    """A queue that does nothing."""

    __slots__ = ()

    def put_messages(self, messages: list[Any]) -> bool:
        return False

    def remove_messages(self, messages: list[Any]) -> int:
        return 0


class Sorted:
    """The commit rule over a sorted mapping: SortedDict or LOBTree."""

    __slots__ = ("last", "smallest", "tree")

    def __init__(self, tree: Any, smallest: Callable[[Any], int]) -> None:
        self.tree = tree
        self.smallest = smallest
        self.last = 0

    def put_messages(self, messages: list[Any]) -> bool:
        for message in messages:
            self.tree[message.queue_offset] = message
            self.last = message.queue_offset
        return True

    def remove_messages(self, messages: list[Any]) -> int:
        for message in messages:
            self.tree.pop(message.queue_offset, None)
        return self.smallest(self.tree) if self.tree else self.last + 1


def sorted_dict() -> Sorted:
    from sortedcontainers import SortedDict

    return Sorted(SortedDict(), lambda tree: int(tree.keys()[0]))


def b_tree() -> Sorted:
    try:
        from BTrees.LOBTree import LOBTree
    except ImportError as missing:
        raise RivalMissingError("the package BTrees is not installed") from missing
    return Sorted(LOBTree(), lambda tree: int(tree.minKey()))


@functools.cache
def order(depth: int) -> list[int]:
    """Offsets in the order of completion: always a random one of those that are in the queue."""
    random = Random(5)
    cached: list[int] = []
    done: list[int] = []
    put = 0
    while len(done) < MESSAGES:
        while put < MESSAGES and len(cached) <= depth:
            cached.extend(range(put, min(put + 32, MESSAGES)))
            put = min(put + 32, MESSAGES)
        place = random.randrange(len(cached))
        cached[place], cached[-1] = cached[-1], cached[place]
        done.append(cached.pop())
    return done


@functools.cache
def batches() -> list[list[MessageExt]]:
    """All messages, 32 a list."""
    return [
        [MessageExt("T", b"", queue_offset=offset) for offset in range(start, min(start + 32, MESSAGES))]
        for start in range(0, MESSAGES, 32)
    ]


def run(queue: Any, depth: int) -> tuple[float, int]:
    """CPU seconds a message, and the sum of the offsets to commit."""
    singles = [[message] for batch in batches() for message in batch]
    done = order(depth)
    waiting = iter(batches())
    cached = put = total = 0
    start = time.process_time()
    for offset in done:
        while put < MESSAGES and cached <= depth:
            batch = next(waiting)
            queue.put_messages(batch)
            put += len(batch)
            cached += len(batch)
        total += queue.remove_messages(singles[offset])
        cached -= 1
    return (time.process_time() - start) / MESSAGES, total


def rows() -> Iterator[Row]:
    makers: dict[str, Callable[[], Any]] = {
        "nothing": Nothing, "pyengine": ProcessQueue, "SortedDict": sorted_dict, "BTrees": b_tree,
    }  # fmt: skip
    goals = {"SortedDict": 50.0, "BTrees": 10.0}
    for depth in (1_000, 10_000):
        answer = run(ProcessQueue(), depth)[1]
        missing: dict[str, str] = {}
        for name in ("SortedDict", "BTrees"):
            try:
                assert run(makers[name](), depth)[1] == answer, f"{name} commits other offsets"
            except RivalMissingError as reason:
                missing[name] = str(reason)
        times: dict[str, list[float]] = {name: [] for name in makers if name not in missing}
        for _ in range(ROUNDS):
            for name, spent in times.items():
                spent.append(run(makers[name](), depth)[0])
        nothing = min(times["nothing"])
        best = {name: min(spent) - nothing for name, spent in times.items()}
        median = {name: statistics.median(spent) - nothing for name, spent in times.items()}
        question = f"process queue, window {depth:,}, finished in random order, one call each, less an empty call"
        for name, goal in goals.items():
            yield Row(
                question, "message", name, best["pyengine"], median["pyengine"], best.get(name), median.get(name),
                goal if depth == 1_000 else None, note=missing.get(name, ""),
            )  # fmt: skip
        yield java_row(question, depth, answer, best["pyengine"], median["pyengine"])


def java_row(question: str, depth: int, answer: int, best: float, median: float) -> Row:
    """RocketMQ's ProcessQueue in a warm JVM, the loop there."""
    try:
        machine = jvm.Jvm("Clients", path=jvm.rocketmq_class_path())
        done = order(depth)
        machine.ask("finish", order=done, depth=depth, repeat=20)
        times = []
        for _ in range(ROUNDS):
            reply = machine.ask("finish", order=done, depth=depth, repeat=3)
            assert reply["sum"] == answer, "RocketMQ commits other offsets"
            times.append(float(str(reply["nanoseconds"])) * 1e-9)
    except RivalMissingError as reason:
        return Row(question, "message", "RocketMQ in the JVM", best, median, None, None, note=str(reason))
    return Row(question, "message", "RocketMQ in the JVM", best, median, min(times), statistics.median(times))
