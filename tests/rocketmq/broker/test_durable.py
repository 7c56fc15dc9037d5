"""The embedded cluster in files: what a restart, a kill, a torn end and damage leave."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine.clock import ManualClock
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidSourceError,
    MQBrokerError,
    MQClientError,
)
from pyengine.rocketmq import MessageQueue, SendStatus
from pyengine.rocketmq.broker import commit_log
from pyengine.rocketmq.broker.broker_files import BrokerFiles, read_topics
from pyengine.rocketmq.broker.log_reader import LogReader
from pyengine.rocketmq.broker.offset_files import read_consumer_offsets
from tests.ctrl_c import LIBRARY, CtrlC

ROOT = Path(__file__).parents[3]
Q0 = MessageQueue("T", "broker-a", 0)


def bodies(broker: rocketmq.Broker, topic: str = "T") -> list[bytes | None]:
    return [message.body for message in broker.messages(topic)]


def opened(folder: Path, clock: ManualClock | None = None, **options: object) -> rocketmq.Broker:
    return rocketmq.Broker(folder, clock=clock or ManualClock(), **options)  # type: ignore[arg-type]


def test_a_restart_goes_on_where_it_stopped(tmp_path: Path) -> None:
    clock = ManualClock()
    with opened(tmp_path, clock, names=["room1@a", "b"]) as broker:
        broker.create_topic("T", 2)
        producer = rocketmq.Producer(broker)
        sent = [producer.send("T", bytes([i]), tags="A", keys=str(i)) for i in range(6)]
        broker.update_consumer_offset("G", sent[0].queue, 1)
    with opened(tmp_path, clock, names=["room1@a", "b"]) as broker:
        assert broker.topic_subscribe_info("T") == [
            ("T", "room1@a", 0),
            ("T", "room1@a", 1),
            ("T", "b", 0),
            ("T", "b", 1),
        ]
        for i, result in enumerate(sent):
            message = broker.message(result.queue, result.queue_offset)
            assert message is not None
            assert (message.body, message.tags, message.keys, message.msg_id) == (
                bytes([i]),
                "A",
                str(i),
                result.msg_id,
            )
        assert broker.consumer_offsets("G", "T") == {sent[0].queue: 1}
        assert rocketmq.Producer(broker).send("T", b"x", queue=sent[0].queue).queue_offset == 2


def test_delayed_messages_wait_through_a_restart_and_come_once(tmp_path: Path) -> None:
    clock = ManualClock()
    with opened(tmp_path, clock) as broker:
        producer = rocketmq.Producer(broker)
        for level in (1, 1, 3):
            producer.send("T", bytes([level]), delay_time_level=level)
        clock.advance(1000)
        assert bodies(broker) == [b"\1", b"\1"]
    clock.advance(60_000)
    with opened(tmp_path, clock) as broker:
        clock.advance(0)
        assert sorted(body or b"" for body in bodies(broker)) == [b"\1", b"\1", b"\3"]
    with opened(tmp_path, clock) as broker:
        clock.advance(60_000)
        assert len(bodies(broker)) == 3


def test_consumer_offsets_are_written_after_ten_seconds_and_then_every_five(tmp_path: Path) -> None:
    clock = ManualClock()
    path = tmp_path / "broker-a" / "config" / "consumerOffset.json"
    with opened(tmp_path, clock) as broker:
        broker.create_topic("T", 1)
        broker.update_consumer_offset("G", Q0, 5)
        clock.advance(9_999)
        assert not path.exists()
        clock.advance(1)
        assert read_consumer_offsets(path.read_text())[0] == {"T@G": {0: 5}}
        broker.update_consumer_offset("G", Q0, 6)
        clock.advance(4_999)
        assert read_consumer_offsets(path.read_text())[0] == {"T@G": {0: 5}}
        clock.advance(1)
        assert read_consumer_offsets(path.read_text())[0] == {"T@G": {0: 6}}
        backup = path.with_name("consumerOffset.json.bak")
        assert read_consumer_offsets(backup.read_text())[0] == {"T@G": {0: 5}}
        written = path.stat().st_mtime_ns
        clock.advance(60_000)
        assert path.stat().st_mtime_ns == written, "nothing was committed, nothing is written"


def test_offsets_that_cannot_be_written_are_logged_and_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    path = tmp_path / "broker-a" / "config" / "consumerOffset.json"
    blocked = path.with_name(path.name + ".new")
    with opened(tmp_path, clock) as broker:
        broker.create_topic("T", 1)
        broker.update_consumer_offset("G", Q0, 5)
        blocked.mkdir()
        clock.advance(10_000)
        assert f"persist file {path} exception" in caplog.text
        assert not path.exists()
        blocked.rmdir()
        clock.advance(5_000)
        assert read_consumer_offsets(path.read_text())[0] == {"T@G": {0: 5}}
        broker.update_consumer_offset("G", Q0, 6)
        blocked.mkdir()
    blocked.rmdir()
    path.write_bytes(b"\0" * 50)
    path.with_name(path.name + ".bak").unlink(missing_ok=True)
    with opened(tmp_path, clock) as broker:
        assert broker.consumer_offsets("G", "T") == {}
    assert f"load {path} failed, and try to load backup file" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_copy_of_the_lock_in_a_forked_process_does_not_keep_the_folder(tmp_path: Path) -> None:
    files = BrokerFiles(tmp_path, "broker-a")
    copy = os.dup(files._lock._file.fileno())
    files.close()
    BrokerFiles(tmp_path, "broker-a").close()
    os.close(copy)


def test_more_queues_than_an_int_are_refused() -> None:
    text = '{"topicConfigTable":{"T":{"readQueueNums":2147483647}}}'
    with pytest.raises(InvalidSourceError, match="readQueueNums = 2147483647 is not a number from 0 to 1000000"):
        read_topics(text, "topics.json")


@pytest.mark.parametrize(
    ("text", "topics"),
    [  # as TopicConfigManager.decode reads them
        ('{"topicConfigTable":{"T":{"readQueueNums":"8"},"U":{"readQueueNums":"8.0"}}}', {"T": 8, "U": 8}),
        ('{"topicConfigTable":{"T":{"readQueueNums":2.7},"U":{"readQueueNums":true}}}', {"T": 2, "U": 1}),
        ('{"topicConfigTable":{"T":{"perm":6},"U":{"readQueueNums":null}}}', {"T": 16, "U": 16}),
        ('{"topicConfigTable":{"T":{"readQueueNums":""},"U":{"readQueueNums":"null"}}}', {"T": 16, "U": 16}),
        ('{"dataVersion":{"counter":1}}', {}),
    ],
)
def test_topics_are_read_as_the_real_broker_reads_them(text: str, topics: dict[str, int]) -> None:
    assert read_topics(text, "topics.json") == topics


def test_a_queue_whose_number_is_none_leaves_the_log_readable(tmp_path: Path) -> None:
    queue = MessageQueue("T", "broker-a", 1.5)  # type: ignore[arg-type]
    with rocketmq.Broker(tmp_path, clock=ManualClock()) as broker:
        broker.create_topic("T", 2)
        broker.send_message("P", rocketmq.Message("T", b"x"), MessageQueue("T", "broker-a", 1))
        with pytest.raises(ConfigurationError, match=r"queue_id=1\.5: a whole number of 32 bits"):
            broker.send_message("P", rocketmq.Message("T", b"y"), queue)
    with rocketmq.Broker(tmp_path, clock=ManualClock()) as broker:
        assert [message.body for message in broker.messages("T")] == [b"x"]


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(InvalidSourceError, match="embedded null"):
        rocketmq.Broker("a\0b", clock=ManualClock())
    with pytest.raises(MQClientError, match="embedded null"):
        rocketmq.LocalFileOffsetStore("client", "G", directory="a\0b").load()


def test_an_end_torn_at_any_byte_is_cut_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path / "whole") as broker:
        producer = rocketmq.Producer(broker)
        broker.create_topic("T", 1)
        for i in range(3):
            producer.send("T", b"x" * i + b".", queue=Q0)
    log = tmp_path / "whole" / "broker-a" / "log" / f"{0:020}"
    data = log.read_bytes()
    frames, end = record.scan(data)
    assert end == len(data)
    last = frames[-1][1]
    for size in range(last, len(data)):
        folder = tmp_path / str(size)
        torn = folder / "broker-a" / "log" / log.name
        torn.parent.mkdir(parents=True)
        torn.write_bytes(data[:size])
        with opened(folder) as broker:
            assert len(bodies(broker)) == 2
            assert rocketmq.Producer(broker).send("T", b"new", queue=Q0).queue_offset == 2
        with opened(folder) as broker:
            assert bodies(broker) == [b".", b"x.", b"new"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSourceError, match="broker-a: cannot be opened: Not a directory; name a folder to write"):
        rocketmq.Broker(tmp_path / "file")


@pytest.mark.parametrize("kept", ["consumerOffsets", "topics", "rdb"])
def test_what_a_real_broker_kept_in_rocksdb_is_refused(tmp_path: Path, kept: str) -> None:
    database = tmp_path / "broker-a" / "config" / kept
    database.mkdir(parents=True)
    (database / "CURRENT").write_text("MANIFEST-000004\n")
    with pytest.raises(InvalidSourceError, match=f"{kept}: is a RocksDB database.*mqadmin rocksDBConfigToJson"):
        opened(tmp_path)
    database.rename(tmp_path / "away")
    opened(tmp_path).close()


def test_damage_before_the_end_is_refused_and_touches_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as broker:
        producer = rocketmq.Producer(broker)
        for i in range(5):
            producer.send("T", b"%d" % i)
    log = tmp_path / "broker-a" / "log" / f"{0:020}"
    data = bytearray(log.read_bytes())
    place = record.scan(bytes(data))[0][2][1]
    data[place + 50] ^= 1
    log.write_bytes(data)
    for _ in range(2):
        with pytest.raises(InvalidSourceError, match=f"damaged at byte {place}"):
            opened(tmp_path)
    assert log.read_bytes() == data
    reader = LogReader(tmp_path, "broker-a")
    for read in (reader.end, lambda: list(reader.frames(0, len(data))), lambda: list(reader.frames(0, place + 1))):
        with pytest.raises(InvalidSourceError, match=f"{0:020}: damaged at byte {place}, before its end; restore"):
            read()


def test_one_folder_has_one_broker(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(IllegalStateError, match="another broker has this folder"):
        opened(tmp_path)
    with opened(tmp_path):
        pass
    with pytest.raises(ConfigurationError, match="cannot be a folder"):
        opened(tmp_path, names=["a/b"])
    with pytest.raises(ConfigurationError, match="flush_disk_type"):
        opened(tmp_path, flush_disk_type="LAZY")


def test_deleted_offsets_stay_deleted(tmp_path: Path) -> None:
    with opened(tmp_path) as broker:
        producer = rocketmq.Producer(broker)
        broker.create_topic("T", 2)
        for i in range(10):
            producer.send("T", b"%d" % i)
        broker.delete_below(Q0, 3)
        broker.delete_below(MessageQueue("T", "broker-a", 1), 99)
    with opened(tmp_path) as broker:
        assert [(broker.min_offset(q), broker.max_offset(q)) for q in broker.topic_subscribe_info("T") or ()] == [
            (3, 5),
            (5, 5),
        ]
        assert bodies(broker) == [b"6", b"8"]


def test_retention_lets_go_of_whole_files_and_keeps_the_offsets(tmp_path: Path) -> None:
    clock = ManualClock()
    log = tmp_path / "broker-a" / "log"
    with opened(tmp_path, clock, segment_bytes=2000) as broker:
        producer = rocketmq.Producer(broker)
        broker.create_topic("T", 2)
        for i in range(40):
            producer.send("T", b"x" * 100, queue=Q0 if i < 38 else None)
            clock.advance(3_600_000)
        producer.send("T", b"late", delay_time_level=18, queue=Q0)
        files = len(list(log.iterdir()))
        assert files > 3
        gone = broker.delete_expired(hours=30)
        assert gone > 5
        kept = len(bodies(broker))
        assert broker.delete_expired(hours=0.5) == kept
        assert len(list(log.iterdir())) < files
        ends = [broker.max_offset(queue) for queue in broker.topic_subscribe_info("T") or ()]
        assert sum(ends) == 40
    with opened(tmp_path, clock, segment_bytes=2000) as broker:
        assert [broker.max_offset(queue) for queue in broker.topic_subscribe_info("T") or ()] == ends
        assert bodies(broker) == []
        clock.advance(7_200_000)
        assert bodies(broker) == [b"late"]
    with opened(tmp_path, clock, segment_bytes=2000) as broker:
        clock.advance(7_200_000)
        assert bodies(broker) == [b"late"]


PRODUCE = """
import sys, threading
from pyengine import rocketmq
from pyengine.rocketmq import MessageQueue
folder, flush, start = sys.argv[1:]
broker = rocketmq.Broker(folder, flush_disk_type=flush, segment_bytes=20_000)
broker.create_topic("T", 2)
producer = rocketmq.Producer(broker)
lock = threading.Lock()
def send(thread):
    for number in range(10**9):
        text = f"{start}-{thread}-{number}"
        producer.send("T", text.encode(), delay_time_level=number % 2)
        with lock:
            sys.stdout.write(text + "\\n")
            sys.stdout.flush()
for thread in range(2):
    threading.Thread(target=send, args=(thread,), daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_killed_broker_has_every_message_that_it_confirmed(tmp_path: Path, flush: str) -> None:
    random = Random(11)
    confirmed: set[bytes] = set()
    for start in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", PRODUCE, str(tmp_path), flush, str(start)], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        first = b"".join(process.stdout.readline() for _ in range(random.randrange(6, 100)))
        assert first.endswith(b"\n"), "the producer did not start"
        process.send_signal(signal.SIGKILL)
        lines = (first + process.stdout.read()).split(b"\n")
        process.wait()
        process.stdout.close()
        confirmed.update(lines[:-1])
    clock = ManualClock(now=4_000_000_000_000)
    with opened(tmp_path, clock, segment_bytes=20_000) as broker:
        clock.advance(10_000)
        found = bodies(broker)
    assert confirmed <= set(found)
    assert len(found) == len(set(found)), "no delayed message came twice"
    assert len(confirmed) > 20


def test_messages_of_a_delay_level_that_is_gone_wait_until_it_is_there_again(tmp_path: Path) -> None:
    clock = ManualClock(now=1_700_000_000_000)
    with rocketmq.Broker(tmp_path, clock=clock) as broker:
        producer = rocketmq.Producer(broker)
        for level, body in ((2, b"5s"), (5, b"1m"), (18, b"2h")):
            producer.send("T", body, delay_time_level=level)
        clock.advance(60_000)
    clock.advance(3 * 3_600_000)
    with rocketmq.Broker(tmp_path, clock=clock, message_delay_level="1s 5s") as broker:
        clock.advance(60_000)
        assert broker.delete_expired(hours=0) == 4  # two that were delivered, and where they waited
        assert broker.messages("T") == []
    with rocketmq.Broker(tmp_path, clock=clock) as broker:
        clock.advance(0)
        assert [message.body for message in broker.messages("T")] == [b"2h"]


def test_a_closed_broker_takes_nothing_and_writes_into_nobody_elses_file(tmp_path: Path) -> None:
    broker = rocketmq.Broker(tmp_path / "data", clock=ManualClock())
    producer = rocketmq.Producer(broker)
    queue = producer.send("T", b"kept").queue
    message = broker.message(queue, 0)
    assert message is not None
    broker.close()
    others = [(tmp_path / f"{i}").open("w+b") for i in range(8)]  # they get the descriptors that the log had
    for ask in (
        lambda: producer.send("T", b"lost"),
        lambda: broker.consumer_send_message_back("G", message, 0, 16),
        lambda: broker.update_consumer_offset("G", queue, 1),
        lambda: broker.create_topic("New"),
        lambda: broker.lock_batch_mq("G", "c", [queue]),
        lambda: broker.delete_below(queue, 1),
        lambda: broker.delete_expired(0),
    ):
        with pytest.raises(MQClientError, match=r"the broker\[broker-a\] is closed"):
            ask()
    with pytest.raises(IllegalStateError, match=r"the log in .* is closed"):
        broker.message(queue, 0)
    for file in others:
        file.close()
        assert Path(file.name).read_bytes() == b""
    with rocketmq.Broker(tmp_path / "data", clock=ManualClock()) as again:
        assert [each.body for each in again.messages("T")] == [b"kept"]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")
def test_a_forked_copy_of_a_broker_takes_nothing_and_leaves_its_files_alone(tmp_path: Path) -> None:
    broker = rocketmq.Broker(tmp_path, clock=ManualClock())
    producer = rocketmq.Producer(broker)
    queue = producer.send("T", b"before").queue
    broker.update_consumer_offset("G", queue, 1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for ask in (lambda: producer.send("T", bytes(1000)), lambda: broker.update_consumer_offset("G", queue, 0)):
                try:
                    ask()
                    os.write(writing, b"taken ")
                except IllegalStateError as error:
                    os.write(writing, str(error)[: str(error).index(",")].encode())
            broker.close()
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        here = f"belongs to process {os.getpid()}"
        assert pipe.read() == f"this Producer {here}this Broker {here}"
    with pytest.raises(IllegalStateError, match="another broker has this folder"):
        rocketmq.Broker(tmp_path, clock=ManualClock())
    producer.send("T", b"behind")
    broker.close()
    with rocketmq.Broker(tmp_path, clock=ManualClock()) as again:
        assert [message.body for message in again.messages("T")] == [b"before", b"behind"]
        assert again.consumer_offsets("G", "T") == {queue: 1}


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size there")
def test_a_full_disk_refuses_messages_and_delays_those_that_are_due(tmp_path: Path) -> None:
    import resource

    clock = ManualClock(now=1_700_000_000_000)
    broker = rocketmq.Broker(tmp_path, clock=clock)
    producer = rocketmq.Producer(broker)
    producer.send("T", b"late", delay_time_level=1)
    size = broker.nodes["broker-a"].store.log.end
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, unlimited[1]))
    try:
        with pytest.raises(MQBrokerError, match=r"CODE: 14  DESC: service not available now: .* cannot be written"):
            producer.send("T", b"refused")
        clock.advance(1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert broker.messages("T") == []
    clock.advance(9_999)
    assert broker.messages("T") == []
    clock.advance(1)
    producer.send("T", b"taken")
    broker.close()
    with rocketmq.Broker(tmp_path, clock=clock) as again:
        assert sorted(message.body or b"" for message in again.messages("T")) == [b"late", b"taken"]


@pytest.mark.parametrize("level", [0, 1])
def test_a_send_that_is_interrupted_anywhere_leaves_the_folder_loadable(tmp_path: Path, level: int) -> None:
    clock = ManualClock(now=1_700_000_000_000)
    broker = rocketmq.Broker(tmp_path, clock=clock, segment_bytes=2000)
    broker.create_topic("T", 1)
    producer = rocketmq.Producer(broker)
    confirmed = []
    step = 1
    while CtrlC(LIBRARY, step).ends(lambda: producer.send("T", b"lost or kept", delay_time_level=level)):
        if step % 3:
            confirmed.append(b"%d" % step)
            producer.send("T", confirmed[-1], delay_time_level=level)
        if step % 7 == 0:
            broker.delete_below(Q0, 1)
        if step % 5 == 0:
            clock.advance(1)
            broker.delete_expired(hours=0)
        step += 1
    confirmed.append(b"last")
    producer.send("T", confirmed[-1], delay_time_level=level)
    broker.close()
    assert step > 40
    with rocketmq.Broker(tmp_path, clock=clock) as again:
        clock.advance(1000)
        found = [body for body in bodies(again) if body != b"lost or kept"]
        assert found == (confirmed if level else confirmed[-len(found) :])
        assert found
        rocketmq.Producer(again).send("T", b"goes on")


def test_what_ctrl_c_leaves_of_a_frame_is_gone_when_its_file_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = commit_log._write_at

    def interrupted(descriptor: int, data: bytes, place: int) -> int:
        write(descriptor, data, place)
        raise KeyboardInterrupt

    with rocketmq.Broker(tmp_path, clock=ManualClock(), segment_bytes=400) as broker:
        broker.create_topic("T", 1)
        producer = rocketmq.Producer(broker)
        producer.send("T", b"1" * 150)
        monkeypatch.setattr(commit_log, "_write_at", interrupted)
        with pytest.raises(KeyboardInterrupt):
            producer.send("T", b"2" * 300)
        monkeypatch.setattr(commit_log, "_write_at", write)
        kept = [b"1" * 150, b"3" * 10, b"4" * 10, b"5" * 10]
        for body in kept[1:]:
            producer.send("T", body)
    assert len(list((tmp_path / "broker-a" / "log").iterdir())) > 1
    with rocketmq.Broker(tmp_path, clock=ManualClock()) as again:
        assert bodies(again) == kept


# Of a file that was just opened when Ctrl-C came.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_close_that_is_interrupted_anywhere_is_ended_by_the_next_one(tmp_path: Path) -> None:
    step = 1
    interrupted = True
    while interrupted:
        clock = ManualClock()
        broker = rocketmq.Broker(tmp_path, clock=clock)
        broker.create_topic("T", 1)
        consumer = rocketmq.DefaultMQPushConsumer("G", broker=broker)
        consumer.subscribe("T")
        consumer.register_message_listener(lambda *_: rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        consumer.start()
        rocketmq.Producer(broker).send("T", b"%d" % step)
        clock.advance(3000)
        interrupted = CtrlC(LIBRARY, step).ends(broker.close)
        broker.close()
        consumer.shutdown()
        step += 1
    assert step > 100
    with opened(tmp_path) as broker:
        assert bodies(broker) == [b"%d" % number for number in range(1, step)]


# Of a lock's file that was just opened when Ctrl-C came.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("manual", [True, False])
def test_an_open_that_is_interrupted_anywhere_leaves_the_folder_free(tmp_path: Path, manual: bool) -> None:
    with opened(tmp_path, names=["a", "b"]) as broker:
        broker.create_topic("T", 1, brokers=["b"])
        rocketmq.Producer(broker).send("T", b"kept")
    made: list[rocketmq.Broker] = []
    step = 1
    while CtrlC(LIBRARY, step).ends(
        lambda: made.append(rocketmq.Broker(tmp_path, names=["b"], clock=ManualClock() if manual else None))
    ):
        opened(tmp_path, names=["b"]).close()
        step += 1
    made[0].close()
    assert step > 100
    with opened(tmp_path, names=["a", "b"]) as broker:
        assert bodies(broker) == [b"kept"]


def test_what_was_stored_while_the_clock_was_wrong_takes_nothing_younger_with_it(tmp_path: Path) -> None:
    day = 24 * 3_600_000
    for today, body in ((100, b"1"), (100, b"2"), (1, b"3"), (1, b"4"), (100, b"5")):
        with opened(tmp_path, ManualClock(now=today * day)) as broker:
            rocketmq.Producer(broker).send("T", body, queue=Q0)
            assert broker.delete_expired(hours=72) == 0
    with opened(tmp_path, ManualClock(now=104 * day)) as broker:
        rocketmq.Producer(broker).send("T", b"6", queue=Q0)
        assert broker.delete_expired(hours=72) == 5
        assert bodies(broker) == [b"6"]


def test_a_folder_named_from_here_stays_the_same_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = rocketmq.LocalFileOffsetStore("client", "G", directory="offsets")
    clock = ManualClock()
    with rocketmq.Broker("data", clock=clock, segment_bytes=100) as broker:
        monkeypatch.chdir(tmp_path / "elsewhere")
        for number in range(3):
            rocketmq.Producer(broker).send("T", b"%d" % number, queue=Q0)
            clock.advance(500)
        broker.update_consumer_offset("G", Q0, 3)
        store.update_offset(Q0, 3)
        store.persist(Q0)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    monkeypatch.chdir(tmp_path)
    with rocketmq.Broker("data", clock=clock) as again:
        assert bodies(again) == [b"0", b"1", b"2"]
        assert again.consumer_offsets("G", "T") == {Q0: 3}


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open cannot be deleted there")
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
@pytest.mark.parametrize("moved", [False, True])
def test_a_folder_that_is_deleted_or_moved_takes_nothing_from_the_next_flush_on(
    tmp_path: Path, flush: Literal["SYNC_FLUSH", "ASYNC_FLUSH"], moved: bool
) -> None:
    clock = ManualClock(now=1_700_000_000_000)
    broker = rocketmq.Broker(tmp_path / "data", clock=clock, flush_disk_type=flush)
    producer = rocketmq.Producer(broker)
    producer.send("T", b"before")
    clock.advance(500)
    if moved:
        (tmp_path / "data").rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(tmp_path / "data")
    first = producer.send("T", b"unseen").status
    assert first is (SendStatus.FLUSH_DISK_TIMEOUT if flush == "SYNC_FLUSH" else SendStatus.SEND_OK)
    clock.advance(500)
    with pytest.raises(
        MQBrokerError, match=r"CODE: 14 .* No such file or directory: '.*/data/.*; open the folder anew"
    ):
        producer.send("T", b"refused")
    assert sorted(message.body or b"" for message in broker.messages("T")) == [b"before", b"unseen"]
    broker.close()


FAULTS = """
import errno, os, sys
from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import PyengineError
from pyengine.rocketmq.broker import commit_log
folder, flush, call = sys.argv[1:]
owner = commit_log if call == "sync_file" else os
clock = ManualClock(now=1_700_000_000_000)
broker = rocketmq.Broker(folder, clock=clock, flush_disk_type=flush, segment_bytes=1000)
broker.create_topic("T", 1)
producer = rocketmq.Producer(broker)
queue = producer.send("T", b"before").queue
producer.send("T", b"late", delay_time_level=1)
clock.advance(500)
message = broker.message(queue, 0)
real = getattr(owner, call)
def fails(*arguments):
    raise OSError(errno.EIO, os.strerror(errno.EIO))
setattr(owner, call, fails)
def told(what, act):
    try:
        print(what, act())
    except PyengineError as error:
        print(what, type(error).__name__, error)
for body in (b"first", b"second", b"big" + bytes(900)):
    told("send", lambda: producer.send("T", body).status.name)
    clock.advance(500)
told("back", lambda: broker.consumer_send_message_back("G", message, 1, 16))
told("read", lambda: broker.message(queue, 0).body)
told("delete", lambda: broker.delete_below(queue, 1))
clock.advance(3_600_000)
told("expire", lambda: broker.delete_expired(0.5))
setattr(owner, call, real)
told("again", lambda: producer.send("T", b"again").status.name)
print("late", b"late" in [each.body for each in broker.messages("T")])
setattr(owner, call, fails)
broker.close()
setattr(owner, call, real)
with rocketmq.Broker(folder, clock=clock) as broker:
    clock.advance(1000)
    print("found", broker.min_offset(queue), *(each.body.decode().rstrip(chr(0)) for each in broker.messages("T")))
"""
REFUSED = "MQBrokerError CODE: 14  DESC: service not available now: the broker's log cannot be written ("
FAILED = REFUSED + "[Errno 5] the disk failed: [Errno 5] Input/output error; open the folder anew)"
UNWRITTEN = REFUSED + "[Errno 5] Input/output error)"
LOG = "broker-a/log/00000000000000000000"
UNREAD = f"InvalidSourceError {{folder}}/{LOG}: cannot be read: [Errno 5] Input/output error"
LOST_SIGHT = "MQBrokerError CODE: 1  DESC: look message by offset failed, 0"
OK = "SEND_OK"


@pytest.mark.skipif(sys.platform == "win32", reason="pwrite and pread are POSIX")
@pytest.mark.parametrize(
    ("flush", "call", "sends", "rest", "again", "late", "found"),
    [
        (
            "SYNC_FLUSH", "sync_file", ["FLUSH_DISK_TIMEOUT", FAILED, FAILED], [FAILED, "b'before'", FAILED, FAILED],
            FAILED, False, "0 before first late",
        ),
        (
            "ASYNC_FLUSH", "sync_file", [OK, FAILED, FAILED], [FAILED, "b'before'", FAILED, FAILED],
            FAILED, True, "0 before first late",
        ),
        (
            "SYNC_FLUSH", "pwrite", [UNWRITTEN] * 3, [UNWRITTEN, "b'before'", UNWRITTEN, UNWRITTEN],
            OK, False, "0 before again late",
        ),
        ("SYNC_FLUSH", "pread", [OK] * 3, [LOST_SIGHT, UNREAD, "1", "3"], OK, False, "4 again late"),
        ("ASYNC_FLUSH", "unlink", [OK] * 3, ["None", "b'before'", "1", "7"], OK, False, "5 again"),
        (
            "SYNC_FLUSH", "open", [OK] * 3, [UNWRITTEN, "b'before'", UNWRITTEN, UNWRITTEN],
            OK, True, "0 before first late second big again",
        ),
    ],
)  # fmt: skip
def test_a_disk_that_fails_is_told_and_loses_nothing_that_was_confirmed(
    tmp_path: Path, flush: str, call: str, sends: list[str], rest: list[str], again: str, late: bool, found: str
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", FAULTS, str(tmp_path), flush, call], capture_output=True, text=True, cwd=ROOT, check=True
    )
    names = ["send"] * 3 + ["back", "read", "delete", "expire", "again"]
    expected = [f"{name} {answer}" for name, answer in zip(names, [*sends, *rest, again], strict=True)]
    expected += [f"late {late}", f"found {found}"]
    assert told.stdout.splitlines() == [line.replace("{folder}", str(tmp_path)) for line in expected]


def test_a_log_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "broker-a" / "log" / f"{0:020}").mkdir(parents=True)
    with pytest.raises(InvalidSourceError, match=f"{0:020}: cannot be opened: Is a directory; name a folder to write"):
        opened(tmp_path)
    (tmp_path / "broker-a" / "log" / f"{0:020}").rmdir()
    opened(tmp_path).close()


@pytest.mark.parametrize("length", range(10))
def test_bytes_that_are_no_frame_have_no_stored_message(length: int) -> None:
    for read in (record.stored_size, record.payload, record.decode_message):
        with pytest.raises(ValueError, match="not the frame of a message"):
            read(bytes(length))
    assert not record.is_whole(bytes(length))
    for at in (-(2**62), -1, 0, length, 2**62):
        assert not record.frame_follows(bytes(length), at)
