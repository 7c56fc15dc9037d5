"""queue: who gets each message, against the same rules written in Python with sortedcontainers."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator

import numpy as np
from sortedcontainers import SortedKeyList

from bench.contest import Contest, Side, speed_test
from pyengine.activemq import Queue

MESSAGES = 60_000
HELD = 2_000


def asks(number: int) -> object:
    """A selector by its number; only its bit is asked here."""
    return lambda message: message["kind"] == number


@functools.cache
def workload(consumers: int, groups: int, kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Group code (-1 none) and kind of each message; a group has one kind."""
    draw = np.random.default_rng(7)
    codes = draw.integers(0, groups, MESSAGES) if groups else np.full(MESSAGES, -1)
    kind = codes % kinds if groups else draw.integers(0, kinds, MESSAGES)
    return codes.astype(np.int32), kind.astype(np.int64)


def ours(consumers: int, groups: int, kinds: int, page: int | None) -> np.ndarray:
    """One batch through a new queue; consumers acknowledge at once."""
    codes, kind = workload(consumers, groups, kinds)
    queue = Queue(max_page_size=page, message_group_map_factory_type="simple")
    selectors = [asks(number) for number in range(kinds)]
    ids = [queue.add_consumer(selector=selectors[n % kinds] if kinds > 1 else None) for n in range(consumers)]
    matches = None
    if kinds > 1:
        bits = np.array([queue.predicate_of(ids[number]) for number in range(kinds)])
        matches = np.uint64(1) << bits[kind].astype(np.uint64)
    if groups:
        queue.intern_groups([f"g{number}" for number in range(groups)])
    return queue.offer_batch(MESSAGES, groups=codes if groups else None, matches=matches)[0]


def sorted_python(consumers: int, groups: int, kinds: int) -> np.ndarray:
    """The same with a sorted list for the consumer order, a dict of owners, and credit that always returns at once."""
    codes, kind = workload(consumers, groups, kinds)
    owners: dict[int, int] = {}
    counts = [0] * consumers
    turn = list(range(consumers))
    clock = consumers
    order = SortedKeyList(range(consumers), key=lambda consumer: (counts[consumer], turn[consumer]))
    result = np.empty(MESSAGES, np.int64)
    for row, (code, wanted) in enumerate(zip(codes.tolist(), kind.tolist(), strict=True)):
        chosen = owners.get(code, -1) if code >= 0 else -1
        if chosen < 0:
            chosen = next(consumer for consumer in order if kinds == 1 or consumer % kinds == wanted)
        order.remove(chosen)
        if code >= 0 and code not in owners:
            owners[code] = chosen
            counts[chosen] += 1
        turn[chosen] = clock
        clock += 1
        order.add(chosen)
        result[row] = chosen
    return result


def ours_behind_held() -> list[int]:
    """Messages somebody takes, sent one by one behind messages nobody takes."""
    queue = Queue(max_page_size=None)
    queue.add_consumer(selector=asks(1))
    for _ in range(HELD):
        queue.send({"kind": 0})
    queue.run()
    taken = []
    for number in range(HELD):
        queue.send({"kind": 1, "n": number})
        for delivery in queue.run():
            taken.append(delivery.body["n"])
            queue.acknowledge(delivery.consumer, delivery.message)
    return taken


def walk_behind_held() -> list[int]:
    """The same, each round walking everything that waits."""
    waiting = deque({"kind": 0} for _ in range(HELD))
    taken = []
    for number in range(HELD):
        waiting.append({"kind": 1, "n": number})
        for _ in range(len(waiting)):
            message = waiting.popleft()
            if message["kind"] == 1:
                taken.append(message["n"])
            else:
                waiting.append(message)
    return taken


def contests() -> Iterator[Contest]:
    for consumers, groups, kinds, goal in ((2, 0, 1, 5), (100, 0, 1, 5), (100, 10_000, 10, 5)):
        parts = f"{consumers} consumers" + (f", {groups} groups, {kinds} selectors" if groups else "")
        yield Contest(
            question=f"{MESSAGES} messages as one batch to {parts}, acknowledged at once",
            unit="message",
            sides={
                "pyengine": functools.partial(batch_side, consumers, groups, kinds),
                "Python with sortedcontainers": functools.partial(sorted_side, consumers, groups, kinds),
            },
            goals={"Python with sortedcontainers": goal},
            at_most=1e-6,
        )
    yield Contest(
        question=f"{HELD} messages one by one behind {HELD} that nobody takes",
        unit="message",
        sides={
            "pyengine": lambda: Side(ours_behind_held, ours_behind_held, HELD),
            "a walk over everything that waits": lambda: Side(walk_behind_held, walk_behind_held, HELD),
        },
        goals={"a walk over everything that waits": 10},
    )


def batch_side(consumers: int, groups: int, kinds: int) -> Side:
    return Side(
        call=lambda: ours(consumers, groups, kinds, 200),
        answer=lambda: ours(consumers, groups, kinds, 200).tolist(),
        units=MESSAGES,
    )


def sorted_side(consumers: int, groups: int, kinds: int) -> Side:
    return Side(
        call=lambda: sorted_python(consumers, groups, kinds),
        answer=lambda: sorted_python(consumers, groups, kinds).tolist(),
        units=MESSAGES,
    )


test_speed = speed_test(contests)
