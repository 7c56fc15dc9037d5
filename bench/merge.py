"""Time and peak memory of merging one shard from many sorted runs, in a process of its own for each number of runs.

    python -m bench.merge 50 200 1000 4000

As many rows in all, so that a run has the fewer the more runs there are; a quarter of them is in the shard.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.generate import TOPOLOGY, table
from pyengine.backlog.tables.rows import Rows
from pyengine.backlog.tables.runs import ordered, write_run
from pyengine.topology import Topology

ROWS, SHARDS = 2_000_000, 4


def write(folder: Path, runs: int) -> None:
    topology = Topology.from_text(TOPOLOGY.format(messages=ROWS))
    size = ROWS // runs
    messages = table(0, ROWS, 20_000, 100_000)
    for number in range(runs):
        rows = Rows(messages.slice(number * size, size), pa.array(np.arange(number * size, (number + 1) * size)))
        write_run(rows, topology, folder, number, runs, SHARDS, only_needed=True, messages=None)


def merge(folder: Path, runs: int) -> None:
    topology = Topology.from_text(TOPOLOGY.format(messages=ROWS))
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    rows = sum(batch.num_rows for batch in ordered(folder, runs, 0, topology))
    spent = (time.process_time() - begun) / rows * 1e6
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(f"{runs:,} runs: {rows:,} rows, {spent:.2f} CPU-us a row, {more} MB over the imports", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("runs", type=int, nargs="+")
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone:
        for runs in asked.parse_args().runs:
            with tempfile.TemporaryDirectory() as folder:
                for step in (write, merge):
                    alone.submit(step, Path(folder), runs).result(900)


if __name__ == "__main__":
    main()
