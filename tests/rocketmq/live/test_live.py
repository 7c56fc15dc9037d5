"""Beside the real RocketMQ 5.3.3 on loopback: our files load there and its files here, and pulls get equal answers."""

from __future__ import annotations

import base64
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine.clock import ManualClock
from pyengine.rocketmq import LocalFileOffsetStore, MessageQueue, PullResult
from pyengine.rocketmq.broker.broker_files import read_topics
from pyengine.rocketmq.broker.offset_files import read_consumer_offsets, read_local_offsets
from pyengine.rocketmq.remoting.mq_client_api import PullMessageRequest
from tests.interop import started_or_skipped
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import TOPICS, differences, patiently, start

GROUP = "G"
Q0, Q1 = (MessageQueue("Ours", "broker-a", i) for i in range(2))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def real(home: Path) -> Iterator[Real]:
    jvm = started_or_skipped(lambda: Real(home))
    yield jvm
    jvm.close()


def test_our_local_offsets_load_in_the_real_client_and_its_in_ours(real: Real, home: Path) -> None:
    client_id = "10.0.0.1@DEFAULT"
    store = LocalFileOffsetStore(client_id, GROUP, directory=home / "offsets")
    store.update_offset(Q0, 42)
    store.update_offset(MessageQueue("T", "room@broker-b", 7), 2**63 - 1)
    store.persist_all([Q0, MessageQueue("T", "room@broker-b", 7)])
    loaded = real.ask("localOffsets", clientId=client_id, group=GROUP, topics=["Ours", "T"], queue=Q1, offset=43)
    assert loaded == {
        str(Q0): 42,
        "MessageQueue [topic=T, brokerName=room@broker-b, queueId=7]": 2**63 - 1,
    }
    again = LocalFileOffsetStore(client_id, GROUP, directory=home / "offsets")
    again.load()
    assert again.offsets() == {Q0: 42, Q1: 43, MessageQueue("T", "room@broker-b", 7): 2**63 - 1}
    backup = store.path.with_name("offsets.json.bak")
    assert read_local_offsets(backup.read_text())[Q0] == 42
    assert real.ask("fastjson", file=str(store.path)) == 3
    again.persist_all([Q0])
    assert real.ask("fastjson", file=str(store.path)) == 3


def test_the_real_decoder_reads_our_log(real: Real, tmp_path: Path) -> None:
    clock = ManualClock()
    with rocketmq.Broker(tmp_path, clock=clock) as broker:
        broker.create_topic("Ours", 2)
        producer = rocketmq.Producer(broker)
        sent = [producer.send("Ours", f"body {i} é".encode(), tags="TagA", keys="k", queue=Q1) for i in range(3)]
        ours = [broker.message(Q1, i) for i in range(3)]
    data = (tmp_path / "broker-a" / "log" / f"{0:020}").read_bytes()
    frames, _ = record.scan(data)
    for message, result, (_, position, size, *_) in zip(ours, sent, frames, strict=True):
        assert message is not None
        payload = base64.b64encode(record.payload(data[position : position + size])).decode()
        theirs: Any = real.ask("decode", payload=payload)
        assert (theirs["topic"], theirs["body"], theirs["tags"]) == ("Ours", (message.body or b"").decode(), "TagA")
        assert (theirs["queueId"], theirs["queueOffset"]) == (1, message.queue_offset)
        assert (theirs["storeTimestamp"], theirs["commitLogOffset"]) == (clock.now(), position)
        assert (theirs["storeSize"], theirs["bodyCRC"]) == (message.store_size, message.body_crc)
        assert theirs["offsetMsgId"] == result.offset_msg_id


def until(reached: Callable[[], bool]) -> None:
    """Wait for what the real broker does later; at most five minutes."""
    deadline = time.monotonic() + 300
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pulled(broker: rocketmq.Broker, queue: MessageQueue, expression: str, offset: int, count: int) -> dict[str, object]:
    """Our answer in the form of the real one."""
    request = PullMessageRequest("c", GROUP, queue, offset, count, sys_flag=0, sub_expression=expression)
    answers: list[Any] = []
    broker.pull_message(request, answers.append)
    broker.settle()
    (answer,) = answers
    assert isinstance(answer, PullResult), answer
    return {
        "status": answer.status.name,
        "next": answer.next_begin_offset,
        "min": answer.min_offset,
        "max": answer.max_offset,
        "offsets": [message.queue_offset for message in answer.messages],
    }


@pytest.fixture(scope="module")
def cluster(real: Real, home: Path) -> tuple[Real, Path]:
    """A real cluster that goes on with what one of ours left, and its store."""
    ours, store = home / "ours", home / "store"
    with rocketmq.Broker(ours, clock=ManualClock(now=int(time.time() * 1000))) as broker:
        for topic, queues in {"Ours": 2, "Pulls": 1, **TOPICS}.items():
            broker.create_topic(topic, queues)
        broker.update_consumer_offset(GROUP, Q0, 3)
        broker.update_consumer_offset(GROUP, Q1, 5)
    shutil.copytree(ours / "broker-a" / "config", store / "config")
    # As we wrote it: later the real broker writes the file itself.
    assert real.ask("fastjson2", file=str(store / "config" / "consumerOffset.json")) == 1
    start(real, home, store)
    return real, store


def test_a_random_script_is_answered_alike(cluster: tuple[Real, Path], caplog: pytest.LogCaptureFixture) -> None:
    real, _ = cluster
    caplog.set_level(logging.CRITICAL, "pyengine.rocketmq")
    patiently(lambda: real.ask("topics", topic="One"))
    assert list(islice(differences(real, 200, 1), 3)) == []


def test_a_message_that_waited_keeps_the_properties_that_it_keeps_there(cluster: tuple[Real, Path]) -> None:
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("T", 1)
        rocketmq.Producer(broker).send("T", b"\1", tags="A", keys="k", delay_time_level=18)
        waiting = broker.nodes["broker-a"]._decode(0)
        clock.advance(7_200_000)
        (message,) = broker.messages("T")
    assert message.properties["DELAY"] == "18"
    assert cluster[0].ask("timeUp", properties=waiting.properties) == message.properties


def test_a_real_cluster_goes_on_with_our_folder_and_we_with_its(cluster: tuple[Real, Path], tmp_path: Path) -> None:
    real, store = cluster
    clock = ManualClock(now=int(time.time() * 1000))
    assert patiently(lambda: real.ask("topics", topic="Ours")) == ["broker-a 0", "broker-a 1"]
    assert [real.ask("committed", queue=queue) for queue in (Q0, Q1)] == [3, 5]

    # The same messages and the same pulls on both sides.
    place = MessageQueue("Pulls", "broker-a", 0)
    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("Pulls", 1)
        producer = rocketmq.Producer(broker)
        assert real.ask("pull", queue=place, expression="*", offset=0, count=32) == pulled(broker, place, "*", 0, 32)
        for i in range(40):
            tag = ("Aa", "BB", "C")[i % 3]
            theirs = real.ask("send", topic="Pulls", tags=tag, body=f"{i}", queue=place, level=0)
            assert producer.send("Pulls", f"{i}".encode(), tags=tag, queue=place).queue_offset == theirs
        until(lambda: real.ask("maxOffset", queue=place) == 40)
        for expression in ("*", "C", "C || D", "nothing"):
            for offset in (0, 5, 39, 40, 41, 1000):
                for count in (1, 10, 32, 100):
                    asked = {"queue": place, "expression": expression, "offset": offset, "count": count}
                    expected: Any = real.ask("pull", **asked)
                    got = pulled(broker, place, expression, offset, count)
                    assert got == expected, asked

    real.ask("commit", queue=Q1, offset=9)  # one way, so the broker may not have it yet
    until(lambda: real.ask("committed", queue=Q1) == 9)
    real.ask("persist")
    table, _ = read_consumer_offsets((store / "config" / "consumerOffset.json").read_text())
    assert table["Ours@G"] == {0: 3, 1: 9}
    assert read_topics((store / "config" / "topics.json").read_text(), "topics.json")["Ours"] == 2

    back = tmp_path / "back"
    shutil.copytree(store / "config", back / "broker-a" / "config")
    with rocketmq.Broker(back, clock=clock) as broker:
        assert broker.consumer_offsets(GROUP, "Ours") == {Q0: 3, Q1: 9}
        assert broker.topics()["Pulls"] == 1
