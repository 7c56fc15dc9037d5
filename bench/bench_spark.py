"""spark: what the engine costs on top of the transfer it rides on, and against Spark's own expressions.

CPU seconds of every process of the session (driver, JVM, Python workers), read from /proc: walls swing with the load.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.contest import Row
from pyengine import spark as ps
from pyengine.activemq.tables.dispatch import columns_read, compiled, order_columns
from pyengine.spark.session import start_session
from pyengine.spark.transforms import assign
from pyengine.topology import Consumer, Policy, Source, Topology

ROWS = 1_000_000
QUEUES = 1_000
ROUNDS = 5
SELECTOR = "region = 'EU' AND price > 100 AND kind IN ('a', 'b', 'c')"
NATIVE = "region = 'EU' AND price > 100 AND kind IN ('a', 'b', 'c')"
ON_TOP = 1 / 1.15  # the goal: the engine adds at most 15 % to the identity pass
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def table() -> pa.Table:
    draw = np.random.default_rng(20222)
    queues = np.sort(draw.integers(0, QUEUES, ROWS))
    draw.shuffle(queues)
    return pa.table(
        {
            "__row": pa.array(np.arange(ROWS)),
            "__destination": pa.array([f"q.{number}" for number in range(QUEUES)]).take(pa.array(queues)),
            "__bytes": pa.array(np.full(ROWS, 64)),
            "JMSXGroupID": pa.array([f"g{number}" for number in range(5_000)]).take(
                pa.array(draw.integers(0, 5_000, ROWS))
            ),
            "region": pa.array(["EU", "US", "APAC", "LATAM"]).take(pa.array(draw.integers(0, 4, ROWS))),
            "kind": pa.array(list("abcdefgh")).take(pa.array(draw.integers(0, 8, ROWS))),
            "price": pa.array(np.round(draw.uniform(1, 700, ROWS), 2)),
        }
    )


def topology() -> Topology:
    return Topology(
        source=Source(destination="{q}", path="x", group="g"),
        policies=(Policy("q.>", message_group_map_factory_type="simple"),),
        consumers=(
            Consumer("eu", "q.>", selector="region = 'EU' AND price > 100"),
            Consumer("kinds", "q.>", selector="kind IN ('a', 'b', 'c')"),
            Consumer("rest", "q.>"),
        ),
    )


def same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The identity pass: everything crosses, nothing is done."""
    yield from batches


def masked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The identity pass with the selector evaluated on every batch; what it says is in the last column."""
    selector = compiled(SELECTOR)
    for batch in batches:
        yield batch.set_column(batch.num_columns - 1, "wanted", pa.array(selector.mask(batch)))


def empty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Columns cross, and nothing comes back but an assignment's shape of nulls."""
    from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA, kept_of

    for batch in batches:
        kept = kept_of(batch, np.zeros(batch.num_rows, bool))
        named = {"destination": batch.column("__destination"), "consumer": batch.column("__destination")}
        named["delivery"] = batch.column("__row")
        columns = [
            named.get(field.name)
            if field.name in named
            else (kept.column(field.name) if field.name in kept.schema.names else pa.nulls(batch.num_rows, field.type))
            for field in ASSIGNMENT_SCHEMA
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=ASSIGNMENT_SCHEMA)


def processes(root: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text("utf-8").rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += children.get(one, [])
    return found


def cpu() -> float:
    """CPU seconds so far of this process, the JVM and the workers, waited-for children included."""
    total = 0
    for process in processes(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(value) for value in fields[11:15])
    return total / TICK


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        data = table()
        for index in range(4):
            pq.write_table(data.slice(index * ROWS // 4, ROWS // 4), Path(folder) / f"{index}.parquet")
        session = start_session(
            "local[2]", {"spark.sql.shuffle.partitions": "4", "spark.sql.adaptive.enabled": "false"}
        )
        try:
            yield from measured(session.read.parquet(Path(folder).as_uri()))
        finally:
            session.stop()


def measured(frame: Any) -> Iterator[Row]:
    read = frame.select("region", "kind", "price", (frame["price"] > 0).alias("wanted"))
    here = topology()
    names = columns_read(here, frame.columns)
    keyed = assign(frame, here, 4)
    identity = (
        frame.selectExpr(*(f"`{name}`" for name in names), "xxhash64(__destination) AS __queue")
        .repartition(4, "__queue")
        .sortWithinPartitions(*order_columns(here, names))
        .mapInArrow(empty, keyed.schema)
    )
    wanted = frame.where(NATIVE).count()
    assert frame.where(ps.matches(SELECTOR)).count() == wanted
    assert read.mapInArrow(masked, read.schema).where("wanted").count() == wanted
    assert keyed.where("consumer IS NOT NULL OR reason IS NOT NULL").count() == ROWS == identity.count()
    yield from contest(
        f"Spark, {ROWS:,} rows: a selector on top of the identity mapInArrow pass of its columns",
        {
            "pyengine": lambda: noop(read.mapInArrow(masked, read.schema)),
            "identity mapInArrow": lambda: noop(read.mapInArrow(same, read.schema)),
        },
        {"identity mapInArrow": ON_TOP},
    )
    yield from contest(
        f"Spark, {ROWS:,} rows: matches() as a column",
        {
            "pyengine": lambda: noop(frame.select("__row", ps.matches(SELECTOR).alias("wanted"))),
            "Spark's own expression": lambda: noop(frame.selectExpr("__row", f"{NATIVE} AS wanted")),
        },
        {},
    )
    yield from contest(
        f"Spark, {ROWS:,} rows in {QUEUES:,} queues: dispatch on top of shuffle, sort and identity mapInArrow",
        {"pyengine": lambda: noop(keyed), "shuffle, sort, identity": lambda: noop(identity)},
        {"shuffle, sort, identity": ON_TOP},
    )


def contest(
    question: str,
    sides: dict[str, Callable[[], object]],
    goals: dict[str, float],
    *,
    rows: int = ROWS,
    rounds: int = ROUNDS,
    at_most: float | None = None,
) -> Iterator[Row]:
    """Interleaved rounds after one warm-up of each side. at_most: seconds a row."""
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        call()
    for _ in range(rounds):
        for name, call in sides.items():
            before = cpu()
            call()
            spent[name].append((cpu() - before) / rows)
    for name in list(sides)[1:]:
        yield Row(
            question=question,
            unit="row",
            rival=name,
            ours_best=min(spent["pyengine"]),
            ours_median=statistics.median(spent["pyengine"]),
            rival_best=min(spent[name]),
            rival_median=statistics.median(spent[name]),
            goal=goals.get(name),
            at_most=at_most,
        )
