"""topic: one message to many subscriptions, sent, handed out and acknowledged, against the real broker in one JVM."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from bench.contest import Contest, Side, speed_test
from bench.jvm import Jvm
from pyengine._engine.activemq.topic.topics import TopicRegion

DELIVERIES = 100_000  # in all: fewer messages for more subscriptions
PREFETCH = 32_767
IN_HAND = 500  # copies handed out and not acknowledged
WARM_UP_RUNS = 6


@functools.cache
def bodies(messages: int) -> list[dict[str, int]]:
    """What is sent; the broker's messages are made before its clock starts too."""
    return [{"number": number} for number in range(messages)]


def fanned_out(subscriptions: int) -> list[int]:
    """How many messages each subscription got; as many as make IN_HAND copies are sent, then each copy acknowledged by
    itself."""
    region = TopicRegion()
    topic = region.add_topic("bench")
    for _ in range(subscriptions):
        region.attach(region.add_subscription(prefetch=PREFETCH), topic)
    got = [0] * subscriptions
    messages, step = bodies(DELIVERIES // subscriptions), max(1, IN_HAND // subscriptions)
    for first in range(0, len(messages), step):
        outcome = region.send_each(topic, messages[first : first + step], persistent=False)
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
        noun = "subscription" if subscriptions == 1 else "subscriptions"
        yield Contest(
            question=f"a topic with {subscriptions} {noun}: send, hand out, acknowledge",
            unit="delivery",
            sides={
                "pyengine": functools.partial(ours, subscriptions),
                "ActiveMQ broker, vm transport, no store": functools.partial(broker, subscriptions),
            },
            goals={"ActiveMQ broker, vm transport, no store": 10.0},
        )


test_speed = speed_test(contests)
