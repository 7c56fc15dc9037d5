"""Consumers of several queues against a broker that wakes every queue of theirs after each acknowledgement, as the real
one does: the same dispatches, though ours leaves out the queues where a round would change nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from pyengine.activemq import AckKind
from pyengine.activemq.broker.broker import Broker
from pyengine.activemq.broker.events import Event, SlowConsumer
from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.broker.subscription import Source, Subscription
from pyengine.clock import ManualClock
from pyengine.destinations import Destination
from pyengine.errors import JMSError
from pyengine.topology.policy import Policy
from tests.activemq.wire import Wire

QUEUES = ["a.1", "a.2", "b.1", "b.2", "c.3"]
PATTERNS = ["a.*", "*.1", ">", "a.1,b.2", "a.1", "b.>"]
SELECTORS = [None, "colour = 'red'", "colour <> 'red'"]
POLICIES = (
    Policy("a.>", max_page_size=3),
    Policy("b.1", lazy_dispatch=True),
    Policy("b.2", prioritized_messages=True, max_page_size=2),
    Policy("c.>", time_before_dispatch_starts=200, advisory_for_consumed=True),
)


class Thorough(Subscription):
    """Wakes all of its queues, in the order of attachment, except the one that made its round."""

    __slots__ = ()

    def wake(self, besides: Source) -> None:
        for queue in list(self.queues):
            if queue is not besides:
                queue.wake()


class Side:
    """A broker, what it dispatched, and the consumers that it found slow."""

    def __init__(self, name: str) -> None:
        self.clock = ManualClock(1_000)
        self.broker = Broker(name=name, clock=self.clock, policies=POLICIES)
        self.wire = Wire(self.broker)
        self.slow: list[tuple[str, str]] = []
        self.broker.on(SlowConsumer, self.note)

    def note(self, event: Event) -> None:
        assert isinstance(event, SlowConsumer)
        self.slow.append((event.consumer.consumer_id, event.destination.name))

    def consume(self, consumer: str, to: str, **options: Any) -> None:
        self.wire.consume(consumer, to, **options)

    def queues(self) -> list[QueueDestination]:
        return [each for each in self.broker.router.destinations.values() if isinstance(each, QueueDestination)]


class Every(Side):
    """Every queue is woken."""

    def consume(self, consumer: str, to: str, **options: Any) -> None:
        super().consume(consumer, to, **options)
        found = self.broker.region.subscriptions[consumer]
        assert isinstance(found, Subscription)
        if found.spread:
            found.__class__ = Thorough

    def indirect(self) -> None:
        for queue in self.queues():
            queue.core.direct = False


class WildcardMachine(RuleBasedStateMachine):
    """The same steps at both sides."""

    def __init__(self) -> None:
        super().__init__()
        self.ours, self.every = Side("ours"), Every("every")
        self.consumers: dict[str, str] = {}
        self.sent = self.transactions = self.joined = 0
        self.held: list[tuple[str, str]] = []

    def teardown(self) -> None:
        for side in (self.ours, self.every):
            side.broker.close()

    def step(self, what: Any) -> None:
        said = []
        for side in (self.ours, self.every):
            self.every.indirect()
            try:
                what(side)
                said.append("")
            except JMSError as error:
                said.append(str(error))
            side.broker.settle()
        assert said[0] == said[1]
        got = self.ours.wire.taken()
        assert got == self.every.wire.taken()
        assert self.ours.slow == self.every.slow
        self.held += [(consumer, body) for consumer, body in got if body is not None]
        for queue in self.ours.queues():
            queue.core._check()
        for found in self.ours.broker.region.subscriptions.values():
            if found.credit is not None:
                found.credit._check()  # type: ignore[attr-defined]

    @rule(
        to=st.sampled_from(PATTERNS),
        prefetch=st.sampled_from([0, 1, 1, 2, 5]),
        selector=st.sampled_from(SELECTORS),
        more=st.sampled_from([{}, {}, {"exclusive": True}, {"priority": 3}, {"browser": True}]),
    )
    def consume(self, to: str, prefetch: int, selector: str | None, more: dict[str, Any]) -> None:
        if len(self.consumers) == 5 or (more.get("browser") and not prefetch):
            return
        self.joined += 1
        name = f"c{self.joined}"
        if not more.get("browser"):
            self.consumers[name] = to
        self.step(lambda side: side.consume(name, to, prefetch=prefetch, selector=selector, **more))
        if more.get("browser"):
            self.held = [each for each in self.held if each[0] != name]

    @rule(
        to=st.sampled_from([*QUEUES, *QUEUES, "a.1,c.3"]),
        colour=st.sampled_from(["red", "blue"]),
        many=st.integers(1, 4),
        headers=st.sampled_from([{}, {}, {"group_id": "g"}, {"priority": 9}, {"expiration": 1_500}]),
    )
    def send(self, to: str, colour: str, many: int, headers: dict[str, Any]) -> None:
        bodies = [f"m{self.sent + n}" for n in range(many)]
        self.sent += many
        self.step(lambda side: side.wire.send(to, *bodies, properties={"colour": colour}, **headers))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), kind=st.sampled_from([AckKind.INDIVIDUAL, AckKind.INDIVIDUAL, AckKind.POISON]))
    def acknowledge(self, data: st.DataObject, kind: AckKind) -> None:
        consumer, body = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        fields = {"first_message_id": self.ours.wire.id_of(consumer, body)} if kind is AckKind.POISON else {}
        self.step(lambda side: side.wire.acknowledge(consumer, body, kind, **fields))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), ranged=st.booleans(), short=st.integers(0, 9))
    def acknowledge_up_to(self, data: st.DataObject, ranged: bool, short: int) -> None:
        consumer, body = data.draw(st.sampled_from(self.held))
        mine = [each for each in self.held if each[0] == consumer]
        mine = mine[: mine.index((consumer, body)) + 1]
        fields: dict[str, Any] = {"message_count": len(mine) - (short == 0)}
        if ranged:
            fields["first_message_id"] = self.ours.wire.id_of(*mine[0])
        if short:
            self.held = [each for each in self.held if each not in mine]
        self.step(lambda side: side.wire.acknowledge(consumer, body, AckKind.STANDARD, **fields))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), commits=st.booleans())
    def within(self, data: st.DataObject, commits: bool) -> None:
        consumer, body = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.transactions += 1
        name = f"TX:{self.transactions}"

        def change(side: Side) -> None:
            side.broker.begin("wire", name)
            side.wire.acknowledge(consumer, body, transaction_id=name)
            side.broker.commit(name) if commits else side.broker.rollback(name)

        if not commits:
            self.held.append((consumer, body))
        self.step(change)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), timeout=st.sampled_from([-1, 0, 100]))
    def pull(self, data: st.DataObject, timeout: int) -> None:
        consumer = data.draw(st.sampled_from(sorted(self.consumers)))
        self.step(lambda side: side.wire.pull(consumer, self.consumers[consumer], timeout))

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), lost=st.booleans())
    def leave(self, data: st.DataObject, lost: bool) -> None:
        consumer = data.draw(st.sampled_from(sorted(self.consumers)))
        del self.consumers[consumer]
        self.held = [each for each in self.held if each[0] != consumer]
        self.step(lambda side: side.broker.remove_consumer(consumer, lost=lost))

    @rule(queue=st.sampled_from(QUEUES), what=st.sampled_from(["pause", "resume", "purge", "remove_message_groups"]))
    def administer(self, queue: str, what: str) -> None:
        name = Destination(queue)

        def change(side: Side) -> None:
            side.broker.router.find(name)
            {
                "pause": side.broker.pause,
                "resume": side.broker.resume,
                "purge": side.broker.purge,
                "remove_message_groups": side.broker.remove_message_groups,
            }[what](name)

        self.step(change)

    @rule(time=st.sampled_from([50, 250, 30_000]))
    def wait(self, time: int) -> None:
        self.step(lambda side: side.clock.advance(time))


WildcardMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
test_a_wakeup_leaves_out_nothing_that_it_would_change = WildcardMachine.TestCase
