"""What a broker decides in one step (QueueRegion) against the same broker that takes every step by itself."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyengine import Message
from pyengine.activemq import AckKind, Broker
from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerInfo,
    MessageAck,
    MessageDispatch,
)
from pyengine.clock import ManualClock
from pyengine.destinations import Destination
from pyengine.errors import JMSError

QUEUES = (Destination("A"), Destination("B"))
PLACES = (*QUEUES, Destination("T", "topic"))
ASKED = (*PLACES, Destination("*"), Destination("A,B"))
KINDS = (AckKind.STANDARD, AckKind.INDIVIDUAL, AckKind.DELIVERED, AckKind.POISON, AckKind.EXPIRED, AckKind.REDELIVERED)


class Side:
    """One broker and what it dispatched: (consumer, message id, counter, destination)."""

    def __init__(self, name: str, direct: bool) -> None:
        self.direct = direct
        self.clock = ManualClock()
        self.broker = Broker(name=name, clock=self.clock)
        self.dispatched: list[tuple[Any, ...]] = []
        self.broker.add_connection(ConnectionInfo("c"), ConnectionSink(self.take))

    def take(self, command: MessageDispatch) -> None:
        message = command.message
        told = (
            (None, 0, 0)
            if message is None
            else (message.message_id, message.redelivery_counter, message.broker_sequence)
        )
        self.dispatched.append((command.consumer_id, *told, command.destination))

    @property
    def queues(self) -> list[QueueDestination]:
        return [each for each in self.broker.router.destinations.values() if isinstance(each, QueueDestination)]

    def settle(self) -> None:
        self.clock.settle()
        self.broker.region._check()  # type: ignore[attr-defined]
        for queue in self.queues:
            queue.core._check()  # type: ignore[attr-defined]
            if not self.direct:
                queue.core.direct = False


class RegionMachine(RuleBasedStateMachine):
    """The same commands to both."""

    @initialize()
    def start(self) -> None:
        self.sides = (Side("one step", True), Side("step by step", False))
        self.here: list[str] = []
        self.came = self.sent = 0

    def teardown(self) -> None:
        for side in getattr(self, "sides", ()):
            side.broker.close()

    @rule(
        where=st.sampled_from(ASKED),
        prefetch=st.sampled_from([1, 3, 1000]),
        selector=st.sampled_from([None, None, "odd = 1"]),
        browser=st.sampled_from([False, False, False, True]),
    )
    def consume(self, where: Destination, prefetch: int, selector: str | None, browser: bool) -> None:
        self.came += 1
        name = f"c:1:{self.came}"
        self.here.append(name)
        for side in self.sides:
            info = ConsumerInfo(
                name,
                "c:1",
                "c",
                where,
                prefetch,
                selector,
                browser=browser and "," not in where.name,
                dispatch_async=False,
            )
            side.broker.add_consumer(info)

    @precondition(lambda self: self.here)
    @rule(which=st.integers(0, 9))
    def leave(self, which: int) -> None:
        name = self.here.pop(which % len(self.here))
        for side in self.sides:
            side.broker.remove_consumer(name)

    @rule(
        where=st.sampled_from(PLACES),
        group=st.sampled_from([None, None, "g"]),
        odd=st.integers(0, 1),
        life=st.sampled_from([0, 0, 0, 5]),
    )
    def send(self, where: Destination, group: str | None, odd: int, life: int) -> None:
        self.sent += 1
        for side in self.sides:
            now = side.clock.now()
            message = Message(
                {"odd": odd}, message_id=f"ID:p:{self.sent}", group_id=group, delivery_mode="NON_PERSISTENT"
            )
            message.expiration = now + life if life else 0
            side.broker.send("c", where, message, None, now)

    @precondition(lambda self: self.sides[0].dispatched)
    @rule(
        which=st.integers(0, 30),
        kind=st.sampled_from(KINDS),
        ranged=st.booleans(),
        odd=st.sampled_from([""] * 8 + ["consumer", "message"]),
    )
    def acknowledge(self, which: int, kind: AckKind, ranged: bool, odd: str) -> None:
        consumer, message_id, *_, destination = self.sides[0].dispatched[which % len(self.sides[0].dispatched)]
        ack = MessageAck(
            "nobody" if odd == "consumer" else consumer,
            destination,
            kind,
            "ID:unknown" if odd == "message" else message_id,
            message_id if ranged else None,
        )
        said: list[Any] = []
        for side in self.sides:
            errors: list[str] = []
            side.broker.acknowledge(ack, lambda error, errors=errors: errors.append(f"{type(error).__name__}: {error}"))
            try:
                if odd:
                    side.broker.acknowledge(ack)
            except JMSError as error:
                errors.append(str(error))
            said.append(errors)
        assert said[0] == said[1]

    @rule(milliseconds=st.sampled_from([1, 10, 30_000]))
    def later(self, milliseconds: int) -> None:
        for side in self.sides:
            side.clock.advance(milliseconds)

    @invariant()
    def agrees(self) -> None:
        first, second = self.sides
        for side in self.sides:
            side.settle()
        assert first.dispatched == second.dispatched
        assert first.broker.destinations() == second.broker.destinations()
        for destination in first.broker.destinations():
            text = str(destination)
            assert first.broker.view(text) == second.broker.view(text)


TestRegion = RegionMachine.TestCase
TestRegion.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
