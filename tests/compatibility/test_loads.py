"""What 0.1.0 wrote loads, means what it meant, and goes on from there. See write.py for what the files are."""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyengine import activemq, rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import MessageQueue
from pyengine.rocketmq.broker.topic_list import read_queues
from pyengine.spark import Progress, assign_shards, dispatch_shards, held, run
from tests.activemq.wire import Wire
from tests.compatibility import write
from tests.compatibility.pickled import meaning, message, says
from tests.spark.conftest import spark  # noqa: F401

WRITTEN = Path(__file__).with_name("0.1.0")
MEANINGS = json.loads(WRITTEN.joinpath("pickles", "meanings.json").read_text("utf-8"))
KILLED = {
    "orders": ["2", "3", "committed", "journalled", "both", "or neither"],
    "again": ["second"],
    "new": [b"\x00\xff"],
    "late": ["expires"],
    "streamed": ["a"],
    "whole": [b"\x00\xff"],
    "ActiveMQ.DLQ": ["poison"],
    "Consumer.A.VirtualTopic.V": ["fanned out"],
}
CLOSED = {**KILLED, "orders": ["1", "2", "3", "committed"], "again": ["redelivered", "second"]}
del CLOSED["new"]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a folder of the files, which says where it lies now."""

    def copied(name: str) -> Path:
        made = shutil.copytree(WRITTEN / name, tmp_path / name)
        for path in made.rglob("*.json"):
            text = path.read_text("utf-8")
            if write.FOLDER in text:
                path.write_text(text.replace(write.FOLDER, str(made)), "utf-8")
        for rows in made.rglob("rows.parquet"):
            os.utime(rows, (write.SOURCE_TIME, write.SOURCE_TIME))
        return made

    return copied


# Pickles


@pytest.mark.parametrize("protocol", write.PROTOCOLS)
@pytest.mark.parametrize("name", MEANINGS)
def test_a_pickle_means_what_it_meant(name: str, protocol: int) -> None:
    pickles = json.loads(WRITTEN.joinpath("pickles", f"protocol-{protocol}.json").read_text("utf-8"))
    found = meaning(pickle.loads(base64.b64decode(pickles[name])))
    assert says(json.loads(json.dumps(found)), MEANINGS[name]), found


def test_every_pickle_has_a_meaning() -> None:
    for protocol in write.PROTOCOLS:
        assert list(json.loads(WRITTEN.joinpath("pickles", f"protocol-{protocol}.json").read_text())) == list(MEANINGS)


# ActiveMQ


def queues_of(broker: activemq.Broker) -> dict[str, list[Any]]:
    queues = [each for each in broker.destinations() if each.kind == "queue"]
    return {each.name: [message.body for message in broker.browse(each)] for each in queues}


def waiting(broker: activemq.Broker) -> list[tuple[str, str | None, int]]:
    found = [(each.subscription_name, each.selector, each.pending_queue_size) for each in broker.subscriptions()]
    return sorted(found, key=str)


def consumed(broker: activemq.Broker, consumer: str, to: str, **options: Any) -> list[Any]:
    wire = Wire(broker, consumer, client_id=options.pop("client_id", ""))
    wire.consume(consumer, to, **options)
    bodies = [body for _, body in wire.taken()]
    for body in bodies:
        wire.acknowledge(consumer, body)
    broker.remove_connection(consumer)
    return bodies


def check_killed(folder: Path, expected: dict[str, list[Any]] = KILLED) -> None:
    with write.opened(folder, 3000) as broker:
        assert queues_of(broker) == expected
        assert waiting(broker) == [("all", None, 2), ("dear", "price > 100", 3)]
        assert [each.redelivery_counter for each in broker.browse("again")] == [1]
        assert consumed(broker, "all", "topic://T", subscription_name="all", client_id="client") == ["t2", "t4"]
        dear = {"subscription_name": "dear", "selector": "price > 100", "client_id": "client"}
        assert consumed(broker, "dear", "topic://T", **dear) == ["t2", "t3", "t4"]


def test_a_store_that_was_closed(written: Callable[[str], Path]) -> None:
    folder = written("activemq") / "closed"
    with write.opened(folder, 3000) as broker:
        assert queues_of(broker) == CLOSED
        assert waiting(broker) == [("all", None, 2), ("dear", "price > 100", 1), ("other", "price > 200", 0)]
        orders = broker.browse("orders")
        assert [(each.priority, each.group_id, each.group_sequence) for each in orders] == [
            (9, None, 0), (4, "a", 0), (4, "a", 2), (4, None, 0)
        ]  # fmt: skip
        assert [each.properties() for each in orders[:3]] == [
            {"region": "EU", "price": 250}, {"region": "US", "price": 100}, {"region": "EU"}
        ]  # fmt: skip
        (whole,) = broker.browse("whole")
        assert whole.property_types() == message().property_types()
        assert whole.properties() == message().properties()
        kept = ("body", "type", "correlation_id", "message_id", "priority", "timestamp", "expiration", "user_id")
        assert all(getattr(whole, name) == getattr(message(), name) for name in kept)
        assert [each.redelivery_counter for each in broker.browse("again")] == [1, 0]
        assert consumed(broker, "eu", "orders", selector="region = 'EU'") == ["1", "3", "committed"]
        assert consumed(broker, "a", "Consumer.A.VirtualTopic.V") == ["fanned out"]
    with write.opened(folder, 20_000) as broker:
        assert [each.body for each in broker.browse("orders")] == ["2"]
        assert consumed(broker, "late", "late") == []
        Wire(broker).send("orders", "more")
        assert [each.body for each in broker.browse("orders")] == ["2", "more"]


def test_a_store_whose_broker_was_killed(written: Callable[[str], Path]) -> None:
    check_killed(written("activemq") / "killed")


def test_a_store_whose_database_had_taken_over_the_journal(written: Callable[[str], Path]) -> None:
    check_killed(written("activemq") / "handed_over")


def test_a_journal_whose_last_record_is_torn(written: Callable[[str], Path]) -> None:
    folder = written("activemq") / "killed"
    journal = folder / "broker.journal"
    os.truncate(journal, journal.stat().st_size - 5)
    check_killed(folder, {**KILLED, "orders": ["2", "3", "committed", "journalled"]})


@pytest.mark.parametrize("content", [b"", b"pyengine jour", b"\0" * 19])
def test_a_journal_that_was_not_yet_on_the_disk(written: Callable[[str], Path], content: bytes) -> None:
    folder = written("activemq") / "closed"
    (folder / "broker.journal").write_bytes(content)
    with write.opened(folder, 3000) as broker:
        assert queues_of(broker) == CLOSED


def test_a_stream_into_a_store_goes_on_behind_its_mark(written: Callable[[str], Path]) -> None:
    folder = written("activemq") / "closed"
    write.committed(write.into_activemq(folder), {"destination": ["streamed"], "text": ["again"]}, 0)
    write.committed(write.into_activemq(folder), {"destination": ["streamed"], "text": ["b"]}, 1)
    with write.opened(folder) as broker:
        assert [each.body for each in broker.browse("streamed")] == ["a", "b"]


# RocketMQ


def log_of(broker: rocketmq.Broker, topic: str) -> list[tuple[str, int, int, bytes | None, str | None]]:
    return [
        (each.broker_name, each.queue_id, each.queue_offset, each.body, each.tags) for each in broker.messages(topic)
    ]


@pytest.mark.parametrize("name", ["closed", "killed"])
def test_a_cluster(written: Callable[[str], Path], name: str) -> None:
    folder = written("rocketmq") / name
    whole = [("broker-a", 0, 6, b"whole", None)] if name == "killed" else []
    with write.cluster(folder, 1_050_000) as broker:
        clock = broker.clock
        assert isinstance(clock, ManualClock)
        assert broker.topics() == {"orders": 2, "wide": 2, "%RETRY%billing": 2, "%DLQ%billing": 1}
        assert log_of(broker, "orders") == [
            ("broker-a", 0, 2, b"2", "A"), ("broker-a", 0, 3, b"3", "B"), ("broker-a", 0, 4, b"4", "A"),
            ("broker-a", 0, 5, b"5", "B"), *whole, ("broker-a", 1, 0, b"other", None),
        ]  # fmt: skip
        first = broker.message(write.ORDERS, 2)
        assert first is not None
        assert (first.keys, first.properties["region"], first.born_timestamp) == ("k2", "EU", 1_000_000)
        assert log_of(broker, "%DLQ%billing") == [("broker-a", 0, 0, b"3", "B")]
        assert log_of(broker, "wide") == [("broker-a", 0, 0, b"soon", None), ("room1@b", 0, 0, b"\x00\xff", None)]
        assert broker.consumer_offsets("billing", "orders") == {
            write.ORDERS: 6, MessageQueue("orders", "broker-a", 1): 1
        }  # fmt: skip
        assert broker.consumer_offsets("G", "orders") == {write.ORDERS: 3}
        clock.advance(20_000)
        assert [each.body for each in broker.messages("wide")] == [b"soon", b"later", b"\x00\xff"]
        sent = rocketmq.Producer(broker).send("orders", b"more", queue=write.ORDERS)
        assert sent.queue_offset == 6 + len(whole)
        broker.update_consumer_offset("G", write.ORDERS, 6)
    with write.cluster(folder, 1_100_000) as broker:
        assert broker.consumer_offsets("G", "orders") == {write.ORDERS: 6}
        assert [each.body for each in broker.messages("wide")] == [b"soon", b"later", b"\x00\xff"]
        assert [each.body for each in broker.messages("orders")][-2:] == [b"more", b"other"]


def test_what_a_cluster_kept_before_the_last_write(written: Callable[[str], Path]) -> None:
    config = written("rocketmq") / "closed" / "broker-a" / "config"
    (config / "consumerOffset.json").unlink()
    (config / "topics.json").write_text("")
    with write.cluster(config.parents[1]) as broker:
        assert broker.topics()["orders"] == 2
        assert broker.consumer_offsets("billing", "orders")[write.ORDERS] == 6
        assert broker.consumer_offsets("G", "orders") == {}


def test_a_list_of_topics() -> None:
    found = read_queues(WRITTEN / "rocketmq" / "closed" / "broker-a" / "config" / "topics.json")
    assert [each for each in found if each.topic in ("orders", "wide")] == [
        ("orders", "broker-a", 0), ("orders", "broker-a", 1), ("wide", "broker-a", 0)
    ]  # fmt: skip


def test_offsets_of_a_broadcasting_consumer(written: Callable[[str], Path]) -> None:
    folder = written("rocketmq") / "local_offsets"
    store = rocketmq.LocalFileOffsetStore("127.0.0.1@DEFAULT", "watchers", directory=folder)
    where = rocketmq.ReadOffsetType.READ_FROM_STORE
    wide = MessageQueue("wide", "room1@b", 0)
    assert (store.read_offset(write.ORDERS, where), store.read_offset(wide, where)) == (6, 1)
    store.path.unlink()
    assert (store.read_offset(write.ORDERS, where), store.read_offset(wide, where)) == (4, 1)


def test_a_stream_into_a_log_goes_on_behind_its_note(written: Callable[[str], Path]) -> None:
    folder = written("sinks/done")
    rows = {"topic": ["orders"], "body": [b"b"]}
    write.committed(write.into_rocketmq(folder), rows, 0)
    with rocketmq.Broker(folder) as broker:
        assert [each.body for each in broker.messages("orders")] == [b"a"]
    write.committed(write.into_rocketmq(folder), rows, 1)
    with rocketmq.Broker(folder) as broker:
        assert sorted(each.body or b"" for each in broker.messages("orders")) == [b"a", b"b"]
    with pytest.raises(ConfigurationError, match="micro-batch 1 of another checkpoint"):
        write.committed(write.into_rocketmq(folder), rows, 0)


def test_a_stream_into_a_log_that_was_interrupted_sends_the_rest(written: Callable[[str], Path]) -> None:
    folder = written("sinks/begun")
    write.committed(write.into_rocketmq(folder), {"topic": ["orders"], "body": [b"other rows"]}, 0)
    with rocketmq.Broker(folder) as broker:
        assert sorted(each.body or b"" for each in broker.messages("orders")) == [b"a", b"b"]


# Bytes of queues


def restored(name: str, *, shared: bool) -> activemq.Queue:
    folder = WRITTEN / "queues"
    values = activemq.SharedValues.restore((folder / "shared.values").read_bytes()) if shared else None
    data = (folder / f"{name}.{'shared_queue' if shared else 'queue'}").read_bytes()
    return activemq.Queue.restore(data, load=json.loads, shared=values)


def lines(deliveries: list[activemq.Delivery]) -> list[tuple[int, int | None, Any, int]]:
    return [(each.consumer, each.message, each.body["number"], each.redeliveries) for each in deliveries]


@pytest.mark.parametrize("shared", [False, True])
def test_a_queue_with_groups_and_priorities(shared: bool) -> None:
    queue = restored("groups", shared=shared)
    assert queue.group_owners == {"a": 1, "b": 0}
    assert [each.tolist() for each in queue.held()][::2] == [[0, 1, 2], [1, 0, 1]]  # what waits, for which consumer
    assert [queue.why(number)[0].name for number in range(3)] == [
        "GROUP_NO_CREDIT", "GROUP_SELECTOR", "GROUP_NO_CREDIT"
    ]  # fmt: skip
    assert lines(queue.run(now=20)) == []
    assert lines(queue.close(1)) == [(0, 2, 2, 0), (0, 0, 0, 0)]
    assert queue.group_owners == {"a": 0, "b": 0}


@pytest.mark.parametrize("shared", [False, True])
def test_a_queue_with_an_exclusive_consumer_and_a_transaction(shared: bool) -> None:
    queue = restored("exclusive", shared=shared)
    assert [each.tolist() for each in queue.held()][::2] == [[2], [0]]
    assert queue.why(2)[0].name == "AWAITING_WAKEUP"
    queue.rollback("TX:1")
    assert lines(queue.run()) == []
    assert lines(queue.close(0, lost=True)) == [(1, 1, 1, 2), (1, 3, 3, 4), (1, 0, 0, 1)]
    queue.acknowledge(1, 1)
    assert lines(queue.run()) == [(1, 2, 2, 2)]


# Spark


def table_of(folder: Path, *names: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(folder / name, partitioning=None) for name in names]).sort_by("row")


def test_a_run_that_was_interrupted_behind_its_last_step(written: Callable[[str], Path]) -> None:
    folder = written("runs/complete")
    result = run(write.topology(folder), folder / "out")  # it starts no Spark
    assert (result.summary["rows"], result.summary["messages"], result.summary["rejected"]) == (24, 23, 1)
    assert result.summary["paths"]["out"] == str(folder / "out")
    assert table_of(folder / "out", "deliveries", "held").num_rows == 23
    assert not (folder / ".out.partial").exists()


def test_what_spark_goes_on_with(spark: Any, written: Callable[[str], Path]) -> None:  # noqa: F811
    """One test, that one session is started: a run, shards and a stream."""
    (before,) = (each for each in WRITTEN.joinpath("runs", "complete", ".out.partial").iterdir() if each.is_dir())
    expected = table_of(before, "deliveries", "held")
    place = written("runs/interrupted")
    (runs,) = place.rglob("runs/*.blocks")
    os.utime(runs, (1, 1))
    stamps: list[float] = []

    def look(progress: Progress) -> None:
        if progress.stage == "measure":
            stamps.append(runs.stat().st_mtime)

    result = run(write.topology(place), place / "out", spark=spark, progress=look)
    assert stamps == [1]  # what was read and sorted was not read again
    assert table_of(place / "out", "deliveries", "held").equals(expected)
    told = json.loads((before / "summary.json").read_text("utf-8"))
    assert result.summary["destinations"] == told["destinations"]

    shards = written("runs/shards")
    columns = [name for name in expected.column_names if name != "bytes"]
    answer = dispatch_shards(spark, write.topology(shards), shards / "written").toArrow().sort_by("row")
    assert answer.select(columns).to_pylist() == expected.select(columns).to_pylist()
    assert assign_shards(spark, write.topology(shards), shards / "written", shards / "answer") == 23

    stream = written("stream")
    assert [(line["row"], line["reason"]) for line in waiting_in(spark, stream)] == [
        (165, "selector"), (495, "no_credit"), (660, "selector"), (825, "group_no_credit")
    ]  # fmt: skip
    write.send_event(stream, "join late")
    write.send_rows(stream, ("EU", "c"), ("EU", "d"))
    write.send_event(stream, "lose eu")
    query = write.start_stream(spark, stream)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    parts = [pq.read_table(path, partitioning=None) for path in sorted(stream.joinpath("sink").glob("*/*.parquet"))]
    assert [
        (line["row"], line["consumer"], line["delivery"], line["group"], line["attempt"])
        for line in pa.concat_tables(parts).to_pylist()
    ] == [
        (0, "eu", 0, "a", 1), (330, "eu", 1, "a", 1), (495, "late", 2, "c", 1), (1155, "late", 3, "c", 1),
        (1320, "late", 4, "d", 1), (0, "late", 5, "a", 2), (330, "late", 6, "a", 2), (825, "late", 7, "a", 1),
    ]  # fmt: skip
    assert [line["row"] for line in waiting_in(spark, stream)] == [165, 660]


def waiting_in(session: Any, stream: Path) -> list[dict[str, Any]]:
    return held(session, stream / "state").toArrow().sort_by("row").to_pylist()
