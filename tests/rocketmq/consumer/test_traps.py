"""What would do nothing, hold up a test or leave its folder says so."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, IllegalStateError
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, MessageListenerOrderly, MessageModel
from pyengine.rocketmq.consumer.local_offset_store import LocalFileOffsetStore
from pyengine.rocketmq.message import MessageExt

DONE = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
FIRST = rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class Site:
    """A broker with one queue, and a consumer by the same manual clock."""

    def __init__(self, **parameters: Any) -> None:
        self.clock = ManualClock()
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("T", 1)
        self.producer = rocketmq.Producer(self.broker)
        self.consumer = rocketmq.DefaultMQPushConsumer("G", broker=self.broker, consume_from_where=FIRST, **parameters)
        self.consumer.subscribe("T")
        self.seen: list[tuple[str, int]] = []

    def start(self, listener: Any, *bodies: str) -> None:
        self.consumer.register_message_listener(listener)
        self.consumer.start()
        self.begun = self.clock.now()
        for body in bodies:
            self.producer.send("T", body.encode())

    def note(self, what: str) -> None:
        self.seen.append((what, self.clock.now() - self.begun))

    def committed(self) -> list[int]:
        self.clock.advance(10_000)
        return list(self.broker.consumer_offsets("G", "T").values())

    def close(self) -> None:
        self.consumer.shutdown()
        self.broker.close()


# Coroutines under a manual clock


def test_a_coroutine_that_waits_waits_by_the_manual_clock() -> None:
    site = Site()

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        body = (messages[0].body or b"").decode()
        site.note(f"{body} begins")
        await asyncio.sleep({"a": 600, "b": 0.25}.get(body, 0))
        site.note(f"{body} ends")
        return DONE

    site.start(listener, "a", "b", "c")
    began = time.monotonic()
    site.clock.advance(timedelta(minutes=1))
    # The pull comes with the rebalance; b and c go on while a waits, as on threads of their own.
    (_, at), *_ = site.seen
    assert site.seen == [("a begins", at), ("b begins", at), ("c begins", at), ("c ends", at), ("b ends", at + 250)]
    assert site.committed() == [0]
    site.clock.advance(timedelta(minutes=10))
    assert site.seen[-1] == ("a ends", at + 600_000)
    assert site.committed() == [3]
    assert time.monotonic() - began < 60
    site.close()


def test_what_a_coroutine_answers_late_counts_as_an_answer() -> None:
    site = Site()

    async def listener(messages: Sequence[MessageExt], context: Any) -> Any:
        site.note(f"try {messages[0].reconsume_times}")
        await asyncio.sleep(2)
        if messages[0].reconsume_times == 0:
            raise ValueError("not yet")
        return DONE if messages[0].reconsume_times > 1 else ConsumeConcurrentlyStatus.RECONSUME_LATER

    site.start(listener, "a")
    site.clock.advance(120_000)
    (_, at), (_, second), (_, third) = site.seen
    assert [what for what, _ in site.seen] == ["try 0", "try 1", "try 2"]
    assert (second - at, third - second) >= (12_000, 32_000)  # 2 s, then the delays of levels 3 and 4: 10 s and 30 s
    site.close()


def test_as_many_coroutines_wait_at_once_as_there_are_threads() -> None:
    site = Site(consume_thread_min=2, consume_thread_max=2)

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        site.note((messages[0].body or b"").decode())
        await asyncio.sleep(10)
        return DONE

    site.start(listener, "a", "b", "c", "d")
    site.clock.advance(60_000)
    (_, at), *_ = site.seen
    assert site.seen == [("a", at), ("b", at), ("c", at + 10_000), ("d", at + 10_000)]
    site.close()


def test_an_ordered_coroutine_that_waits_holds_up_its_queue_alone() -> None:
    site = Site()
    site.broker.create_topic("T", 2)

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        site.note(f"{context.message_queue.queue_id} {(messages[0].body or b'').decode()}")
        await asyncio.sleep(5 if context.message_queue.queue_id == 0 else 0)
        return ConsumeOrderlyStatus.SUCCESS

    site.start(MessageListenerOrderly(listener))
    for queue in site.broker.topic_subscribe_info("T") or []:
        for body in (b"a", b"b", b"c"):
            site.producer.send(rocketmq.Message("T", body), queue=queue)
    site.clock.advance(60_000)
    zero = [at for what, at in site.seen if what[0] == "0"]
    one = [at for what, at in site.seen if what[0] == "1"]
    assert [what for what, _ in site.seen if what[0] == "0"] == ["0 a", "0 b", "0 c"]
    assert [at - zero[0] for at in zero] == [0, 5000, 10_000]
    assert [at - one[0] for at in one] == [0, 0, 0]
    assert sorted(site.committed()) == [3, 3]
    site.close()


def test_a_coroutine_may_wait_for_real_work_and_for_another_message() -> None:
    site = Site()
    heard = asyncio.Event()

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        body = (messages[0].body or b"").decode()
        if body == "first":
            await asyncio.wait_for(heard.wait(), 30)
        elif body == "second":
            assert await asyncio.to_thread(lambda: time.sleep(0.02) or 5) == 5
            heard.set()
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 7)
        site.note(body)
        return DONE

    site.start(listener, "first", "second", "third")
    site.clock.advance(30_000)
    assert sorted(what for what, _ in site.seen) == ["first", "second", "third"]
    moments = dict(site.seen)
    assert moments["third"] - moments["first"] == 7000
    assert site.committed() == [3]
    site.close()


def test_a_shutdown_cancels_coroutines_that_wait() -> None:
    site = Site()

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        try:
            await asyncio.sleep(3600)
        finally:
            site.note("cleaned up")
        return DONE

    site.start(listener, "a")
    site.clock.advance(30_000)
    assert site.seen == []
    site.consumer.shutdown()
    assert [what for what, _ in site.seen] == ["cleaned up"]
    site.broker.close()


def test_a_shutdown_waits_for_coroutines_by_the_manual_clock() -> None:
    site = Site(await_termination_millis_when_shutdown=timedelta(seconds=20))

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        await asyncio.sleep(15)
        site.note("ends")
        return DONE

    site.start(listener, "a")
    site.clock.advance(3000)
    site.close()
    assert [what for what, _ in site.seen] == ["ends"]


# Names and units


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("consumeThreadMin", "consume_thread_min"),
        ("nameserverAddress", ""),
        ("default_mq_push_consumer_impl", "fixed"),
    ],
)
def test_a_consumer_has_no_other_attributes(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=rf"DefaultMQPushConsumer\.{name}=5: .*{meant}"):
        setattr(rocketmq.DefaultMQPushConsumer("G"), name, 5)


@pytest.mark.parametrize(
    ("thing", "name", "meant"),
    [
        (lambda site: site.broker, "nodes", "fixed"),
        (lambda site: site.broker, "flushDiskType", ""),
        (lambda site: site.producer, "maxMessageSize", "max_message_size"),
        (lambda site: site.producer, "sendMsgTimeout", ""),
        (lambda site: site.producer, "broker", "fixed"),
        (lambda _: rocketmq.ConsumeConcurrentlyContext(rocketmq.MessageQueue("T", "a", 0)), "ackIndex", "ack_index"),
        (lambda _: rocketmq.ConsumeOrderlyContext(rocketmq.MessageQueue("T", "a", 0)), "autoCommit", "auto_commit"),
    ],
)
def test_a_name_that_nothing_reads_raises_with_the_one_that_was_meant(thing: Any, name: str, meant: str) -> None:
    site = Site()
    with pytest.raises(AttributeError, match=rf"\.{name}=5: .*{meant}"):
        setattr(thing(site), name, 5)
    site.producer.max_message_size = 3
    site.broker.close()


def test_times_are_ms_or_a_timedelta_and_minutes_stay_minutes() -> None:
    consumer = rocketmq.DefaultMQPushConsumer(
        "G", pull_interval=timedelta(seconds=1), consume_timeout=timedelta(hours=1)
    )
    consumer.heartbeat_broker_interval = timedelta(seconds=10)
    assert (consumer.pull_interval, consumer.heartbeat_broker_interval, consumer.consume_timeout) == (1000, 10_000, 60)
    with pytest.raises(ConfigurationError, match=r"consume_timeout=.*whole minutes are needed"):
        consumer.consume_timeout = timedelta(seconds=90)
    site = Site(pull_batch_size=timedelta(seconds=1))
    site.consumer.register_message_listener(lambda *_: DONE)
    with pytest.raises(ConfigurationError, match=r"pull_batch_size=.*a whole number is needed"):
        site.consumer.start()
    site.broker.close()


# What asks for what is not done


def test_a_parameter_that_asks_for_what_is_not_done_is_warned_of_at_start(caplog: pytest.LogCaptureFixture) -> None:
    site = Site(client_rebalance=False, pop_batch_nums=8, namespace="other", enable_trace=True)
    site.start(lambda *_: DONE)
    said = [record.getMessage() for record in caplog.records if "not done" in record.getMessage()]
    assert [text.split()[2] for text in said] == [
        "client_rebalance=False", "pop_batch_nums=8", "enable_trace=True"
    ]  # fmt: skip
    assert "POP" in said[0]
    site.close()


def test_a_delay_that_no_broker_looks_at_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    for _ in range(2):
        site.producer.send("T", b"x", properties={"__STARTDELIVERTIME": "1"})
    assert sum("__STARTDELIVERTIME" in record.getMessage() for record in caplog.records) == 1
    site.broker.close()


# Threads and processes


def test_a_manual_clock_raises_on_a_second_thread() -> None:
    site = Site()
    found: list[str] = []

    def send() -> None:
        with pytest.raises(IllegalStateError) as raised:
            site.producer.send("T", b"x")
        found.append(str(raised.value))

    thread = threading.Thread(target=send, name="second")
    thread.start()
    thread.join()
    assert re.match("this ManualClock belongs to thread 'MainThread', and this is thread 'second'", found[0])
    assert site.broker.messages("T") == []
    site.broker.close()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")
def test_what_a_forked_process_inherits_names_the_process_that_it_belongs_to() -> None:
    site = Site()
    site.start(lambda *_: DONE)
    uses = {
        "Producer": lambda: site.producer.send("T", b"x"),
        "Broker": lambda: site.broker.create_topic("U"),
        "DefaultMQPushConsumer": lambda: site.consumer.suspend(),
    }
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for use in uses.values():
                try:
                    os.write(writing, f"{use()}\n".encode())
                except IllegalStateError as error:
                    os.write(writing, f"{error}\n".encode())
            site.close()
            os.write(writing, f"{rocketmq.Broker(clock=ManualClock()).topics()}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        *said, own = pipe.read().splitlines()
    assert [text.split(",")[0] for text in said] == [f"this {name} belongs to process {os.getpid()}" for name in uses]
    assert own == "{}"
    site.close()


# Names of folders


@pytest.mark.parametrize(
    "parts",
    [
        {"client_ip": "{outside}/elsewhere"},
        {"instance_name": "x/../../../escaped"},
        {"client_ip": ".."},
        {"client_ip": "../a"},
        {"unit_name": "/../../b"},
        {"instance_name": "a\0b"},
        {"instance_name": "a\nb"},
        {"instance_name": "a\x1b[8mb"},
        {"instance_name": "i" * 300},
        {"instance_name": "\ud800"},
    ],
)
def test_no_client_id_leaves_the_folder_of_the_offsets(tmp_path: Path, parts: dict[str, str]) -> None:
    inner, outside = tmp_path / "inner", tmp_path / "outside"
    parts = {name: text.replace("{outside}", str(outside)) for name, text in parts.items()}
    site = Site(message_model=MessageModel.BROADCASTING, local_offset_store_dir=inner, **parts)
    if parts == {"client_ip": ".."}:  # "..@DEFAULT" is a folder's name as any other
        site.start(lambda *_: DONE, "a")
        site.clock.advance(30_000)
        site.close()
    else:
        with pytest.raises(ConfigurationError, match=r"client_id=.*client_ip, instance_name and unit_name"):
            site.start(lambda *_: DONE)
        site.broker.close()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.is_relative_to(inner / "..@DEFAULT") for path in written)


@pytest.mark.parametrize(
    ("client_id", "group"), [("c", "../g"), ("c", "/g"), ("", "g"), ("c", ""), (".", "."), ("c", "g/..")]
)
def test_no_name_of_a_store_leads_elsewhere(tmp_path: Path, client_id: str, group: str) -> None:
    with pytest.raises(ConfigurationError, match=r"(client_id|group)=.*outside"):
        LocalFileOffsetStore(client_id, group, directory=tmp_path)


@pytest.mark.parametrize("client_id", ["10.0.0.1@4711#5", "10.0.0.1@a/b", "fe80::1@x@unit", "10.0.0.1@数据 1"])
def test_the_real_clients_own_names_stay(tmp_path: Path, client_id: str) -> None:
    store = LocalFileOffsetStore(client_id, "G", directory=tmp_path)
    assert store.path == tmp_path / client_id / "G" / "offsets.json"
