"""A durable cluster and its consumer, killed at any moment: nothing lost, repeats bounded, offsets never go back.

PYENGINE_KILLS says how many kills (``make kills``: 300).
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, ConsumeOrderlyStatus, MessageQueue
from pyengine.rocketmq.broker.offset_files import read_consumer_offsets, read_or_backup

KILLS = int(os.environ.get("PYENGINE_KILLS", "30"))
QUEUES = 2
SENT_A_STEP = 6
STEPS_UNTIL_WRITTEN = 4  # consumed, committed by the client every second, written by the broker a second later
FAILS = 10  # every tenth message is given back once


def send_step(producer: rocketmq.Producer, out: int, step: int) -> None:
    """Send the messages of a step, and tell of each."""
    for number in range(SENT_A_STEP):
        body = b"%d" % (step * SENT_A_STEP + number)
        producer.send("T", body)
        os.write(out, b"S %b\n" % body)


def consume(folder: Path, out: int, start: int, steps: int) -> None:
    """Send, consume and tell what was done, a line each, a virtual second a step; then drain the queues."""
    clock = ManualClock(now=1_700_000_000_000 + start * 100_000_000)
    with rocketmq.Broker(folder, clock=clock, segment_bytes=100_000) as broker:
        broker.create_topic("T", QUEUES)
        producer = rocketmq.Producer(broker)
        consumer = rocketmq.DefaultMQPushConsumer(
            "G",
            broker=broker,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            persist_consumer_offset_interval=1000,
        )
        consumer.subscribe("T")

        def listen(messages: list[rocketmq.MessageExt], context: object) -> ConsumeConcurrentlyStatus:
            for message in messages:
                assert message.body is not None
                if int(message.body) % FAILS == 0 and message.reconsume_times == 0:
                    os.write(out, b"G %d %d\n" % (message.queue_id, message.queue_offset))
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER
                place = "retry" if message.reconsume_times else f"{message.queue_id}"
                os.write(out, b"C %b %b %d\n" % (message.body, place.encode(), message.queue_offset))
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.register_message_listener(listen)
        consumer.start()
        os.write(out, b"R\n")
        for step in range(steps):
            send_step(producer, out, start * 10_000 + step)
            clock.advance(1000)
            broker.persist_offsets()
        clock.advance(120_000)
        consumer.shutdown()


def consume_in_order(seed: float, folder: Path, out: int, start: int, steps: int) -> None:
    """The same in order, by members that come and go, with every answer that a listener can give.

    A line a call: ``D`` everything up to these offsets is done, ``P`` taken and not committed, ``X`` not done.
    """
    random = Random(seed)
    clock = ManualClock(now=1_700_000_000_000 + start * 100_000_000)
    with rocketmq.Broker(folder, clock=clock, segment_bytes=50_000) as broker:
        broker.create_topic("T", QUEUES)
        producer = rocketmq.Producer(broker)

        def listen(
            messages: list[rocketmq.MessageExt], context: rocketmq.ConsumeOrderlyContext
        ) -> ConsumeOrderlyStatus:
            context.auto_commit = random.random() < 0.6
            context.suspend_current_queue_time_millis = random.choice((-1, 10, 100))
            answers = [(b"X", ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT), (b"X", None)]
            if context.auto_commit:
                answers += [(b"D", ConsumeOrderlyStatus.SUCCESS)] * 8
            else:
                answers += [(b"P", ConsumeOrderlyStatus.SUCCESS)] * 3
                answers += [(b"D", ConsumeOrderlyStatus.COMMIT)] * 4 + [(b"X", ConsumeOrderlyStatus.ROLLBACK)]
            kind, status = random.choice(answers)
            first = messages[0]
            bodies = b" ".join(message.body or b"" for message in messages)
            os.write(out, b"%b %d %d %b\n" % (kind, first.queue_id, first.queue_offset, bodies))
            if status is None:
                raise SystemExit(1)
            return status

        def join(name: str) -> rocketmq.DefaultMQPushConsumer:
            consumer = rocketmq.DefaultMQPushConsumer(
                "G",
                broker=broker,
                instance_name=name,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                consume_message_batch_max_size=random.choice((1, 1, 3)),
                persist_consumer_offset_interval=1000,
            )
            consumer.subscribe("T")
            consumer.register_message_listener(rocketmq.MessageListenerOrderly(listen))
            consumer.start()
            return consumer

        members = [join("first")]
        os.write(out, b"R\n")
        for step in range(steps):
            send_step(producer, out, start * 10_000 + step)
            clock.advance(1000)
            if random.random() < 0.1:
                if len(members) < 3:
                    members.append(join(f"{step}"))
                else:
                    members.pop(0).shutdown()
            broker.persist_offsets()
        clock.advance(600_000)
        for member in members:
            member.shutdown()


def run(
    folder: Path, start: int, kill_after: int | None, consume: Callable[[Path, int, int, int], None] = consume
) -> list[list[bytes]]:
    """What a child process told before it was killed, a few lines after its start, or ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            consume(folder, writing, start, 10_000 if kill_after is not None else 0)
        except BaseException:
            os.write(writing, b"E " + traceback.format_exc().replace("\n", " | ").encode() + b"\n")
        os._exit(0)
    os.close(writing)
    told = b""
    with os.fdopen(reading, "rb") as pipe:
        if kill_after is not None:
            while (b"R\n" not in told or told.count(b"\n") <= kill_after) and b"E " not in told:
                told += os.read(pipe.fileno(), 65536)
            # It goes on meanwhile, so it dies anywhere behind that line.
            os.kill(child, signal.SIGKILL)
        told += pipe.read()
    os.waitpid(child, 0)
    lines = [line.split(b" ", 1) if line.startswith(b"E") else line.split() for line in told.split(b"\n")[:-1]]
    assert not any(line[0] == b"E" for line in lines), lines[-1]
    return lines


def committed(folder: Path) -> dict[int, int]:
    """The offsets in consumerOffset.json."""
    found = read_or_backup(folder / "broker-a" / "config" / "consumerOffset.json", read_consumer_offsets)
    return {} if found is None else found[0].get("T@G", {})


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")
def test_kills_lose_nothing_repeat_little_and_never_move_offsets_back(tmp_path: Path) -> None:
    random = Random(4)
    sent: set[int] = set()
    consumed: set[int] = set()
    reached: dict[int, int] = defaultdict(int)  # queue -> one past the highest offset consumed
    given: dict[int, int] = defaultdict(int)  # queue -> one past the highest offset given back, which commits it too
    # What may repeat: a few steps behind the last offset file, and what was sent since it was last written.
    allowed = dict.fromkeys(range(QUEUES), SENT_A_STEP * STEPS_UNTIL_WRITTEN)
    repeats = 0
    for start in range(KILLS + 1):
        before = committed(tmp_path)
        last = start == KILLS
        lines = run(tmp_path, start, None if last else random.randrange(random.choice((1, 10, 40, 100))))
        repeated: dict[int, int] = defaultdict(int)
        for kind, *rest in lines:
            if kind == b"S":
                sent.add(int(rest[0]))
            elif kind == b"G":
                given[int(rest[0])] = max(given[int(rest[0])], int(rest[1]) + 1)
            elif kind == b"C":
                consumed.add(int(rest[0]))
                if rest[1] != b"retry":
                    queue, offset = int(rest[1]), int(rest[2])
                    assert offset >= before.get(queue, 0), "nothing below the committed offset comes again"
                    repeated[queue] += offset < reached[queue]
                    reached[queue] = max(reached[queue], offset + 1)
        repeats += sum(repeated.values())
        for queue, count in repeated.items():
            assert count <= allowed[queue], f"start {start}: queue {queue} repeats {count} of {allowed[queue]}"
        after = committed(tmp_path)
        for queue in allowed:
            if after.get(queue, 0) > before.get(queue, 0):
                allowed[queue] = SENT_A_STEP * STEPS_UNTIL_WRITTEN
            else:
                allowed[queue] += 1 + sum(line[0] == b"S" for line in lines)
        for queue, offset in after.items():
            assert before.get(queue, 0) <= offset <= max(reached[queue], given[queue])
            assert offset <= end_of(tmp_path, queue)
        assert set(before) <= set(after)
    assert sent <= consumed, f"lost: {sorted(sent - consumed)[:10]}"
    assert len(sent) > 3 * KILLS
    assert repeats > 0, "no kill came between consuming and committing"


def end_of(folder: Path, queue: int) -> int:
    """Where a queue ends, by the broker's own files."""
    with rocketmq.Broker(folder, clock=ManualClock()) as broker:
        return broker.max_offset(MessageQueue("T", "broker-a", queue))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")
def test_kills_of_members_in_order_lose_nothing_skip_nothing_and_commit_what_is_done(tmp_path: Path) -> None:
    random = Random(5)
    sent: set[bytes] = set()
    done: set[bytes] = set()
    reached: dict[int, int] = defaultdict(int)  # queue -> one past the highest offset that a listener was given
    safe: dict[int, int] = defaultdict(int)  # queue -> one past the highest offset that a listener finished
    repeats = 0
    for start in range(KILLS + 1):
        before = committed(tmp_path)
        kill_after = None if start == KILLS else random.randrange(random.choice((1, 40, 200, 400)))
        last: dict[int, int] = {}
        for kind, *rest in run(tmp_path, start, kill_after, partial(consume_in_order, random.random())):
            if kind == b"S":
                sent.add(rest[0])
            if kind in (b"D", b"P", b"X"):
                queue, offset, bodies = int(rest[0]), int(rest[1]), rest[2:]
                assert offset >= before.get(queue, 0), "nothing below the committed offset comes again"
                assert offset <= last.get(queue, reached[queue]), f"queue {queue} skips to {offset}"
                repeats += offset < reached[queue]
                last[queue] = offset + len(bodies)
                reached[queue] = max(reached[queue], last[queue])
                if kind == b"D":
                    safe[queue] = max(safe[queue], last[queue])
                if kind != b"X":
                    done.update(bodies)
        after = committed(tmp_path)
        for queue in range(QUEUES):
            assert before.get(queue, 0) <= after.get(queue, 0) <= safe[queue]
    assert sent <= done, f"lost: {sorted(sent - done)[:10]}"
    assert committed(tmp_path) == safe
    assert repeats > 0, "no kill came between consuming and committing"
