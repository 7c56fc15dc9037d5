"""Selectors as Spark's own expressions: the engine's answer for every row, or a refusal."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyengine import Selector
from pyengine import spark as ps
from pyengine._engine.message.header import fresh_headers
from pyengine.errors import PyengineError, UnsupportedColumnError
from pyengine.spark.functions import native_truth
from pyengine.spark.native import NotNativeError
from tests.spark.conftest import WORKERS

SELECTORS = int(os.environ.get("PYENGINE_NATIVE_SELECTORS", "30"))
SEED = int(os.environ.get("PYENGINE_NATIVE_SEED", "20261121"))
INT, LONG = 2**31, 2**63
POOLS: dict[str, tuple[Any, list[Any]]] = {
    "by": (pa.int8(), [0, 1, -1, 5, 127, -128]),
    "sh": (pa.int16(), [0, 1, 5, -3, 32767, -32768]),
    "i": (pa.int32(), [0, 1, 5, -5, 3, INT - 1, -INT, 16777217]),
    "j": (pa.int32(), [0, 1, 5, 7, INT - 1, -INT]),
    "lo": (pa.int64(), [0, 1, 5, LONG - 1, -LONG, 2**53 + 1, 16777217, 5_000_000_000]),
    "f": (pa.float32(), [0.0, -0.0, 1.5, 5.0, float("nan"), float("inf"), 16777216.0, 0.1]),
    "d": (pa.float64(), [0.0, -0.0, 1.5, 5.0, float("nan"), float("-inf"), float(2**53), 0.1, 1e308]),
    "e": (pa.float64(), [0.0, -0.0, 5.0, float("nan"), 2.5]),
    "bo": (pa.bool_(), [True, False]),
    "s": (pa.string(), ["", "a", "a%b", "ab", "a\nb", "\U0001f600", "\uff5e", "e\u0301", "5", "a_b", "a!b"]),
    "t": (pa.string(), ["a", "\U0001f600", "\uff5e", "b"]),
    "JMSPriority": (pa.int32(), [0, 4, 9]),
    "JMSType": (pa.string(), ["a", "b"]),
    "JMSTimestamp": (pa.int64(), [0, 5, 5_000_000_000]),
    "JMSRedelivered": (pa.bool_(), [True, False]),
    "JMSDeliveryMode": (pa.string(), ["PERSISTENT", "NON_PERSISTENT", "a"]),
    "JMSXDeliveryCount": (pa.int32(), [0, 1, 5]),
}  # fmt: skip
# fmt: off
LITERALS = ["0", "1", "5", "-5", "0.0", "-0.0", "1.5", "0.1", "5000000000", "16777217", "-2147483648",
            "9223372036854775807", "9007199254740993", "1e308", "1e400", "'a'", "'5'", "'\U0001f600'", "TRUE", "FALSE"]
PATTERNS = ["'a%'", "'%b'", "'a_b'", "'_'", "'%'", "'a!%b' ESCAPE '!'", "'a!_%' ESCAPE '!'", "''", "'a.b'",
            "'%\U0001f600%'", "'__'", "'a\\%'", "'!a' ESCAPE '!'", "'a!!b' ESCAPE '!'"]
# fmt: on


# What each rule of pyengine.spark.native is for: without it one of these has another answer.
RULES = [
    "i = by", "i > sh", "i <> sh", "by < i", "sh = by", "lo = f", "f < lo", "lo >= d", "f = 0.1", "i = f", "bo < bo",
    "d = e", "d < e", "d <= e", "d > e", "d >= e", "d = 0.0", "d >= 0.0", "0.0 > d", "d < 0", "d > -0.0", "f > -0.0",
    "NOT (5 = lo)", "NOT ('a' = s)", "s = t", "NOT (bo = (i = 5))", "(bo = (i = 5)) IS NULL", "NOT (s = i)",
    "s < t", "s >= t", "s BETWEEN t AND s", "i BETWEEN 1 AND 5", "i NOT BETWEEN 1 AND 5",
    "s LIKE 'a!!b' ESCAPE '!'", "s LIKE 'a!%b' ESCAPE '!'", "s LIKE 'a_b'", "s NOT LIKE 'a%'", "NOT (i LIKE '5')",
    "s NOT IN ('a', '')", "NOT (i IN ('5'))", "bo", "NOT s", "NOT (s IS NULL)",
    "-lo = lo", "-lo < 0", "-i < 0", "-f = 0.0", "-(-i) = i", "i / -5 > 1", "d % 5 = 0.0", "lo % 2 = 1", "i / 2 = 2.5",
    "i + j < 0", "i - j > 0", "i * j > 5", "f + f > 5", "f * 3 = 0.3", "lo + 0.5 > 5", "by + sh = i",
]  # fmt: skip


def value(draw: random.Random, depth: int) -> str:
    if depth and draw.random() < 0.3:
        left, right = value(draw, depth - 1), value(draw, depth - 1)
        return draw.choice([f"({left} {draw.choice('+-*/%')} {right})", f"-{left}"])
    return draw.choice([draw.choice(list(POOLS)), draw.choice(list(POOLS)), draw.choice(LITERALS)])


def condition(draw: random.Random, depth: int) -> str:
    if depth and draw.random() < 0.5:
        left, right = condition(draw, depth - 1), condition(draw, depth - 1)
        return draw.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
    name = draw.choice(list(POOLS))
    return draw.choice(
        [
            f"{value(draw, 2)} {draw.choice(['=', '<>', '<', '<=', '>', '>='])} {value(draw, 2)}",
            f"{name} {draw.choice(['=', '<>', '<', '<=', '>', '>='])} {draw.choice(LITERALS)}",
            f"{name} {draw.choice(['', 'NOT '])}BETWEEN {value(draw, 1)} AND {value(draw, 1)}",
            f"{name} IS {draw.choice(['', 'NOT '])}NULL",
            f"{name} {draw.choice(['', 'NOT '])}IN ('a', '\U0001f600', '5')",
            f"{name} {draw.choice(['', 'NOT '])}LIKE {draw.choice(PATTERNS)}",
            name,
            f"({name} = {draw.choice(LITERALS)}) = {draw.choice(['TRUE', 'bo'])}",
        ]
    )


def rows(draw: random.Random, count: int) -> pa.Table:
    return pa.table(
        {
            name: pa.array([None if draw.random() < 0.2 else draw.choice(pool) for _ in range(count)], kind)
            for name, (kind, pool) in POOLS.items()
        }
    ).append_column("row", pa.array(range(count), pa.int64()))


def test_random_selectors_have_the_engines_answer(spark: Any) -> None:
    draw = random.Random(SEED)
    table = rows(draw, 300)
    frame = spark.createDataFrame(table)
    asked: list[str] = []
    refused = 0
    while len(asked) < SELECTORS:
        text = condition(draw, 2)
        try:
            Selector(text)
        except PyengineError:
            continue
        try:
            native_truth(text, {}, "activemq", frame.schema)
        except NotNativeError:
            refused += 1
        else:
            asked.append(text)
    assert_same_truth(frame, table, asked)
    assert refused  # the generator reaches beyond what is native


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_each_rule_has_the_engines_answer(spark: Any, ansi: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    table = rows(random.Random(SEED), 1_000)
    assert_same_truth(session.createDataFrame(table), table, RULES)


def assert_same_truth(frame: Any, table: pa.Table, asked: list[str]) -> None:
    for start in range(0, len(asked), 30):
        some = asked[start : start + 30]
        truths = [native_truth(text, {}, "activemq", frame).alias(f"a{n}") for n, text in enumerate(some)]
        found = frame.select("row", *truths).toArrow().sort_by("row")
        for number, text in enumerate(some):
            given = [{True: 1, False: 0, None: -1}[each] for each in found.column(f"a{number}").to_pylist()]
            truth = Selector(text).truth(table).tolist()
            wrong = [n for n in range(len(given)) if given[n] != truth[n]]
            assert not wrong, (text, given[wrong[0]], truth[wrong[0]], table.slice(wrong[0], 1).to_pylist())


def test_every_header_has_the_value_of_a_fresh_message_where_its_column_is_null(spark: Any) -> None:
    kinds = {bool: (pa.bool_(), True), int: (pa.int32(), 7), np.int64: (pa.int64(), 7), str: (pa.string(), "x")}
    columns, texts = {}, []
    for name, fresh in fresh_headers().items():
        kind, other = kinds[type(fresh) if fresh is not None else str]
        columns[name] = pa.array([None, other], kind)
        shown = {bool: "TRUE", str: "'x'"}.get(type(other), str(other))
        texts += [f"{name} = {shown}", f"{name} IS NULL"]
    table = pa.table(columns)
    frame = spark.createDataFrame(table)
    truths = [native_truth(text, {}, "activemq", frame).alias(f"a{number}") for number, text in enumerate(texts)]
    found = frame.select(*truths).toArrow()
    for number, text in enumerate(texts):
        given = [{True: 1, False: 0, None: -1}[each] for each in found.column(number).to_pylist()]
        assert given == Selector(text).truth(table).tolist(), text


def test_native_and_worker_give_the_same_rows(spark: Any) -> None:
    frame = spark.createDataFrame(rows(random.Random(1), 50))
    text = "d > 0.0 OR s LIKE 'a%' AND NOT (bo = TRUE)"
    native = frame.transform(ps.where, text, using="native").select("row").toArrow()
    assert native == frame.where(ps.matches(text, using=WORKERS[0])).select("row").toArrow()
    plan = frame.where(ps.matches(text, schema=frame.schema))._jdf.queryExecution().toString()
    assert "ArrowEvalPython" not in plan
    assert "ArrowEvalPython" in frame.transform(ps.where, "s + 'x' = 'ax'")._jdf.queryExecution().toString()


def test_nan_is_found_in_files_whose_statistics_leave_it_out(spark: Any, tmp_path: Path) -> None:
    """Parquet's largest value does not count NaN, which the broker holds for larger than any number."""
    nan = float("nan")
    table = pa.table({"d": [1.0, 2.0, nan], "f": pa.array([5.0, 5.0, nan], pa.float32()), "row": [0, 1, 2]})
    pq.write_table(table, tmp_path / "all.parquet")
    frame = spark.read.parquet(str(tmp_path))
    for text in ["d > 5", "d >= 5", "5 < d", "5 <= d", "NOT (5 > f)", "NOT (d < 5)", "NOT (5 >= d)", "f <> 5",
                 "NOT (f = 5)", "d > 0", "f > 5.5", "d NOT BETWEEN 0 AND 5", "d > 100 OR f > 5", "d < 2",
                 "NOT (d > 1)", "d = d"]:  # fmt: skip
        found = frame.transform(ps.where, text, using="native").select("row").toArrow().column(0).to_pylist()
        assert sorted(found) == Selector(text).mask(table).nonzero()[0].tolist(), text
    plan = frame.transform(ps.where, "d < 2", using="native")._jdf.queryExecution().toString()
    assert "LessThan(d,2.0)" in plan  # what is false of NaN still reaches the source


@pytest.mark.parametrize(
    ("text", "reason"),
    [("d > f", "raises"), ("lo + 1 > 2", "wraps"), ("1 + lo > 2", "wraps"), ("i / j > 1", "may be 0"),
     ("i / 0 > 1", "may be 0"), ("d % 0.0 = 1", "may be 0"), ("-by > 1", "minus of a byte"),
     ("-sh > 1", "minus of a short"), ("s + 'x' = 'ax'", "of a string"), ("lo < 9223372036854775808", "beyond long"),
     ("s LIKE 'a\u0100\u0100b' ESCAPE '\u0100'", "its own"), ("nowhere = 1", "not known"),
     ("convert_string_expressions:s = 5", "converts"), ("REGEX('a', s)", "FUNCTION"),
     ("s LIKE '" + "".join(map(chr, range(0x20, 0x7F))).replace("'", "''") + "'", "every sign")],
)  # fmt: skip
def test_what_is_not_exact_is_refused_with_the_reason(spark: Any, text: str, reason: str) -> None:
    schema = spark.createDataFrame(rows(random.Random(1), 1)).schema
    with pytest.raises(NotNativeError, match=reason):
        ps.matches(text, using="native", schema=schema)
    with pytest.raises(NotNativeError, match="give the schema"):
        ps.matches("i = 1", using="native")


def test_a_column_that_means_something_else_is_refused(spark: Any) -> None:
    """Another type than the header's, one of two columns of a name, a field that is reached by a dot."""
    frame = spark.sql("SELECT 4L AS JMSPriority, 1 AS n, 2 AS n, 5 AS `a.b`, named_struct('b', 6) AS a, '7' AS q")
    with pytest.raises(NotNativeError, match="JMSPriority is a int"):
        frame.transform(ps.where, "JMSPriority = 4", using="native")
    with pytest.raises(UnsupportedColumnError, match="ambiguous"):
        frame.transform(ps.where, "n = 1", using="native")
    with pytest.raises(NotNativeError, match="not read from a column"):
        frame.transform(ps.where, "x = 5", columns={"x": "a.b"}, using="native")
    assert frame.transform(ps.where, "x = 6", columns={"x": "a.b"}).count() == 1
    with pytest.raises(NotNativeError, match="in the dialect rocketmq"):
        frame.transform(ps.where, "q = 7", dialect="rocketmq", using="native")
    assert frame.transform(ps.where, "q = 7", dialect="rocketmq").count() == 1


@pytest.mark.parametrize(
    "text", [" OR ".join(f"n = {number}" for number in range(500)), "(" * 9 + "n = 1" + ") = (n = 2)" * 9]
)
def test_what_is_too_large_for_spark_is_evaluated_by_a_worker(spark: Any, text: str) -> None:
    """Its planner ended with a StackOverflowError, or was at it for minutes."""
    frame = spark.createDataFrame(pa.table({"n": pa.array([1, 2, 499, 500], pa.int32())}))
    with pytest.raises(NotNativeError, match="too large"):
        frame.transform(ps.where, text, using="native")
    expected = Selector(text).mask(frame.toArrow()).sum()
    assert frame.transform(ps.where, text).count() == expected
