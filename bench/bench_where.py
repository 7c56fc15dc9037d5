"""where: a selector over Parquet on Spark: Spark's own filter, ours as Spark's own expression, ours in Python workers.

CPU seconds of every process of the session, as in bench_spark. ``python -m bench where`` makes 5 million rows; what
``bench.generate`` wrote, of any size, is measured by ``python -m bench.bench_where FOLDER``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from bench.bench_spark import ON_TOP, SELECTOR, contest, masked, noop, same
from bench.contest import Row
from bench.generate import FILE, table
from pyengine import spark as ps
from pyengine.spark.session import start_session

MESSAGES = 5_000_000
NATIVE = "region = 'EU' AND price > 100 AND kind IN ('a', 'b', 'c')"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        for number, first in enumerate(range(0, MESSAGES, FILE)):
            part = table(first, FILE, 20_000, 100_000)
            pq.write_table(part, Path(name) / f"{number}.parquet", row_group_size=FILE // 2)
        yield from measured(Path(name))


def measured(folder: Path) -> Iterator[Row]:
    session = start_session("local[2]")
    try:
        frame = session.read.parquet(folder.as_uri())
        total, wanted = frame.count(), frame.where(NATIVE).count()
        read = frame.select("region", "kind", "price", (frame["price"] > 0).alias("wanted"))
        for using in ("native", "arrow"):
            assert frame.transform(ps.where, SELECTOR, using=using).count() == wanted
        assert read.mapInArrow(masked, read.schema).where("wanted").count() == wanted
        question = f"Spark, {total:,} rows of Parquet: the rows that a selector matches"
        yield from contest(
            f"{question}, all columns",
            {
                "pyengine": lambda: noop(frame.transform(ps.where, SELECTOR, using="native")),
                "Spark's own filter": lambda: noop(frame.where(NATIVE)),
            },
            {"Spark's own filter": 0.8},
            rows=total,
            rounds=3,
        )
        yield from contest(
            f"{question}, asked in Python workers",
            {
                "pyengine": lambda: noop(read.mapInArrow(masked, read.schema)),
                "identity mapInArrow": lambda: noop(read.mapInArrow(same, read.schema)),
                "Spark's own filter": lambda: noop(frame.where(NATIVE)),
            },
            {"identity mapInArrow": ON_TOP},
            rows=total,
            rounds=2,
        )
    finally:
        session.stop()


if __name__ == "__main__":
    for row in measured(Path(sys.argv[1]).absolute() / "messages"):
        print(
            f"{row.question}: {row.ours_best * 1e6:.3f} core-us a row, {row.rival} "
            f"{(row.rival_best or 0) * 1e6:.3f}: {row.ratio:.2f}x",
            flush=True,
        )
