"""Spark reads what an embedded RocketMQ cluster has stored, and stores what the cluster's consumers then get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from pyengine.backlog.tables import output
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import (
    Broker,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    DefaultMQPushConsumer,
    MessageQueue,
    Producer,
)
from pyengine.rocketmq.broker.commit_log import FileLog
from pyengine.spark import register_logs, rocketmq_log, staging
from pyengine.spark.activemq_store import ActiveMQStore
from pyengine.spark.rocketmq_log import RocketMQLog
from pyengine.spark.staging import paths_of
from tests.house.examples import blocks
from tests.house.examples import run as run_block
from tests.spark.deaths import Disk

FIELDS = ("topic", "broker_name", "queue_id", "queue_offset", "commit_log_offset", "msg_id", "tags", "keys", "body")
TIMES = ("flag", "born_timestamp", "store_timestamp", "born_host", "reconsume_times")
NAMES = ("broker-a", "broker-b")


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    register_logs(spark)
    return spark


def stored(messages: Any) -> list[Any]:
    return sorted(
        (*(getattr(message, name) for name in (*FIELDS, *TIMES)), sorted(message.properties.items()))
        for message in messages
    )


def read(rows: list[Any]) -> list[Any]:
    return sorted(
        (
            *(bytes(row[name]) if name == "body" else row[name] for name in (*FIELDS, *TIMES)),
            sorted(row["properties"].items()),
        )
        for row in rows
    )


def produce(broker: Broker, texts: range, topic: str = "orders") -> None:
    producer = Producer(broker)
    for number in texts:
        producer.send(
            topic, f"𝄞 {number}".encode(), tags="even" if number % 2 == 0 else "odd", keys=f"k{number}",
            properties={"region": "EU"},
        )  # fmt: skip


def test_a_batch_is_what_the_brokers_have(session: Any, tmp_path: Path) -> None:
    clock = ManualClock()
    with Broker(tmp_path, names=NAMES, segment_bytes=4096, clock=clock) as broker:
        produce(broker, range(200))
        produce(broker, range(7), "other")
        broker.delete_below(MessageQueue("orders", "broker-b", 1), 11)
        Producer(broker).send("orders", b"later", delay_time_level=3)
        # The broker is running; what waits for its delay is in nobody's queue yet.
        rows = session.read.format("rocketmq_log").load(str(tmp_path)).collect()
        both = [*broker.messages("orders"), *broker.messages("other")]
        assert read(rows) == stored(both)
        assert len(list((tmp_path / "broker-a" / "log").iterdir())) > 3
        some = session.read.format("rocketmq_log").option("topic", "other, absent").load(str(tmp_path))
        assert read(some.collect()) == stored(broker.messages("other"))
        clock.advance(1)
        broker.delete_expired(0)
        assert read(session.read.format("rocketmq_log").load(str(tmp_path)).collect()) == []


def test_a_session_made_of_one_that_knows_the_logs_is_told_of_them_too(session: Any, tmp_path: Path) -> None:
    with Broker(tmp_path, clock=ManualClock()) as broker:
        produce(broker, range(3))
    other = session.newSession()
    for _ in range(2):
        register_logs(other)
        assert type(session).active() is session
    for each in (other, session):
        assert each.read.format("rocketmq_log").load(str(tmp_path)).count() == 3


def test_a_cluster_without_a_message_has_no_rows(session: Any, tmp_path: Path) -> None:
    with Broker(tmp_path):
        assert session.read.format("rocketmq_log").load(str(tmp_path)).collect() == []


@pytest.mark.parametrize("source", [RocketMQLog, ActiveMQStore])
def test_a_stream_says_its_checkpoint_itself(tmp_path: Path, source: Any) -> None:
    """Spark does not tell one that its settings name: another stream of the name would be taken for this one."""
    for checkpoint in ({}, {"checkpointLocation": ""}):
        made = source({"path": str(tmp_path), "stream": "copy", **checkpoint})
        with pytest.raises(ConfigurationError, match="missing among the options of the stream"):
            made.streamWriter(None, False)


def test_a_stream_reads_every_message_once(session: Any, tmp_path: Path) -> None:
    logs, sink = tmp_path / "cluster", tmp_path / "sink"

    def go_on() -> None:
        frame = session.readStream.format("rocketmq_log").option("topic", "orders").load(str(logs))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start(str(sink)).awaitTermination()

    with Broker(logs, names=NAMES[:1], segment_bytes=4096, clock=ManualClock()) as broker:
        produce(broker, range(100))
        go_on()
        assert session.read.parquet(str(sink)).count() == 100
        produce(broker, range(100, 130))
    clock = ManualClock()
    with Broker(logs, names=NAMES, segment_bytes=4096, clock=clock) as broker:
        produce(broker, range(130, 190))
        go_on()
        assert read(session.read.parquet(str(sink)).collect()) == stored(broker.messages("orders"))
        clock.advance(1)
        broker.delete_expired(0)
        produce(broker, range(190, 193))
        go_on()
        assert session.read.parquet(str(sink)).count() == 193


def test_a_stream_may_begin_at_the_end(tmp_path: Path) -> None:
    """A broker that joins begins with its log all the same."""

    def texts(start: Any, end: Any) -> list[str]:
        batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
        return sorted(bytes(body).decode() for batch in batches for body in batch.column("body").to_pylist())

    reader = RocketMQLog({"path": str(tmp_path), "startingOffsets": "latest"}).streamReader(None)
    with Broker(tmp_path, names=NAMES[:1], clock=ManualClock()) as broker:
        produce(broker, range(3))
        first = reader.initialOffset()
        produce(broker, range(3, 5))
        second = reader.latestOffset(first)
        assert texts(first, second) == ["𝄞 3", "𝄞 4"]
    with Broker(tmp_path, names=NAMES, clock=ManualClock()) as broker:
        Producer(broker).send("new", b"5", queue=MessageQueue("new", "broker-b", broker.make_topic("new")[-1].queue_id))
    third = reader.latestOffset(second)
    assert texts(second, third) == ["5"]
    assert texts(third, third) == []
    with pytest.raises(ConfigurationError, match="earliest or latest are accepted"):
        RocketMQLog({"path": str(tmp_path), "startingOffsets": "newest"}).streamReader(None)


def test_every_column_of_a_row_comes_into_the_message() -> None:
    target = rocketmq_log._Target("directory", "folder", NAMES, "group")
    row = {
        "topic": "orders", "body": b"tea", "tags": "hot", "keys": "k1 k2",
        "properties": [("a", "1"), ("UNIQ_KEY", "x")], "flag": 7, "delay_time_level": 3,
        "queue_id": 2, "broker_name": "broker-b",
    }  # fmt: skip
    message, queue = target.message(row)
    assert (message.topic, message.body, message.tags, message.keys, message.flag) == (
        "orders", b"tea", "hot", "k1 k2", 7,
    )  # fmt: skip
    assert message.delay_time_level == 3
    assert message.properties == {"a": "1", "TAGS": "hot", "KEYS": "k1 k2", "DELAY": "3"}
    assert queue == MessageQueue("orders", "broker-b", 2)
    assert target.message({**row, "broker_name": None})[1] == MessageQueue("orders", "broker-a", 2)
    bare, queue = target.message({"topic": "orders", "body": b"tea", "queue_id": None, "properties": None})
    assert (bare.properties, bare.flag, queue) == ({}, 0, None)


def frame_of(session: Any, numbers: range) -> Any:
    rows = [
        ("orders", f"{number}".encode(), f"tag{number % 3}", {"number": str(number), "text": "𝄞"}, number % 2)
        for number in numbers
    ]
    schema = "topic string, body binary, tags string, properties map<string,string>, queue_id int"
    return session.createDataFrame(rows, schema)


def test_consumers_get_what_spark_wrote(session: Any, tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.create_topic("orders", 2)
    frame_of(session, range(50)).repartition(3).write.format("rocketmq_log").mode("append").save(str(tmp_path))
    clock = ManualClock()
    with Broker(tmp_path, clock=clock) as broker:
        got = []

        def listen(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
            got.extend(messages)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer = DefaultMQPushConsumer("group", broker=broker)
        consumer.consume_from_where = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        consumer.subscribe("orders", "tag0 || tag1")
        consumer.register_message_listener(listen)
        consumer.start()
        clock.advance(30_000)  # a pull waits for half a minute
        assert sorted(int(message.body) for message in got) == [n for n in range(50) if n % 3 < 2]
        for message in got:
            number = int(message.body)
            assert (message.queue_id, message.properties["number"], message.properties["text"]) == (
                number % 2, str(number), "𝄞",
            )  # fmt: skip
        consumer.shutdown()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"body": "cast('' as binary)"}, "the message body length is zero"),
        ({"topic": "'no blanks'"}, "illegal characters"),
        ({"broker_name": "'broker-x'"}, "broker-x"),
        ({"price": "1"}, "price"),
        ({"flag": "'x'"}, "flag"),
        ({"queue_id": "7"}, "no such queue"),
        ({"properties": "map('TRAN_MSG', 'true')"}, "sending transaction message is forbidden"),
        ({"properties": "map('TIMER_DELAY_MS', '5')"}, "accurate timer message is not enabled"),
        ({"properties": "map('DELAY', 'x')"}, "DELAY"),
        ({"tags": "concat('a', char(1))"}, "its separators"),
    ],
)
def test_what_is_no_message_leaves_the_log_as_it_is(session: Any, tmp_path: Path, change: Any, problem: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = frame_of(session, range(4))
    last = F.col("queue_id") == 1
    for name, value in change.items():
        kind = F.expr(value)
        frame = frame.withColumn(name, F.when(last, kind).otherwise(F.col(name)) if name in frame.columns else kind)
    with pytest.raises(PySparkException, match=problem):
        frame.write.format("rocketmq_log").mode("append").save(str(tmp_path))
    with Broker(tmp_path) as broker:
        assert broker.messages("orders") == []


def test_a_stream_is_written_once_however_often_it_is_committed(session: Any, tmp_path: Path) -> None:
    source, logs, state = tmp_path / "in", tmp_path / "cluster", tmp_path / "state"

    def write(part: int) -> None:
        frame_of(session, range(20 * part, 20 * part + 20)).write.mode("append").parquet(str(source))

    def go_on(checkpoint: str = "state") -> None:
        schema = session.read.parquet(str(source)).schema
        frame = session.readStream.schema(schema).parquet(str(source))
        writer = frame.writeStream.format("rocketmq_log").option("stream", "copy").option("path", str(logs))
        writer.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(
            availableNow=True
        ).start().awaitTermination()

    def numbers() -> list[int]:
        with Broker(logs) as broker:
            return sorted(int(message.body or b"") for message in broker.messages("orders"))

    write(0)
    go_on()
    write(1)
    go_on()
    assert numbers() == list(range(40))
    # Spark did not hear of the last micro-batch and repeats it.
    for name in ("1", ".1.crc"):
        state.joinpath("commits", name).unlink()
    go_on()
    assert numbers() == list(range(40))
    with pytest.raises(PySparkException, match="another checkpoint"):
        go_on("other")
    assert not [path for path in (logs / ".spark").iterdir() if path.is_dir()]


def test_a_commit_that_was_cut_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    disk = Disk(monkeypatch, staging, output)
    steps: list[str] = []
    note, sync = rocketmq_log._StreamWriter._note, FileLog.sync

    def noting(writer: Any, known: Any) -> None:
        """What a note names is on the disk before it, and so is the log before it is said to be done."""
        assert [path for path in known["files"] if not disk.keeps(Path(path))] == []
        steps.append("done" if known["done"] else "begun")
        note(writer, known)
        assert disk.keeps(tmp_path / ".spark" / "copy.json")

    monkeypatch.setattr(rocketmq_log._StreamWriter, "_note", noting)
    monkeypatch.setattr(FileLog, "sync", lambda log: steps.append("sync") or sync(log))

    def writer() -> Any:
        target = rocketmq_log._Target(str(tmp_path), rocketmq_log.new_folder(str(tmp_path)), ("broker-a",), "group")
        return rocketmq_log._StreamWriter(target, "copy", "state")

    def batch(numbers: range) -> Any:
        return pa.record_batch({"topic": ["orders"] * len(numbers), "body": [str(n).encode() for n in numbers]})

    first = writer()
    staged = [first.write(iter([batch(range(10))])), None, first.write(iter([batch(range(10, 20))]))]

    class CutError(Exception):
        pass

    class CutProducer(rocketmq_log.Producer):
        left = 13

        def send(self, *args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise CutError
            return super().send(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rocketmq_log, "Producer", CutProducer)
        with pytest.raises(CutError):
            first.commit(staged, 0)
    first.abort(staged, 0)
    with Broker(tmp_path) as broker:
        assert len(broker.messages("orders")) == 13
        produce(broker, range(3))
    # The repetition has its rows in another order; what was begun counts.
    second = writer()
    again = [second.write(iter([batch(range(19, -1, -1))]))]
    steps.clear()
    second.commit(again, 0)
    assert steps[: steps.index("done") + 1][-2:] == ["sync", "done"]
    assert "begun" not in steps
    assert json.loads((tmp_path / ".spark" / "copy.json").read_text())["done"]
    assert not any(Path(path).exists() for path in paths_of([*staged, *again]))
    with Broker(tmp_path) as broker:
        texts = [(message.body or b"").decode() for message in broker.messages("orders")]
        assert sorted(texts) == sorted([*(str(n) for n in range(20)), *(f"𝄞 {n}" for n in range(3))])


def test_the_page_says_what_happens(session: Any) -> None:
    for block in blocks("docs/logs.md", "python"):
        run_block(block, {})
