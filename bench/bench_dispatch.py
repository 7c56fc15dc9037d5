"""dispatch: the whole chain of a point-to-point queue, against the real broker in one JVM."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator

import pyengine
from bench.contest import Contest, Side, speed_test
from bench.jvm import Jvm
from pyengine._engine.activemq.queue.queue import Queue

CONSUMERS, GROUPS, KINDS = 100, 10_000, 10
MESSAGES = 20_000
ROUND = 100  # messages sent between two wakeups; the broker decides that by itself
PREFETCH = 30_000  # so that no consumer is ever full, and the assignment does not depend on the threads' timing
WARM_UP_RUNS = 8
SELECTORS = [f"kind = 'k{consumer % KINDS}'" for consumer in range(CONSUMERS)]


@functools.cache
def messages() -> list[dict[str, object]]:
    """Every group has one kind; ten consumers take a kind."""
    draw = random.Random(20223)
    groups = [draw.randrange(GROUPS) for _ in range(MESSAGES)]
    return [
        {"number": number, "kind": f"k{group % KINDS}", "JMSXGroupID": f"g{group}"}
        for number, group in enumerate(groups)
    ]


def dispatched() -> list[int]:
    """The consumer of each message: sent, handed out, and acknowledged by itself, a round's in one call."""
    queue = Queue(message_group_map_factory_type="simple")
    for selector in SELECTORS:
        queue.add_consumer(selector=pyengine.Selector(selector), prefetch=PREFETCH)
    queue.run()
    got = [-1] * MESSAGES
    given = messages()
    for start in range(0, MESSAGES, ROUND):
        for message in given[start : start + ROUND]:
            queue.send(message)
        deliveries = queue.run()
        for delivery in deliveries:
            got[delivery.body["number"]] = delivery.consumer
        queue.acknowledge_each(deliveries)
    return got


def ours() -> Side:
    return Side(call=dispatched, answer=dispatched, units=MESSAGES)


def broker() -> Side:
    jvm = Jvm("Dispatch", heap="2g")
    request = {
        "selectors": SELECTORS,
        "prefetch": PREFETCH,
        "groups": [message["JMSXGroupID"] for message in messages()],
        "kinds": [message["kind"] for message in messages()],
    }
    run = functools.partial(jvm.ask, "run", **request)
    for _ in range(WARM_UP_RUNS):
        run()
    return Side(
        call=run,
        answer=lambda: run()["consumers"],
        units=MESSAGES,
        clock=lambda: float(str(run()["nanoseconds"])) * 1e-9,
    )


def contests() -> Iterator[Contest]:
    yield Contest(
        question=f"{CONSUMERS} consumers, selectors, {GROUPS // 1000} k groups: send, dispatch, acknowledge",
        unit="message",
        sides={"pyengine": ours, "ActiveMQ broker, vm transport, no store": broker},
        goals={"ActiveMQ broker, vm transport, no store": 10.0},
    )


test_speed = speed_test(contests)
