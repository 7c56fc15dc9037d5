"""columns: one selector over a batch, against the tools people filter batches with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import pyengine
from bench.contest import Contest, Side, speed_test
from bench.workloads import COLORS, CUSTOMERS, REGIONS, S1, S2, S3, SELECTORS, STATUSES, TYPES

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
ROWS = 10_000
MANY = 4_000_000
NULLS = 0.1
READ_LOOP = "read loop over the same buffers"


@functools.cache
def table(rows: int, dictionary: bool) -> pa.Table:
    """The properties as one chunk each, 10 % NULL except the priority."""
    draw = np.random.default_rng(20222)

    def numbers(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=draw.random(rows) < NULLS)

    def texts(values: tuple[str, ...]) -> pa.Array:
        codes = pa.array(draw.integers(0, len(values), rows).astype(np.int32), mask=draw.random(rows) < NULLS)
        encoded = pa.DictionaryArray.from_arrays(codes, pa.array(values))
        return encoded if dictionary else encoded.dictionary_decode()

    return pa.table(
        {
            "JMSPriority": pa.array(draw.integers(0, 10, rows).astype(np.int32)),
            "color": texts(COLORS),
            "weight": numbers(draw.integers(0, 5000, rows).astype(np.int32)),
            "region": texts(REGIONS),
            "customer": texts(CUSTOMERS),
            "price": numbers(np.round(draw.uniform(1.0, 700.0, rows), 2)),
            "qty": numbers(draw.integers(1, 20, rows).astype(np.int32)),
            "type": texts(TYPES),
            "status": texts(STATUSES),
        }
    )


@functools.cache
def batch(rows: int, dictionary: bool) -> pa.RecordBatch:
    return table(rows, dictionary).to_batches()[0]


def side(call: Callable[[], object], rows: int, answer: Callable[[], Mask]) -> Side:
    return Side(call=call, answer=lambda: answer().tobytes(), units=rows)


def ours(name: str, rows: int, dictionary: bool) -> Side:
    """The batch was imported before: what a program does that asks many selectors about it."""
    selector = pyengine.Selector(SELECTORS[name])
    columns = pyengine.Columns(batch(rows, dictionary))
    return side(lambda: selector.mask(columns), rows, lambda: selector.mask(columns))


def ours_importing(name: str, rows: int, dictionary: bool) -> Side:
    selector = pyengine.Selector(SELECTORS[name])
    data = batch(rows, dictionary)
    return side(lambda: selector.mask(data), rows, lambda: selector.mask(data))


def polars(name: str, rows: int, dictionary: bool) -> Side:
    frame = pl.from_arrow(table(rows, dictionary))
    c = pl.col
    gold = c("customer").cat.starts_with("gold") if dictionary else c("customer").str.starts_with("gold")
    expression = {
        "S1": (c("color") == "blue") & (c("weight") > 2500),
        "S2": (c("JMSPriority") >= 5)
        & (c("region").is_in(["us", "eu", "apac"]) | gold)
        & c("price").is_between(10, 500),
        "S3": (c("price") * c("qty") > 1000) & c("type").is_not_null() & (c("status") != "cancelled"),
    }[name].fill_null(False)

    def call() -> pl.DataFrame:
        return frame.select(expression)

    return side(call, rows, lambda: call().to_series().to_numpy())


def arrow_compute(name: str, rows: int, dictionary: bool) -> Side:
    data = batch(rows, dictionary)
    regions, blue, cancelled = pa.array(["us", "eu", "apac"]), pa.scalar("blue"), pa.scalar("cancelled")

    def text(column: str, test: Callable[[pa.Array], pa.Array]) -> pa.Array:
        """A test of a text column; once per dictionary value where there is a dictionary."""
        array = data.column(column)
        return pc.take(test(array.dictionary), array.indices) if dictionary else test(array)

    def is_in(array: pa.Array) -> pa.Array:
        found = pc.is_in(array, value_set=regions)
        return found if not array.null_count else pc.if_else(pc.is_valid(array), found, pa.scalar(None, pa.bool_()))

    def s1() -> pa.Array:
        return pc.and_kleene(text("color", lambda a: pc.equal(a, blue)), pc.greater(data.column("weight"), 2500))

    def s2() -> pa.Array:
        price = data.column("price")
        either = pc.or_kleene(text("region", is_in), text("customer", lambda a: pc.starts_with(a, "gold")))
        between = pc.and_(pc.greater_equal(price, 10.0), pc.less_equal(price, 500.0))
        return pc.and_kleene(pc.and_kleene(pc.greater_equal(data.column("JMSPriority"), 5), either), between)

    def s3() -> pa.Array:
        product = pc.multiply(data.column("price"), data.column("qty").cast(pa.float64()))
        kept = text("status", lambda a: pc.not_equal(a, cancelled))
        return pc.and_kleene(pc.and_kleene(pc.greater(product, 1000.0), pc.is_valid(data.column("type"))), kept)

    answer = {"S1": s1, "S2": s2, "S3": s3}[name]

    def call() -> pa.Array:
        return pc.fill_null(answer(), False)

    return side(call, rows, lambda: call().to_numpy(zero_copy_only=False))


def duck(name: str, rows: int, dictionary: bool) -> Side:
    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    connection.register("given", table(rows, dictionary))
    connection.execute("CREATE TABLE messages AS SELECT * FROM given")
    condition = {
        "S1": S1,
        "S2": S2,
        "S3": S3,
    }[name]
    query = f"SELECT coalesce({condition}, false) AS mask FROM messages"

    def call() -> dict[str, Mask]:
        answer: dict[str, Mask] = connection.execute(query).fetchnumpy()
        return answer

    return side(call, rows, lambda: np.asarray(call()["mask"], dtype=bool))


def by_hand(name: str, rows: int, dictionary: bool) -> Side:
    """numpy as a patient person writes it: values and validity apart, text tests once per dictionary value."""
    data = batch(rows, True)

    def valid(column: str) -> Mask:
        return data.column(column).is_valid().to_numpy(zero_copy_only=False)

    def values(column: str) -> np.ndarray:
        array = data.column(column)
        array = array.indices if pa.types.is_dictionary(array.type) else array
        return pc.fill_null(array, 0).to_numpy(zero_copy_only=False)

    codes = {column: values(column) for column in ("color", "region", "customer", "status")}
    valids = {column: valid(column) for column in data.schema.names}
    numbers = {column: values(column) for column in ("JMSPriority", "weight", "price", "qty")}
    gold = np.array([customer.startswith("gold") for customer in CUSTOMERS])
    some = np.array([region in ("us", "eu", "apac") for region in REGIONS])
    blue, cancelled = COLORS.index("blue"), STATUSES.index("cancelled")

    def s1() -> Mask:
        return (codes["color"] == blue) & valids["color"] & (numbers["weight"] > 2500) & valids["weight"]

    def s2() -> Mask:
        price = numbers["price"]
        either = some[codes["region"]] & valids["region"] | gold[codes["customer"]] & valids["customer"]
        return (numbers["JMSPriority"] >= 5) & either & (price >= 10) & (price <= 500) & valids["price"]

    def s3() -> Mask:
        enough = (numbers["price"] * numbers["qty"] > 1000) & valids["price"] & valids["qty"]
        return enough & valids["type"] & (codes["status"] != cancelled) & valids["status"]

    call = {"S1": s1, "S2": s2, "S3": s3}[name]
    return side(call, rows, call)


def read_loop(name: str, rows: int, dictionary: bool) -> Side:
    """Nothing but reading every buffer that the selector needs: what the memory allows."""
    data = batch(rows, dictionary)
    arrays = [data.column(column) for column in pyengine.Selector(SELECTORS[name]).names]
    buffers = [(array.indices if pa.types.is_dictionary(array.type) else array).buffers() for array in arrays]
    words = [np.frombuffer(b, dtype=np.uint64, count=b.size // 8) for pair in buffers for b in pair if b is not None]
    selector = pyengine.Selector(SELECTORS[name])

    def call() -> None:
        for buffer in words:
            np.maximum.reduce(buffer)

    return Side(call=call, answer=lambda: selector.mask(data).tobytes(), units=rows)


RIVALS = {"polars": polars, "pyarrow.compute": arrow_compute, "DuckDB": duck, "numpy by hand": by_hand}

# performance.md, rows 6 to 8: the ratio to polars; with the import of the batch; without.
GOALS = {
    (ROWS, True, True): {"S1": 3.0, "S2": 9.0},
    (ROWS, True, False): {"S1": 8.0, "S2": 15.0},
    (ROWS, False, False): {"S1": 4.0, "S2": 8.0},
    (MANY, True, False): {"S2": 6.0},
}


def contests() -> Iterator[Contest]:
    for (rows, dictionary, importing), goals in GOALS.items():
        for name in SELECTORS:
            sides = {"pyengine": functools.partial(ours_importing if importing else ours, name, rows, dictionary)}
            for rival, build in RIVALS.items():
                if build is by_hand and (not dictionary or importing):
                    continue
                sides[rival] = functools.partial(build, name, rows, dictionary)
            bound = {"polars": goals[name]} if name in goals else {}
            if rows == MANY:
                sides[READ_LOOP] = functools.partial(read_loop, name, rows, dictionary)
                if name == "S1":
                    bound[READ_LOOP] = 0.8
            size = "10 k rows" if rows == ROWS else "4 M rows"
            kind = "dictionary strings" if dictionary else "plain strings"
            how = ", with the Arrow import" if importing else ""
            yield Contest(f"{name} over columns, {size}, {kind}{how}", "row", sides, bound)


test_speed = speed_test(contests)
