"""chain: send, dispatch, receive and acknowledge through the public client, against the real client and broker."""

from __future__ import annotations

import functools
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from queue import SimpleQueue
from typing import cast

from bench.contest import Contest, Side, speed_test
from bench.jvm import Jvm
from pyengine import Message, activemq
from pyengine.topology.policy import Policy

MESSAGES, GROUPS, KINDS = 10_000, 1_000, 10
PREFETCH = 30_000  # so that no consumer is ever full, and the assignment does not depend on the threads' timing
WARM_UP_RUNS = 10
BATCH = 100
PEER = "ActiveMQ client and broker, vm transport, no store"
STORED_PEER = "ActiveMQ client and broker, vm transport, KahaDB"
FLOOR = "SimpleQueue: no broker, only the messages through as many threads"


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


@dataclass
class Heard:
    """What listeners got: the consumer of each message, and how many are still to come."""

    got: list[int]
    left: int = MESSAGES

    def listener(self, number: int) -> Callable[[Message], None]:
        def on_message(message: Message) -> None:
            self.got[message.get_int_property("number")] = number
            self.left -= 1

        return on_message


def given(work: Workload) -> list[Message]:
    return [Message({"number": n, "kind": kind}, group_id=group) for n, (group, kind) in enumerate(work.marks)]


def chain(work: Workload, options: str, *, batch: int = 0, stored: bool = False) -> tuple[list[int], float]:
    """The consumer of each message, and CPU seconds a message from the first send until all are consumed.

    batch: messages a call of send_batch, 0: each sent by itself. stored: persistent messages and a broker with a store.
    """
    policy = Policy(">", message_group_map_factory_type="simple")
    heard = Heard([-1] * MESSAGES, MESSAGES)
    with (
        tempfile.TemporaryDirectory() if stored else nullcontext() as folder,
        activemq.Broker(folder, name="chain", policies=[policy]) as broker,
    ):
        factory = activemq.ConnectionFactory(
            f"vm://chain?jms.prefetchPolicy.all={PREFETCH}&{options}",
            broker=broker,
        )
        with factory.create_connection() as consuming, factory.create_connection() as producing:
            session = consuming.create_session()
            for number, selector in enumerate(work.texts):
                session.create_consumer("queue", selector, listener=heard.listener(number))
            producer = producing.create_session().create_producer("queue")
            producer.delivery_mode = activemq.PERSISTENT if stored else activemq.NON_PERSISTENT
            messages = given(work)
            start = time.process_time()
            if batch:
                for first in range(0, MESSAGES, batch):
                    producer.send_batch(messages[first : first + batch])
            else:
                for message in messages:
                    producer.send(message)
            while heard.left:
                time.sleep(0.0005)
            return heard.got, (time.process_time() - start) / MESSAGES


def floor(work: Workload, threads: bool) -> tuple[list[int], float]:
    """The same messages to the same listeners in turn, through one queue or, as in the real client, two threads."""
    heard = Heard([-1] * MESSAGES, MESSAGES)
    listeners = [heard.listener(number) for number in range(work.consumers)]
    messages = given(work)
    sent: SimpleQueue[Message] = SimpleQueue()
    dispatched: SimpleQueue[Message] = SimpleQueue()

    def dispatch() -> None:
        for _ in range(MESSAGES):
            dispatched.put(sent.get())

    def listen() -> None:
        for number in range(MESSAGES):
            listeners[number % len(listeners)](dispatched.get())

    workers = [threading.Thread(target=dispatch), threading.Thread(target=listen)] if threads else []
    for worker in workers:
        worker.start()
    start = time.process_time()
    for number, message in enumerate(messages):
        sent.put(message)
        if not threads:
            listeners[number % len(listeners)](sent.get())
    for worker in workers:
        worker.join()
    return heard.got, (time.process_time() - start) / MESSAGES


def shares(consumers: list[int]) -> dict[int, int]:
    """How many messages each consumer got; the threads of the peer do not always rotate alike."""
    return dict(sorted(Counter(consumers).items()))


def side(run: Callable[[], tuple[list[int], float]]) -> Side:
    return Side(call=run, answer=lambda: shares(run()[0]), units=MESSAGES, clock=lambda: run()[1])


def ours(work: Workload, options: str, *, batch: int = 0, stored: bool = False) -> Side:
    return side(functools.partial(chain, work, options, batch=batch, stored=stored))


def plain(work: Workload, threads: bool) -> Side:
    return side(functools.partial(floor, work, threads))


def peer(work: Workload, *, stored: bool = False) -> Side:
    folder = tempfile.TemporaryDirectory() if stored else None
    options = [f"-Dpyengine.store={folder.name}"] if folder else []
    jvm = Jvm("Dispatch", heap="2g", options=options, folder=folder)
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
STORED_WORKLOADS = [Workload(1), Workload(10), Workload(10, True, True)]
WAYS = {
    "": "jms.dispatchAsync=false&jms.alwaysSessionAsync=false",
    ", threads as the real client's": "jms.dispatchAsync=true&jms.alwaysSessionAsync=true",
}


def contests() -> Iterator[Contest]:
    for work in WORKLOADS:
        for name, options in WAYS.items():
            sides = {"pyengine": functools.partial(ours, work, options), PEER: functools.partial(peer, work)}
            if not work.groups and not work.selectors:
                sides[FLOOR] = functools.partial(plain, work, bool(name))
            yield Contest(question=work.question + name, unit="message", sides=sides, goals={PEER: 1.0})
    for name, options in WAYS.items():
        yield Contest(
            question=f"{Workload(10).question}{name}, sent in batches of {BATCH}",
            unit="message",
            sides={
                "pyengine": functools.partial(ours, Workload(10), options, batch=BATCH),
                PEER: functools.partial(peer, Workload(10)),
            },
            goals={PEER: 1.0},
        )
    for work in STORED_WORKLOADS:
        for name, options in WAYS.items():
            yield Contest(
                question=f"{work.question}{name}, persistent, journal synchronised periodically",
                unit="message",
                sides={
                    "pyengine": functools.partial(ours, work, options, stored=True),
                    STORED_PEER: functools.partial(peer, work, stored=True),
                },
                goals={STORED_PEER: 1.0},
            )


test_speed = speed_test(contests)
