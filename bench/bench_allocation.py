"""allocation: the whole plan of a group, against RocketMQ's own classes, which answer for one client a call."""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
from collections.abc import Iterator

import numpy as np

from bench import jvm
from bench.contest import REPETITION, Contest, Side, speed_test
from pyengine.rocketmq import AllocateMessageQueueConsistentHash, MessageQueue, allocate_all, allocate_topics

CLIENT = 3


@functools.cache
def workload(queues: int, clients: int) -> tuple[list[MessageQueue], list[str]]:
    """Queues of 25 topics on 16 brokers, and client ids as RocketMQ makes them."""
    each = -(-queues // 400)
    listed = [
        MessageQueue(f"Topic{topic}", f"broker-{broker}", i)
        for topic in range(25)
        for broker in range(16)
        for i in range(each)
    ][:queues]
    return listed, [f"192.168.{i // 250}.{i % 250}@{1000 + i}" for i in range(clients)]


def ours(strategy: str, queues: int, clients: int) -> Side:
    """Everybody's share in one call."""
    listed, ids = workload(queues, clients)
    chosen = AllocateMessageQueueConsistentHash() if strategy == "CONSISTENT_HASH" else strategy
    return Side(
        call=lambda: allocate_all(chosen, listed, ids),
        answer=lambda: np.flatnonzero(allocate_all(chosen, listed, ids) == CLIENT).tolist(),
        units=1,
    )


def java(strategy: str, queues: int, clients: int) -> Side:
    """One allocate() call for one client, which routes all queues; warm."""
    listed, ids = workload(queues, clients)
    machine = jvm.Jvm("Clients", heap="512m", path=jvm.rocketmq_class_path())
    machine.ask("load", queues=listed, clients=ids)

    def ask(repeat: int) -> float:
        reply = machine.ask("allocate", strategy=strategy, client=ids[CLIENT], repeat=repeat)
        return float(str(reply["nanoseconds"])) * 1e-9

    for _ in range(3):
        spent = ask(max(3, 2_000_000 // queues))
    repeat = max(1, int(REPETITION / spent))
    return Side(
        call=lambda: ask(repeat),
        answer=lambda: machine.ask("owned", strategy=strategy, client=ids[CLIENT])["places"],
        units=1,
        clock=lambda: ask(repeat),
    )


def python(queues: int, clients: int) -> Side:
    """The same ring with hashlib and bisect."""
    listed, ids = workload(queues, clients)

    def head(text: str) -> int:
        return int.from_bytes(hashlib.md5(text.encode()).digest()[:4], "big")

    def plan() -> list[int]:
        ring = sorted({head(f"{name}-{i}"): at for at, name in enumerate(ids) for i in range(10)}.items())
        keys = [key for key, _ in ring]
        owners = []
        for topic, broker, number in listed:
            place = bisect.bisect_left(
                keys, head(f"MessageQueue [topic={topic}, brokerName={broker}, queueId={number}]")
            )
            owners.append(ring[place % len(ring)][1])
        return owners

    return Side(call=plan, answer=lambda: [i for i, owner in enumerate(plan()) if owner == CLIENT], units=1)


def ours_topics(queues: int, clients: int) -> Side:
    """Queues as objects, in no order of names, to a plan with everybody's share."""
    listed, ids = workload(queues, clients)

    def answer() -> list[MessageQueue]:
        plan = allocate_topics("AVG", listed, ids)
        return plan.of(plan.client_ids[CLIENT])

    return Side(call=lambda: allocate_topics("AVG", listed, ids), answer=answer, units=1)


def sort_and_slice(queues: int, clients: int) -> Side:
    """What people write: the queues sorted, and slices of each topic."""
    listed, ids = workload(queues, clients)

    def plan() -> dict[str, list[MessageQueue]]:
        members = sorted(ids)
        shares: dict[str, list[MessageQueue]] = {member: [] for member in members}
        for _, group in itertools.groupby(sorted(listed), key=lambda queue: queue.topic):
            of_topic = list(group)
            share, surplus = divmod(len(of_topic), len(members))
            at = 0
            for place, member in enumerate(members):
                end = at + share + (place < surplus)
                shares[member] += of_topic[at:end]
                at = end
        return shares

    return Side(call=plan, answer=lambda: plan()[sorted(ids)[CLIENT]], units=1)


def contests() -> Iterator[Contest]:
    for queues, clients, goal in ((100_000, 1000, 12.0), (1024, 64, 10.0)):
        yield Contest(
            question=f"consistent hash of {queues:,} queues and {clients:,} clients, reading the names",
            unit="plan",
            sides={
                "pyengine": functools.partial(ours, "CONSISTENT_HASH", queues, clients),
                "RocketMQ, one client's share": functools.partial(java, "CONSISTENT_HASH", queues, clients),
                "hashlib and bisect in Python": functools.partial(python, queues, clients),
            },
            goals={"RocketMQ, one client's share": goal},
        )
    yield Contest(
        question="averagely, 100,000 queues and 1,000 clients, everybody's share",
        unit="plan",
        sides={
            "pyengine": functools.partial(ours, "AVG", 100_000, 1000),
            "RocketMQ, one client's share": functools.partial(java, "AVG", 100_000, 1000),
        },
        goals={},
        at_most=50e-6,
    )
    yield Contest(
        question="allocate_topics: averagely, 100,000 queues of 25 topics and 997 clients, from objects in no order",
        unit="plan",
        sides={
            "pyengine": functools.partial(ours_topics, 100_000, 997),
            "sorted() and slices": functools.partial(sort_and_slice, 100_000, 997),
        },
        goals={"sorted() and slices": 1.5},
        at_most=15e-3,
    )


test_speed = speed_test(contests)
