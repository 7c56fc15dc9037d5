"""What happens to workers and data in the field: a worker is killed, one group is everything, columns are empty."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyengine import spark as ps
from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.tables.messages import to_messages
from pyengine.spark import transforms
from pyengine.spark.shards import scheduled
from pyengine.topology import Consumer, Policy, Source, Topology

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
LARGE = "PYENGINE_LARGE"


def agrees(spark: Any, topology: Topology, table: pa.Table, partitions: int) -> pa.Table:
    """What Spark's workers answer, after asserting that it is what this process answers."""
    count = table.num_rows
    messages, rejects = to_messages(table, range(count), topology.source)
    assert not rejects
    expected = dispatch_table(topology, messages).sort_by("row").drop_columns(["bytes"])
    frame = spark.createDataFrame(table.append_column("number", pa.array(range(count), pa.int64())))
    found = frame.transform(ps.dispatch, topology, row="number", partitions=partitions).toArrow()
    assert found.drop_columns(["bytes"]).cast(expected.schema).sort_by("row").equals(expected)
    return expected


def test_a_worker_killed_in_the_middle_changes_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel kills the worker that makes messages and the one that dispatches, each with half of its work done."""

    def dying(work: type[Any], mark: Path) -> type[Any]:
        class Dying(work):  # type: ignore[misc]
            most_rows = 300

            def __call__(self, batches: Any) -> Iterator[Any]:
                for number, batch in enumerate(super().__call__(batches)):
                    if number == 2 and not mark.exists():
                        mark.touch()
                        os.kill(os.getpid(), signal.SIGKILL)
                    yield batch

        return Dying

    marks = [tmp_path / name for name in ("Preparation", "Assignment")]
    for mark in marks:
        monkeypatch.setattr(transforms, mark.name, dying(getattr(transforms, mark.name), mark))
    count = 4_000
    table = pa.table(
        {
            "q": [f"q.{n % 3}" for n in range(count)],
            "g": [f"g{n % 50}" for n in range(count)],
            "n": pa.array([n % 9 for n in range(count)], pa.int32()),
        }
    )
    topology = Topology(
        source=Source(destination="{q}", path="x", group="g"),
        consumers=(Consumer("some", "q.>", "n > 3"), Consumer("rest", "q.>")),
    )
    before = spark.conf.get(BATCH_ROWS)
    spark.conf.set(BATCH_ROWS, "300")
    try:
        agrees(spark, topology, table, 2)
    finally:
        spark.conf.set(BATCH_ROWS, before)
    assert [mark.name for mark in marks if not mark.exists()] == []


@pytest.mark.parametrize(
    "groups",
    [
        100_000,
        pytest.param(
            3_000_000, marks=pytest.mark.skipif(LARGE not in os.environ, reason=f"takes minutes: {LARGE}=1 runs it")
        ),
    ],
)
def test_many_groups_one_giant_group_and_many_queues(spark: Any, groups: int) -> None:
    giant, queues = groups // 4, groups // 20
    topology = Topology(
        source=Source(destination="{q}", path="x", group="g"),
        consumers=(
            Consumer("a", ">", selector="n <> 0"),
            Consumer("b", ">"),
            Consumer("idle", ">", selector="e = 'x'"),
        ),
        policies=(Policy(">", message_group_map_factory_type="simple"),),
    )
    count = groups + giant + queues
    table = pa.table(
        {
            "q": ["many"] * groups + ["one"] * giant + [f"q.{n}" for n in range(queues)],
            "g": [f"g\U0001f600{n}" for n in range(groups)] + ["giant"] * giant + [None] * queues,
            "n": pa.array([n % 5 for n in range(count)], pa.int32()),
            "e": pa.nulls(count, pa.string()),
        }
    )
    found = agrees(spark, topology, table, 3)
    assert found.filter(pc.equal(found["group"], "giant"))["consumer"].drop_null().unique().to_pylist() == ["b"]
    owners = found.slice(0, groups)["consumer"].value_counts().to_pylist()
    assert {each["values"] for each in owners} == {"a", "b"}


def test_empty_partitions_and_columns_of_nulls(spark: Any) -> None:
    count = 40
    topology = Topology(
        source=Source(destination="{q}", path="x", group="g", connection="by"),
        consumers=(
            Consumer("a", "q.>", selector="e IS NULL AND n = 1"),
            Consumer("b", "q.>", no_local=True, connection="c"),
        ),
    )
    nothing = pa.nulls(count, pa.string())
    table = pa.table(
        {"q": ["q.\U0001f600"] * count, "g": nothing, "by": nothing, "e": nothing,
         "n": pa.array([n % 2 for n in range(count)], pa.int32())}
    )  # fmt: skip
    assert set(agrees(spark, topology, table, 7)["consumer"].to_pylist()) == {"a", "b"}
    assert agrees(spark, topology, table.slice(0, 0), 2).num_rows == 0
    assert scheduled(spark, 0, lambda number: "") == []
    assert scheduled(spark, 3, lambda number: str(number * 2)) == ["0", "2", "4"]
