"""topic: one message to many subscriptions, sent, handed out and acknowledged, against the real broker in one JVM."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from bench.contest import Contest, Side, speed_test
from bench.jvm import Jvm
from pyengine._engine.topic import TopicRegion

DELIVERIES = 100_000  # in all: fewer messages for more subscriptions
PREFETCH = 32_767
WARM_UP_RUNS = 6


def fanned_out(subscriptions: int) -> list[int]:
    """How many messages each subscription got, each of them acknowledged by itself, a message's copies in one call."""
    region = TopicRegion()
    topic = region.add_topic("bench")
    for _ in range(subscriptions):
        region.attach(region.add_subscription(prefetch=PREFETCH), topic)
    got = [0] * subscriptions
    for number in range(DELIVERIES // subscriptions):
        outcome = region.send(topic, {"number": number}, persistent=False)
        for item in outcome:
            got[item.consumer] += 1
        region.acknowledge_each(outcome)
    return got


def ours(subscriptions: int) -> Side:
    run = functools.partial(fanned_out, subscriptions)
    return Side(call=run, answer=run, units=DELIVERIES // subscriptions * subscriptions)


def broker(subscriptions: int) -> Side:
    jvm = Jvm("FanOut", heap="2g")
    run = functools.partial(
        jvm.ask, "run", subscriptions=subscriptions, messages=DELIVERIES // subscriptions, prefetch=PREFETCH
    )
    for _ in range(WARM_UP_RUNS):
        run()
    return Side(
        call=run,
        answer=lambda: run()["got"],
        units=DELIVERIES // subscriptions * subscriptions,
        clock=lambda: float(str(run()["nanoseconds"])) * 1e-9,
    )


def contests() -> Iterator[Contest]:
    for subscriptions in (1, 10, 100):
        yield Contest(
            question=f"a topic with {subscriptions} subscriptions: send, hand out, acknowledge",
            unit="delivery",
            sides={
                "pyengine": functools.partial(ours, subscriptions),
                "ActiveMQ broker, vm transport, no store": functools.partial(broker, subscriptions),
            },
            goals={"ActiveMQ broker, vm transport, no store": 10.0},
        )


test_speed = speed_test(contests)
