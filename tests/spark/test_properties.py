"""Properties that are keys of maps, headers, structs, variants and JSON texts: the answers of a single process."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyengine import MissingColumnError, Selector, Subscriptions, UnsupportedColumnError
from pyengine import spark as ps
from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.tables.messages import to_messages
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import sql
from pyengine.rocketmq.tables.dispatch import ConsumerGroup, ConsumerGroups, MessageColumns, dispatch_messages
from pyengine.spark.failure import problem_of
from pyengine.spark.native import NotNativeError
from pyengine.topology import Consumer, Policy, Source, TimeColumn, Topology

TOPOLOGIES = int(os.environ.get("PYENGINE_NESTED_TOPOLOGIES", "2"))
ROWS = 160

SELECTORS = {
    "eu": "region = 'EU'",
    "dear": "price > 100",
    "even": "price % 2 = 0 AND flag",
    "type": "ce_type LIKE 'order.%'",
    "tenant": "tenant IN ('a', 'b') OR price IS NULL",
    "not": "NOT (price = 7) AND region IS NOT NULL",
    "text": "price = '7' OR flag = 'true'",
    "none": "missing IS NULL AND region <> 'EU'",
    "sum": "price + 1 BETWEEN 8 AND 200",
    "usual": "JMSPriority = 4 AND flag = FALSE",
}
COLUMNS = {"ce_type": "ce-type", "tenant": "tenant.id"}
KEYS = {"region": "region", "price": "price", "flag": "flag", "missing": "missing", **COLUMNS}
VALUES: dict[str, list[Any]] = {
    "region": ["EU", "US", "\U0001f600", "", None],
    "price": [7, 250, 7.0, 6.5, "7", True, 1e300, 2**62, -3, None],
    "flag": [True, False, "true", None],
    "ce-type": ["order.new", "order", "q\"\\'é", None],
    "tenant.id": ["a", "b", "c", None],
}


def objects(draw: random.Random, rows: int) -> list[dict[str, Any]]:
    """Properties by key; some keys are not there, some are null."""
    return [{key: draw.choice(values) for key, values in VALUES.items() if draw.random() < 0.8} for _ in range(rows)]


def as_texts(properties: dict[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in properties.items() if value is not None}


def as_message(properties: dict[str, Any]) -> dict[str, Any]:
    """A message as selectors see it, by the names that they use."""
    return {name: properties[key] for name, key in KEYS.items() if properties.get(key) is not None}


def as_headers(properties: dict[str, str]) -> list[dict[str, Any]]:
    """Kafka's headers; of several with one key the last counts."""
    first = [{"key": key, "value": b"an earlier one"} for key in list(properties)[:1]]
    return [*first, *({"key": key, "value": value.encode()} for key, value in properties.items())]


def log(every: list[dict[str, Any]]) -> pa.Table:
    """The same properties in a map, in headers, in a struct and as JSON."""
    texts = [as_texts(each) for each in every]
    struct = pa.struct([(key, pa.string()) for key in VALUES])
    entry = pa.struct([("key", pa.string()), ("value", pa.binary())])
    jsons = [json.dumps(each) for each in every]
    return pa.table(
        {
            "number": pa.array(range(len(every)), pa.int64()),
            "map": pa.array([list(each.items()) for each in texts], pa.map_(pa.string(), pa.string())),
            "headers": pa.array([as_headers(each) for each in texts], pa.list_(entry)),
            "struct": pa.array([{key: each.get(key) for key in VALUES} for each in texts], struct),
            "json": pa.array(jsons, pa.string()),
            "value": pa.array([each.encode() for each in jsons], pa.binary()),
        }
    )


@pytest.fixture(scope="module")
def every() -> list[dict[str, Any]]:
    return objects(random.Random(1), ROWS)


@pytest.fixture(scope="module")
def frame(spark: Any, every: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    path = tmp_path_factory.mktemp("nested") / "log.parquet"
    pq.write_table(log(every), path)
    rows = spark.read.parquet(str(path))
    return rows.withColumn("variant", F.parse_json("json"))


def test_all_places_of_properties_give_the_answers_of_messages(frame: Any, every: list[dict[str, Any]]) -> None:
    """Texts in maps, headers and structs; in JSON the types that the values have by themselves."""
    index = Subscriptions(SELECTORS, on_error="reject")
    struct_columns = {**COLUMNS, "missing": None}
    found, given = frame, {"on_error": "reject"}
    for name in ("map", "headers", "struct", "json", "value", "variant"):
        columns = struct_columns if name == "struct" else COLUMNS
        found = found.transform(ps.match, SELECTORS, into=f"of_{name}", columns=columns, properties_from=name, **given)
    lines = found.orderBy("number").select(*(name for name in found.columns if name.startswith("of_"))).collect()
    for properties, line in zip(every, lines, strict=True):
        texts = index.match(as_message(as_texts(properties)))
        typed = index.match(as_message(properties))
        assert line.asDict() == {
            "of_map": texts, "of_headers": texts, "of_struct": texts, "of_json": typed, "of_value": typed,
            "of_variant": typed,
        }, properties  # fmt: skip


def test_a_selector_alone_is_native_but_for_values_with_types_of_their_own(
    frame: Any, every: list[dict[str, Any]]
) -> None:
    asked = "ce_type = 'order.new' AND region <> 'US'"
    wanted = [n for n, each in enumerate(every) if Selector(asked).matches(as_message(as_texts(each)))]
    columns = {"ce_type": "ce-type"}
    for name, using in (("map", "native"), ("headers", "native"), ("struct", "native"), ("json", "auto")):
        found = frame.transform(ps.where, asked, columns=columns, properties_from=name, using=using)
        assert sorted(line.number for line in found.select("number").collect()) == wanted, name
    with pytest.raises(NotNativeError, match="the type that each value has by itself"):
        frame.transform(ps.where, "price > 100", properties_from="json", using="native")


def topology_of(draw: random.Random, nested: str) -> Topology:
    consumers = tuple(
        Consumer(
            f"c{number}",
            draw.choice(["q.>", "q.EU", "q.US"]),
            selector=draw.choice(["", *SELECTORS.values()]),
            prefetch=draw.choice([None, 1, 3]),
            exclusive=draw.random() < 0.2,
            acknowledges=draw.random() < 0.6,
        )
        for number in range(draw.randrange(1, 5))
    )
    policy = Policy("q.>", max_page_size=draw.choice([3, 200, None]), strict_order_dispatch=draw.random() < 0.5)
    source = Source(
        "q.{region}", path="unused", group="tenant.id", properties_from=nested, columns=tuple(COLUMNS.items())
    )
    return Topology(source, consumers, (policy,))


@pytest.mark.parametrize("seed", range(TOPOLOGIES))
def test_random_topologies_over_maps_and_json_agree_with_the_single_process(
    spark: Any, seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    table = log(objects(draw, 60))
    pq.write_table(table, tmp_path / "log.parquet")
    rows = spark.read.parquet(str(tmp_path / "log.parquet"))
    for nested in ("json", draw.choice(["map", "headers", "value"])):
        topology = topology_of(draw, nested)
        placed = topology.with_places()
        messages, rejects = to_messages(table.drop_columns(["number"]), range(table.num_rows), placed.source)
        expected = dispatch_table(placed, messages).drop_columns(["bytes"]).sort_by("row")
        found = rows.transform(ps.dispatch, topology, row="number", partitions=2).toArrow().sort_by("row")
        lost = found.filter(pa.compute.equal(found["reason"], "rejected"))
        assert sorted(lost["row"].to_pylist()) == [reject.row for reject in rejects]
        kept = found.filter(pa.compute.is_valid(found["destination"])).drop_columns(["bytes"])
        assert kept.cast(expected.schema).equals(expected)


BROKEN = [
    (0, '{"price": 5}', "EU"), (1, "no json", "EU"), (2, "[1]", "EU"), (3, '{"price": {"a": 1}}', "EU"),
    (4, None, "EU"), (5, '{"price": 5, "price": 6}', "EU"), (6, '{"price": NaN}', "EU"),
]  # fmt: skip


def test_rows_whose_properties_cannot_be_read_are_named(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(BROKEN, "number long, body string, region string")
    topology = Topology(
        Source("q.{region}", path="x", properties_from="body"), (Consumer("c", "q.>", selector="price = 5"),)
    )
    found = {line.row: line for line in frame.transform(ps.dispatch, topology, row="number").collect()}
    assert [found[row].consumer for row in range(7)] == ["c", *[None] * 6]
    assert found[4].reason == "selector"
    assert found[1].blocked_by == "body = 'no json': is not JSON"
    assert found[2].blocked_by == "body = '[1]': is not a JSON object"
    assert found[3].blocked_by == "price = '{\"a\":1}': is not a value that a property can have"
    assert {found[row].blocked_by.rpartition(": ")[2] for row in (1, 5, 6)} == {"is not JSON"}
    table = frame.toArrow()
    _, rejects = to_messages(table.drop_columns(["number"]), range(7), topology.with_places().source)
    assert [reject.row for reject in rejects] == [1, 2, 3, 5, 6]
    lenient = {"columns": {"region": "region"}, "properties_from": "body", "on_error": "reject"}
    named = frame.transform(ps.match, {"five": "price = 5", "eu": "region = 'EU'"}, **lenient).orderBy("number")
    assert [line.subscriptions for line in named.collect()] == [["five", "eu"], [], [], [], ["eu"], [], []]
    assert frame.transform(ps.where, "price = 5 OR region = 'EU'", **lenient).count() == 2
    with pytest.raises(Exception, match=r"InvalidMessageError: body = 'no json' .*is not JSON"):
        frame.where("number < 2").transform(ps.where, "price = 5", properties_from="body").collect()


def test_a_row_that_cannot_be_read_has_the_same_problem_in_one_process(spark: Any) -> None:
    bodies = [b'{"price": "\xff"}', b"x" * 300, b"[1]", b'{"price": 1}']
    entry = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = [[{"key": "price", "value": value}] for value in (b"a\xffb", b"\xff" * 300, b"\xc3\x28", b"1")]
    table = pa.table({"number": range(4), "body": bodies, "headers": pa.array(headers, pa.list_(entry))})
    frame = spark.createDataFrame(table)
    for place in ("body", "headers"):
        topology = Topology(Source("q", path="x", properties_from=place), (Consumer("c", "q", selector="price = 1"),))
        _, rejects = to_messages(table.drop_columns(["number"]), range(4), topology.with_places().source)
        found = frame.transform(ps.dispatch, topology, row="number").where("reason = 'rejected'").orderBy("row")
        assert [line.blocked_by for line in found.collect()] == [problem_of(reject) for reject in rejects]
        assert len(rejects) == 3
    with pytest.raises(Exception, match=r"InvalidMessageError: headers = 'a\ufffdb' \(str\): is not UTF-8"):
        frame.where("number = 0").transform(ps.match, {"one": "price = 1"}, properties_from="headers").collect()


def test_what_is_not_there_is_named_before_a_job(spark: Any, frame: Any) -> None:
    with pytest.raises(MissingColumnError, match="no column 'heders'"):
        ps.match(frame, {"a": "region = 'EU'"}, properties_from="heders")
    with pytest.raises(MissingColumnError, match="the struct 'struct' has no column 'regoin'"):
        ps.match(frame, {"a": "regoin = 'EU'"}, properties_from="struct")
    with pytest.raises(UnsupportedColumnError, match=r"'number' of type bigint.*keys are looked up in maps"):
        ps.match(frame, {"a": "regoin = 'EU'"}, properties_from="number")
    with pytest.raises(ConfigurationError, match="properties_from=map: needs the schema"):
        ps.matches("region = 'EU'", properties_from="map")
    with pytest.raises(ValueError, match="'nobody', which no selector reads"):
        ps.match(frame, {"a": "region = 'EU'"}, columns={"nobody": "map"}, properties_from="map")
    by = Topology(Source("q", properties=("number",)), (Consumer("c", "q", selector="number > 1 AND region = 'EU'"),))
    assert ps.dispatch(frame, by, row="number", properties_from="map").where("consumer = 'c'").count() > 5
    two = Topology(Source("q.{region}", group="who"), (Consumer("c", "q.>", selector="who = 'x'"),))
    odd = spark.sql("SELECT 1L AS number, 'EU' AS region, 'me' AS who, map('who', 'x') AS map")
    with pytest.raises(UnsupportedColumnError, match="'who' of type ambiguous"):
        ps.dispatch(odd, two, row="number", properties_from="map")


def test_expressions_are_places_too(frame: Any, every: list[dict[str, Any]]) -> None:
    """As those of from_avro, which gives a struct."""
    from pyspark.sql import functions as F  # noqa: N812

    expected = sum(each.get("region") == "EU" for each in every)
    parsed = F.from_json("json", "region string")
    for given in (parsed, F.create_map(F.lit("region"), F.col("struct.region"))):
        assert frame.transform(ps.where, "region = 'EU'", properties_from=given).count() == expected
    found = frame.transform(ps.match, {"x": "r = 'EU'"}, columns={"r": "map.region"}, explode=True)
    assert found.count() == expected
    number = F.try_element_at("map", F.lit("price")).try_cast("double")
    dear = sum(float(each["price"]) > 100 for each in every if type(each.get("price")) in (int, float))
    assert frame.transform(ps.where, "p > 100", columns={"p": number}, properties_from="map").count() == dear


def test_properties_of_consumer_groups(frame: Any, every: list[dict[str, Any]]) -> None:
    groups = ConsumerGroups(
        [("orders", "b", 0)],
        [ConsumerGroup("billing", ["c"], {"orders": sql("region = 'EU'")})],
        MessageColumns(topic="topic", queue_id="queue_id"),
    )
    rows = frame.selectExpr("*", "'orders' AS topic", "0 AS queue_id")
    found = rows.transform(ps.dispatch, groups, row="number", properties_from="json").where("consumer = 'c'")
    plain = pa.table(
        {
            "topic": ["orders"] * ROWS,
            "queue_id": pa.array([0] * ROWS, pa.int32()),
            "region": [each.get("region") for each in every],
        }
    )
    expected = dispatch_messages(groups, plain, pa.array(range(ROWS)))
    wanted = expected.filter(pa.compute.is_valid(expected["consumer"]))["row"].to_pylist()
    assert sorted(line.row for line in found.collect()) == wanted


def test_a_stream_reads_properties_where_they_are(spark: Any, tmp_path: Path) -> None:
    draw = random.Random(5)
    table = log(objects(draw, 80))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    rows = spark.read.parquet(str(tmp_path / "in"))
    topology = topology_of(draw, "json")
    coming = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    stream = ps.dispatch_stream(
        coming, topology, row="number", shards=2, state=tmp_path / "state", sink=tmp_path / "sink"
    )
    assert stream.trigger(availableNow=True).start().awaitTermination(120)
    expected = rows.transform(ps.dispatch, topology, row="number").toArrow()
    told = spark.read.parquet(str(tmp_path / "sink")).select(*expected.column_names).toArrow()
    held = ps.held(spark, tmp_path / "state").select(*expected.column_names).toArrow()
    together = pa.concat_tables([told, held]).drop_columns(["bytes", "delivery"]).sort_by("row")
    wanted = expected.drop_columns(["bytes", "delivery"]).sort_by("row")
    assert together.cast(wanted.schema).equals(wanted)


def test_run_reads_them_from_files(spark: Any, tmp_path: Path) -> None:
    every = objects(random.Random(3), 50)
    pq.write_table(log(every), tmp_path / "log.parquet")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"json": json.dumps(each)}) + "\n" for each in every))
    answers = []
    for name in ("log.parquet", "log.jsonl"):
        topology = Topology.from_text(f"""
[source]
path = "{tmp_path / name}"
destination = "q"
properties_from = "json"
columns = {{ ce_type = "ce-type" }}

[[consumer]]
name = "a"
destination = "q"
selector = "price > 100 AND ce_type LIKE 'order%'"

[[consumer]]
name = "b"
destination = "q"
selector = "region = 'EU'"
""")
        assert Topology.from_text(topology.to_text()) == topology
        result = ps.run(topology, tmp_path / "out", spark=spark)
        table = pq.read_table(result.out / "deliveries").sort_by("row")
        answers.append(list(zip(table["row"].to_pylist(), table["consumer"].to_pylist(), strict=True)))
    a, b = (Selector(consumer.selector) for consumer in topology.consumers)
    wanted = [n for n, each in enumerate(every) if a.matches(as_message(each)) or b.matches(as_message(each))]
    assert answers[0] == answers[1]
    assert [row for row, _ in answers[0]] == wanted


def test_the_moment_of_a_message_may_be_in_json(tmp_path: Path) -> None:
    source = Source("q", path="x", timestamp=TimeColumn("at"), priority="p", properties_from="body")
    rows = pa.table(
        {"body": ['{"at": 1700000000000, "p": "7"}', '{"at": "2026-01-01T00:00:00Z"}', '{"at": true}', "{}"]}
    )
    messages, rejects = to_messages(rows, range(4), source)
    assert messages["JMSTimestamp"].to_pylist() == [1_700_000_000_000, 1_767_225_600_000, 0]
    assert messages["JMSPriority"].to_pylist() == [7, 4, 4]
    assert [(reject.row, reject.column) for reject in rejects] == [(2, "at")]
