"""Ctrl-C within calls that change what is kept: what was confirmed stays, and the same call can be made again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import IllegalStateError
from pyengine.rocketmq import RecordWorker, TopicPartition
from tests.ctrl_c import LIBRARY, CtrlC


class Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    key: bytes = b"k"
    value: bytes = b"v"


FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


# Of a file that was just opened when Ctrl-C came.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_topic_that_is_made_again_behind_ctrl_c_is_kept(tmp_path: Path) -> None:
    for step in count(1):
        folder = tmp_path / str(step)
        with rocketmq.Broker(folder, clock=ManualClock()) as broker:
            interrupted = CtrlC(LIBRARY, step).ends(lambda: broker.create_topic("T", 3))
            broker.create_topic("T", 3)
        with rocketmq.Broker(folder, clock=ManualClock()) as again:
            assert again.topics() == {"T": 3}, step
        if not interrupted:
            break
    assert step > 50


def test_a_send_behind_ctrl_c_in_a_new_file_of_the_log_is_taken(tmp_path: Path) -> None:
    for step in count(1):
        folder = tmp_path / str(step)
        with rocketmq.Broker(folder, clock=ManualClock(), segment_bytes=1) as broker:
            broker.create_topic("T", 1)
            producer = rocketmq.Producer(broker)
            producer.send("T", b"1")
            interrupted = CtrlC(LIBRARY, step).ends(lambda: producer.send("T", b"2"))  # noqa: B023
            producer.send("T", b"3")
        with rocketmq.Broker(folder, clock=ManualClock()) as again:
            found = [message.body for message in again.messages("T")]
        assert found in ([b"1", b"2", b"3"], [b"1", b"3"])[: 1 + interrupted], step
        if not interrupted:
            break
    assert step > 60


def test_a_delayed_message_comes_though_ctrl_c_ended_its_delivery() -> None:
    for step in count(1):
        clock = ManualClock()
        with rocketmq.Broker(clock=clock) as broker:
            broker.create_topic("T", 1)
            for body in (b"1", b"2"):
                rocketmq.Producer(broker).send("T", body, delay_time_level=1)
            interrupted = CtrlC(LIBRARY / "rocketmq" / "broker" / "schedule.py", step).ends(lambda: clock.advance(1000))  # noqa: B023
            clock.advance(1000)
            assert [message.body for message in broker.messages("T")] == [b"1", b"2"], step
        if not interrupted:
            break
    assert step > 20


@pytest.mark.parametrize("timeout", [0, 0.5])
def test_a_record_is_not_lost_where_ctrl_c_ends_take(timeout: float) -> None:
    for step in count(1):
        worker = RecordWorker("queue")
        worker.assign([FIRST])
        worker.put([Record("t", 0, 0)])
        interrupted = CtrlC(LIBRARY, step).ends(lambda: worker.take(timeout))  # noqa: B023
        if not interrupted:
            break
        work = worker.take()
        assert work is not None, step
        worker.complete(work)
        assert worker.unfinished(FIRST) == []


def test_a_record_that_comes_while_take_waits_is_not_lost_where_ctrl_c_ends_it() -> None:
    for step in count(1):
        worker = RecordWorker("queue")
        worker.assign([FIRST])
        timer = threading.Timer(0.02, worker.put, [[Record("t", 0, 0)]])
        timer.start()
        interrupted = CtrlC(LIBRARY, step).ends(lambda: worker.take(60))  # noqa: B023
        timer.join()
        if not interrupted:
            break
        assert worker.take() is not None, step
    assert step > 3


@pytest.mark.parametrize("begins", [True, False])
def test_all_queues_or_none_are_assigned_and_revoked_wherever_ctrl_c_comes(begins: bool) -> None:
    for step in count(1):
        worker = RecordWorker()
        if not begins:
            worker.assign([FIRST, SECOND])
        call: Callable[[object], object] = worker.assign if begins else worker.revoke
        interrupted = CtrlC(LIBRARY, step).ends(lambda: call([FIRST, SECOND]))  # noqa: B023
        assert len(held(worker)) in (0, 2), step
        if not interrupted:
            break
    assert step > 10


def held(worker: RecordWorker) -> list[TopicPartition]:
    """The queues that can be given up."""
    found = []
    for queue in (FIRST, SECOND):
        try:
            worker.revoke([queue])
        except IllegalStateError:
            continue
        found.append(queue)
    return found
