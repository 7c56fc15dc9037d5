"""Every night: what each team's selector took of yesterday's messages, and what no selector takes.

    python examples/nightly/nightly.py yesterday.parquet --engine polars     # or pandas, duckdb, spark
    python examples/nightly/nightly.py --make yesterday.parquet              # makes up a day first

The selectors are those of the broker, read as it reads them: nothing is translated into the engine's own language, and
the four engines give the same table. Exit code 1: a message that no selector takes.
"""

from __future__ import annotations

import argparse
import random
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa  # pip install pyarrow, and the engine: pandas, polars, duckdb, or pyspark and pandas
import pyarrow.parquet as pq

import pyengine

HERE = Path(__file__).parent
NO_TEAM = "(no team)"
Answer = dict[str, tuple[int, int]]  # team -> messages, amount


def with_pandas(path: Path, teams: Mapping[str, str]) -> Answer:
    """A mask for each team."""
    import pandas as pd

    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    answer, taken = {}, pd.Series(False, index=frame.index)
    for team, text in teams.items():
        wanted = pyengine.Selector(text).mask(frame)
        taken |= wanted
        answer[team] = (int(wanted.sum()), int(frame.loc[wanted, "amount"].sum()))
    answer[NO_TEAM] = (int((~taken).sum()), int(frame.loc[~taken, "amount"].sum()))
    return answer


def with_polars(path: Path, teams: Mapping[str, str]) -> Answer:
    """A column of booleans for each team."""
    import polars as pl

    frame = pl.read_parquet(path)
    masks = {team: pl.Series(team, pyengine.Selector(text).mask(frame)) for team, text in teams.items()}
    masks[NO_TEAM] = ~pl.DataFrame(list(masks.values())).select(pl.any_horizontal(pl.all())).to_series()
    sums = {team: frame.filter(mask)["amount"].sum() for team, mask in masks.items()}
    return {team: (int(mask.sum()), int(sums[team])) for team, mask in masks.items()}


def with_duckdb(path: Path, teams: Mapping[str, str]) -> Answer:
    """The teams of each row as a list, joined to the file by its row number."""
    import duckdb

    connection = duckdb.connect()
    rows = connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    offsets, keys = pyengine.Subscriptions(teams).match_batch(rows)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(keys, pa.string()))
    taken = rows.append_column("teams", lists)
    found = connection.sql(
        f"SELECT unnest(CASE WHEN len(teams) = 0 THEN ['{NO_TEAM}'] ELSE teams END) AS team, amount FROM taken"
    )
    assert taken.num_rows == rows.num_rows
    return _complete(teams, found.aggregate("team, count(*), sum(amount)").fetchall())


def with_spark(path: Path, teams: Mapping[str, str]) -> Answer:
    """The same on a cluster: the rows stay where they are, and the selectors travel as text."""
    from pyspark.sql import functions

    from pyengine import spark as ps
    from pyengine.spark.session import start_session

    session = start_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    frame = session.read.parquet(str(path)).transform(ps.match, teams, into="teams")
    rest = functions.array(functions.lit(NO_TEAM))
    team = functions.explode(
        functions.when(functions.size("teams") == 0, rest).otherwise(functions.col("teams"))
    ).alias("team")
    found = frame.select(team, "amount").groupBy("team").agg(functions.count("*"), functions.sum("amount")).collect()
    return _complete(teams, [tuple(row) for row in found])


def _complete(teams: Mapping[str, str], rows: list[tuple[Any, ...]]) -> Answer:
    found = {team: (int(count), int(amount)) for team, count, amount in rows}
    return {team: found.get(team, (0, 0)) for team in (*teams, NO_TEAM)}


ENGINES: dict[str, Callable[[Path, Mapping[str, str]], Answer]] = {
    "pandas": with_pandas,
    "polars": with_polars,
    "duckdb": with_duckdb,
    "spark": with_spark,
}


def make_up(path: Path, messages: int = 100_000) -> None:
    """A day of messages; some have no country."""
    chance = random.Random(7)
    pq.write_table(
        pa.table(
            {
                "id": range(messages),
                "kind": [chance.choice(("order", "refund", "visit")) for _ in range(messages)],
                "paid": [chance.random() < 0.7 for _ in range(messages)],
                "country": [chance.choice(("DE", "FR", "US", "US", "JP", None)) for _ in range(messages)],
                "amount": [chance.randrange(1000) for _ in range(messages)],
            }
        ),
        path,
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="Parquet")
    parser.add_argument("--engine", choices=ENGINES, default="polars")
    parser.add_argument("--teams", type=Path, default=HERE / "teams.toml", help='name = "selector" (%(default)s)')
    parser.add_argument("--make", action="store_true", help="make up the file first")
    given = parser.parse_args()
    if given.make:
        make_up(given.file)
    answer = ENGINES[given.engine](given.file, tomllib.loads(given.teams.read_text("utf-8")))
    for team, (count, amount) in answer.items():
        print(f"{team:10}{count:>10,}{amount:>16,}")
    return int(answer[NO_TEAM][0] > 0)


if __name__ == "__main__":
    sys.exit(main())
