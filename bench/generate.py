"""Messages by the million for ``pyengine run``: Parquet files and a topology, the same for the same numbers.

    python -m bench.generate FOLDER --messages 100000000 --queues 20000
    pyengine run FOLDER/topology.toml --out FOLDER/out

A tenth of the messages goes to one queue and a twentieth is one group, so that neither may cost memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE = 1_000_000

TOPOLOGY = """title = "{messages:,} generated messages"
[source]
path = "messages"
destination = "orders.{{queue}}"
group = "customer"
timestamp = "at"
[[policy]]
destination = "orders.>"
message_group_map_factory_type = "simple"
[[consumer]]
name = "eu"
destination = "orders.>"
selector = "region = 'EU' AND price > 100"
[[consumer]]
name = "kinds"
destination = "orders.>"
selector = "kind IN ('a', 'b', 'c')"
[[consumer]]
name = "rest"
destination = "orders.>"
"""


def table(first: int, count: int, queues: int, groups: int) -> pa.Table:
    """Rows ``first`` to ``first + count`` of the log."""
    draw = np.random.default_rng([20261121, first])
    queue = np.where(draw.random(count) < 0.1, 0, draw.integers(0, queues, count))
    group = np.where(draw.random(count) < 0.05, 0, draw.integers(0, groups, count))
    return pa.table(
        {
            "queue": pa.array(queue.astype(np.int32)),
            "customer": pa.array([f"c{number}" for number in range(groups)]).take(pa.array(group)),
            "region": pa.array(["EU", "US", "APAC", "LATAM"]).take(pa.array(draw.integers(0, 4, count))),
            "kind": pa.array(list("abcdefgh")).take(pa.array(draw.integers(0, 8, count))),
            "price": pa.array(np.round(draw.uniform(1, 700, count), 2)),
            "at": pa.array(1_700_000_000_000 + np.arange(first, first + count)),
        }
    )


def main() -> None:
    """Write the files."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--messages", type=int, default=20_000_000)
    asked.add_argument("--queues", type=int, default=20_000)
    asked.add_argument("--groups", type=int, default=100_000)
    given = asked.parse_args()
    into = given.folder / "messages"
    into.mkdir(parents=True)
    for number, first in enumerate(range(0, given.messages, FILE)):
        rows = table(first, min(FILE, given.messages - first), given.queues, given.groups)
        pq.write_table(rows, into / f"{number:05}.parquet", row_group_size=FILE // 2)
        print(f"\r{first + rows.num_rows:,} of {given.messages:,}", end="", flush=True)
    print()
    (given.folder / "topology.toml").write_text(TOPOLOGY.format(messages=given.messages), "utf-8")


if __name__ == "__main__":
    main()
