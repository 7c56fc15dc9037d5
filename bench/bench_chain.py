"""chain: send, dispatch, receive and acknowledge through the public client, against the real client and broker."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from bench.contest import Contest, Side, speed_test
from bench.jvm import Jvm
from pyengine import Message, activemq
from pyengine.topology.policy import Policy

MESSAGES, GROUPS, KINDS = 10_000, 1_000, 10
PREFETCH = 30_000  # so that no consumer is ever full, and the assignment does not depend on the threads' timing
WARM_UP_RUNS = 10
PEER = "ActiveMQ client and broker, vm transport, no store"


@dataclass(frozen=True)
class Workload:
    """One producer, ``consumers`` listeners of one session; groups, selectors: whether there are."""

    consumers: int
    groups: bool = False
    selectors: bool = False

    @property
    def question(self) -> str:
        more = [name for name, there in (("groups", self.groups), ("selectors", self.selectors)) if there]
        return f"1 producer, {self.consumers} listeners{''.join(', ' + name for name in more)}: send to acknowledge"

    @property
    def texts(self) -> list[str]:
        """A selector for each consumer, or empty."""
        return [f"kind = 'k{each % KINDS}'" if self.selectors else "" for each in range(self.consumers)]

    @property
    def marks(self) -> list[tuple[str | None, str]]:
        """Group and kind of each message; every group has one kind."""
        return [(f"g{n % GROUPS}" if self.groups else None, f"k{n % GROUPS % KINDS}") for n in range(MESSAGES)]


def chain(work: Workload, options: str) -> tuple[list[int], float]:
    """The consumer of each message, and CPU seconds a message from the first send until all are consumed."""
    policy = Policy(">", message_group_map_factory_type="simple")
    got = [-1] * MESSAGES
    left = MESSAGES

    def listener(number: int) -> Callable[[Message], None]:
        def on_message(message: Message) -> None:
            nonlocal left
            got[message.get_int_property("number")] = number
            left -= 1

        return on_message

    with activemq.Broker(name="chain", policies=[policy]) as broker:
        factory = activemq.ConnectionFactory(
            f"vm://chain?jms.prefetchPolicy.all={PREFETCH}&{options}",
            broker=broker,
        )
        with factory.create_connection() as consuming, factory.create_connection() as producing:
            session = consuming.create_session()
            for number, selector in enumerate(work.texts):
                session.create_consumer("queue", selector, listener=listener(number))
            producer = producing.create_session().create_producer("queue")
            producer.delivery_mode = activemq.NON_PERSISTENT
            messages = [
                Message({"number": number, "kind": kind}, group_id=group)
                for number, (group, kind) in enumerate(work.marks)
            ]
            start = time.process_time()
            for message in messages:
                producer.send(message)
            while left:
                time.sleep(0.0005)
            return got, (time.process_time() - start) / MESSAGES


def shares(consumers: list[int]) -> dict[int, int]:
    """How many messages each consumer got; the threads of the peer do not always rotate alike."""
    return dict(sorted(Counter(consumers).items()))


def ours(work: Workload, options: str) -> Side:
    run = functools.partial(chain, work, options)
    return Side(call=run, answer=lambda: shares(run()[0]), units=MESSAGES, clock=lambda: run()[1])


def peer(work: Workload) -> Side:
    jvm = Jvm("Dispatch", heap="2g")
    request = {
        "selectors": work.texts,
        "prefetch": PREFETCH,
        "groups": [group for group, _ in work.marks],
        "kinds": [kind for _, kind in work.marks],
    }
    run = functools.partial(jvm.ask, "run", **request)
    for _ in range(WARM_UP_RUNS):
        run()
    return Side(
        call=run,
        answer=lambda: shares(cast("list[int]", run()["consumers"])),
        units=MESSAGES,
        clock=lambda: float(str(run()["nanoseconds"])) * 1e-9,
    )


WORKLOADS = [Workload(1), Workload(10), Workload(100), Workload(10, groups=True), Workload(10, True, True)]
WAYS = {
    "": "jms.dispatchAsync=false&jms.alwaysSessionAsync=false",
    ", threads as the real client's": "jms.dispatchAsync=true&jms.alwaysSessionAsync=true",
}


def contests() -> Iterator[Contest]:
    for work in WORKLOADS:
        for name, options in WAYS.items():
            yield Contest(
                question=work.question + name,
                unit="message",
                sides={"pyengine": functools.partial(ours, work, options), PEER: functools.partial(peer, work)},
                goals={PEER: 1.0},
            )


test_speed = speed_test(contests)
