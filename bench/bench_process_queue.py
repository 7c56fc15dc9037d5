"""process_queue: put 32 messages, finish them in random order, ask for the offset to commit after each.

From Python one call a message, so the calls cost more than the work: a queue that does nothing is measured in the same
run, and its time taken off: off ours that of empty compiled methods, off the rivals' that of empty Python methods. In
C the same loop through the rooms' .pxd, against RocketMQ's class and a ring and bitmap by hand.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

from bench import jvm, memory, native
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

    def finish(self, message: Any) -> int:
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

    def finish(self, message: Any) -> int:
        self.tree.pop(message.queue_offset, None)
        return self.smallest(self.tree) if self.tree else self.last + 1


class SortedOffsets(Sorted):
    """The same over offsets alone."""

    __slots__ = ()

    def put_messages(self, messages: list[int]) -> bool:
        for offset in messages:
            self.tree[offset] = None
        self.last = messages[-1]
        return True

    def finish(self, offset: int) -> int:
        self.tree.pop(offset, None)
        return self.smallest(self.tree) if self.tree else self.last + 1


def sorted_dict(queue: type[Sorted] = Sorted) -> Sorted:
    from sortedcontainers import SortedDict

    return queue(SortedDict(), lambda tree: int(tree.keys()[0]))


def b_tree(queue: type[Sorted] = Sorted) -> Sorted:
    try:
        from BTrees.LOBTree import LOBTree
    except ImportError as missing:
        raise RivalMissingError("the package BTrees is not installed") from missing
    return queue(LOBTree(), lambda tree: int(tree.minKey()))


@functools.cache
def order(depth: int, messages: int = MESSAGES) -> list[int]:
    """Offsets in the order of completion: always a random one of those that are in the queue."""
    random = Random(5)
    cached: list[int] = []
    done: list[int] = []
    put = 0
    while len(done) < messages:
        while put < messages and len(cached) <= depth:
            cached.extend(range(put, min(put + 32, messages)))
            put = min(put + 32, messages)
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
    """CPU seconds a message, and the sum of the offsets to commit; with message objects."""
    messages = [message for batch in batches() for message in batch]
    return timed(queue.put_messages, queue.finish, batches(), [messages[place] for place in order(depth)], depth)


def run_lists(queue: Any, depth: int) -> tuple[float, int]:
    """The same with each message in a list of its own, as the real class's removeMessage wants it."""
    singles = [[message] for batch in batches() for message in batch]
    return timed(
        queue.put_messages, queue.remove_messages, batches(), [singles[place] for place in order(depth)], depth
    )


def run_offsets(queue: Any, depth: int) -> tuple[float, int]:
    """The same with offsets alone."""
    batches = [list(range(start, min(start + 32, MESSAGES))) for start in range(0, MESSAGES, 32)]
    return timed(queue.put_messages, queue.finish, batches, order(depth), depth)


def timed(
    put: Callable[[Any], object], finish: Callable[[Any], int], batches: list[Any], order: list[Any], depth: int
) -> tuple[float, int]:
    waiting = iter(batches)
    cached = total = 0
    left = len(batches)
    start = time.process_time()
    for one in order:
        while left and cached <= depth:
            batch = next(waiting)
            put(batch)
            cached += len(batch)
            left -= 1
        total += finish(one)
        cached -= 1
    return (time.process_time() - start) / MESSAGES, total


def rows() -> Iterator[Row]:
    for depth, messages in ((1_000, MESSAGES), (100_000, 400_000)):
        yield from in_c("", depth, [None] * messages, goal=12.0)
        yield from in_c(", with message objects", depth, [MessageExt("T", b"") for _ in range(messages)])
    for depth in (1_000, 10_000):
        goals = {"SortedDict": 50.0, "BTrees": 10.0} if depth == 1_000 else {}
        yield from from_python("one call each", run_offsets, SortedOffsets, depth, goals)
        yield from from_python("one call each with its message object", run, Sorted, depth, goals)
    yield from from_python("one call each with a list of its message object", run_lists, Sorted, 1_000, {})
    yield from memory.rows()


def from_python(
    how: str, run: Callable[[Any, int], tuple[float, int]], queue: type[Sorted], depth: int, goals: dict[str, float]
) -> Iterator[Row]:
    """One call a message, against sorted mappings, RocketMQ's class, and the call alone."""
    makers: dict[str, Callable[[], Any]] = {
        "pyengine": ProcessQueue, "an empty Python method": Nothing, "SortedDict": lambda: sorted_dict(queue),
        "BTrees": lambda: b_tree(queue), "an empty compiled method": lambda: native.loops().Nothing(),
    }  # fmt: skip
    answer = run(ProcessQueue(), depth)[1]
    missing: dict[str, str] = {}
    for name, maker in makers.items():
        try:
            assert run(maker(), depth)[1] in (answer, 0), f"{name} commits other offsets"
        except RivalMissingError as reason:
            missing[name] = str(reason)
    times: dict[str, list[float]] = {name: [] for name in makers if name not in missing}
    for _ in range(ROUNDS):
        for name, spent in times.items():
            spent.append(run(makers[name](), depth)[0])
    best = {name: min(spent) for name, spent in times.items()}
    median = {name: statistics.median(spent) for name, spent in times.items()}
    python = "an empty Python method"
    compiled = python if "an empty compiled method" in missing else "an empty compiled method"
    question = f"process queue, window {depth:,}, finished in random order, {how}"
    less = f"{question}, less an empty call"
    ours_best, ours_median = best["pyengine"] - best[compiled], median["pyengine"] - median[compiled]
    for name in ("SortedDict", "BTrees"):
        there = name not in missing
        yield Row(
            less, "message", name, ours_best, ours_median, best[name] - best[python] if there else None,
            median[name] - median[python] if there else None, goals.get(name), note=missing.get(name, ""),
        )  # fmt: skip
    yield java_row(less, order(depth), depth, answer, ours_best, ours_median)
    yield Row(
        f"{question}, the loop and the call with it", "message", compiled, best["pyengine"], median["pyengine"],
        best[compiled], median[compiled], note=missing.get(compiled, ""),
    )  # fmt: skip


def in_c(what: str, depth: int, objects: list[MessageExt] | list[None], goal: float | None = None) -> Iterator[Row]:
    """The loop in C: no Python call but the one that starts it. objects: what is kept for each offset."""
    question = f"process queue in C, window {depth:,}, 32 put at a time, finished in random order{what}"
    messages = len(objects)
    by_hand = "ring and bitmap by hand in C, of fixed size"
    done = order(depth, messages)
    try:
        loops = native.loops()
    except RivalMissingError as reason:
        yield Row(question, "message", by_hand, float("nan"), float("nan"), None, None, note=str(reason))
        return
    places = np.array(done, np.int64)
    sides: dict[str, Callable[[], int]] = {
        "pyengine": lambda: loops.through_the_pxd(places, depth, objects),
        by_hand: lambda: loops.by_hand(places, depth, 1 << messages.bit_length(), objects),
    }
    answer = sides["pyengine"]()
    assert sides[by_hand]() == answer
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, call in sides.items():
            start = time.process_time()
            call()
            times[name].append((time.process_time() - start) / messages)
    ours = times["pyengine"]
    yield java_row(question, done, depth, answer, min(ours), statistics.median(ours), goal)
    theirs = times[by_hand]
    yield Row(
        question, "message", by_hand, min(ours), statistics.median(ours), min(theirs), statistics.median(theirs)
    )  # fmt: skip


def java_row(
    question: str, done: list[int], depth: int, answer: int, best: float, median: float, goal: float | None = None
) -> Row:
    """RocketMQ's ProcessQueue in a warm JVM, the loop there."""
    name = "RocketMQ in the JVM"
    times = []
    try:
        machine = jvm.Jvm("Clients", heap="512m", path=jvm.rocketmq_class_path())
        warm = max(2, 20 * MESSAGES // len(done))
        machine.ask("finish", order=done, depth=depth, repeat=warm)
        for _ in range(ROUNDS):
            reply = machine.ask("finish", order=done, depth=depth, repeat=1 if warm == 2 else 3)
            assert reply["sum"] == answer, "RocketMQ commits other offsets"
            times.append(float(str(reply["nanoseconds"])) * 1e-9)
        machine.close()
    except RivalMissingError as reason:
        return Row(question, "message", name, best, median, None, None, goal, note=str(reason))
    return Row(question, "message", name, best, median, min(times), statistics.median(times), goal)
