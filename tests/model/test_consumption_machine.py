"""The compiled consumers of a session against their model: the same commands, deliveries and leftovers."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyengine import Message
from pyengine._engine.activemq.client.message_consumer import Consumption, Offer
from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode, Begin, Later, Pull, Remove
from pyengine._engine.activemq.client.session_state import SessionState
from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from tests.model.consumption_model import ModelConsumer, ModelSession, Told

MODES = {
    "auto": AcknowledgeMode.AUTO_ACKNOWLEDGE,
    "client": AcknowledgeMode.CLIENT_ACKNOWLEDGE,
    "dups": AcknowledgeMode.DUPS_OK_ACKNOWLEDGE,
    "individual": AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE,
    "transacted": AcknowledgeMode.SESSION_TRANSACTED,
}
WHICH = st.integers(0, 11)


class SessionMachine(RuleBasedStateMachine):
    """Random users of random sessions."""

    @initialize(
        mode=st.sampled_from(list(MODES)),
        prioritized=st.booleans(),
        optimize=st.booleans(),
        time_out=st.sampled_from([0, 30]),
        individual=st.booleans(),
        blocking=st.booleans(),
        maximum=st.sampled_from([-1, 0, 1, 3]),
        counter=st.booleans(),
        consumers=st.lists(st.tuples(st.sampled_from([1, 2, 3, 5, 10]), st.booleans()), min_size=1, max_size=3),
    )
    def make(
        self,
        mode: str,
        prioritized: bool,
        optimize: bool,
        time_out: int,
        individual: bool,
        blocking: bool,
        maximum: int,
        counter: bool,
        consumers: list[tuple[int, bool]],
    ) -> None:
        self.now = 1000
        self.number = 0
        self.mode = mode
        self.messages: dict[str, tuple[Told, MessageDispatch]] = {}
        self.delays: list[tuple[Later, ModelConsumer]] = []
        self.listeners: list[tuple[ModelConsumer, Told, MessageDispatch]] = []
        self.state = SessionState(MODES[mode], "TX", prioritized=prioritized)
        self.model = ModelSession(mode, prioritized, optimize, time_out, individual, blocking, maximum)
        self.model.delay_by_counter = counter
        self.real: dict[str, Consumption] = {}
        self.told: dict[str, ModelConsumer] = {}
        policy = RedeliveryPolicy(
            maximum_redeliveries=maximum, initial_redelivery_delay=20, redelivery_delay=40, pre_dispatch_check=True
        )
        for index, (prefetch, topic) in enumerate(consumers):
            name = f"c{index}"
            self.real[name] = Consumption(
                self.state,
                name,
                "d",
                prefetch,
                redelivery_policy=policy,
                topic=topic,
                prioritized=prioritized,
                optimize_acknowledge=optimize,
                optimize_acknowledge_time_out=time_out,
                transacted_individual_ack=individual,
                non_blocking_redelivery=not blocking,
                delay_by_counter=counter,
                now=self.now,
            )
            self.told[name] = ModelConsumer(name, prefetch, topic, sent_at=self.now)
            self.state.add(self.real[name])
            self.model.consumers.append(self.told[name])
        self.state.start()
        self.model.queue_running = True
        for consumer in self.model.consumers:
            consumer.started = consumer.running = True

    def name_of(self, which: int) -> str:
        return f"c{which % len(self.real)}"

    def compare(self, commands: list[Any] | None = None) -> None:
        found: list[tuple[Any, ...]] = []
        for command in commands or self.state.take_commands() or ():
            if isinstance(command, MessageAck):
                inside = command.transaction_id is not None
                first, last, count = command.first_message_id, command.last_message_id, command.message_count
                found.append(("ack", command.consumer_id, int(command.kind), first, last, count, inside))
            elif isinstance(command, Begin):
                found.append(("begin",))
            elif isinstance(command, Pull):
                found.append(("pull", command.consumer.consumer_id))
            elif isinstance(command, Remove):
                found.append(("remove", command.consumer.consumer_id, command.last_delivered))
            else:
                name = command.consumer.consumer_id
                names = [dispatch.message.message_id for dispatch in command.dispatches if dispatch.message]
                found.append(("later", name, command.delay, names))
                self.delays.append((command, self.told[name]))
        wanted, self.model.commands = self.model.commands, []
        assert found == wanted

    @rule(
        which=WHICH,
        several=st.lists(
            st.tuples(st.sampled_from([0, 4, 9]), st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from([0, 0, 0, 15])),
            min_size=1,
            max_size=8,
        ),
    )
    def arrive(self, which: int, several: list[tuple[int, int, int]]) -> None:
        consumer = self.name_of(which)
        for priority, count, life in several:
            self.arrives(consumer, priority, count, life)

    def arrives(self, consumer: str, priority: int, count: int, life: int) -> None:
        self.number += 1
        name = f"ID:m{self.number}"
        expiration = self.now + life if life else 0
        told = Told(name, priority, expiration, count)
        message = Message(message_id=name, priority=priority, expiration=expiration, redelivery_counter=count)
        message.broker_sequence = self.number
        dispatch = MessageDispatch(consumer, "d", message, count)
        self.messages[name] = (told, dispatch)
        offered = self.state.arrive(dispatch, self.now) == Offer.LISTEN
        assert offered == self.model.arrive(self.told[consumer], told, self.now)
        if offered:
            self.listeners.append((self.told[consumer], told, dispatch))
        self.compare()

    @rule(which=WHICH, times=st.integers(1, 6))
    def receive(self, which: int, times: int) -> None:
        waiting = [consumer.name for consumer in self.model.consumers if consumer.inbox and consumer.running]
        name = waiting[which % len(waiting)] if waiting else self.name_of(which)
        for consumer in self.model.consumers:
            if consumer.listening:
                self.real[consumer.name].listen(False)
                consumer.listening = False
        for _ in range(times):
            found = self.real[name].receive(self.now)
            wanted = self.model.receive(self.told[name], self.now)
            assert (found and found.message and found.message.message_id) == (wanted and wanted.name)
            if found and found.message and wanted:
                assert found.message.redelivery_counter == wanted.counter
            self.compare()

    @rule()
    def step(self) -> None:
        found, wanted = self.state.step(self.now), self.model.step(self.now)
        assert (found and found.message and found.message.message_id) == (wanted and wanted[1].name)
        if found is not None and wanted is not None:
            self.listeners.append((*wanted, found))
        self.compare()

    @precondition(lambda self: self.listeners)
    @rule(fails=st.booleans())
    def listener_ends(self, fails: bool) -> None:
        consumer, told, dispatch = self.listeners.pop(0)
        commands: list[Any] | None = None
        if fails:
            self.real[consumer.name].failed(dispatch, self.now, "cause")
            self.model.failed(consumer, told, self.now)
        else:
            commands = self.state.listened(dispatch, self.now)
            self.model.after(consumer, told, self.now)
        self.compare(commands)

    @rule(which=WHICH, listening=st.sampled_from([False, False, True]))
    def listen(self, which: int, listening: bool) -> None:
        consumer = self.told[self.name_of(which)]
        if consumer.closed:
            return
        self.real[consumer.name].listen(listening)
        consumer.listening = listening
        if listening:
            self.model.redispatch(consumer)

    @rule(which=WHICH)
    def acknowledge(self, which: int) -> None:
        if self.mode == "client":
            self.state.acknowledge()
            self.model.acknowledge()
        elif self.mode == "individual":
            consumer = self.told[self.name_of(which)]
            if consumer.hands:
                told = consumer.hands[which % len(consumer.hands)]
                self.real[consumer.name].acknowledge_one(self.messages[told.name][1])
                self.model.acknowledge_one(consumer, told)
        self.compare()

    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        if self.mode == "transacted":
            self.state.before_end()
            if commit:
                self.state.after_commit()
            else:
                self.state.after_rollback(self.now)
            self.model.end(commit)
        else:
            self.state.recover(self.now)
            for consumer in list(self.model.consumers):
                self.model.rollback(consumer)
        self.compare()

    @rule(milliseconds=st.sampled_from([1, 10, 30]))
    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds

    @precondition(lambda self: self.delays)
    @rule()
    def redeliver(self) -> None:
        command, consumer = self.delays.pop(0)
        hands = [self.messages[one.message.message_id or ""][0] for one in command.dispatches if one.message]
        command.consumer.redeliver(command.dispatches, self.now)
        self.model.redeliver(consumer, hands, self.now)
        self.compare()

    @rule()
    def stop_and_start(self) -> None:
        for running in (False, True):
            (self.state.start if running else self.state.stop)()
            self.model.queue_running = running
            for consumer in self.model.consumers:
                consumer.started = consumer.running = running
            assert running or self.state.step(self.now) is None

    @rule(which=WHICH)
    def close(self, which: int) -> None:
        name = self.name_of(which)
        if self.number > 20 and sum(not consumer.closed for consumer in self.told.values()) > 1:
            self.state.close_consumer(self.real[name])
            self.model.close(self.told[name])
            self.compare()

    @invariant()
    def holds_together(self) -> None:
        if not hasattr(self, "state"):
            return
        self.state._check()
        for name, consumer in self.told.items():
            real = self.real[name]
            assert real.closed == consumer.closed
            assert real.waiting_messages == len(consumer.inbox)
            assert [message.message_id for message in real.delivered_messages] == [told.name for told in consumer.hands]


def test_many_random_sessions() -> None:
    """Longer sessions than the machine makes by itself."""
    for seed in range(600):
        draw = random.Random(seed)
        machine = SessionMachine()
        machine.make(
            draw.choice(list(MODES)),
            draw.random() < 0.3,
            draw.random() < 0.6,
            draw.choice([0, 30]),
            draw.random() < 0.3,
            draw.random() < 0.7,
            draw.choice([-1, 0, 1, 3]),
            draw.random() < 0.5,
            [(draw.choice([1, 2, 3, 5, 10]), draw.random() < 0.3) for _ in range(draw.randint(1, 3))],
        )
        for _ in range(60):
            which = draw.randrange(12)
            match draw.randrange(24):
                case 0 | 1 | 2 | 3 | 4:
                    kinds = [(draw.choice([0, 4, 9]), draw.choice([0, 0, 0, 1, 2]), draw.choice([0, 0, 0, 15]))]
                    machine.arrive(which, kinds * draw.randint(1, 4))
                case 5 | 6 | 7 | 8 | 9:
                    machine.receive(which, draw.randint(1, 4))
                case 10 | 11 | 12:
                    machine.step()
                case 13 | 14 | 15:
                    if machine.listeners:
                        machine.listener_ends(draw.random() < 0.5)
                case 16:
                    machine.listen(which, draw.random() < 0.6)
                case 17 | 18:
                    machine.acknowledge(which)
                case 19:
                    machine.end(draw.random() < 0.5)
                case 20:
                    machine.wait(draw.choice([1, 10, 30]))
                case 21:
                    if machine.delays:
                        machine.redeliver()
                case 22:
                    machine.stop_and_start()
                case _:
                    machine.close(which)
            machine.holds_together()


TestConsumption = SessionMachine.TestCase
TestConsumption.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
