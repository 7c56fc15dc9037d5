"""Peak memory of dispatching one queue that delivers almost nothing, in a process of its own for each size.

    python -m bench.held 2000000 8000000

One consumer takes ten messages and never acknowledges; the rest is held with its reasons and written as Parquet.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pyengine.activemq.tables.dispatch import dispatch_batches
from pyengine.backlog.tables.measures import Measures
from pyengine.backlog.tables.runs import ordered, write_run
from pyengine.backlog.tables.shards import write_assignments
from pyengine.backlog.tables.sources import parquet_pieces, read_piece
from pyengine.topology import Consumer, Source, Topology

FILE = 500_000


def topology(folder: Path) -> Topology:
    return Topology(
        source=Source(destination="{queue}", path=str(folder / "messages"), group="who"),
        consumers=(Consumer("slow", "orders", prefetch=10, acknowledges=False),),
    )


def ingest(folder: Path, messages: int) -> None:
    """Write the messages and their sorted runs."""
    for name in ("messages", "runs", "deliveries", "held"):
        (folder / name).mkdir()
    part = pa.table({"queue": ["orders"] * FILE, "who": pa.array([f"g{n % 1000}" for n in range(FILE)])})
    for number in range(messages // FILE):
        pq.write_table(part, folder / "messages" / f"{number:05}.parquet")
    here = topology(folder)
    pieces = parquet_pieces(here.source) or []
    for n, piece in enumerate(pieces):
        rows = read_piece(piece, here.source)
        write_run(rows, here, folder / "runs", n, len(pieces), 1, only_needed=True, messages=None)


def dispatch(folder: Path, messages: int) -> None:
    """What a task of ``pyengine run`` does with its shard."""
    here = topology(folder)
    measures, begun = Measures(here), time.process_time()
    batches = dispatch_batches(here, measures.settled(ordered(folder / "runs", messages // FILE, 0, here)))
    write_assignments(folder, 0, batches, measures.add)
    measures.close()
    held = sum(total.count for total in measures.tallies["orders"].held.values())
    assert held == messages - 10, measures.tallies["orders"]
    spent = (time.process_time() - begun) / messages * 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{messages:,} messages, {held:,} held: peak {peak} MB resident, {spent:.2f} CPU-us a message", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("messages", type=int, nargs="+", help=f"multiples of {FILE:,}")
    given = asked.parse_args().messages
    if wrong := [messages for messages in given if messages < FILE or messages % FILE]:
        asked.error(f"{wrong[0]:,} messages: give a multiple of {FILE:,}")
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone:
        for messages in given:
            with tempfile.TemporaryDirectory() as folder:
                for step in (ingest, dispatch):
                    alone.submit(step, Path(folder), messages).result(900)


if __name__ == "__main__":
    main()
