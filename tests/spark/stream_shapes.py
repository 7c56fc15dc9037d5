"""Streams against the single process, however many shards and partitions there are.

    python -m tests.spark.stream_shapes --topologies 10 --seed 1

All flights, then so many random topologies, each on 1, 2, 7 and 64 shards and partitions and cut into micro-batches at
random. ``make test`` asks one random topology of each number.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA
from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.sources import read_source
from pyengine.spark.session import start_session
from pyengine.topology import Consumer, Policy, Topology
from tests.spark.test_dispatch import QUEUES, SCHEMA, SELECTORS, assert_same, topology_of
from tests.spark.test_streaming import run, told, write_files

SHAPES = (1, 2, 7, 64)
# A stream reads the columns that selectors read, so "bytes" counts those only.
COMPARED = [name for name in ASSIGNMENT_SCHEMA.names if name != "bytes"]


def drawn(draw: random.Random) -> tuple[Topology, pa.Table]:
    """A topology of consumers that come in each other's way, and rows in the order in which they are sent."""
    consumers = [
        Consumer(
            f"c{number}",
            draw.choice(["q.>", "q.>", "q.a", "q.\U0001f600", "übersee"]),
            selector=draw.choice(SELECTORS),
            exclusive=draw.random() < 0.2,
            priority=draw.randint(-2, 2),
            prefetch=draw.choice([None, 1, 2, 5, 20]),
            no_local=draw.random() < 0.2,
            connection=draw.choice(["c1", "c2"]),
            acknowledges=draw.random() < 0.6,
        )
        for number in range(draw.randint(1, 6))
    ]
    policy = Policy(
        "q.>",
        max_page_size=draw.choice([1, 3, 200, None]),
        prioritized_messages=draw.random() < 0.5,
        strict_order_dispatch=draw.random() < 0.5,
        use_consumer_priority=draw.random() < 0.5,
        message_group_map_factory_type=draw.choice(["cached?cacheSize=2", "simple", "bucket?bucketCount=2"]),
    )
    queues = [QUEUES[0]] * 5 + QUEUES + [f"q.{number}" for number in range(12)]
    rows = [
        {
            "queue": draw.choice(queues),
            "n": draw.choice([None, *range(-3, 10)]),
            "color": draw.choice([None, "r\U0001f534d", "blue", ""]),
            "nothing": None,
            "who": draw.choice([None, "g1", "g2", "", "\U0001f468"]),
            "seq": draw.choice([None, None, 0, 1, 2, -1]),
            "p": draw.choice([None, *range(10)]),
            "at": number // 4,
            "by": draw.choice([None, "c1", "c3"]),
        }
        for number in range(draw.randint(40, 160))
    ]
    return topology_of(consumers, policy), pa.Table.from_pylist(rows, SCHEMA)


def agree_on(spark: Any, seed: int, shape: int, place: Path) -> int:
    """Ask the stream and the single process of a drawn topology; how many rows had to wait."""
    draw = random.Random(seed)
    topology, table = drawn(draw)
    messages, rejects = to_messages(table, range(table.num_rows), topology.source)
    assert not rejects
    expected = dispatch_table(topology, messages).select(COMPARED)
    numbered = table.append_column("number", pa.array(range(table.num_rows), pa.int64()))
    write_files(numbered, place / "in", draw.randint(2, 3))
    run(spark, place / "in", draw.randint(1, 2), topology, place, shards=shape, partitions=shape)
    assert_same(told(spark, place).select(COMPARED), expected.sort_by("row"))
    return int(pc.count(expected.column("reason")).as_py())


def flights_on(spark: Any, shape: int, rows: pa.Table, topology: Topology, expected: pa.Table, place: Path) -> None:
    write_files(rows, place / "in", 5)
    run(spark, place / "in", 2, topology, place, shards=shape, partitions=shape)
    assert_same(told(spark, place).select(COMPARED), expected)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--topologies", type=int, default=10)
    asked.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = asked.parse_args()
    print(f"seed {given.seed}", flush=True)
    flights = Topology.load(Path(__file__).parents[2] / "examples" / "flights" / "flights.toml")
    rows = read_source(flights.source)
    messages, _ = to_messages(rows.table, rows.numbers, flights.source)
    messages = messages.sort_by([("JMSTimestamp", "ascending"), ("__row", "ascending")])
    sent = rows.table.take(messages.column("__row")).append_column("number", messages.column("__row"))
    expected = dispatch_table(flights, messages).select(COMPARED).sort_by("row")
    spark = start_session("local[2]", {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"})
    try:
        for shape in SHAPES:
            begun = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                flights_on(spark, shape, sent, flights, expected, Path(folder))
            print(f"{sent.num_rows:,} flights on {shape}: {time.monotonic() - begun:.0f} s", flush=True)
        for number in range(given.topologies):
            for shape in SHAPES:
                with tempfile.TemporaryDirectory() as folder:
                    waits = agree_on(spark, given.seed + number, shape, Path(folder))
            print(f"topology {number}: agrees on {', '.join(map(str, SHAPES))}; {waits} rows wait", flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
