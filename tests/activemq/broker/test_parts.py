"""Parts of the broker, made with the few things that each uses, without a Broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyengine import Message
from pyengine._engine.activemq.region.prefetch_subscription import PrefetchSubscription
from pyengine._engine.activemq.region.queue_region import QueueRegion
from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine._engine.activemq.region.shared_credit import SharedCredit
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.broker.dead_letters import DeadLetters
from pyengine.activemq.broker.durable_subscriptions import Offline
from pyengine.activemq.broker.events import Event, NoConsumer
from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.broker.router import Router
from pyengine.activemq.broker.services import BrokerServices, Looks
from pyengine.activemq.broker.slow_consumers import SlowConsumers
from pyengine.activemq.broker.topics import Topics
from pyengine.activemq.broker.transaction import Transaction
from pyengine.clock import ManualClock, Timer
from pyengine.destinations import Destination
from pyengine.topology.policy import PolicyMap


def test_a_queue_needs_its_services_and_no_broker() -> None:
    clock, outbox = ManualClock(1000), Outbox()
    told: list[Event] = []
    services = BrokerServices(
        "parts", clock, outbox, None, 5000, "newest", PolicyMap(), report=told.append, call_at=clock.call_at
    )

    def make(name: Destination, policy: Any) -> QueueDestination:
        return QueueDestination(services, dead_letters, slow_consumers, name, policy)

    router = Router(services, QueueRegion(outbox.posted), (), make=make, attach=lambda made: None)
    dead_letters = DeadLetters(services, router, None)
    topics = Topics(services, router, dead_letters, Offline(-1, 0, 0))
    slow_consumers = SlowConsumers(
        services, topics, remove_consumer=lambda name: None, remove_connection=lambda name: None
    )
    with outbox:
        router.route(Destination("q"), Message(body="kept", message_id="ID:1"), 1000)
        router.route(Destination("q,r"), Message(body="both", message_id="ID:2"), 1000)
    sizes = {name.name: each.core.statistics["size"] for name, each in router.destinations.items()}  # type: ignore[union-attr]
    assert sizes == {"q": 2, "r": 1}
    assert [type(event) for event in told] == [NoConsumer] * 3


def test_a_credit_is_one_prefetch_for_several_queues() -> None:
    first, second = RegionQueue(cursor="memory"), RegionQueue(cursor="memory")
    credit, subscription = SharedCredit(1), PrefetchSubscription()
    subscription.route = print
    for queue in (first, second):
        queue.spread(queue.subscribe(subscription, prefetch=1), credit)
        queue.put(Message(body="x", message_id="ID:1"))

    def run(queue: RegionQueue) -> int:
        queue.share()
        dispatched = len(queue.run())
        queue.note()
        queue._check()
        return dispatched

    assert run(first) == 1
    assert run(second) == 0
    credit.extend(1)
    second.wakeup()
    assert [run(each) for each in credit.wakes()] == [1]
    assert subscription.given == 2
    second.unsubscribe(0)
    first.put(Message(body="y", message_id="ID:2"))
    assert run(first) == 1


@dataclass(eq=False)
class Noted:
    """A step that says when it is applied, and is its own round."""

    name: str
    said: list[str]
    together: Destination | None = None
    rounds: bool = field(default=False)

    def commit(self) -> Noted | None:
        self.said.append(self.name)
        return self if self.rounds else None

    def rollback(self) -> None:
        self.said.append(f"not {self.name}")

    def run(self) -> None:
        self.said.append(f"round of {self.name}")


def test_a_commit_takes_what_a_queue_gets_together_and_makes_the_rounds_last() -> None:
    said: list[str] = []
    queue = Destination("q")
    steps = [
        Noted("a", said, queue, rounds=True), Noted("acknowledged", said), Noted("b", said, queue), Noted("c", said)
    ]  # fmt: skip
    Transaction("TX:1", "c", [*steps]).commit()
    assert said == ["a", "b", "acknowledged", "c", "round of a"]
    said.clear()
    Transaction("TX:2", "c", [*steps]).rollback()
    assert said == ["not a", "not acknowledged", "not b", "not c"]


@dataclass(eq=False)
class Expires:
    """Says when it is looked at, and plans or cancels others then."""

    name: str
    said: list[str]
    then: list[Callable[[], None]] = field(default_factory=list)

    def expire_messages(self) -> None:
        self.said.append(self.name)
        for action in self.then:
            action()


def test_looks_that_are_due_together_are_one_timer_in_the_order_given() -> None:
    clock, said, timers = ManualClock(0), list[str](), list[int]()

    def call_at(when: int, action: Callable[[], object]) -> Timer:
        timers.append(when)
        return clock.call_at(when, action)

    looks = Looks(call_at)
    a, b, c, d = (Expires(name, said) for name in "abcd")
    for each in (a, b, c):
        looks.plan(10, each)
    looks.plan(20, d)
    a.then = [lambda: looks.cancel(10, b), lambda: looks.plan(30, a)]
    clock.advance(10)
    assert (said, timers) == (["a", "c"], [10, 20, 30])
    looks.cancel(20, d)
    looks.cancel(99, d)
    looks.plan(10, b)
    looks.plan(10, c)
    b.then = [lambda: 1 // 0]  # type: ignore[list-item]
    with pytest.raises(ZeroDivisionError):
        clock.advance(1)
    clock.advance(1)
    assert said[2:] == ["b", "c"]
    del said[2:]
    a.then = []
    clock.advance(20)
    assert said == ["a", "c", "a"]
