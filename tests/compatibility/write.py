"""Writes one small file of everything that this release writes: ``python -m tests.compatibility.write FOLDER``.

The files of a release are written once, by that release, and never again: those in ``0.1.0`` are from 0.1.0. A new
release adds a folder with its version for a name and a test of what is new in it; what is there is neither changed nor
removed, because somebody's broker, stream or run has left just that. Clocks are moved by hand and ids are chosen
wherever a caller can; uuids, the ids that RocketMQ's producer gives, and Spark's are not. No file names a folder of the
machine that wrote it: plan.json, summary.json and the rejects of a run, and the note of a stream that was interrupted,
have FOLDER in its place, and the test puts its own folder there.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

import pyengine
from pyengine import activemq, rocketmq
from pyengine.activemq import AckKind
from pyengine.clock import ManualClock
from pyengine.rocketmq import MessageQueue
from pyengine.topology import Consumer, Policy, Source, Topology
from tests.activemq.wire import Wire
from tests.compatibility.pickled import meaning, message, objects

FOLDER = "{folder}"
PROTOCOLS = (2, 5)
POLICIES = [Policy("again", persist_jms_redelivered=True, dead_letter_strategy=None)]
SOURCE_TIME = 1_700_000_000  # s, of the rows of a run: how it tells whether they are still the same
ORDERS = MessageQueue("orders", "broker-a", 0)


# ActiveMQ


def opened(folder: Path, now: int = 1000) -> activemq.Broker:
    return activemq.Broker(folder, name="kept", clock=ManualClock(now), policies=POLICIES)


def fill(broker: activemq.Broker) -> None:
    """Queues, durable subscriptions, dead letters and what is no longer there."""
    wire = Wire(broker, client_id="client")
    wire.send("orders", 1, priority=9, properties={"region": "EU", "price": 250})
    wire.send("orders", 2, group_id="a", properties={"region": "US", "price": 100})
    wire.send("orders", 3, group_id="a", group_sequence=2, properties={"region": "EU"})
    wire.send("orders", "in memory only", delivery_mode="NON_PERSISTENT")
    wire.send("orders", "acknowledged", "poison", properties={"region": "CN"})
    wire.send("late", "expires", expiration=10_000)
    wire.consume("cn", "orders", selector="region = 'CN'")
    wire.acknowledge("cn", "acknowledged", AckKind.INDIVIDUAL)
    wire.acknowledge("cn", "poison", AckKind.POISON)
    wire.send("again", "redelivered", "second")
    wire.consume("lost", "again", prefetch=1)
    broker.send("wire", pyengine.destinations.Destination("whole"), message())
    wire.consume("all", "topic://T", subscription_name="all", prefetch=1)
    wire.consume("dear", "topic://T", subscription_name="dear", selector="price > 100")
    wire.consume("gone", "topic://T", subscription_name="gone")
    for number, price in enumerate((50, 150, 250)):
        wire.send("topic://T", f"t{number}", properties={"price": price})
    wire.acknowledge("all", "t0")
    wire.acknowledge("dear", "t1")
    wire.consume("other", "topic://T", subscription_name="other", selector="price > 200")
    broker.remove_consumer("gone")
    broker.remove_subscription("client", "gone")
    wire.consume("virtual", "Consumer.A.VirtualTopic.V", prefetch=0)
    wire.send("topic://VirtualTopic.V", "fanned out")
    broker.begin("wire", "TX:1")
    wire.send("orders", "committed", transaction="TX:1", properties={"region": "EU"})
    broker.commit("TX:1")
    broker.begin("wire", "TX:2")
    wire.send("orders", "in doubt", transaction="TX:2")
    broker.remove_connection("wire", lost=True)


def go_on(broker: activemq.Broker) -> None:
    """What the journal of a broker that is killed has besides."""
    wire = Wire(broker, client_id="client")
    wire._sent = 100
    wire.consume("first", "orders", selector="price > 200")
    wire.consume("all", "topic://T", subscription_name="all", prefetch=9)
    wire.consume("lost", "again", prefetch=1)
    # From here on nobody reads, and the journal keeps what is written.
    wire.acknowledge("first", "1")
    wire.send("orders", "journalled", properties={"region": "EU"})
    binary = pyengine.Message(body=b"\x00\xff", message_id="ID:binary")
    broker.send("wire", pyengine.destinations.Destination("new"), binary)
    wire.acknowledge("all", "t1")
    wire.send("topic://T", "t3", "t4", properties={"price": 500})
    wire.acknowledge("all", "t3")
    wire.acknowledge("lost", "redelivered")
    broker.remove_subscription("client", "other")
    broker.begin("wire", "TX:4")
    wire.send("orders", "both", "or neither", transaction="TX:4")
    broker.commit("TX:4")
    broker.begin("wire", "TX:3")
    wire.send("orders", "in doubt", transaction="TX:3")


def write_activemq(folder: Path) -> None:
    with opened(folder / "closed") as broker:
        fill(broker)
    committed(into_activemq(folder / "closed"), {"destination": ["streamed"], "text": ["a"]}, 0)
    shutil.copytree(folder / "closed", folder / "killed")
    killed("kill_activemq", folder / "killed")
    shutil.copytree(folder / "killed", folder / "handed_over")
    # The database has what the journal says, and the process was killed before the journal was emptied.
    with opened(folder / "handed_over"):
        pass
    shutil.copy(folder / "killed" / "broker.journal", folder / "handed_over")
    for left in folder.rglob("*-shm"):  # an index of the -wal in the machine's own byte order; SQLite makes it again
        left.unlink()


def kill_activemq(folder: Path) -> None:
    go_on(opened(folder, 2000))
    os.kill(os.getpid(), signal.SIGKILL)


def killed(part: str, folder: Path) -> None:
    """Run a part of this in a process that kills itself."""
    done = subprocess.run([sys.executable, "-m", "tests.compatibility.write", part, str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL, done


# RocketMQ


def cluster(folder: Path, now: int = 1_000_000, names: tuple[str, ...] = ("broker-a", "room1@b")) -> rocketmq.Broker:
    return rocketmq.Broker(folder, names=names, clock=ManualClock(now), segment_bytes=1500)


def fill_cluster(broker: rocketmq.Broker) -> None:
    """Files of the log, delayed messages, deletions, retries, dead letters and offsets."""
    clock = broker.clock
    assert isinstance(clock, ManualClock)
    broker.create_topic("orders", 2, brokers=["broker-a"])
    broker.create_topic("wide", 1)
    producer = rocketmq.Producer(broker)
    for number in range(6):
        region = {"region": ("EU", "US")[number % 2]}
        producer.send(
            "orders", b"%d" % number, tags="AB"[number % 2], keys=f"k{number}", properties=region, queue=ORDERS
        )
    producer.send("orders", b"other", queue=MessageQueue("orders", "broker-a", 1))
    producer.send("wide", b"\x00\xff", queue=MessageQueue("wide", "room1@b", 0))
    producer.send("wide", b"soon", queue=MessageQueue("wide", "broker-a", 0), delay_time_level=1)
    producer.send("wide", b"later", queue=MessageQueue("wide", "broker-a", 0), delay_time_level=5)
    clock.advance(1000)
    broker.delete_below(ORDERS, 2)
    consumer = rocketmq.DefaultMQPushConsumer(
        "billing", broker=broker, consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )

    def listen(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
        status = rocketmq.ConsumeConcurrentlyStatus
        return status.RECONSUME_LATER if messages[0].body == b"3" else status.CONSUME_SUCCESS

    consumer.subscribe("orders", "B")
    consumer.register_message_listener(listen)
    consumer.max_reconsume_times = 1
    consumer.start()
    clock.advance(8_000)
    broker.persist_offsets()
    clock.advance(30_000)
    consumer.shutdown()
    broker.update_consumer_offset("G", ORDERS, 3)


def write_rocketmq(folder: Path) -> None:
    with cluster(folder / "closed") as broker:
        fill_cluster(broker)
    shutil.copytree(folder / "closed", folder / "killed")
    killed("kill_rocketmq", folder / "killed")
    for number in (4, 6):  # the second write leaves the first as .bak
        store = rocketmq.LocalFileOffsetStore("127.0.0.1@DEFAULT", "watchers", directory=folder / "local_offsets")
        store.load()
        store.update_offset(ORDERS, number)
        store.update_offset(MessageQueue("wide", "room1@b", 0), 1)
        store.persist_all([ORDERS, MessageQueue("wide", "room1@b", 0)])


def kill_rocketmq(folder: Path) -> None:
    broker = cluster(folder, 1_045_000)
    rocketmq.Producer(broker).send("orders", b"whole", queue=ORDERS)
    broker.update_consumer_offset("G", ORDERS, 5)  # not yet in the file
    rocketmq.Producer(broker).send("orders", b"torn", queue=ORDERS)
    newest = max((folder / "broker-a" / "log").iterdir())
    os.truncate(newest, newest.stat().st_size - 7)
    os.kill(os.getpid(), signal.SIGKILL)


# Spark's streams into the brokers, whose writers need no Spark


def committed(source: Any, rows: dict[str, list[Any]], batch: int) -> None:
    """Commit a micro-batch. source: a data source with its options."""
    from pyspark.sql.pandas.types import from_arrow_schema

    made = pa.RecordBatch.from_pydict(rows)
    writer = source.streamWriter(from_arrow_schema(made.schema), False)
    writer.commit([writer.write(iter([made]))], batch)


def into_activemq(folder: Path) -> Any:
    from pyengine.spark.activemq_store import ActiveMQStore

    return ActiveMQStore({"path": str(folder), "stream": "copy", "checkpointLocation": "checkpoint"})


def into_rocketmq(folder: Path) -> Any:
    from pyengine.spark.rocketmq_log import RocketMQLog

    return RocketMQLog({"path": str(folder), "stream": "copy", "checkpointLocation": "checkpoint"})


def write_sinks(folder: Path) -> None:
    from pyengine.spark import rocketmq_log

    class CutError(Exception):
        pass

    class CutProducer(rocketmq.Producer):
        """Its process dies behind the first message."""

        def send(self, *arguments: Any, **options: Any) -> Any:
            super().send(*arguments, **options)
            raise CutError

    committed(into_rocketmq(folder / "done"), {"topic": ["orders"], "body": [b"a"]}, 0)
    with patch.object(rocketmq_log, "Producer", CutProducer), suppress(CutError):
        committed(into_rocketmq(folder / "begun"), {"topic": ["orders"] * 2, "body": [b"a", b"b"]}, 0)
    without_folder(folder / "begun" / ".spark" / "copy.json", folder / "begun")


# Bytes of queues


def queues() -> dict[str, activemq.Queue]:
    """By name: queues in the middle of their work. Bodies are texts."""
    groups = activemq.Queue(message_group_map_factory_type="simple", prioritized_messages=True)
    eu = groups.add_consumer(selector=pyengine.Selector("region = 'EU'"), prefetch=2, name="eu")
    groups.add_consumer(prefetch=1, priority=5, name="any")
    for number, region in enumerate(("EU", "US", "EU", "EU", "CN")):
        made = {"region": region, "number": number}
        groups.send(made, group="ab"[number % 2], priority=number, expiration=0 if number else 5000)
    given = [each.message for each in groups.run(now=10) if each.consumer == eu]
    groups.acknowledge(eu, given[0])
    exclusive = activemq.Queue(cursor="memory", lazy_dispatch=True)
    first = exclusive.add_consumer(exclusive=True, prefetch=3, connection="one", no_local=True)
    exclusive.add_consumer(prefetch=3, name="standby")
    for number in range(4):
        exclusive.send({"number": number}, persistent=bool(number % 2), redeliveries=number)
    given = [each.message for each in exclusive.run()]
    exclusive.acknowledge(first, given[0], transaction="TX:1")
    return {"groups": groups, "exclusive": exclusive}


def save(body: Any) -> bytes:
    return json.dumps(body).encode()


def write_queues(folder: Path) -> None:
    folder.mkdir()
    shared = activemq.SharedValues()
    for name, queue in queues().items():
        folder.joinpath(f"{name}.queue").write_bytes(queue.snapshot(save=save))
        folder.joinpath(f"{name}.shared_queue").write_bytes(queue.snapshot(save=save, shared=shared))
    folder.joinpath("shared.values").write_bytes(shared.snapshot())


# Spark's own


def topology(folder: Path) -> Topology:
    """Of the rows in a folder."""
    source = Source("orders.{region}", path=str(folder / "rows.parquet"), group="who", id="id", priority="rank")
    return Topology(
        source,
        (
            Consumer("dear", "orders.>", "price > 100", prefetch=2, acknowledges=False),
            Consumer("eu", "orders.EU", exclusive=True),
        ),
        (Policy("orders.US", message_group_map_factory_type="simple"),),
    )


def write_rows(folder: Path) -> None:
    """One row is no message."""
    folder.mkdir(parents=True)
    table = pa.table(
        {
            "id": [f"m{number}" for number in range(24)],
            "region": [("EU", "US", "CN", "JP", "DE")[number % 5] for number in range(24)],
            "who": [f"c{number % 3}" if number % 4 else None for number in range(24)],
            "price": pa.array([number * 17 % 211 for number in range(24)], pa.int32()),
            "rank": pa.array([12 if number == 7 else number % 10 for number in range(24)], pa.int32()),
        }
    )
    pq.write_table(table, folder / "rows.parquet", row_group_size=12)
    os.utime(folder / "rows.parquet", (SOURCE_TIME, SOURCE_TIME))


def write_runs(spark: Any, folder: Path) -> None:
    """A run that was interrupted before its last shard, and one behind its last step."""
    from pyengine.spark import pipeline

    write_rows(folder / "shards")
    pyengine.spark.write_shards(spark, topology(folder / "shards"), folder / "shards" / "written", shards=2)

    def interrupt(progress: pipeline.Progress) -> None:
        if progress.stage == "measure":
            raise KeyboardInterrupt

    for name, stop in (("interrupted", {"progress": interrupt}), ("complete", {})):
        place = folder / name
        write_rows(place)
        with patch.object(pipeline, "_replace", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
            pyengine.spark.run(topology(place), place / "out", spark=spark, partitions=2, **stop)
        without_folder(place / ".out.partial" / "plan.json", place)
        for summary in place.rglob("summary.json"):
            without_folder(summary, place)
    for rejects in folder.glob("*/**/rejects/*.parquet"):
        without_folder(rejects, folder / rejects.relative_to(folder).parts[0])
    last = max(folder.joinpath("interrupted").rglob("done/shard-*"))
    last.unlink()
    for half in folder.joinpath("interrupted").rglob(f"part-{last.name[-6:]}.parquet"):
        if half.parent.name in ("deliveries", "held"):
            half.unlink()


def without_folder(path: Path, folder: Path) -> None:
    if path.suffix == ".parquet":
        table = pq.read_table(path, partitioning=None)
        place = table.column_names.index("file")
        named = [name and name.replace(str(folder), FOLDER) for name in table.column(place).to_pylist()]
        pq.write_table(table.set_column(place, table.schema.field(place), pa.array(named, pa.string())), path)
        return
    text = path.read_text("utf-8")
    assert str(folder) in text
    path.write_text(text.replace(str(folder), FOLDER), "utf-8")


STREAM = Topology(
    Source("{topic}", path="unused", group="who", properties=("region",)),
    (
        Consumer("eu", "orders", "region = 'EU'", prefetch=2, acknowledges=False),
        Consumer("late", "orders", "region = 'EU'"),
    ),
)


def start_stream(spark: Any, folder: Path) -> Any:
    """A stream from the log of a cluster, whose places name no folder, to a folder."""
    from pyspark.sql import functions as F  # noqa: N812

    from pyengine.spark import dispatch_stream, register_logs

    register_logs(spark)
    rows = (
        spark.readStream.format("rocketmq_log")
        .load(str(folder / "log"))
        .select(
            "topic",
            F.col("commit_log_offset").alias("number"),
            F.col("properties")["region"].alias("region"),
            F.col("properties")["who"].alias("who"),
            F.col("properties")["event"].alias("event"),
        )
    )
    places: dict[str, Any] = {"state": folder / "state", "sink": folder / "sink"}
    return dispatch_stream(
        rows, STREAM, row="number", event="event", late=["late"], shards=2, partitions=1, **places
    ).start()


def send_rows(folder: Path, *rows: tuple[str, str]) -> None:
    """Region and group of messages to come."""
    with cluster(folder / "log", names=("broker-a",)) as broker:
        for region, who in rows:
            rocketmq.Producer(broker).send("orders", b"-", properties={"region": region, "who": who}, queue=ORDERS)


def send_event(folder: Path, event: str) -> None:
    with cluster(folder / "log", names=("broker-a",)) as broker:
        rocketmq.Producer(broker).send("orders", b"-", properties={"event": event}, queue=ORDERS)


def write_stream(spark: Any, folder: Path) -> None:
    with cluster(folder / "log", names=("broker-a",)) as broker:
        broker.create_topic("orders", 1)
    send_rows(folder, ("EU", "a"), ("US", "b"), ("EU", "a"))
    query = start_stream(spark, folder)
    query.processAllAvailable()
    send_rows(folder, ("EU", "c"), ("CN", "b"), ("EU", "a"))
    query.processAllAvailable()
    query.stop()


# Pickles


def write_pickles(folder: Path) -> None:
    """A file for each protocol, name -> pickle, and one of what they meant."""
    folder.mkdir()
    made = objects()
    for protocol in PROTOCOLS:
        entries = {name: base64.b64encode(pickle.dumps(thing, protocol)).decode() for name, thing in made.items()}
        folder.joinpath(f"protocol-{protocol}.json").write_text(json.dumps(entries, indent=0), "utf-8")
    meanings = json.dumps({name: meaning(thing) for name, thing in made.items()}, ensure_ascii=False, indent=0)
    folder.joinpath("meanings.json").write_text(meanings, "utf-8")


def write(folder: Path) -> None:
    from pyengine.spark.session import start_session

    folder.mkdir(parents=True)
    parts: dict[str, Callable[[Path], None]] = {
        "activemq": write_activemq,
        "rocketmq": write_rocketmq,
        "sinks": write_sinks,
        "queues": write_queues,
        "pickles": write_pickles,
    }
    for name, part in parts.items():
        part(folder / name)
    spark = start_session("local[2]", {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"})
    write_runs(spark, folder / "runs")
    write_stream(spark, folder / "stream")
    spark.stop()
    for empty in folder.rglob("lock"):  # git keeps them, and who opens a folder makes them
        empty.unlink()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"kill_activemq": kill_activemq, "kill_rocketmq": kill_rocketmq}[sys.argv[1]](Path(sys.argv[2]))
    else:
        write(Path(sys.argv[1]).absolute())
