"""allocation: the whole plan of a group, against RocketMQ's own classes, which answer for one client a call."""

from __future__ import annotations

import bisect
import functools
import hashlib
from collections.abc import Iterator

import numpy as np

from bench import jvm
from bench.contest import REPETITION, Contest, Side, speed_test
from pyengine.rocketmq import AllocateMessageQueueConsistentHash, MessageQueue, allocate_all

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


test_speed = speed_test(contests)
