"""simulate: a queue and a group under virtual time, against the textbook's event loop in Python (a heap, a deque)."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

import numpy as np

from bench.contest import Contest, Side, speed_test
from pyengine.backlog.simulate.groups import SimulatedClient, simulate_group
from pyengine.backlog.simulate.queues import SimulatedConsumer, Workload, simulate

MESSAGES = 40_000


def textbook(workload: Workload, servers: int) -> np.ndarray:
    """When each message is begun in a queue with ``servers`` servers, first come first served: no broker's rule."""
    arrivals, services = workload.arrivals.tolist(), workload.services.tolist()
    started = np.empty(len(arrivals), np.int64)
    ends: list[int] = []
    line: deque[int] = deque()
    row = busy = 0
    while row < len(arrivals) or ends:
        if ends and (row == len(arrivals) or ends[0] <= arrivals[row]):
            now = heapq.heappop(ends)
            busy -= 1
        else:
            now = arrivals[row]
            line.append(row)
            row += 1
        while line and busy < servers:
            first = line.popleft()
            started[first] = now
            heapq.heappush(ends, now + services[first])
            busy += 1
    return started


def contests() -> Iterator[Contest]:
    for servers in (1, 10, 100):
        workload = Workload.from_rate(800 * servers, 0.001, MESSAGES, seed=servers)
        consumers = [SimulatedConsumer(f"c{number}", prefetch=1) for number in range(servers)]
        yield Contest(
            question=f"simulated dispatch, {servers} consumers, broker's rules",
            unit="message",
            sides={
                "pyengine": lambda workload=workload, consumers=consumers: Side(
                    call=lambda: simulate(workload, consumers),
                    answer=lambda: simulate(workload, consumers).started.tolist(),
                    units=MESSAGES,
                ),
                "heap and deque in Python, no rules": lambda workload=workload, servers=servers: Side(
                    call=lambda: textbook(workload, servers),
                    answer=lambda: textbook(workload, servers).tolist(),
                    units=MESSAGES,
                ),
            },
            goals={},
            at_most=1e-6,
        )
    yield from groups()


def groups() -> Iterator[Contest]:
    """Groups that keep up (every arrival wakes a pull), and one that works off a backlog (pulls find 32 messages)."""
    for label, threads, clients, queues, rate, service in (
        ("one client of one thread", 1, 1, 1, 800, 0.001),
        ("4 clients of 20 threads, 4 queues", 20, 4, 4, 5600, 0.01),
        ("4 clients of 20 threads, 4 queues, a backlog", 20, 4, 4, 1_000_000, 0.01),
    ):
        workload = Workload.from_rate(rate, service, 2 * MESSAGES, seed=clients)
        group = [SimulatedClient(f"c{number}", threads=threads) for number in range(clients)]
        yield Contest(
            question=f"simulated RocketMQ group, {label}",
            unit="message",
            sides={
                "pyengine": lambda workload=workload, group=group, queues=queues: Side(
                    call=lambda: simulate_group(workload, group, queues=queues),
                    answer=lambda: int((simulate_group(workload, group, queues=queues).finished >= 0).sum()),
                    units=2 * MESSAGES,
                ),
                "heap and deque in Python, no rules": lambda workload=workload, servers=threads * clients: Side(
                    call=lambda: textbook(workload, servers),
                    answer=lambda: int((textbook(workload, servers) >= 0).sum()),
                    units=2 * MESSAGES,
                ),
            },
            goals={},
            at_most=1e-6,
        )


test_speed = speed_test(contests)
