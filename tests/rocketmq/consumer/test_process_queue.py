"""ProcessQueue as its users meet it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyengine import InvalidMessageError, rocketmq
from pyengine._engine.rocketmq.client.offset_window import Window
from pyengine.errors import ConfigurationError
from tests.conformance.__main__ import replay_file
from tests.memory.bytes_in_use import can_count
from tests.model.process_queue_model import Record

DATA = Path(__file__).parents[2] / "conformance" / "data" / "rocketmq"


def records(*offsets: int, size: int = 1) -> list[Record]:
    return [Record(offset, bytes(size)) for offset in offsets]


def test_the_real_class_agrees() -> None:
    counts = replay_file("rocketmq/process_queue", DATA / "process_queue.jsonl", show=5)
    assert counts["agree"] == sum(counts.values()) == 96


def test_a_message_finished_early_does_not_move_the_offset() -> None:
    queue = rocketmq.ProcessQueue()
    assert queue.put_messages(records(0, 1, 2, 3, 4))
    safe = [queue.remove_messages(records(offset)) for offset in (3, 0, 1, 2, 4)]
    assert safe == [0, 1, 2, 4, 5]


def test_an_empty_queue_has_nothing_to_commit() -> None:
    assert rocketmq.ProcessQueue().remove_messages(records(7)) == -1


@pytest.mark.parametrize(
    ("offsets", "size", "orderly", "verdict"),
    [
        (range(1000), 1, False, rocketmq.FlowControl.PULL),
        (range(1001), 1, False, rocketmq.FlowControl.COUNT),
        ([0, 2000], 1, False, rocketmq.FlowControl.PULL),
        ([0, 2001], 1, False, rocketmq.FlowControl.SPAN),
        ([0, 2001], 1, True, rocketmq.FlowControl.PULL),
        ([0], 105_906_175, False, rocketmq.FlowControl.PULL),
        ([0], 105_906_176, False, rocketmq.FlowControl.SIZE),
    ],
)
def test_flow_control_is_strict_and_counts_whole_mebibytes(
    offsets: range, size: int, orderly: bool, verdict: rocketmq.FlowControl
) -> None:
    queue = rocketmq.ProcessQueue()
    queue.put_messages(records(*offsets, size=size))
    assert queue.flow_control(orderly=orderly) is verdict


def test_a_commit_with_nothing_taken_is_a_misuse() -> None:
    with pytest.raises(rocketmq.IllegalStateError, match="take_messages"):
        rocketmq.ProcessQueue().commit()


def test_an_offset_beyond_a_long_is_refused_and_nothing_is_stored() -> None:
    queue = rocketmq.ProcessQueue()
    with pytest.raises(InvalidMessageError, match="queue_offset"):
        queue.put_messages(records(1, 2**63))
    assert queue.message_count == 0


def test_a_stuck_head_and_a_wide_gap_cost_no_memory_for_the_gap() -> None:
    queue = rocketmq.ProcessQueue()
    queue.put_messages(records(0, 10**15))
    assert queue.max_span == 10**15
    assert queue.remove_messages(records(0)) == 10**15


@pytest.mark.skipif(not can_count(), reason="counts with glibc's mallinfo2")
def test_filtered_messages_cost_few_bytes_whatever_their_gaps() -> None:
    """Each kind of chunk, one that falls between two kinds, and gaps beyond the array's empty chunks."""
    code = """if True:
        from pyengine.rocketmq import ProcessQueue
        from tests.memory.bytes_in_use import bytes_in_use
        for gap in (1, 2, 4, 5, 13, 16, 17, 33, 64, 100, 128, 129, 1000, 10**9):
            queue, before = ProcessQueue(), bytes_in_use()
            for start in range(0, 20_000, 32):
                queue.put_messages(range(start * gap, (start + 32) * gap, gap))
            print((bytes_in_use() - before) / 20_000)
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONMALLOC": "malloc"},
    )
    costs = [float(line) for line in done.stdout.split()]
    assert len(costs) == 14
    assert max(costs) < 64, costs
    assert costs[0] < 9


def test_a_window_is_iterated_in_order() -> None:
    window = Window()
    assert (len(window), list(window), 5 in window) == (0, [], False)


@pytest.mark.parametrize("how", ["remove_messages", "remove_two", "finish", "commit"])
def test_a_body_that_has_no_length_any_more_finishes_nothing(how: str) -> None:
    queue = rocketmq.ProcessQueue()
    messages = [SimpleNamespace(queue_offset=offset, body=b"four") for offset in range(3)]
    queue.put_messages(messages)
    calls: dict[str, Callable[[], object]] = {
        "remove_messages": lambda: queue.remove_messages(messages[1:2]),
        "remove_two": lambda: queue.remove_messages(messages[:2]),
        "finish": lambda: queue.finish(messages[1]),
        "commit": lambda: queue.commit(),
    }
    if how == "commit":
        queue.take_messages(2)
    messages[1].body = 5
    before = (queue.cached_offsets, queue.taken_offsets, queue.message_count, queue.message_size)
    for _ in range(2):
        with pytest.raises(InvalidMessageError, match="a body is bytes"):
            calls[how]()
        assert (queue.cached_offsets, queue.taken_offsets, queue.message_count, queue.message_size) == before
    messages[1].body = b"four"
    assert calls[how]() == (0 if how in ("remove_messages", "finish") else 2)
    assert (queue.message_count, queue.message_size) == (len(queue.cached_offsets), 4 * len(queue.cached_offsets))


def test_offsets_alone_stand_for_messages_without_a_body() -> None:
    queue = rocketmq.ProcessQueue(now=5)
    queue.put_messages(range(5))
    assert [queue.finish(offset) for offset in (3, 0, 1, 2)] == [0, 1, 2, 4]
    assert (queue.take_messages(3), queue.message_size, queue.contains_message(4)) == ([4], 0, False)
    queue.make_message_to_consume_again([4])
    assert queue.cached_offsets == [4]
    assert (queue.expired(10**9, 1), queue.finish(4), queue.finish(4)) == (None, 5, -1)
    with pytest.raises(InvalidMessageError, match="queue_offset"):
        queue.finish(-(2**63) - 1)


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ({"queue_offset": 2, "body": 5}, "body = 5 .int.: a body is bytes, a text or None"),
        ({"queue_offset": 2}, "it has no body"),
        ({"queue_offset": 2.0, "body": b""}, "an offset is a signed 64-bit integer"),
        ({"body": b""}, "it has no queue_offset"),
    ],
)
@pytest.mark.parametrize("before", [1, 100])
def test_nothing_of_a_batch_is_put_where_one_is_no_message(second: dict[str, Any], problem: str, before: int) -> None:
    queue = rocketmq.ProcessQueue()
    good = [SimpleNamespace(queue_offset=offset, body="four") for offset in range(before)]
    with pytest.raises(InvalidMessageError, match=problem):
        queue.put_messages([*good, SimpleNamespace(**second)])
    assert (queue.message_count, queue.message_size, queue.cached_offsets) == (0, 0, [])
    queue.put_messages(good)
    assert (queue.message_count, queue.message_size) == (before, 4 * before)


def test_a_message_class_may_change_what_an_offset_is() -> None:
    slotted: Any = type("Slotted", (), {"__slots__": ("body", "queue_offset")})

    def message(offset: int, kind: Any = slotted) -> Any:
        made = kind()
        made.queue_offset, made.body = offset, b"xy"
        return made

    queue = rocketmq.ProcessQueue()
    first, second, third = (message(offset) for offset in (1, 2, 3))
    queue.put_messages([first, second, third])
    assert (queue.cached_offsets, queue.message_size) == ([1, 2, 3], 6)
    del first.body
    with pytest.raises(InvalidMessageError, match="it has no body"):
        queue.finish(first)
    named = type("Named", (slotted,), {"__slots__": (), "queue_offset": property(lambda self: 77)})
    assert [queue.contains_message(one) for one in (second, object.__new__(named))] == [True, False]
    place = slotted.queue_offset
    slotted.queue_offset = property(lambda self: place.__get__(self) + 1)
    assert [queue.contains_message(one) for one in (second, third)] == [True, False]
    with pytest.raises(InvalidMessageError, match="it has no queue_offset"):
        queue.finish(object())  # type: ignore[arg-type]


@pytest.mark.parametrize("message", ["x", None, 1.5, object()])
def test_what_has_no_offset_is_no_message(message: object) -> None:
    queue = rocketmq.ProcessQueue()
    for call in (queue.finish, lambda message: queue.put_messages([1, message]), lambda m: queue.remove_messages([m])):
        with pytest.raises(InvalidMessageError, match="it has no queue_offset"):
            call(message)
    assert queue.message_count == 0


@pytest.mark.parametrize("value", [None, "1", 1.5, 2**63, -(2**63) - 1, float("nan"), [1]])
def test_what_is_no_number_is_named(value: Any) -> None:
    queue = rocketmq.ProcessQueue()
    offset = rocketmq.ControllableOffset(7)
    for name, ask in (
        ("now", lambda: rocketmq.ProcessQueue(now=value)),
        ("now", lambda: queue.remove_messages([1], now=value)),
        ("now", lambda: queue.take_messages(1, now=value)),
        ("now", lambda: queue.expired(value, 15)),
        ("now", lambda: queue.is_lock_expired(value)),
        ("now", lambda: queue.is_pull_expired(value)),
        ("size", lambda: queue.take_messages(value)),
        ("consume_timeout", lambda: queue.expired(0, value)),
        ("pull_threshold_for_queue", lambda: queue.flow_control(pull_threshold_for_queue=value)),
        ("value", lambda: rocketmq.ControllableOffset(value)),
        ("value", lambda: offset.update(value)),
        ("value", lambda: offset.update_and_freeze(value)),
    ):
        with pytest.raises(ConfigurationError) as refused:
            ask()
        assert str(refused.value) == f"{name}={value!r}: a whole number of 64 bits is needed"
    assert (offset.value, offset.frozen) == (7, False)


@pytest.mark.parametrize("value", [None, 1, "12", b"12"])
def test_what_is_no_list_of_messages_is_named(value: Any) -> None:
    queue = rocketmq.ProcessQueue()
    for ask in (queue.put_messages, queue.remove_messages, queue.make_message_to_consume_again):
        with pytest.raises(
            ConfigurationError, match=r"^messages=.*: no list; give messages or offsets, as \[message\]"
        ):
            ask(value)
    assert queue.cached_offsets == []


def test_numbers_of_numpy_are_numbers() -> None:
    queue = rocketmq.ProcessQueue(now=np.int64(5))
    queue.put_messages(range(3))
    assert queue.take_messages(np.int32(2), now=np.int64(6)) == [0, 1]
    assert queue.last_consume_timestamp == 6
