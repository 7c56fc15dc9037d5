"""The consumer's rooms against their models, and a whole consumer that never loses a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.consume_concurrently import ConsumeRequest, rejected, slices
from pyengine._engine.rocketmq.client.consume_orderly import OrderlyRun, OrderlyStep, suspend_time
from pyengine._engine.rocketmq.client.consume_rates import Rate
from pyengine._engine.rocketmq.client.offset_table import OffsetTable
from pyengine._engine.rocketmq.client.pull_gate import PullGate, PullRequest, PullStep
from pyengine._engine.rocketmq.client.rebalance import (
    RebalanceTimer,
    is_balanced,
    queues_to_give_up,
    queues_to_take_on,
    shared_threshold,
)
from pyengine.clock import ManualClock
from pyengine.rocketmq import ConsumeConcurrentlyStatus, Message, MessageExt, MessageQueue, ProcessQueue
from tests.model.consumer_model import (
    BatchModel,
    OffsetTableModel,
    OrderlyModel,
    RateModel,
    flow_control,
)

QUEUE = MessageQueue("T", "broker-a", 0)
NAMES = st.sampled_from("abcd")
VALUES = st.integers(-5, 50)
LONG_AGO = 10**9


class OffsetTableMachine(RuleBasedStateMachine):
    """Random operations on both tables."""

    def __init__(self) -> None:
        super().__init__()
        self.real = OffsetTable()
        self.model = OffsetTableModel()

    @rule(queue=NAMES, offset=VALUES, increase_only=st.booleans())
    def update(self, queue: str, offset: int, increase_only: bool) -> None:
        self.real.update(queue, offset, increase_only=increase_only)
        self.model.update(queue, offset, increase_only)

    @rule(queue=NAMES, offset=VALUES)
    def freeze(self, queue: str, offset: int) -> None:
        self.real.update_and_freeze(queue, offset)
        self.model.freeze(queue, offset)

    @rule(queue=NAMES)
    def remove(self, queue: str) -> None:
        self.real.remove(queue)
        self.model.remove(queue)

    @rule(queues=st.sets(NAMES))
    def persist_all(self, queues: set[str]) -> None:
        assert dict(self.real.persist_all(queues)) == self.model.persist_all(queues)

    @invariant()
    def same(self) -> None:
        self.real._check()
        assert dict(self.real.items()) == self.model.offsets


class RebalanceTimerMachine(RuleBasedStateMachine):
    """Time passes, something wakes the service, runs end balanced or not."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.ended = self.asked = LONG_AGO
        self.real = RebalanceTimer(self.now)
        self.waits = 20_000

    @rule(later=st.integers(0, 3_000), balanced=st.booleans())
    def pass_time(self, later: int, balanced: bool) -> None:
        end = self.now + later
        while self.real.due() <= end:
            self.now = max(self.now, self.real.due())
            if self.real.run_now(self.now):
                assert self.now - self.ended >= 1_000
                assert self.now - self.ended <= self.waits
                self.ended, self.waits = self.now, 20_000 if balanced else 1_000
                self.real.ran(self.now, balanced)
        self.now = end

    @rule()
    def wake(self) -> None:
        self.real.wake(self.now)
        self.waits = max(1_000, min(self.waits, self.now - self.ended))

    @invariant()
    def runs_soon_enough(self) -> None:
        assert self.real.due() <= max(self.now, self.ended + self.waits)


class RateMachine(RuleBasedStateMachine):
    """Counts and samples."""

    def __init__(self) -> None:
        super().__init__()
        self.real = Rate()
        self.model = RateModel()
        self.now = LONG_AGO

    @rule(value=st.integers(0, 1000))
    def add(self, value: int) -> None:
        self.real.add(value)
        self.model.value += value
        self.model.times += 1

    @rule(apart=st.integers(9_000, 11_000))
    def sample(self, apart: int) -> None:
        self.now += apart
        self.real.sample(self.now)
        self.model.sample(self.now)

    @invariant()
    def same(self) -> None:
        self.real._check()
        assert tuple(self.real.in_minute()) == pytest.approx(self.model.minute())


class ConsumerMachine(RuleBasedStateMachine):
    """One group at an embedded broker: sends, failures, restarts. Nothing is lost, no offset goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(now=1_700_000_000_000)
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("T", 2)
        self.producer = rocketmq.Producer(self.broker)
        self.answers: list[str] = []
        self.sent: set[bytes] = set()
        self.done: set[bytes] = set()
        self.committed: dict[MessageQueue, int] = {}
        self.consumer = self._started()

    def _started(self) -> rocketmq.DefaultMQPushConsumer:
        consumer = rocketmq.DefaultMQPushConsumer(
            "G",
            broker=self.broker,
            consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            consume_message_batch_max_size=3,
        )
        consumer.subscribe("T")
        consumer.register_message_listener(self._listen)
        consumer.start()
        return consumer

    def _listen(self, messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus | None:
        answer = self.answers.pop() if self.answers else "ok"
        context.delay_level_when_next_consume = 1
        if answer == "raise":
            raise ValueError("boom")
        if answer == "stuck":
            context.ack_index = -2
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        if answer == "first":
            context.ack_index = 0
        finished = {"ok": len(messages), "first": 1}.get(answer, 0)
        self.done |= {message.body or b"" for message in messages[:finished]}
        return None if answer == "later" else ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    @rule(
        count=st.integers(1, 5),
        answers=st.lists(st.sampled_from(["ok", "raise", "later", "first", "stuck"]), max_size=4),
    )
    def send(self, count: int, answers: list[str]) -> None:
        self.answers = answers
        for _ in range(count):
            body = b"%d" % len(self.sent)
            self.sent.add(body)
            self.producer.send(Message("T", body))

    @rule(later=st.sampled_from([10, 1_000, 6_000]))
    def pass_time(self, later: int) -> None:
        self.clock.advance(later)

    @rule()
    def restart(self) -> None:
        self.consumer.shutdown()
        self.consumer = self._started()
        self.clock.advance(2_000)

    @invariant()
    def holds(self) -> None:
        for process_queue in self.consumer.default_mq_push_consumer_impl.process_queues.values():
            process_queue._check()
        offsets = self.broker.consumer_offsets("G", "T")
        assert all(offsets[queue] >= offset for queue, offset in self.committed.items())
        self.committed = offsets
        delayed = MessageQueue("SCHEDULE_TOPIC_XXXX", "broker-a", 0)
        kept = [self.broker.message(delayed, number) for number in range(self.broker.max_offset(delayed))]
        elsewhere = {message.body for message in [*kept, *self.broker.messages("%RETRY%G")] if message is not None}
        for queue, offset in offsets.items():
            for number in range(offset):
                message = self.broker.message(queue, number)
                assert message is not None
                assert message.body in self.done | elsewhere, (queue, number)

    def teardown(self) -> None:
        self.answers = []
        self.restart()
        self.clock.advance(60_000)
        assert self.done == self.sent
        self.consumer.shutdown()
        self.broker.close()


TestOffsetTable = OffsetTableMachine.TestCase
TestOffsetTable.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestRebalanceTimer = RebalanceTimerMachine.TestCase
TestRebalanceTimer.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestRate = RateMachine.TestCase
TestRate.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestConsumer = ConsumerMachine.TestCase
TestConsumer.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)


def filled(offsets: Sequence[int], size: int = 1) -> tuple[ProcessQueue, dict[int, MessageExt]]:
    messages = {offset: MessageExt("T", bytes(size), queue_offset=offset) for offset in offsets}
    queue = ProcessQueue(now=LONG_AGO)
    queue.put_messages(messages.values())
    queue.locked = True
    return queue, messages


@settings(max_examples=150, deadline=None)
@given(
    offsets=st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True),
    size=st.sampled_from([0, 1, 300_000]),
    limits=st.tuples(st.integers(1, 12), st.integers(1, 3), st.integers(1, 40)),
    orderly=st.booleans(),
    locked=st.booleans(),
    dropped=st.booleans(),
    paused=st.booleans(),
)
def test_the_gate_agrees_with_the_model(
    offsets: list[int],
    size: int,
    limits: tuple[int, int, int],
    orderly: bool,
    locked: bool,
    dropped: bool,
    paused: bool,
) -> None:
    queue, _ = filled(sorted(offsets), size)
    queue.locked, queue.dropped = locked, dropped
    gate = PullGate("G")
    verdict = gate.examine(
        PullRequest("G", QUEUE, queue, 100),
        LONG_AGO + 1,
        paused=paused,
        orderly=orderly,
        pull_threshold_for_queue=limits[0],
        pull_threshold_size_for_queue=limits[1],
        consume_concurrently_max_span=limits[2],
    )
    held = flow_control(len(offsets), len(offsets) * size, max(offsets) - min(offsets), orderly, limits)
    if dropped:
        assert verdict.step == PullStep.DROP
    elif paused:
        assert (verdict.step, verdict.delay) == (PullStep.LATER, 1000)
    elif held != "none":
        assert (verdict.step, verdict.delay) == (PullStep.LATER, 50)
        assert {"count": "message count", "size": "message size", "span": "span too long"}[held] in verdict.log[0][1]
        assert f"minOffset={min(offsets)}, maxOffset={max(offsets)}" in verdict.log[0][1]
    elif orderly:
        expected = (PullStep.FIX_OFFSET, 0) if locked else (PullStep.LATER, 1000)
        assert (verdict.step, verdict.delay) == expected
    else:
        assert verdict.step == PullStep.SEND
    assert (gate.queue_flow_control_times, gate.queue_max_span_flow_control_times) == (
        int(not dropped and not paused and held in ("count", "size")),
        int(not dropped and not paused and held == "span"),
    )


@settings(max_examples=150, deadline=None)
@given(
    offsets=st.lists(st.integers(0, 20), min_size=1, max_size=10, unique=True).map(sorted),
    data=st.data(),
    succeeded=st.booleans(),
    ack_index=st.integers(-1, 12),
    clustering=st.booleans(),
    refused=st.sets(st.integers(0, 20)),
)
def test_a_batch_agrees_with_the_model(
    offsets: list[int], data: st.DataObject, succeeded: bool, ack_index: int, clustering: bool, refused: set[int]
) -> None:
    batch = data.draw(st.lists(st.sampled_from(offsets), min_size=1, unique=True))
    cleaned = data.draw(st.sets(st.sampled_from(offsets)))
    queue, messages = filled(offsets)
    queue.remove_messages([messages[offset] for offset in cleaned])
    model = BatchModel([offset for offset in offsets if offset not in cleaned], list(batch), max(offsets))
    request = ConsumeRequest([messages[offset] for offset in batch], queue, QUEUE)
    assert request.start(LONG_AGO + 5)
    request.settle("CONSUME_SUCCESS" if succeeded else None, ack_index)
    expected = model.settle(succeeded, ack_index, clustering, refused)
    sent, kept = [], []
    for message in request.failed() if clustering else []:
        if request.holds(message):
            (kept if message.queue_offset in refused else sent).append(message)
    if kept:
        request.keep(kept)
    assert request.finish(LONG_AGO + 6) == expected
    queue._check()
    assert [message.queue_offset for message in sent] == model.sent
    assert [message.queue_offset for message in kept] == model.kept
    assert queue.cached_offsets == sorted(model.cached)
    assert {offset: m.reconsume_times for offset, m in messages.items() if m.reconsume_times} == model.tries


@given(count=st.integers(0, 40), size=st.integers(1, 10), data=st.data())
def test_slices_lose_nothing(count: int, size: int, data: st.DataObject) -> None:
    messages = list(range(count))
    batches = slices(messages, size)
    assert [message for batch in batches for message in batch] == messages
    assert all(0 < len(batch) <= size for batch in batches) or batches == [[]]
    position = data.draw(st.integers(0, len(batches) - 1))
    done = [message for batch in batches[:position] for message in batch]
    assert done + rejected(batches, position) == messages


@settings(max_examples=150, deadline=None)
@given(
    count=st.integers(1, 8),
    size=st.integers(1, 3),
    auto_commit=st.booleans(),
    most=st.sampled_from([-1, 0, 1, 2]),
    refused=st.booleans(),
    statuses=st.lists(
        st.sampled_from(["SUCCESS", "COMMIT", "ROLLBACK", "SUSPEND_CURRENT_QUEUE_A_MOMENT"]), min_size=1, max_size=12
    ),
)
def test_an_ordered_run_agrees_with_the_model(
    count: int, size: int, auto_commit: bool, most: int, refused: bool, statuses: list[str]
) -> None:
    queue, messages = filled(range(count))
    model = OrderlyModel(list(range(count)))
    commits = []
    run = OrderlyRun(queue, QUEUE)
    assert run.start(LONG_AGO).step == OrderlyStep.CONTINUE
    for status in statuses:
        verdict = run.next(LONG_AGO, size)
        if verdict.step == OrderlyStep.STOP:
            assert not model.left
            break
        if status.startswith("SUSPEND"):
            for position in range(len(run.messages)):
                if run.check(position, most) == OrderlyStep.SEND_BACK and refused:
                    run.not_sent_back(position)
        verdict = run.close(status, auto_commit=auto_commit)
        if verdict.offset is not None:
            commits.append(verdict.offset)
        goes_on = model.turn(status, size, auto_commit, 2**31 - 1 if most == -1 else most, refused)
        assert (verdict.step == OrderlyStep.CONTINUE) == goes_on
        queue._check()
        assert queue.cached_offsets == model.left
        assert queue.taken_offsets == sorted(model.open)
        assert queue.message_count == len(model.left) + len(model.open)
    assert commits == model.commits
    assert {offset: m.reconsume_times for offset, m in messages.items() if m.reconsume_times} == model.tries


@given(asked=st.integers(-5, 70_000), configured=st.integers(-5, 70_000))
def test_suspend_times_are_clamped(asked: int, configured: int) -> None:
    wanted = configured if asked == -1 else asked
    assert suspend_time(asked, configured) == sorted([10, wanted, 30_000])[1]


@settings(max_examples=100, deadline=None)
@given(
    held=st.dictionaries(st.integers(0, 6), st.tuples(st.booleans(), st.booleans())),
    mine=st.sets(st.integers(0, 6)),
    topic_limit=st.sampled_from([-1, 1, 7, 1000]),
)
def test_a_rebalance_agrees_with_sets(held: dict[int, tuple[bool, bool]], mine: set[int], topic_limit: int) -> None:
    table = {}
    for number, (dropped, stale) in held.items():
        table[MessageQueue("T", "b", number)] = process_queue = ProcessQueue(now=LONG_AGO)
        process_queue.dropped = dropped
        process_queue.last_pull_timestamp = LONG_AGO - (120_001 if stale else 120_000)
    table[other := MessageQueue("U", "b", 0)] = ProcessQueue(now=0)
    allocated = {MessageQueue("T", "b", number) for number in mine}
    working = {queue for queue in table if queue.topic == "T" and not table[queue].dropped}
    assert is_balanced("T", allocated, table) == (working == allocated)
    leaving, log = queues_to_give_up("T", allocated, table, LONG_AGO, "G")
    assert set(leaving) == {
        queue for queue in table if queue != other and (queue not in allocated or held[queue[2]][1])
    }
    assert len(log) == sum(queue in allocated for queue in leaving)
    assert all(table[queue].dropped for queue in leaving)
    assert not table[other].dropped
    assert set(queues_to_take_on(allocated, table)) == allocated - set(table)
    shared = shared_threshold(topic_limit, len(table))
    assert shared == (None if topic_limit == -1 else max(1, topic_limit // len(table)))
