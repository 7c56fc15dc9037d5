"""What both consume services repeat, over random listeners and members that come and go; and that nothing is lost."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.rocketmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    MessageExt,
    MessageListenerOrderly,
    MessageQueue,
)

SECONDS, QUEUES = 40, 3
RETRIES = 900_000  # longer than what is left of the retries of a message


class Group:
    """A topic and the members of one group, whose listeners answer at random until they are told to be good."""

    def __init__(self, random: Random, *, orderly: bool) -> None:
        self.random, self.orderly = random, orderly
        self.clock = ManualClock(now=1_700_000_000_000)
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("T", QUEUES)
        self.producer = rocketmq.Producer(self.broker)
        self.members: list[rocketmq.DefaultMQPushConsumer] = []
        self.good = False
        self.sent: list[bytes] = []
        self.done: Counter[bytes] = Counter()
        self.refused: Counter[bytes] = Counter()
        self.changes: list[int] = []
        self.finished: dict[bytes, list[int]] = defaultdict(list)
        self.consumed: dict[int, list[int]] = {number: [] for number in range(QUEUES)}

    def join(self) -> None:
        batch = self.random.choice((1, 1, 3))
        member = rocketmq.DefaultMQPushConsumer(
            "G",
            broker=self.broker,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            consume_message_batch_max_size=batch,
            instance_name=f"member{len(self.members)}-{self.random.random()}",
        )
        member.subscribe("T")
        member.register_message_listener(MessageListenerOrderly(self.in_order) if self.orderly else self.at_once)
        member.start()
        self.changes.append(self.clock.now())
        self.members.append(member)

    def leave(self) -> None:
        self.changes.append(self.clock.now())
        self.members.pop(self.random.randrange(len(self.members))).shutdown()

    def send(self) -> None:
        for _ in range(self.random.randrange(6)):
            body = b"%d" % len(self.sent)
            self.sent.append(body)
            self.producer.send("T", body, queue=MessageQueue("T", "broker-a", self.random.randrange(QUEUES)))

    def at_once(self, messages: Sequence[MessageExt], context: Any) -> Any:
        good = len(messages)
        if not self.good and self.random.random() < 0.2:
            good = self.random.randrange(len(messages) + 1)
        for place, message in enumerate(messages):
            body = message.body or b""
            if place < good:
                self.done[body] += 1
                self.finished[body].append(self.clock.now())
            else:
                self.refused[body] += 1
        if good == 0:
            if self.random.random() < 0.5:
                raise ValueError("refused")
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        context.ack_index = good - 1
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def in_order(self, messages: Sequence[MessageExt], context: Any) -> Any:
        if not self.good and self.random.random() < 0.2:
            self.refused.update(message.body or b"" for message in messages)
            return self.random.choice((ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, None))
        for message in messages:
            self.done[message.body or b""] += 1
            self.consumed[message.queue_id].append(message.queue_offset)
        return ConsumeOrderlyStatus.SUCCESS

    def live(self, *, moving: bool) -> None:
        """Some seconds of sends, and of members that come and go; then good listeners and time for all retries."""
        self.join()
        for _ in range(SECONDS):
            self.send()
            if moving and self.random.random() < 0.15 and len(self.members) < 3:
                self.join()
            elif moving and self.random.random() < 0.15 and len(self.members) > 1:
                self.leave()
            self.clock.advance(self.random.choice((100, 1000, 1000, 20_000)))
        self.good = True
        self.clock.advance(120_000 if self.orderly else RETRIES)

    def close(self) -> None:
        for member in self.members:
            member.shutdown()
        self.broker.close()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Every refusal is logged."""
    caplog.set_level(logging.CRITICAL, "pyengine.rocketmq")


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "in order"])
@pytest.mark.parametrize("seed", range(3))
def test_a_member_alone_finishes_every_message_once(seed: int, orderly: bool) -> None:
    """However often it was refused."""
    group = Group(Random(f"alone {seed}"), orderly=orderly)
    group.live(moving=False)
    assert group.done == Counter(group.sent)
    assert group.refused
    group.close()


@pytest.mark.parametrize("seed", range(4))
def test_members_in_order_finish_every_message_once_and_in_its_order(seed: int) -> None:
    """The broker's lock, and the offset that is stored before a queue is given up."""
    group = Group(Random(f"in order {seed}"), orderly=True)
    group.live(moving=True)
    assert group.done == Counter(group.sent)
    assert group.refused
    assert all(offsets == list(range(len(offsets))) for offsets in group.consumed.values())
    group.close()


@pytest.mark.parametrize("seed", [1, 2, 41])
def test_members_at_once_repeat_only_what_two_of_them_own(seed: int) -> None:
    """A member takes a queue on when it hears of a change; its owner may rebalance later (spec rocketmq 4.1)."""
    group = Group(Random(f"x{seed}"), orderly=False)
    group.live(moving=True)
    assert set(group.done) == set(group.sent)
    repeated = [body for body, times in group.done.items() if times > 1]
    assert repeated or seed != 41
    # What one of them refused and the other finished comes once more when its delay is over.
    for body in (body for body in repeated if not group.refused[body]):
        assert all(any(0 <= when - change <= 2500 for change in group.changes) for when in group.finished[body])
    group.close()
