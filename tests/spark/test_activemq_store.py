"""Spark reads what an embedded ActiveMQ broker keeps, and sends what the broker's consumers then get."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from pyengine import Char
from pyengine._engine.message.message import Message
from pyengine.activemq import Broker, ConnectionFactory
from pyengine.activemq.store.store import SqliteStore
from pyengine.activemq.store.store_reader import StoreReader
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, InvalidSourceError
from pyengine.spark import activemq_store, register_logs

STREAM = ("destination", "text", "priority", "properties", "property_types")


def full_message() -> Message:
    message = Message(None, body="𝄞", type="t", correlation_id="c", group_id="g", group_sequence=3)
    message.set_boolean_property("boolean", True)
    message.set_byte_property("byte", -7)
    message.set_short_property("short", 300)
    message.set_int_property("int", -70_000)
    message.set_long_property("long", 1 << 40)
    message.set_float_property("float", 0.1)
    message.set_double_property("double", 1e300)
    message.set_string_property("string", "")
    message.set_property("char", Char("x"))
    message.set_object_property("list", [1, "a", None])
    return message


def produce(broker: Broker, texts: Any, destination: str = "orders") -> None:
    with ConnectionFactory(broker=broker).create_connection() as connection:
        producer = connection.create_session().create_producer(destination)
        for text in texts:
            producer.send(text)


def consume(broker: Broker, destination: str, number: int) -> list[Any]:
    with ConnectionFactory(broker=broker).create_connection() as connection:
        consumer = connection.create_session().create_consumer(destination)
        return [consumer.receive(timeout=0) for _ in range(number)]


def test_what_the_broker_keeps_goes_through_spark_and_is_the_same(spark: Any, tmp_path: Path) -> None:
    register_logs(spark)
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    with Broker(first, clock=ManualClock(1_700_000_000_000)) as broker:
        produce(broker, [full_message(), b"bytes", *(f"{n}" for n in range(30))])
        produce(broker, ["other"], "queue://more")
        # The broker is running.
        kept = spark.read.format("activemq_store").load(first)
        rows = sorted(kept.collect(), key=lambda row: row["sequence"])
        assert [row["destination"] for row in rows] == ["queue://orders"] * 32 + ["queue://more"]
        assert [row["text"] for row in rows[2:]] == [*(f"{n}" for n in range(30)), "other"]
        assert (bytes(rows[1]["body"]), rows[1]["text"], rows[0]["priority"]) == (b"bytes", None, 4)
        assert (rows[0]["timestamp"], rows[0]["group_id"], rows[0]["group_sequence"]) == (1_700_000_000_000, "g", 3)
        assert rows[0]["properties"]["double"] == "1.0E300"
        assert rows[0]["property_types"]["byte"] == "byte"
        more = spark.read.format("activemq_store").option("destination", "more, absent").load(first)
        assert [row["text"] for row in more.collect()] == ["other"]
        assert spark.read.format("activemq_store").option("destination", "absent").load(first).collect() == []
    sent = kept.where("destination = 'queue://orders'").drop(
        "sequence", "message_id", "timestamp", "expiration", "redeliveries"
    )
    sent.write.format("activemq_store").mode("append").save(second)
    with Broker(second, clock=ManualClock()) as broker:
        got = consume(broker, "orders", 33)
        assert got.pop() is None
        [one] = [message for message in got if message.body == "𝄞"]
        for name in ("type", "correlation_id", "group_id", "group_sequence"):
            assert getattr(one, name) == getattr(full_message(), name)
        assert one.properties() == full_message().properties()
        assert one.property_types() == full_message().property_types()
        assert sorted(str(message.body) for message in got) == sorted(
            ["𝄞", str(b"bytes"), *(str(n) for n in range(30))]
        )
    for name, value in {"destination": "''", "property_types": "map('byte', 'byte', 'string', 'int')"}.items():
        with pytest.raises(PySparkException, match=r"a message goes somewhere|is no int"):
            sent.selectExpr("text", *({"destination", "properties"} - {name}), f"{value} AS {name}").write.format(
                "activemq_store"
            ).mode("append").save(second)
    assert StoreReader(Path(second)).newest() == 0


def test_a_stream_goes_from_store_to_store_once(spark: Any, tmp_path: Path) -> None:
    register_logs(spark)
    source, target, state = tmp_path / "source", tmp_path / "target", tmp_path / "state"

    def go_on() -> None:
        frame = spark.readStream.format("activemq_store").load(str(source)).select(*STREAM)
        writer = frame.writeStream.format("activemq_store").option("stream", "copy").option("path", str(target))
        writer = writer.option("checkpointLocation", str(state)).trigger(availableNow=True)
        writer.start().awaitTermination()

    with Broker(source, clock=ManualClock()) as broker:
        produce(broker, ["a", "b"])
    go_on()
    with Broker(source, clock=ManualClock()) as broker:
        assert len(consume(broker, "orders", 2)) == 2
    with Broker(source, clock=ManualClock()) as broker:
        produce(broker, ["c"])  # the store was empty, and the number of the message is new all the same
    go_on()
    for name in ("1", ".1.crc"):  # Spark did not hear of it and repeats it
        state.joinpath("commits", name).unlink()
    go_on()
    with Broker(target, clock=ManualClock()) as broker:
        assert [message and message.body for message in consume(broker, "orders", 4)] == ["a", "b", "c", None]


def test_a_micro_batch_is_in_the_transaction_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, killed = tmp_path / "store", tmp_path / "killed"

    def commit(batch: int, text: str, checkpoint: str = "state", place: Path = store) -> None:
        target = activemq_store._Target(str(place), activemq_store.new_folder(str(place)))
        made = activemq_store._StreamWriter(target, "copy", checkpoint)
        rows = pa.record_batch({"destination": ["orders", "topic://t"], "text": [text, text]})
        priority = pa.array([9], pa.int32())
        late = pa.record_batch(
            {"destination": ["orders"], "text": [f"{text}!"], "priority": priority, "time_to_live_ms": [60_000]}
        )
        made.commit([made.write(iter([rows])), None, made.write(iter([])), made.write(iter([late]))], batch)

    def marking(here: SqliteStore, name: str, number: int) -> None:
        """What a process leaves that is killed between the messages and the mark."""
        if "spark" in name and number == 1 and not killed.exists():
            shutil.copytree(store, killed)
        mark(here, name, number)

    mark = SqliteStore.set_mark
    monkeypatch.setattr(SqliteStore, "set_mark", marking)
    commit(0, "a")
    commit(1, "b")
    commit(1, "b again")
    with pytest.raises(ConfigurationError, match="micro-batch 1 of another checkpoint"):
        commit(0, "c")
    with pytest.raises(ConfigurationError, match="another checkpoint"):
        commit(1, "c", "other")
    commit(1, "b", place=killed)
    for place in (store, killed):
        with Broker(place, clock=ManualClock()) as broker:
            *got, none = consume(broker, "orders", 5)
            assert none is None
            assert [message.body for message in got] == ["a", "a!", "b", "b!"]
            assert [message.priority for message in got] == [4, 9, 4, 9]
            assert [message.expiration - message.timestamp for message in got[1::2]] == [60_000] * 2


def test_every_header_of_a_message_is_in_its_row(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000_000)
    sent = Message(None, body="x", type="t", correlation_id="c", reply_to="queue://answers", group_id="g")
    with Broker(tmp_path, clock=clock) as broker, ConnectionFactory(broker=broker).create_connection() as connection:
        connection.create_session().create_producer("orders").send(sent, priority=7, time_to_live_ms=60_000)
    reader = activemq_store.ActiveMQStore({"path": str(tmp_path)}).reader(None)
    (row,) = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert row.pop("message_id") == sent.message_id
    assert row.pop("sequence") == StoreReader(tmp_path).newest()
    assert row == {
        "destination": "queue://orders", "text": "x", "body": None, "priority": 7,
        "timestamp": 1_700_000_000_000, "expiration": 1_700_000_060_000, "type": "t", "correlation_id": "c",
        "reply_to": "queue://answers", "group_id": "g", "group_sequence": 0, "redeliveries": 0, "properties": [],
        "property_types": [],
    }  # fmt: skip


def test_numbers_of_messages_never_come_again(tmp_path: Path) -> None:
    numbers = []
    for end in ("closed", "killed", "closed"):
        store = SqliteStore(tmp_path)
        number = store.destination("queue://q")
        sequence = store.add(number, Message(None, body="x"))
        store.wait(store.seal())
        numbers.append(sequence)
        store.remove(number, sequence)
        store.wait(store.seal())
        assert StoreReader(tmp_path).newest() == 0
        if end == "closed":
            store.close()
        else:
            store._journal.close()
            store._db.close()
            store._lock.release()
    assert numbers[:2] == [1, 2]
    assert numbers[2] > 2
    with pytest.raises(InvalidSourceError, match="no store"):
        StoreReader(tmp_path / "absent")
