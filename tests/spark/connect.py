"""Everything that works on Spark Connect, asked of a local Connect server and compared with a single process.

    python -m tests.spark.connect

Needs ``pip install 'pyspark[connect]'``. The server is started by pyspark for this one process, with workers of this
interpreter, and stopped with it. With ``--classic`` it is a session of the process, which every pyspark from 3.5 on has
(``make versions``); what a version lacks has to be refused by name.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

from pyengine import rocketmq
from pyengine import spark as ps
from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.simulate.queues import SimulatedConsumer, Variant, Workload, compare
from pyengine.backlog.tables.messages import to_messages
from pyengine.errors import InvalidSelectorError, PyengineError
from pyengine.rocketmq.tables.dispatch import ConsumerGroup, ConsumerGroups, MessageColumns, dispatch_messages
from pyengine.spark.java import find_java
from pyengine.spark.session import start_session
from pyengine.topology import Consumer, Source, Topology

ROWS = 3_000
VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))


def orders() -> pa.Table:
    """Messages with groups, nulls and a name beyond the basic plane."""
    return pa.table(
        {
            "number": pa.array(range(ROWS), pa.int64()),
            "queue": [f"q.{n % 40}" if n % 7 else "q.\U0001f600" for n in range(ROWS)],
            "n": pa.array([n % 11 if n % 13 else None for n in range(ROWS)], pa.int32()),
            "who": [f"g{n % 7}" if n % 3 else None for n in range(ROWS)],
            "tag": ["paid" if n % 5 else "open" for n in range(ROWS)],
        }
    )


def topology(path: str) -> Topology:
    return Topology(
        source=Source(destination="{queue}", path=path, group="who"),
        consumers=(Consumer("small", "q.>", selector="n < 4"), Consumer("odd", "q.>", selector="n % 2 = 1")),
    )


def same(found: pa.Table, expected: pa.Table, *keys: str) -> None:
    order = [(key, "ascending") for key in keys]
    wanted = expected.drop_columns(["bytes"]) if "bytes" in expected.column_names else expected
    assert found.select(wanted.column_names).cast(wanted.schema).sort_by(order).equals(wanted.sort_by(order))


class Frames:
    """From tables to frames and back; pyspark 3.5 has neither."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session = session
        self.folder = folder

    def of(self, table: pa.Table) -> Any:
        if VERSION >= (4, 0):
            return self.session.createDataFrame(table)
        path = self.folder / f"{len(list(self.folder.glob('*.frame')))}.frame"
        pq.write_table(table, path)
        return self.session.read.parquet(str(path))

    @staticmethod
    def table(frame: Any) -> pa.Table:
        return frame.toArrow() if VERSION >= (4, 0) else pa.Table.from_batches(frame._collect_as_arrow())


def refused(call: Callable[[], Any], words: str) -> None:
    """What this version of Spark lacks is named."""
    with pytest.raises(PyengineError, match=words):
        call()


def logs_of_brokers(session: Any, folder: Path) -> None:
    if VERSION < (4, 1):
        refused(lambda: ps.register_logs(session), "register_logs=pyspark .*no data sources")
        return
    ps.register_logs(session)
    with rocketmq.Broker(folder / "cluster") as broker:
        rocketmq.Producer(broker).send("orders", b"tea")
    (line,) = session.read.format("rocketmq_log").load(str(folder / "cluster")).collect()
    assert (line.topic, bytes(line.body)) == ("orders", b"tea")
    print("register_logs")


def functions_of_sql(session: Any, frame: Any, small: int) -> None:
    if VERSION < (4, 1):
        refused(lambda: ps.register(session), "register=pyspark .*no functions of Arrow")
        return
    ps.register(session, {"audit": {"small": "n < 4"}})
    frame.createOrReplaceTempView("orders")
    for condition in ("pyengine_matches('n < 4', struct(*))", "size(pyengine_match('audit', struct(n))) = 1"):
        assert session.sql(f"SELECT * FROM orders WHERE {condition}").count() == small
    text = "[source] destination = '{queue}' [[consumer]] name = 'c' destination = 'q.>'".replace(" [", "\n[")
    text = text.replace(" dest", "\ndest").replace(" name", "\nname").replace("'", "\\'")
    rows = session.sql(f"SELECT consumer FROM pyengine_dispatch(TABLE(orders), '{text}', 'number')")
    assert rows.where("consumer = 'c'").count() == ROWS
    print("register: functions and table functions of SQL")


def check(session: Any, folder: Path) -> None:
    table = orders()
    frames = Frames(session, folder)
    frame, arrow = frames.of(table), frames.table
    plain = [n for n in table.column("n").to_pylist() if n is not None and n > 2]
    if VERSION < (4, 1):
        refused(lambda: ps.matches("n > 2", using="arrow"), "using=arrow: needs pyspark 4.1")
    for using in ("arrow", "pandas", "native", "auto")[VERSION < (4, 1) :]:
        assert frame.transform(ps.where, "n > 2", using=using).count() == len(plain)
        assert frame.where(ps.matches("n > 2", using=using, schema=frame)).count() == len(plain)
    wanted = frame.transform(ps.match, {"small": "n < 4", "paid": "tag = 'paid'"}, explode=True)
    small = sum(n is not None and n < 4 for n in table.column("n").to_pylist())
    assert wanted.where("subscriptions = 'small'").count() == small
    with pytest.raises(InvalidSelectorError, match="position 3"):
        frame.where(ps.matches("n >< 2"))
    print("matches, where (arrow, pandas, native), match")

    here = topology("unused.parquet")
    messages, _ = to_messages(table.drop_columns(["number"]), range(ROWS), here.source)
    expected = dispatch_table(here, messages)
    for partitions in (None, 3):
        same(arrow(frame.transform(ps.dispatch, here, row="number", partitions=partitions)), expected, "row")
    groups = ConsumerGroups(
        [("orders", "broker-a", number) for number in range(4)],
        [
            ConsumerGroup("billing", ["c1", "c2", "c3"], {"orders": "paid"}),
            ConsumerGroup("all", ["a1"], {"orders": "*"}),
        ],
        MessageColumns(topic="topic", queue_id="queue_id", tags="tag"),
    )
    log = table.append_column("topic", pa.array(["orders"] * ROWS)).append_column(
        "queue_id", pa.array([n % 5 for n in range(ROWS)], pa.int32())
    )
    found = arrow(frames.of(log).transform(ps.dispatch, groups, row="number"))
    same(found, dispatch_messages(groups, log, range(ROWS)), "row", "group")
    print("dispatch of queues and of consumer groups")

    (folder / "orders").mkdir()
    for part in range(3):
        rows = table.drop_columns(["number"]).slice(part * ROWS // 3, ROWS // 3)
        pq.write_table(rows, folder / "orders" / f"{part}.parquet")
    there = topology(str(folder / "orders"))
    assert ps.write_shards(session, there, folder / "shards", shards=3) == ROWS
    same(arrow(ps.dispatch_shards(session, there, folder / "shards")), expected, "row")
    summary = ps.run(there, folder / "out", spark=session).summary
    delivered = ROWS - expected.column("reason").drop_null().length()
    assert (summary["messages"], summary["delivered"]) == (ROWS, delivered)
    print("write_shards, dispatch_shards, run")

    (folder / "stream").mkdir()
    for part in range(2):  # the query ends and is started again in between
        pq.write_table(table.slice(part * ROWS // 2, ROWS // 2), folder / "stream" / f"{part}.parquet")
        coming = session.readStream.schema(frame.schema).parquet(str(folder / "stream"))
        stream = ps.dispatch_stream(coming, here, row="number", shards=2, state=folder / "state", sink=folder / "sink")
        query = stream.trigger(availableNow=True).start()
        assert query.awaitTermination(300)
        (numbers,) = [each["observedMetrics"][ps.OBSERVED] for each in query.recentProgress if each["numInputRows"]]
        assert numbers["delivered"] > 0
    came = arrow(session.read.parquet(str(folder / "sink")).select("row", "consumer"))
    held = arrow(ps.held(session, folder / "state").select("row", "reason"))
    reasons = expected.column("reason")
    same(came, expected.filter(pc.is_null(reasons)).select(["row", "consumer"]), "row")
    same(held, expected.filter(pc.is_valid(reasons)).select(["row", "reason"]), "row")
    print("dispatch_stream, held")

    logs_of_brokers(session, folder)
    functions_of_sql(session, frame, small)

    jsons = frame.selectExpr("number", "to_json(struct(n, tag)) AS body", "map('tag', tag) AS map")
    if VERSION >= (4, 0):
        assert jsons.transform(ps.where, "n < 4", properties_from="body").count() == small
    else:
        refused(lambda: jsons.transform(ps.where, "n < 4", properties_from="body"), r"pyspark 3\.5.* reads no values")
    headers = frame.selectExpr("array(struct('tag' AS key, encode(tag, 'UTF-8') AS value)) AS headers")
    assert headers.transform(ps.where, "tag = 'paid'", properties_from="headers").count() == ROWS - ROWS // 5
    assert jsons.transform(ps.where, "tag = 'paid'", properties_from="map", using="native").count() == ROWS - ROWS // 5
    print("properties in maps and JSON")

    variants = [Variant(f"{n}", (SimulatedConsumer("c", prefetch=n),)) for n in (1, 10, 1000)]
    work = Workload.from_rate(100, 0.02, 500, seed=1)
    assert ps.sweep(session, work, variants) == compare(work, variants)
    print("sweep")

    with pytest.raises(Exception, match="SelectorEvaluationError"):
        frame.where(ps.matches("who * 2 = 4", using="pandas")).count()
    print("an error in a worker names itself")


def main() -> None:
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    classic = "--classic" in sys.argv
    with tempfile.TemporaryDirectory() as scratch:
        if classic:
            session: Any = start_session("local[2]")
        else:
            settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
            session = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
        try:
            assert ("connect" in type(session).__module__) is not classic
            check(session, Path(scratch))
        finally:
            session.stop()
    print(json.dumps({"spark": pyspark.__version__, "session": type(session).__module__, "rows": ROWS}))


if __name__ == "__main__":
    main()
