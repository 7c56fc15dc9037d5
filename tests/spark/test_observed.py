"""Spark shows the numbers of a dispatch as its answer has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Observation

from pyengine import spark as ps
from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA
from pyengine.activemq.tables.stream_state import STREAM_SCHEMA
from pyengine.backlog.tables.messages import REJECT_SCHEMA
from pyengine.rocketmq.tables.dispatch import CONSUMPTION_SCHEMA, ConsumerGroup, ConsumerGroups, MessageColumns
from pyengine.spark import held
from pyengine.spark.state_files import Progress, StateFolder
from pyengine.topology import Consumer, Policy, Topology
from tests.spark.conftest import ROOT
from tests.spark.test_streaming import numbered, small_topology, write_files

SPARK_NAMES = {"int64": "bigint", "int32": "int", "string": "string"}


def test_the_page_has_the_schemas() -> None:
    lines = (ROOT / "docs/spark.md").read_text("utf-8").split("## Schemas")[1].split("##")[0].splitlines()
    for what, schema in (
        ("`dispatch`, `dispatch_shards`", ASSIGNMENT_SCHEMA),
        ("`dispatch` of consumer groups", list(CONSUMPTION_SCHEMA)[1:]),
        ("`rejects/`", REJECT_SCHEMA),
    ):
        (line,) = [line for line in lines if line.startswith(f"| {what}")]
        for field in schema:
            assert f"`{field.name}` {SPARK_NAMES[str(field.type)]}" in line, field
    assert [field.name for field in STREAM_SCHEMA] == [*ASSIGNMENT_SCHEMA.names, "attempt"]


def topology() -> Topology:
    given = small_topology(
        Consumer("few", "q.>", selector="n < 5", prefetch=1, acknowledges=False),
        Consumer("none", "q.>", selector="n = 6 AND price * 2 > 1"),
        Consumer("late", "q.>", selector="n = 7"),
    )
    return replace(given, policies=(Policy("q.1", max_page_size=2),))


def counts(lines: list[Any]) -> dict[str, int]:
    """The numbers that belong to these lines of an answer."""
    reasons = Counter(line.reason for line in lines)
    delivered = reasons.pop(None, 0)
    waiting = sum(reasons.values()) - reasons["rejected"] - reasons["expired"]
    return {**reasons, "delivered": delivered, "held": waiting, "rejected": reasons["rejected"]}


def assert_counted(found: dict[str, int], expected: dict[str, int]) -> None:
    assert {name: count for name, count in found.items() if count} == {
        name: count for name, count in expected.items() if count
    }


def rows(first: int) -> pa.Table:
    """Forty messages of a few queues, one of them without a priority that there is."""
    found = numbered([f"{(number * 7) % 5}" for number in range(40)], {})
    levels = pa.array([12 if number == 20 else 4 for number in range(40)], pa.int32())
    prices = pa.array(["?" if number % 4 else None for number in range(40)])
    found = found.set_column(0, "number", pa.array(range(first, first + 40), pa.int64()))
    return found.append_column("level", levels).append_column("price", prices)


def test_a_batch_counts_what_was_delivered_and_why_the_rest_was_not(spark: Any) -> None:
    frame = spark.createDataFrame(rows(0).drop_columns(["event"]))
    given = topology()
    given = replace(given, source=replace(given.source, priority="level"))
    seen = Observation("orders")
    lines = frame.transform(ps.dispatch, given, row="number", observe=seen).collect()
    expected = counts(lines)
    assert len({name for name, count in expected.items() if count}) > 5
    assert_counted(seen.get, expected)

    groups = ConsumerGroups(
        [("orders", "broker-a", 0)], [ConsumerGroup("billing", ["c1"], {"orders": "3 || 4"})],
        MessageColumns(topic="topic", queue_id="queue_id", tags="who"),
    )  # fmt: skip
    log = frame.selectExpr("number", "IF(n = 9, 'other', 'orders') AS topic", "0 AS queue_id", "who")
    seen = Observation("groups")
    lines = log.transform(ps.dispatch, groups, row="number", observe=seen).collect()
    expected = counts(lines)
    del expected["held"]
    assert_counted(seen.get, expected)


def test_the_progress_of_a_stream_has_its_numbers(spark: Any, tmp_path: Path) -> None:
    """Of each micro-batch what was delivered in it, and all that waits behind it, in shards that it did not reach too;
    also behind the state of a version that did not count."""
    given = topology()
    given = replace(given, source=replace(given.source, priority="level"))
    folder = StateFolder(str(tmp_path / "state"))
    for batch, (queues, forgets) in enumerate([("01234", False), ("1", False), ("3", True)]):
        part = rows(batch * 40)
        there = pa.array([name in queues for name in part.column("queue").to_pylist()])
        write_files(part.filter(there), tmp_path / "in", 1, first=batch)
        progress = folder.read_progress()
        if forgets:
            assert progress is not None
            folder.prepare_progress(replace(progress, figures=()))
            folder.write_progress(progress.batch, "")
        coming = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
        stream = ps.dispatch_stream(
            coming, given, row="number", event="event", late=["late"], shards=8, partitions=3,
            state=tmp_path / "state", sink=tmp_path / "sink",
        )  # fmt: skip
        query = stream.trigger(availableNow=True).start()
        query.awaitTermination()
        (numbers,) = [each["observedMetrics"] for each in query.recentProgress if each["numInputRows"]]
        found = numbers[ps.OBSERVED].asDict()
        size = found.pop("state_bytes")
        progress = folder.read_progress()
        assert isinstance(progress, Progress)
        newest = [max((tmp_path / "state").glob(f"shard-{shard:05d}/*.state"), default=None) for shard in range(8)]
        assert size == sum(path.stat().st_size for path in newest if path)
        lines = spark.read.parquet(str(tmp_path / "sink" / f"batch={batch}")).collect()
        lines += held(spark, tmp_path / "state").collect()
        expected = counts(lines)
        assert len({name for name, count in expected.items() if count}) > 4
        assert_counted(found, expected)
