"""streaming: queues carried from micro-batch to micro-batch, in files of our own and in Spark's own state.

Both sides run the same Carry on the same stream into Parquet; the floor is the same stream with nothing done to its
rows: shuffled by shard, through Python and into Parquet. CPU seconds of every process of the session, as bench_spark:
a first query warms each side up, a second one over two micro-batches counts. About a minute.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.bench_spark import cpu, same
from bench.contest import Row
from pyengine.activemq.tables.dispatch import columns_read
from pyengine.activemq.tables.stream_state import STREAM_SCHEMA, Carry
from pyengine.backlog.tables.messages import to_messages
from pyengine.spark import dispatch_stream
from pyengine.spark.session import start_session
from pyengine.topology import Consumer, Policy, Source, Topology

ROWS = 750_000  # a micro-batch
FILES = 2  # that it comes as, so that two tasks read it
QUEUES = 20_000
SHARDS = 64
GROUPS = 200
PARTITIONS = 4
MEASURED = 2  # micro-batches
GOAL = 2 / 300_000  # core seconds a message: 300,000 a second on two cores
IN_SPARKS_STATE = "transformWithStateInPandas, a blob a shard"
FLOOR = "identity stream"


def topology() -> Topology:
    """Two consumers share the groups of each queue; a third one never acknowledges, so that messages pile up."""
    return Topology(
        source=Source("q.{queue}", path="unused", group="who", properties=("kind",)),
        policies=(Policy("q.>", message_group_map_factory_type="cached"),),
        consumers=(
            Consumer("some", "q.>", selector="kind IN ('a', 'b', 'c', 'e', 'f', 'g', 'h')"),
            Consumer("few", "q.>", selector="kind = 'd'", prefetch=5, acknowledges=False),
            Consumer("other", "q.>", selector="kind <> 'd'"),
        ),
    )


def table(batch: int) -> pa.Table:
    draw = np.random.default_rng(batch)
    rare = draw.integers(0, 100, ROWS) == 0
    kinds = np.where(rare, 7, draw.integers(0, 7, ROWS))
    return pa.table(
        {
            "number": pa.array(np.arange(batch * ROWS, (batch + 1) * ROWS)),
            "queue": pa.array([str(number) for number in range(QUEUES)]).take(pa.array(draw.integers(0, QUEUES, ROWS))),
            "who": pa.array([f"g{number}" for number in range(GROUPS)]).take(
                pa.array(draw.integers(0, GROUPS, ROWS), mask=rare)
            ),
            "kind": pa.array([*"abcefgh", "d"]).take(pa.array(kinds)),
        }
    )


def frame_of(session: Any, folder: str) -> Any:
    schema = session.read.parquet(folder).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(folder)


def in_shards(session: Any, folder: str) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return frame_of(session, folder).withColumn("shard", F.pmod(F.xxhash64("queue"), F.lit(SHARDS)).cast("int"))


def run(writer: Any) -> float:
    """Seconds that the micro-batches of a stream take, as Spark counts them: all but the start of its query."""
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress.durationMs["triggerExecution"] for progress in query.recentProgress) / 1000


def written(frame: Any, place: str) -> float:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{place}/state")
    return run(writer.option("path", f"{place}/sink"))


def ours(session: Any, folder: str, place: str) -> float:
    writer = dispatch_stream(
        frame_of(session, folder),
        topology(),
        row="number",
        state=f"{place}/state",
        sink=f"{place}/sink",
        shards=SHARDS,
        partitions=PARTITIONS,
    )
    return run(writer)


def floor(session: Any, folder: str, place: str) -> float:
    frame = in_shards(session, folder).repartition(PARTITIONS, "shard")
    return written(frame.mapInArrow(same, frame.schema), place)


def in_sparks_state(session: Any, folder: str, place: str) -> float:
    from pyspark.sql.pandas.types import from_arrow_schema

    told = (
        in_shards(session, folder)
        .groupBy("shard")
        .transformWithStateInPandas(processor(), from_arrow_schema(STREAM_SCHEMA), "Append", "None")
    )
    return written(told, place)


def processor() -> Any:
    """A shard in Spark's own state: a key is a shard, its value the bytes."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    class OneBlobAShard(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("shard", "blob binary")

        def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            made = pa.Table.from_pandas(pd.concat(list(rows)), preserve_index=False).sort_by("number")
            source = topology().source
            made, _ = to_messages(made.select(["queue", "who", "kind"]), made.column("number").to_numpy(), source)
            made = made.select(columns_read(topology(), made.column_names))
            carry = Carry(topology(), made.schema)
            held = self.state.get()
            carry.load(key[0], bytes(held[0]) if held else None)
            for batch in made.combine_chunks().to_batches():
                carry.feed(batch, np.full(batch.num_rows, key[0]))
            told = carry.take()
            self.state.update((carry.save(key[0]),))
            yield told.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()}.get)

        def close(self) -> None:
            pass

    return OneBlobAShard()


def alone() -> float:
    """CPU seconds a message of the queues themselves: state read, messages dispatched, state written, without Spark."""
    blobs: dict[int, bytes] = {}
    spent = 0.0
    for batch in range(1 + MEASURED):
        rows = table(batch)
        made, _ = to_messages(
            rows.select(["queue", "who", "kind"]), rows.column("number").to_numpy(), topology().source
        )
        made = made.select(columns_read(topology(), made.column_names))
        queues = rows.column("queue").to_numpy(zero_copy_only=False).astype(np.int64)
        for partition in range(PARTITIONS):
            mine = np.flatnonzero(queues % PARTITIONS == partition)
            shards = queues[mine] % SHARDS
            fed = made.take(pa.array(mine)).combine_chunks().to_batches()[0]
            start = time.process_time()
            carry = Carry(topology(), made.schema)
            for shard in range(partition, SHARDS, PARTITIONS):
                carry.load(shard, blobs.get(shard))
            carry.feed(fed, shards)
            told = carry.take(codes=True)
            for shard in range(partition, SHARDS, PARTITIONS):
                blobs[shard] = carry.save(shard)
            spent += (time.process_time() - start) if batch else 0
            assert told.num_rows, "nothing was delivered"
    return spent / ROWS / MEASURED


def write(folder: str, batch: int) -> None:
    rows = table(batch)
    for part in range(FILES):
        path = Path(folder) / f"{batch}-{part}.parquet"
        pq.write_table(rows.slice(part * ROWS // FILES, ROWS // FILES), path)
        os.utime(path, (1_700_000_000 + batch,) * 2)


def answer(session: Any, place: str) -> list[Any]:
    found = session.read.parquet(f"{place}/sink").selectExpr(
        "count(*)", "sum(cast(xxhash64(row, consumer, delivery, destination, attempt) AS decimal(20)))"
    )
    return list(found.collect()[0])


def rows() -> Iterator[Row]:
    from pyspark.errors import StreamingQueryException

    session = start_session(
        "local[2]",
        {
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            "spark.sql.streaming.stateStore.providerClass": (
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
            ),
        },
    )
    sides: dict[str, Callable[[Any, str, str], float]] = {
        FLOOR: floor,
        "pyengine": ours,
        IN_SPARKS_STATE: in_sparks_state,
    }
    spent: dict[str, float] = {}
    walls: dict[str, float] = {}
    failed: dict[str, str] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            source = f"{folder}/in"
            Path(source).mkdir()
            for first, last in ((0, 1), (1, 1 + MEASURED)):
                for batch in range(first, last):
                    write(source, batch)
                for place, (name, side) in enumerate(sides.items()):
                    if name in failed:
                        continue
                    before = cpu()
                    try:
                        lasted = side(session, source, f"{folder}/{place}")
                    except StreamingQueryException as error:
                        if name != IN_SPARKS_STATE:
                            raise
                        failed[name] = str(error).partition("SQLSTATE")[0]  # its Python worker has ten seconds to start
                        spent.pop(name, None)
                        continue
                    spent[name] = (cpu() - before) / ROWS / (last - first)
                    walls[name] = ROWS * (last - first) / lasted
            answers = [answer(session, f"{folder}/{place}") for place in ((1,) if failed else (1, 2))]
            assert answers[0][0], "nothing was delivered"
            assert answers[0] == answers[-1], answers
    finally:
        session.stop()
    whole = alone()
    yield Row(
        question=f"{ROWS:,} messages through {QUEUES:,} queues in {SHARDS} shards without Spark: state read, messages "
        "dispatched, state written",
        unit="message",
        rival="",
        ours_best=whole,
        ours_median=whole,
        rival_best=None,
        rival_median=None,
    )
    for rival in (FLOOR, IN_SPARKS_STATE):
        yield Row(
            question=(
                f"Spark stream of {ROWS:,} messages a micro-batch through {QUEUES:,} queues in {SHARDS} shards, "
                f"exactly once into Parquet ({walls['pyengine']:,.0f} messages a second here, "
                f"{walls[FLOOR]:,.0f} by the identity stream)"
            ),
            unit="message",
            rival=rival,
            ours_best=spent["pyengine"],
            ours_median=spent["pyengine"],
            rival_best=spent.get(rival),
            rival_median=spent.get(rival),
            note=failed.get(rival, ""),
            at_most=GOAL if rival == FLOOR else None,
        )
