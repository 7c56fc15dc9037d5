"""shards: ordered dispatch of many queues from files that workers read, with the transfer to the JVM and without it.

CPU seconds of every process of the session, as in bench_spark. 50 messages a queue; two selectors, groups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.bench_spark import contest, noop
from bench.contest import Row
from bench.generate import FILE, TOPOLOGY, table
from pyengine import spark as ps
from pyengine.spark.session import start_session
from pyengine.topology import Topology

MESSAGES, QUEUES, SHARDS = 5_000_000, 100_000, 8
LEAN = ("row", "consumer", "delivery", "reason")


class Handing:
    """What a worker runs instead: reads the same columns of the same files and hands back columns of the same shape."""

    def __init__(self, paths: tuple[str, ...], text: str) -> None:
        self.paths = paths
        self.text = text

    def __call__(self, numbers: Iterator[Any]) -> Iterator[Any]:
        from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA
        from pyengine.backlog.tables.shards import shard_batches

        schema = pa.schema([ASSIGNMENT_SCHEMA.field(name) for name in LEAN])
        topology = Topology.from_text(self.text)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in shard_batches(Path(self.paths[number]), topology, LEAN):
                    names = pa.array(["rest"]).take(pa.array([0] * rows.num_rows))
                    row = rows.column("__row")
                    yield pa.RecordBatch.from_arrays(
                        [row, names, row, pa.nulls(rows.num_rows, pa.string())], schema=schema
                    )


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "messages").mkdir()
        for number, first in enumerate(range(0, MESSAGES, FILE)):
            part = table(first, FILE, QUEUES, QUEUES)
            pq.write_table(part, folder / "messages" / f"{number}.parquet", row_group_size=FILE // 2)
        (folder / "topology.toml").write_text(TOPOLOGY.format(messages=MESSAGES), "utf-8")
        session = start_session("local[2]")
        try:
            yield from measured(session, Topology.load(folder / "topology.toml"), folder)
        finally:
            session.stop()


def measured(session: Any, topology: Topology, folder: Path) -> Iterator[Row]:
    from pyspark.sql.pandas.types import from_arrow_schema

    from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA

    shards = folder / "shards"
    assert ps.write_shards(session, topology, shards, shards=SHARDS) == MESSAGES
    whole = ps.dispatch_shards(session, topology, shards)
    lean = ps.dispatch_shards(session, topology, shards, columns=LEAN)
    paths = tuple(str(path) for path in sorted(shards.glob("shard-*.parquet")))
    handing = session.range(0, len(paths), 1, len(paths)).mapInArrow(
        Handing(paths, topology.to_text()),
        from_arrow_schema(pa.schema([ASSIGNMENT_SCHEMA.field(name) for name in LEAN])),
    )
    assert lean.count() == MESSAGES == handing.count()
    assert whole.where("consumer IS NOT NULL").count() == lean.where("consumer IS NOT NULL").count()
    question = f"Spark, {MESSAGES:,} messages of {QUEUES:,} queues from sorted shards"
    yield from contest(
        f"{question}: who gets which, as four columns",
        {"pyengine": lambda: noop(lean), "reading the files and handing four columns to Spark": lambda: noop(handing)},
        {},
        rows=MESSAGES,
        rounds=3,
    )
    tries = iter(range(100))
    yield from contest(
        f"{question}: the same, written by the workers",
        {
            "pyengine": lambda: ps.assign_shards(
                session, topology, shards, folder / f"out-{next(tries)}", columns=LEAN
            ),
            "all ten columns through Spark": lambda: noop(whole),
        },
        {},
        rows=MESSAGES,
        rounds=3,
        at_most=0.6e-6,
    )
