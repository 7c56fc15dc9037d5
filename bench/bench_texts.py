"""texts: conditions on columns of plain strings, and on one long string, against the tools people use for them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import pyengine
from bench.contest import Contest, Side, speed_test

ROWS = 4_000_000
SOME = 200_000
NAMES = tuple(f"{kind}-{number}" for kind in ("gold", "customer") for number in range(1000))
KNOWN = NAMES[::50]  # 40 of them
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXT, PART = "ab" * 200_000, "ab" * 9_999 + "ba"


@functools.cache
def column(rows: int, words: bool) -> pa.RecordBatch:
    """Names, or words of 5 to 60 letters; each row is one of 2,000 or 5,000, as a string of its own."""
    draw = np.random.default_rng(7)
    every = NAMES
    if words:
        every = tuple("".join(draw.choice(list(LETTERS), draw.integers(5, 60))) for _ in range(5000))
    codes = pa.array(draw.integers(0, len(every), rows))
    return pa.record_batch({"s": pa.array(every).take(codes)})


def side(call: Callable[[], object], units: int, answer: Callable[[], object]) -> Side:
    return Side(call=call, answer=answer, units=units)


def ours(text: str, rows: int, words: bool) -> Side:
    selector, columns = pyengine.Selector(text), pyengine.Columns(column(rows, words))
    return side(lambda: selector.mask(columns), rows, lambda: selector.mask(columns).tobytes())


def polars(expression: pl.Expr, rows: int, words: bool) -> Side:
    frame = pl.from_arrow(pa.Table.from_batches([column(rows, words)]))

    def call() -> pl.DataFrame:
        return frame.select(expression)

    return side(call, rows, lambda: call().to_series().to_numpy().tobytes())


def duck(condition: str, rows: int, words: bool) -> Side:
    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    connection.register("given", pa.Table.from_batches([column(rows, words)]))
    connection.execute("CREATE TABLE messages AS SELECT * FROM given")

    def call() -> dict[str, np.ndarray]:
        answer: dict[str, np.ndarray] = connection.execute(f"SELECT {condition} AS mask FROM messages").fetchnumpy()
        return answer

    return side(call, rows, lambda: np.asarray(call()["mask"], dtype=bool).tobytes())


def python_re(source: str, rows: int) -> Side:
    """As people do it: the column as Python's strings, and re over them."""
    strings, search = column(rows, True).column("s"), re.compile(source).search

    def call() -> list[bool]:
        return [search(text) is not None for text in strings.to_pylist()]

    return side(call, rows, lambda: np.array(call()).tobytes())


def ours_contains() -> Side:
    selector, message = pyengine.Selector(f"s CONTAINS '{PART}'", dialect="rocketmq"), {"s": TEXT}
    return side(lambda: selector.matches(message), 1, lambda: selector.matches(message))


def python_in() -> Side:
    return side(lambda: PART in TEXT, 1, lambda: PART in TEXT)


def contests() -> Iterator[Contest]:
    quoted = ", ".join(f"'{name}'" for name in KNOWN)
    for question, text, expression, condition, words, goal in (
        ("IN of 40", f"s IN ({quoted})", pl.col("s").is_in(list(KNOWN)), f"s IN ({quoted})", False, 1.5),
        ("LIKE '%a%b%'", "s LIKE '%a%b%'", pl.col("s").str.contains("a.*b"), "s LIKE '%a%b%'", True, 1.2),
    ):
        sides = {
            "pyengine": functools.partial(ours, text, ROWS, words),
            "polars": functools.partial(polars, expression, ROWS, words),
            "DuckDB": functools.partial(duck, condition, ROWS, words),
        }
        yield Contest(f"{question}, 4 M rows, plain strings", "row", sides, {"polars": goal})
    yield Contest(
        f"REGEX('[a-f]x.*y'), {SOME:,} rows, plain strings",
        "row",
        {
            "pyengine": functools.partial(ours, "REGEX('[a-f]x.*y', s)", SOME, True),
            "re over the strings": functools.partial(python_re, "[a-f]x.*y", SOME),
        },
        {"re over the strings": 0.8},
    )
    yield Contest(
        f"CONTAINS, {len(PART):,} of {len(TEXT):,} characters, one message",
        "message",
        {"pyengine": ours_contains, "in of Python": python_in},
        {"in of Python": 0.5},
    )


test_speed = speed_test(contests)
