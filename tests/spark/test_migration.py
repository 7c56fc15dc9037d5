"""A stream goes on under another topology, wherever its first micro-batch under it dies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyengine.errors import ConfigurationError
from pyengine.spark import dispatch_stream, held, streaming
from pyengine.topology import Consumer, Policy, Topology
from tests.spark.deaths import DyingWork, raise_died
from tests.spark.test_streaming import (
    IN_A_WORKER,
    ON_THE_DRIVER,
    assert_same_lines,
    numbered,
    run,
    small_topology,
    told,
    write_files,
)

OPTIONS: dict[str, Any] = {"shards": 2, "partitions": 1}
DEATHS = (*IN_A_WORKER, *ON_THE_DRIVER)
# The whole walk has a death at each step, PYENGINE_MIGRATION_KILLS times.
ROUNDS = int(os.environ.get("PYENGINE_MIGRATION_KILLS", "0"))
WALK = [(step, seed) for seed in range(ROUNDS) for step in DEATHS] or [(DEATHS[1], 0), (DEATHS[5], 0)]


def before() -> Topology:
    return small_topology(
        Consumer("stays", "q.>", selector="n < 5", prefetch=4, acknowledges=False),
        Consumer("goes", "q.>", selector="n = 5", prefetch=2, acknowledges=False),
        Consumer("changes", "q.>", selector="n = 6"),
    )


def behind() -> Topology:
    return small_topology(
        Consumer("new", "q.>", selector="n = 8 OR n = 5"),
        Consumer("changes", "q.>", selector="n = 6 OR n = 7"),
        Consumer("stays", "q.>", selector="n < 5", prefetch=4, acknowledges=False),
    )


def traffic(seed: int, part: int) -> pa.Table:
    """Rows for a few queues; the second part is for some of the queues only."""
    queues = [f"{(number * 7 + seed) % (6 - 3 * part)}" for number in range(40)]
    rows = numbered(queues)
    return rows.set_column(0, "number", pa.array(range(part * 40, part * 40 + 40), pa.int64()))


def test_consumers_come_go_and_change_and_what_waits_stays(spark: Any, tmp_path: Path) -> None:
    write_files(traffic(0, 0), tmp_path / "in", 1)
    run(spark, tmp_path / "in", 1, before(), tmp_path, **OPTIONS)
    waited = {line.row: line.reason for line in held(spark, tmp_path / "state").collect()}
    write_files(traffic(0, 1), tmp_path / "in", 1, first=1)
    with pytest.raises(Exception, match=r'SnapshotError.*another stream: its topology.*on_change="migrate" takes it'):
        run(spark, tmp_path / "in", 1, behind(), tmp_path, **OPTIONS)
    run(spark, tmp_path / "in", 1, behind(), tmp_path, on_change="migrate", **OPTIONS)
    second = spark.read.parquet(str(tmp_path / "sink" / "batch=1")).collect()
    of = {line.row: line.consumer for line in second if line.row < 40}
    n_of = {number: number % 10 for number in range(80)}
    assert {n_of[row] for row, consumer in of.items() if consumer == "new"} == {5, 8}
    assert {n_of[row] for row, consumer in of.items() if consumer == "changes"} == {7}
    assert {line.consumer for line in second} <= {"new", "changes", "stays"}
    still = {line.row for line in held(spark, tmp_path / "state").collect() if line.row < 40}
    assert still <= set(waited)
    owners = spark.read.parquet(str(tmp_path / "sink")).where("consumer = 'stays'").select("destination", "group")
    assert owners.distinct().count() > 3
    run(spark, tmp_path / "in", 1, behind(), tmp_path, **OPTIONS)  # from now on it is the topology of the state


@pytest.mark.parametrize(("step", "seed"), WALK)
def test_a_migration_that_dies_happens_once(spark: Any, tmp_path: Path, step: Any, seed: int) -> None:
    """Before its deliveries have their name the former topology is as it was, afterwards the new one counts."""
    write_files(traffic(seed, 0), tmp_path / "in", 1)
    for place in ("dying", "calm"):
        run(spark, tmp_path / "in", 1, before(), tmp_path / place, **OPTIONS)
    write_files(traffic(seed, 1), tmp_path / "in", 1, first=1)
    options = {**OPTIONS, "on_change": "migrate"}
    death = step.in_batch(1)
    with pytest.MonkeyPatch.context() as patched:
        if step in IN_A_WORKER:
            work = streaming._Shards
            patched.setattr(streaming, "_Shards", lambda *about: DyingWork(work(*about), death))
            with pytest.raises(Exception, match=r"worker exited unexpectedly \(crashed\)"):
                run(spark, tmp_path / "in", 1, behind(), tmp_path / "dying", **options)
        else:
            with death.awaited(raise_died), pytest.raises(Exception, match="died at the step"):
                run(spark, tmp_path / "in", 1, behind(), tmp_path / "dying", **options)
    for place in ("dying", "calm"):
        run(spark, tmp_path / "in", 1, behind(), tmp_path / place, **options)
    assert_same_lines(told(spark, tmp_path / "dying"), told(spark, tmp_path / "calm"))


def test_what_cannot_be_kept_is_named_before_anything_is_written(spark: Any, tmp_path: Path) -> None:
    rows = traffic(0, 0).append_column("color", pa.array(["blue"] * 40))
    write_files(rows, tmp_path / "in", 1)
    run(spark, tmp_path / "in", 1, before(), tmp_path, **OPTIONS)
    write_files(rows, tmp_path / "in", 1, first=1)
    files = sorted(str(path) for path in tmp_path.rglob("*") if "checkpoint" not in str(path))
    painted = small_topology(Consumer("painted", "q.>", selector="color = 'red' OR n = 9"))
    slow = Topology(before().source, before().consumers, (Policy("q.1", max_page_size=3),))
    options = {**OPTIONS, "on_change": "migrate"}
    for topology, words in (
        (painted, r"queue q\.\d: messages wait there whose color was not kept, and painted reads it"),
        (slow, r"cannot be changed: queue q\.1: its policy is another one, and a queue keeps the settings"),
    ):
        with pytest.raises(Exception, match=rf"SnapshotError.*{words}"):
            run(spark, tmp_path / "in", 1, topology, tmp_path, **options)
        assert sorted(str(path) for path in tmp_path.rglob("*") if "checkpoint" not in str(path)) == files
    run(spark, tmp_path / "in", 1, painted, tmp_path, absent=["color"], **options)
    lines = spark.read.parquet(str(tmp_path / "sink" / "batch=1")).collect()
    assert {line.row % 10 for line in lines if line.row < 40 and line.consumer == "painted"} == {9}
    with pytest.raises(ConfigurationError, match="on_change='yes': must be 'raise' or 'migrate'"):
        dispatch_stream(spark.range(1), painted, row="id", state="s", sink="o", on_change="yes")  # type: ignore[arg-type]
