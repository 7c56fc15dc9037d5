"""Columns from Columns: matches, and the transform match."""

from __future__ import annotations

from typing import Any

import pytest

from pyengine import InvalidSelectorError, MissingColumnError, Selector, Subscriptions, UnsupportedColumnError
from pyengine import spark as ps
from pyengine.errors import ConfigurationError
from pyengine.topology import Consumer, Source, Topology
from tests.spark.conftest import WORKERS

ROWS = [
    (1, "EU", 250.0, 7),
    (2, "EU", 50.0, 4),
    (3, "US", 250.0, 9),
    (4, None, None, None),
    (5, "\U0001f600", 101.0, 5),
]


@pytest.fixture(scope="module")
def orders(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, "id long, region string, price double, JMSPriority int").repartition(2)


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.parametrize("using", WORKERS)
def test_matches_filters(orders: Any, using: Any) -> None:
    assert ids(orders.where(ps.matches("region = 'EU' AND price > 100", using=using))) == [1]
    assert ids(orders.where(ps.matches("region = '\U0001f600' OR price IS NULL", using=using))) == [4, 5]


@pytest.mark.parametrize("using", [WORKERS[0], "native"])
def test_matches_is_never_null(orders: Any, using: Any) -> None:
    found = orders.select("id", ps.matches("region = 'EU'", using=using, schema=orders).alias("wanted")).collect()
    assert {row.id: row.wanted for row in found} == {1: True, 2: True, 3: False, 4: False, 5: False}


def test_headers_are_columns_unless_said_otherwise(orders: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    assert ids(orders.where(ps.matches("JMSPriority > 4"))) == [1, 3, 5]
    assert ids(orders.where(ps.matches("JMSPriority > 4", columns={"JMSPriority": None}))) == []
    assert ids(orders.where(ps.matches("JMSPriority = 9", columns={"JMSPriority": F.lit(9)}))) == [1, 2, 3, 4, 5]
    assert ids(orders.where(ps.matches("cost > 100", columns={"cost": "price"}))) == [1, 3, 5]
    assert ids(orders.where(ps.matches("cost IS NULL", columns={"cost": None}))) == [1, 2, 3, 4, 5]


def test_a_selector_that_reads_nothing(orders: Any) -> None:
    assert ids(orders.where(ps.matches("1 = 1"))) == [1, 2, 3, 4, 5]
    assert ids(orders.where(ps.matches("1 = 2"))) == []


def test_names_with_dots_are_names(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 5)], "id long, `a.b` int")
    assert ids(frame.where(ps.matches("c = 5", columns={"c": "`a.b`"}))) == [1]


ODD = """
    (1, null, 9007199254740993L, 2147483647, 127Y, double('NaN'), float('-0.0'), true, timestamp'2020-11-01 05:30:00Z',
        12345678901234567890BD),
    (2, null, null, null, null, null, null, null, null, null),
    (3, 'null', -1L, 5, 1Y, 0.1D, 0.1F, false, timestamp'1969-12-31 23:59:59.999999Z', 0.10BD)
"""


ASKED = {
    "l = 9007199254740993": [1], "i + 1 = -2147483648": [1], "i + b IS NULL": [2], "l + b > 0": [1], "i = b": [2],
    "b < 2": [3], "d IS NULL": [2], "d > 1e300": [1], "f * 1.0 < 0.0 OR f = 0.1": [1], "bo": [1], "bo IS NULL": [2],
    "n IS NULL AND s = 'null'": [3], "de = 0.1 OR de = 12345678901234567890": [1, 3], "de > 12345678901234567889": [1],
    "d = 0.1": [3], "at = 1604208600000 OR at = -1": [1, 3], "at IS NULL": [2],
}  # fmt: skip


@pytest.mark.parametrize("using", WORKERS)
def test_arrow_and_pandas_see_the_same_values(spark: Any, using: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")  # whose clocks show the hour of `at` twice
    frame = session.sql(f"select *, null as n from values {ODD} as t(id, s, l, i, b, d, f, bo, at, de)")
    found = frame.select("id", *(ps.matches(text, using=using).alias(text) for text in ASKED)).toArrow()
    table = frame.toArrow()
    for text, wanted in ASKED.items():
        assert found.filter(found.column(text)).column("id").to_pylist() == wanted, text
        assert table.filter(Selector(text).mask(table)).column("id").to_pylist() == wanted, text


MOMENTS = {
    "make_timestamp_ntz(-5, 1, 1, 0, 0, 0)": -62_324_985_600_000,
    "make_timestamp_ntz(123456, 1, 1, 0, 0, 0.5)": 3_833_727_840_000_500,
    "make_timestamp(0, 12, 31, 23, 59, 59, 'UTC')": -62_135_596_801_000,
    "make_date(-5, 1, 1)": -721_354 * 86_400_000,
    "make_date(10000, 1, 1)": 2_932_897 * 86_400_000,
    "interval '-1 02:03:04.000005' day to second": -93_784_001,
    "interval '-106751991 04:00:54.775808' day to second": -(2**63) // 1000,
    "interval '26' hour": 93_600_000,
    "interval '1 02' day to hour": 93_600_000,
    "interval '26:03' hour to minute": 93_780_000,
    "interval -'63:04.5' minute to second": -3_784_500,
    "interval '0.001999' second": 1,
}


@pytest.mark.parametrize("using", WORKERS)
def test_moments_of_all_years_and_intervals_are_longs(spark: Any, using: Any) -> None:
    columns = {f"m{place}": text for place, text in enumerate(MOMENTS)}
    frame = spark.sql(
        f"SELECT id, {', '.join(f'if(id = 0, {text}, null) AS {name}' for name, text in columns.items())} FROM range(2)"
    )
    for name, text in columns.items():
        wanted = f"{name} = {MOMENTS[text]}"
        found = frame.select("id", ps.matches(wanted, using=using), ps.matches(f"{name} IS NULL", using=using))
        assert [tuple(row) for row in found.collect()] == [(0, True, False), (1, False, True)], text


def test_a_type_that_no_property_has_is_told_before_a_job_starts(spark: Any) -> None:
    frame = spark.createDataFrame([(1, b"x")], "id long, raw binary")
    for ask in (
        lambda: frame.transform(ps.where, "raw IS NULL"),
        lambda: ps.matches("raw IS NULL", schema=frame),
        lambda: frame.transform(ps.match, {"a": "raw IS NULL"}),
    ):
        with pytest.raises(UnsupportedColumnError, match="'raw' of type binary"):
            ask()
    with pytest.raises(Exception, match="'raw' of type binary"):
        frame.where(ps.matches("raw IS NULL", using="pandas")).collect()
    months = spark.sql("SELECT interval '1-2' year to month AS span")
    with pytest.raises(Exception, match="'span' of type interval year to month"):
        months.where(ps.matches("span IS NULL", using="pandas")).collect()


def test_a_bad_selector_raises_at_the_call(spark: Any) -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        ps.matches("region == 'EU'")
    assert caught.value.position == 8


def test_an_unknown_name_in_columns_raises(spark: Any) -> None:
    with pytest.raises(ValueError, match="does not read"):
        ps.matches("region = 'EU'", columns={"regoin": "x"})


def test_an_unknown_column_is_sparks_own_error(orders: Any) -> None:
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.*regio"):
        orders.where(ps.matches("regio = 'EU'")).collect()


def test_where_names_a_column_that_is_not_there(orders: Any) -> None:
    for selector, given in (("regio = 'EU'", {}), ("JMSType = 'x'", {}), ("region = 'EU'", {"region": "regio"})):
        for using in ("auto", "arrow"):
            with pytest.raises(MissingColumnError, match="the DataFrame has no column"):
                orders.transform(ps.where, selector, columns=given, using=using)
    assert orders.transform(ps.where, "JMSType IS NULL", columns={"JMSType": None}).count() == 5
    nested = orders.selectExpr("id", "struct(region) AS s")
    assert ids(nested.transform(ps.where, "r = 'US'", columns={"r": "s.region"})) == [3]


@pytest.mark.parametrize("twin", ["a", "A"])
def test_a_name_that_two_columns_have_is_told_before_a_job(spark: Any, twin: str) -> None:
    frame = spark.sql(f"SELECT id, id AS a, id AS {twin}, id AS q FROM range(2)")
    topology = Topology(Source("q.{q}"), (Consumer("c", "q.>", selector="a = 1"),))
    for ask in (
        lambda: ps.where(frame, "a = 1"),
        lambda: ps.match(frame, {"x": "a = 1"}),
        lambda: ps.dispatch(frame, topology, row="id"),
        lambda: ps.dispatch(frame.withColumnRenamed("q", "b").withColumn("q", frame.id), topology, row="a"),
    ):
        with pytest.raises(UnsupportedColumnError, match=rf"'a' of type ambiguous .*has a, {twin}, .*rename one"):
            ask()
    assert ids(ps.where(frame, "id = 1")) == [1]
    assert ids(ps.where(spark.range(2).selectExpr("id", "id"), "id = 1").toDF("id", "again")) == [1]  # one column twice


def test_rows_that_cannot_be_evaluated(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "x"), (2, "5")], "id long, text string")
    selector = "text * 2 = 4 OR id = 2"  # the broker throws: a text cannot be multiplied
    assert ids(frame.where(ps.matches(selector, on_error="reject"))) == []
    with pytest.raises(Exception, match="SelectorEvaluationError"):
        frame.where(ps.matches(selector)).collect()


def test_match_lists_the_subscriptions(orders: Any) -> None:
    wanted = {"all": "1 = 1", "eu": "region = 'EU'", "dear": "price > 100 AND JMSPriority >= 7"}
    found = {row.id: row.subscriptions for row in orders.transform(ps.match, wanted).collect()}
    assert found == {1: ["all", "eu", "dear"], 2: ["all", "eu"], 3: ["all", "dear"], 4: ["all"], 5: ["all"]}
    exploded = orders.transform(ps.match, wanted, into="who", explode=True).groupBy("who").count().collect()
    assert {row.who: row["count"] for row in exploded} == {"all": 5, "eu": 2, "dear": 2}


def test_a_subscription_reads_headers_that_no_column_has_as_those_of_a_new_message(spark: Any) -> None:
    wanted = {"usual": "JMSPriority = 4", "urgent": "JMSPriority > 4", "marked": "JMSType IS NOT NULL"}
    assert [row.subscriptions for row in ps.match(spark.range(2), wanted).collect()] == [["usual"]] * 2


def test_subscriptions_bring_their_dialect_and_what_becomes_of_errors(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "7"), (2, "3")], "id long, text string")
    filters = {"large": "text > 5", "small": "text < 5"}
    raising = {"product": "text * 2 = 14", "one": "id = 1"}
    asked = [
        (filters, {"dialect": "rocketmq"}, [["large"], ["small"]]),
        (filters, {}, [[], []]),
        (raising, {"on_error": "reject"}, [["one"], []]),
    ]
    for texts, given, found in asked:
        for frames in (ps.match(frame, Subscriptions(texts, **given)), ps.match(frame, texts, **given)):
            assert [row.subscriptions for row in frames.orderBy("id").collect()] == found, given
    for subscriptions in (raising, Subscriptions(raising)):
        with pytest.raises(Exception, match="SelectorEvaluationError"):
            ps.match(frame, subscriptions).collect()


def test_match_tells_what_is_missing(orders: Any) -> None:
    with pytest.raises(MissingColumnError, match="subscription 'eu'"):
        ps.match(orders, {"eu": "regio = 'EU'"})
    with pytest.raises(ValueError, match="into="):
        ps.match(orders, {"eu": "region = 'EU'"}, into="price")
    with pytest.raises(ValueError, match="into="):
        ps.match(orders, {"eu": "region = 'EU'"}, into="PRICE")  # Spark would replace the column


def test_match_adds_a_column_in_other_capitals_where_spark_heeds_them(spark: Any) -> None:
    session = spark.newSession()
    session.sql("SET spark.sql.caseSensitive=TRUE")
    assert ps.match(session.range(1), {"all": "id = 0"}, into="ID").columns == ["id", "ID"]


def test_nobody_subscribes(orders: Any) -> None:
    assert [row.subscriptions for row in ps.match(orders, {}).collect()] == [[], [], [], [], []]


def test_match_of_many_subscriptions_is_the_loop(orders: Any) -> None:
    many = {f"s{number}": f"price > {number} AND JMSPriority <= {number % 10}" for number in range(300)}
    many |= {"eu": "region = 'EU'", "none": "region IS NULL OR region LIKE '\U0001f600%'"}
    subscriptions = Subscriptions(many)
    expected = {
        id: [name for name in many if subscriptions[name].matches({"region": region, "price": price, "JMSPriority": p})]
        for id, region, price, p in ROWS
    }
    for asked in (many, subscriptions):
        found = {row.id: row.subscriptions for row in ps.match(orders, asked).collect()}
        assert found == expected
    exploded = ps.match(orders, many, explode=True).groupBy("id").count().collect()
    assert {row.id: row["count"] for row in exploded} == {id: len(names) for id, names in expected.items() if names}


def test_where_pyspark_has_no_arrow_udf_pandas_evaluates(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.pandas import functions

    monkeypatch.delattr(functions, "arrow_udf", raising=False)
    frame = spark.sql(
        "SELECT id, timestamp'1970-01-01 00:00:00.0015Z' AS at, CAST(id AS decimal(9, 2)) AS d FROM range(3)"
    )
    assert [row.id for row in frame.where(ps.matches("d >= 1 AND at = 1")).collect()] == [1, 2]
    assert [row.id for row in frame.transform(ps.where, "d >= 1 AND at = 1").collect()] == [1, 2]
    found = frame.transform(ps.match, {"big": "d > 1", "all": "JMSPriority = 4 AND at = 1"}).orderBy("id").collect()
    assert [row.subscriptions for row in found] == [["all"], ["all"], ["big", "all"]]
    assert frame.transform(ps.match, {"none": "JMSPriority = 5"}).select("subscriptions").first()[0] == []
    with pytest.raises(ConfigurationError, match=r"using=arrow: needs pyspark 4\.1"):
        ps.matches("d > 1", using="arrow")
