"""The same selectors, subscriptions and dispatch in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyengine import InvalidSelectorError
from pyengine import spark as ps
from pyengine.errors import ConfigurationError
from pyengine.topology import Consumer, Source, Topology
from tests.spark.conftest import WORKERS

pytestmark = pytest.mark.skipif("arrow" not in WORKERS, reason="pyspark 4.0 has no functions of Arrow")

RULES = {"eu": "region = 'EU'", "dear": "price > 100", "usual": "JMSPriority = 4"}
ROWS = [
    (0, "EU", 250, "ann", '{"price": 250, "ce-type": "a"}'),
    (1, "EU", 50, "bob", '{"price": "250"}'),
    (2, "US", 101, None, "{}"),
    (3, None, None, "cid", None),
]


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    session = spark.newSession()
    rows = session.createDataFrame(ROWS, "number long, region string, price int, who string, body string")
    rows.createOrReplaceTempView("orders")
    ps.register(session, {"audit": RULES})
    return session


def numbers(session: Any, condition: str) -> list[int]:
    return [line.number for line in session.sql(f"SELECT number FROM orders WHERE {condition} ORDER BY 1").collect()]


def test_a_selector_sees_structs_maps_json_and_named_properties(session: Any) -> None:
    assert numbers(session, """pyengine_matches("region = 'EU' AND price > 100", struct(region, price))""") == [0]
    assert numbers(session, """pyengine_matches("price > 100", price => price)""") == [0, 2]
    assert numbers(session, """pyengine_matches("price = '250'", map('price', string(price)))""") == [0]
    assert numbers(session, """pyengine_matches("price > 100 OR price = '250'", body)""") == [0, 1]
    both = """pyengine_matches("price > 100 AND type = 'a'", body, type => body:`ce-type`)"""
    assert numbers(session, both.replace("body:`ce-type`", "get_json_object(body, '$.ce-type')")) == [0]
    each = """pyengine_matches(if(number < 2, "price > 100", "price IS NULL"), struct(price))"""
    assert numbers(session, each) == [0, 3]


def test_subscriptions_by_a_map_or_by_name(session: Any) -> None:
    asked = "SELECT number, pyengine_match({}, struct(*)) AS wanted FROM orders ORDER BY 1"
    texts = ", ".join(f"'{name}', \"{text}\"" for name, text in RULES.items())
    plain = session.table("orders").transform(ps.match, RULES, into="wanted").orderBy("number").collect()
    for first in (f"map({texts})", "'audit'"):
        found = session.sql(asked.format(first)).collect()
        assert [line.wanted for line in found] == [line.wanted for line in plain]
    view = "LATERAL VIEW explode(pyengine_match('audit', struct(region, price))) AS name"
    lateral = f"SELECT name, count(*) AS n FROM orders {view}"
    assert {line.name: line.n for line in session.sql(f"{lateral} GROUP BY name").collect()} == {
        "eu": 2, "dear": 2, "usual": 4,
    }  # fmt: skip


def test_views_and_pandas_on_spark(session: Any) -> None:
    session.sql("""CREATE TEMP VIEW dear AS SELECT * FROM orders WHERE pyengine_matches("price > 100", struct(*))""")
    assert session.table("dear").count() == 2
    found = session.table("orders").pandas_api().spark.apply(lambda rows: rows.transform(ps.match, RULES))
    assert sorted(found["subscriptions"].to_numpy()[0]) == ["dear", "eu", "usual"]


@pytest.mark.parametrize("more", ["", 'group = "who"\n', 'properties_from = "body"\n'])
def test_a_table_is_dispatched(session: Any, more: str) -> None:
    text = f"""[source]
destination = "q.{{region}}"
{more}
[[consumer]]
name = "a"
destination = "q.EU"
selector = "price > 100"
prefetch = 1
acknowledges = false

[[consumer]]
name = "b"
destination = "q.>"
selector = "price IS NOT NULL"
"""
    asked = f"SELECT * FROM pyengine_dispatch(TABLE(orders), '{text.replace(chr(39), chr(92) + chr(39))}', 'number')"
    topology = Topology.from_text(text.replace("[source]", '[source]\npath = "x"'))
    expected = session.table("orders").transform(ps.dispatch, topology, row="number")
    found = session.sql(asked)
    assert found.columns == expected.columns
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


def test_what_waits_in_a_stream(session: Any, tmp_path: Path) -> None:
    rows = session.table("orders")
    rows.write.parquet(str(tmp_path / "in"))
    topology = Topology(Source("q.{region}"), (Consumer("a", "q.>", selector="price > 100"),))
    coming = session.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    where: dict[str, Any] = {"state": tmp_path / "state", "sink": tmp_path / "sink", "shards": 2}
    stream = ps.dispatch_stream(coming, topology, row="number", **where).trigger(availableNow=True).start()
    assert stream.awaitTermination(120)
    found = session.sql(f"SELECT row, reason FROM pyengine_held('{tmp_path / 'state'}')").collect()
    assert [tuple(line) for line in found] == [(1, "selector")]


def test_what_is_wrong_is_named(session: Any) -> None:
    for call, words in (
        ("pyengine_matches('price >< 1', struct(*))", "InvalidSelectorError"),
        ("pyengine_matches('cost > 1', struct(*))", "no column 'cost'"),
        ("pyengine_matches('cost > 1', price => price)", "the call has no column 'cost'"),
        ("size(pyengine_match('audti', struct(*))) > 0", "is not the name of subscriptions"),
        ("pyengine_matches('a = 1', 'no json')", "is not JSON"),
        ("pyengine_matches('price = 1', struct(price), body)", "2 values: is more than one value without a name"),
    ):
        with pytest.raises(Exception, match=words):
            session.sql(f"SELECT * FROM orders WHERE {call}").collect()
    with pytest.raises(InvalidSelectorError):
        ps.register(session, {"bad": {"x": "price ><"}})
    with pytest.raises(ConfigurationError, match="subscriptions="):
        ps.register(session, {"bad": "price > 1"})  # type: ignore[dict-item]
