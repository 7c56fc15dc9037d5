"""Why messages of a cluster wait, and how the report of a failing test shows them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.rocketmq import ConsumeConcurrentlyStatus, MessageExt, MessageSelector
from pyengine.rocketmq.broker.held import HeldReason

OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class Site:
    """A cluster of one queue a topic, a producer, and the clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("orders", 1)
        self.producer = rocketmq.Producer(self.broker)

    @contextmanager
    def consumer(
        self, listener: Any, expression: MessageSelector | str = "*"
    ) -> Iterator[rocketmq.DefaultMQPushConsumer]:
        """One that has its queues."""
        made = rocketmq.DefaultMQPushConsumer("billing", broker=self.broker)
        made.subscribe("orders", expression)
        made.register_message_listener(listener)
        with made:
            self.clock.advance(3_000)
            yield made

    def held(self) -> list[tuple[int, str | None, HeldReason]]:
        """(offset, group, reason) of what waits."""
        return [(each.offset, each.group, each.reason) for each in self.broker.held("orders")]


def test_without_a_group_nobody_wants_it_and_without_a_member_nobody_gets_it() -> None:
    site = Site()
    with site.broker:
        result = site.producer.send("orders", b"tea")
        (waits,) = site.broker.held()
        assert (waits.msg_id, waits.queue, waits.group, waits.due) == (result.msg_id, result.queue, None, None)
        assert site.held() == [(0, None, HeldReason.NO_GROUP)]
        with site.consumer(lambda messages, context: OK):
            site.producer.send("orders", b"tea")
            site.clock.advance(1_000)
        assert site.held() == [], "what is consumed is committed"
        site.producer.send("orders", b"milk")
        assert site.held() == [(2, "billing", HeldReason.NO_MEMBER)]


def test_what_the_expression_passes_over_is_told() -> None:
    for expression in ("red", rocketmq.sql("price > 10")):
        site = Site()
        with site.broker, site.consumer(lambda messages, context: OK, expression):
            site.producer.send("orders", b"tea", tags="blue", properties={"price": "3"})
            site.producer.send("orders", b"tea", tags="red", properties={"price": "30"})
            site.clock.advance(1_000)
            assert site.held() == [(0, "billing", HeldReason.FILTERED)]


def test_a_listener_that_has_not_finished_holds_its_message_and_those_behind_it() -> None:
    site = Site()

    async def wait(messages: Sequence[MessageExt], context: object) -> ConsumeConcurrentlyStatus:
        await asyncio.sleep(60 if messages[0].body == b"slow" else 0)
        return OK

    with site.broker, site.consumer(wait):
        site.producer.send("orders", b"slow")
        site.producer.send("orders", b"quick")
        site.clock.advance(1_000)
        assert site.held() == [(0, "billing", HeldReason.NOT_CONSUMED), (1, "billing", HeldReason.NOT_CONSUMED)]
        site.clock.advance(60_000)
        assert site.held() == [], "before the offset is committed"


def test_a_suspended_consumer_has_not_pulled_and_a_failed_message_waits_for_its_next_try() -> None:
    site = Site()
    later = ConsumeConcurrentlyStatus.RECONSUME_LATER
    with site.broker, site.consumer(lambda messages, context: later) as consumer:
        site.producer.send("orders", b"tea")
        site.clock.advance(1_000)
        (waits,) = site.broker.held("orders")
        assert (waits.reason, waits.group, waits.queue.topic) == (HeldReason.DELAYED, "billing", "orders")
        assert waits.due is not None
        assert 8_000 < waits.due - site.clock.now() <= 10_000
        consumer.suspend()
        site.clock.advance(40_000)
        site.producer.send("orders", b"milk")
        assert (1, "billing", HeldReason.NOT_PULLED) in site.held()


def test_a_delayed_message_says_when_it_comes_and_a_dead_letter_that_it_is_one() -> None:
    site = Site()
    with site.broker:
        site.producer.send("orders", b"tea", delay_time_level=3)
        (waits,) = site.broker.held()
        assert (waits.reason, waits.offset, waits.due) == (HeldReason.DELAYED, -1, site.clock.now() + 10_000)
        site.broker.create_topic("%DLQ%billing", 1)
        site.producer.send("%DLQ%billing", b"dead")
        assert [(each.group, each.reason) for each in site.broker.held("%DLQ%billing")] == [
            ("billing", HeldReason.DEAD_LETTER)
        ]


FAILING = """
def test_it(rocketmq_broker):
    from pyengine import rocketmq
    rocketmq_broker.create_topic("orders", 1)
    producer = rocketmq.Producer(rocketmq_broker)
    for _ in range(21):
        producer.send("orders", b"tea")
    assert False
"""


def test_the_report_of_a_failing_test_says_what_waits(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert "messages that wait in the brokers broker-a" in done.stdout
    assert "orders broker-a/0 offset 0: " in done.stdout
    assert ": NO_GROUP: no group consumes the topic\n" in done.stdout
    assert "and 1 more" in done.stdout


def test_a_test_run_without_fixtures_imports_nothing_of_the_package(tmp_path: Path) -> None:
    """An empty one, too: the plugin stands outside of the package."""
    code = "import sys, pytest; print(pytest.main(['-q', '-p', 'no:cacheprovider'])); print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert "no tests ran" in done.stdout
    imported = set(done.stdout.split())
    assert "pyengine_pytest" in imported
    assert {name for name in imported if name.partition(".")[0] in ("pyengine", "numpy")} == set()
