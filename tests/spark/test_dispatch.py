"""Dispatch on Spark gives the answer of a single process, however the work is cut up."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812

from pyengine import MissingColumnError, Selector, UnsupportedColumnError
from pyengine import spark as ps
from pyengine.activemq.tables.dispatch import (
    ASSIGNMENT_SCHEMA,
    DESTINATION,
    QUEUE,
    ROW,
    columns_read,
    dispatch_batches,
    dispatch_table,
    order_columns,
)
from pyengine.backlog.tables.messages import to_messages
from pyengine.errors import ConfigurationError, PyengineError
from pyengine.rocketmq import sql
from pyengine.rocketmq.tables.dispatch import ConsumerGroup, ConsumerGroups, MessageColumns
from pyengine.spark.row_numbers import parted
from pyengine.spark.transforms import Assignment, assign, dispatch
from pyengine.topology import Consumer, Policy, Source, TimeColumn, Topology


def by_row(table: pa.Table) -> pa.Table:
    return table.sort_by("row").combine_chunks()


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    found = by_row(found.cast(expected.schema))
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        assert found.column(name).equals(expected.column(name)), name


@pytest.fixture(scope="module")
def flight_frame(spark: Any, flight_messages: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("flights")
    for index in range(3):
        size = flight_messages.num_rows // 3 + 1
        pq.write_table(flight_messages.slice(index * size, size), folder / f"{index}.parquet")
    return spark.read.parquet(folder.as_uri())


@pytest.mark.parametrize("partitions", [1, 7])
def test_flights_are_the_same_on_any_number_of_partitions(
    flight_frame: Any, flights: Topology, flight_answer: pa.Table, partitions: int
) -> None:
    found = assign(flight_frame, flights, partitions).toArrow()
    assert found.num_rows == 336_776
    assert_same(found, flight_answer)


@pytest.mark.parametrize("batch_size", [1, 333, 10_000])
def test_batches_do_not_show(flights: Topology, flight_messages: pa.Table, batch_size: int) -> None:
    some = flight_messages.slice(5_000, 1_000)
    assert_same(dispatch_table(flights, some, batch_size), by_row(dispatch_table(flights, some, 1 << 20)))


def test_every_flight_is_delivered_or_held_for_a_reason(flight_answer: pa.Table, flight_messages: pa.Table) -> None:
    assert flight_answer.column("row").equals(flight_messages.sort_by("__row").column("__row"))
    delivered = pc.is_valid(flight_answer.column("consumer"))
    assert delivered.equals(pc.is_null(flight_answer.column("reason")))
    assert delivered.equals(pc.is_valid(flight_answer.column("delivery")))
    for destination in ("flights.EWR", "flights.JFK", "flights.LGA"):
        mine = flight_answer.filter(pc.equal(flight_answer.column("destination"), destination))
        numbers = sorted(mine.column("delivery").drop_null().to_pylist())
        assert numbers == list(range(len(numbers))), destination


def test_what_a_selector_refuses_is_not_delivered(
    flight_answer: pa.Table, flight_messages: pa.Table, flights: Topology
) -> None:
    wanted = {consumer.name: consumer.selector for consumer in flights.consumers}
    carriers = flight_messages.sort_by("__row").column("carrier")
    for name, selector in wanted.items():
        mine = (
            carriers.filter(pc.fill_null(pc.equal(flight_answer.column("consumer"), name), False)).unique().to_pylist()
        )
        assert all(not selector or Selector(selector).matches({"carrier": carrier}) for carrier in mine), name


def test_a_kept_group_stays_with_one_consumer(flight_answer: pa.Table) -> None:
    newark = flight_answer.filter(
        pc.and_(
            pc.equal(flight_answer.column("destination"), "flights.EWR"), pc.is_valid(flight_answer.column("consumer"))
        )
    )
    newark = newark.filter(pc.is_valid(newark.column("group")))
    owners = newark.group_by("group").aggregate([("consumer", "count_distinct")])
    assert pc.max(owners.column("consumer_count_distinct")).as_py() == 1


# Small random topologies: odd names, skewed keys, groups, nulls, consumers that never acknowledge.

QUEUES = ["q.a", "q.\U0001f600", "q.", "übersee"]
SELECTORS = [
    "",
    "n > 2",
    "color = 'r\U0001f534d'",
    "n IS NULL",
    "color LIKE '%\U0001f534%' OR n < 0",
    "n % 2 = 0",
    "JMSPriority > 5",
]

consumers = st.lists(
    st.builds(
        Consumer,
        name=st.uuids().map(str),
        destination=st.sampled_from(["q.>", "q.a", "q.\U0001f600", "übersee"]),
        selector=st.sampled_from(SELECTORS),
        exclusive=st.booleans(),
        priority=st.integers(-2, 2),
        prefetch=st.sampled_from([None, 1, 2, 5, 0, -1]),
        no_local=st.booleans(),
        connection=st.sampled_from(["c1", "c2"]),
        acknowledges=st.booleans(),
    ),
    max_size=5,
)
policies = st.builds(
    Policy,
    destination=st.just("q.>"),
    max_page_size=st.sampled_from([1, 3, 200, None]),
    prioritized_messages=st.booleans(),
    strict_order_dispatch=st.booleans(),
    use_consumer_priority=st.booleans(),
    message_group_map_factory_type=st.sampled_from(["cached?cacheSize=2", "simple", "bucket?bucketCount=2"]),
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "queue": st.sampled_from([QUEUES[0]] * 5 + QUEUES),
            "n": st.none() | st.integers(-3, 9),
            "color": st.none() | st.sampled_from(["r\U0001f534d", "blue", ""]),
            "nothing": st.none(),
            "who": st.none() | st.sampled_from(["g1", "g2", "", "\U0001f468"]),
            "seq": st.none() | st.sampled_from([0, 1, 2, -1]),
            "p": st.none() | st.integers(0, 9),
            "at": st.integers(0, 5),
            "by": st.none() | st.sampled_from(["c1", "c3"]),
        }
    ),
    max_size=40,
)
SCHEMA = pa.schema(
    [
        ("queue", pa.string()),
        ("n", pa.int32()),
        ("color", pa.string()),
        ("nothing", pa.string()),
        ("who", pa.string()),
        ("seq", pa.int32()),
        ("p", pa.int32()),
        ("at", pa.int64()),
        ("by", pa.string()),
    ]
)
SOURCE = Source(
    destination="{queue}",
    path="unused.parquet",
    group="who",
    group_sequence="seq",
    priority="p",
    connection="by",
    timestamp=TimeColumn("at"),
    order="timestamp",
)


def topology_of(consumers: list[Consumer], policy: Policy) -> Topology:
    return Topology(source=SOURCE, consumers=tuple(consumers), policies=(policy,))


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(consumers=consumers, policy=policies, rows=rows, partitions=st.sampled_from([1, 2, 7, 64]))
def test_random_topologies_agree_with_the_single_process(
    spark: Any, consumers: list[Consumer], policy: Policy, rows: list[dict[str, Any]], partitions: int
) -> None:
    topology = topology_of(consumers, policy)
    table = pa.Table.from_pylist(rows, SCHEMA)
    messages, rejects = to_messages(table, range(table.num_rows), topology.source)
    assert not rejects
    expected = by_row(dispatch_table(topology, messages))
    assert expected.column("row").to_pylist() == list(range(len(rows)))
    for batch_size in (1, 7):
        assert_same(dispatch_table(topology, messages, batch_size), expected)
    numbered = table.append_column("number", pa.array(range(table.num_rows), pa.int64()))
    frame = spark.createDataFrame(numbered)
    found = frame.transform(dispatch, topology, row="number", partitions=partitions).toArrow()
    assert_same(found.drop_columns(["bytes"]), expected.drop_columns(["bytes"]))


@settings(max_examples=60, deadline=None)
@given(consumers=consumers, policy=policies, rows=rows, batch_size=st.integers(1, 9))
def test_random_topologies_do_not_depend_on_batches(
    consumers: list[Consumer], policy: Policy, rows: list[dict[str, Any]], batch_size: int
) -> None:
    topology = topology_of(consumers, policy)
    messages, _ = to_messages(pa.Table.from_pylist(rows, SCHEMA), range(len(rows)), topology.source)
    expected = by_row(dispatch_table(topology, messages, 1000))
    assert_same(dispatch_table(topology, messages, batch_size), expected)
    assert expected.num_rows == len(rows)


@settings(max_examples=60, deadline=None)
@given(consumers=consumers, policy=policies, rows=rows, batch_size=st.integers(1, 9), keys=st.integers(1, 2))
def test_names_that_hash_alike_are_told_apart(
    consumers: list[Consumer], policy: Policy, rows: list[dict[str, Any]], batch_size: int, keys: int
) -> None:
    topology = topology_of(consumers, policy)
    messages, _ = to_messages(pa.Table.from_pylist(rows, SCHEMA), range(len(rows)), topology.source)
    expected = by_row(dispatch_table(topology, messages))
    hashes = pa.array([QUEUES.index(row["queue"]) % keys for row in rows], pa.int64())
    table = messages.select(columns_read(topology, messages.column_names)).append_column(QUEUE, hashes)
    if batch_size % 2:
        plain = table.column(DESTINATION).cast(pa.string())
        table = table.set_column(table.column_names.index(DESTINATION), DESTINATION, plain)
    table = table.sort_by([(name, "ascending") for name in order_columns(topology, table.column_names)])
    batches = table.combine_chunks().to_batches(max_chunksize=batch_size)
    found = pa.Table.from_batches(dispatch_batches(topology, batches), ASSIGNMENT_SCHEMA)
    assert_same(found, expected)
    for queue in pc.unique(expected.column("destination")).to_pylist():
        mine = found.filter(pc.equal(found.column("destination"), queue)).column("delivery").drop_null().to_pylist()
        assert mine == list(range(len(mine)))


@pytest.mark.parametrize("kind", ["cached", "simple", "bucket?bucketCount=3"])
def test_groups_keep_their_names_where_batches_share_a_larger_dictionary(kind: str) -> None:
    """As those of a file do: names of groups, by which buckets are chosen, are not asked of rows that are not there."""
    consumers = tuple(Consumer(name, "q") for name in "abc")
    topology = Topology(Source("q", group="who"), consumers, (Policy("q", message_group_map_factory_type=kind),))
    table = pa.table({"who": [f"g{number}" for number in (0, 1, 2, 3, 4, 5, 6, 7, 1, 1, 1, 1, 3, 3, 3)]})
    messages, _ = to_messages(table, range(table.num_rows), topology.source)
    expected = by_row(dispatch_table(topology, messages))
    groups = messages.column("JMSXGroupID").combine_chunks().dictionary_encode()
    messages = messages.set_column(messages.column_names.index("JMSXGroupID"), "JMSXGroupID", groups)
    messages = messages.select(columns_read(topology, messages.column_names))
    messages = messages.append_column(QUEUE, pa.array([0] * table.num_rows, pa.int64())).combine_chunks()
    for size in (1, 3):
        batches = dispatch_batches(topology, messages.to_batches(max_chunksize=size))
        found = pa.Table.from_batches(batches, ASSIGNMENT_SCHEMA).drop_columns(["bytes"])
        assert_same(found, expected.drop_columns(["bytes"]))


def test_many_queues_with_selectors_of_their_own_agree_with_each_alone() -> None:
    source = Source(destination="{queue}", path="x", group="who")
    own = [Consumer(f"c{number}", f"q.{number}", selector=f"n > {number}") for number in range(40)]
    topology = Topology(source=source, consumers=(*own, Consumer("rest", "q.1", no_local=True, connection="c1")))
    table = pa.table(
        {
            "queue": [f"q.{number % 40}" for number in range(5_000)],
            "n": pa.array([number % 53 for number in range(5_000)], pa.int32()),
            "who": [f"g{number % 7}" if number % 3 else None for number in range(5_000)],
        }
    )
    messages, _ = to_messages(table, range(table.num_rows), source)
    found = by_row(dispatch_table(topology, messages))
    alone = [
        dispatch_table(topology, messages.filter(pc.equal(messages.column(DESTINATION), f"q.{number}")))
        for number in range(40)
    ]
    assert_same(found, by_row(pa.concat_tables(alone)))


def test_expired_messages_are_told(spark: Any) -> None:
    topology = Topology(source=Source(destination="q", path="x", expiration=_moment("until"), timestamp=_moment("at")))
    frame = spark.createDataFrame([(0, 10, 5), (1, 20, 30)], "number long, at long, until long")
    found = {line["row"]: line["reason"] for line in dispatch(frame, topology, row="number").toArrow().to_pylist()}
    assert found == {0: "no_consumer", 1: "no_consumer"}  # nobody asks for them, so nobody looks at the clock
    busy = Topology(source=topology.source, consumers=(Consumer("c", "q"),))
    found = {line["row"]: line["reason"] for line in dispatch(frame, busy, row="number").toArrow().to_pylist()}
    assert found == {0: "expired", 1: None}


def _moment(column: str) -> Any:
    return TimeColumn(column)


def test_a_selector_that_cannot_be_evaluated_holds_the_message() -> None:
    table = pa.table({"text": ["x", None], "n": pa.array([1, 2], pa.int32())})
    topology = Topology(
        source=Source(destination="q", path="x"), consumers=(Consumer("c", "q", "text * 2 = 4 OR n = 2"),)
    )
    messages, _ = to_messages(table, range(2), topology.source)
    found = by_row(dispatch_table(topology, messages)).to_pylist()
    assert [(line["consumer"], line["reason"]) for line in found] == [(None, "evaluation_error"), ("c", None)]


def test_rows_that_are_no_message_come_out_as_rejected(spark: Any) -> None:
    topology = Topology(source=Source(destination="{queue}", path="x", priority="p"), consumers=(Consumer("c", ">"),))
    frame = spark.createDataFrame([(0, "a", 3), (1, None, 3), (2, "a", 12)], "number long, queue string, p int")
    found = {line["row"]: line for line in dispatch(frame, topology, row="number").toArrow().to_pylist()}
    assert [found[row]["reason"] for row in range(3)] == [None, "rejected", "rejected"]
    assert "queue" in found[1]["blocked_by"]
    assert "12" in found[2]["blocked_by"]


def test_a_row_without_a_number_is_rejected(spark: Any) -> None:
    topology = Topology(source=Source(destination="{queue}", path="x"), consumers=(Consumer("c", ">"),))
    frame = spark.createDataFrame([(None, "a"), (-3, "a"), (None, None)], "number long, queue string")
    found = dispatch(frame, topology, row="number", partitions=1).toArrow().to_pylist()
    told = sorted((str(line["row"]), line["consumer"], line["blocked_by"]) for line in found)
    missing = "the number of the row is missing or beyond long"
    assert told == [("-3", "c", None), ("None", None, missing), ("None", None, missing)]


def test_a_moment_is_the_same_text_in_any_time_zone_of_the_session(spark: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    frame = session.sql(
        "SELECT 0L AS number, timestamp'2020-11-01 05:30:00Z' AS at, timestamp_ntz'2020-01-01' AS clock"
    )
    topology = Topology(
        source=Source(destination="q.{clock}", path="x", group="at", types=(("at", "string"),)),
        consumers=(Consumer("c", ">", selector="at = '2020-11-01 05:30:00.000000Z'"),),
    )
    (line,) = dispatch(frame, topology, row="number").toArrow().to_pylist()
    assert (line["destination"], line["consumer"], line["group"]) == (
        "q.2020-01-01 00:00:00.000000", "c", "2020-11-01 05:30:00.000000Z"
    )  # fmt: skip


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_number_of_rows_beyond_long_is_rejected(spark: Any, ansi: str) -> None:
    topology = Topology(source=Source(destination="{queue}", path="x"), consumers=(Consumer("c", ">"),))
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    frame = session.sql(
        f"SELECT CAST(number AS decimal(38)) AS number, 'a' AS queue FROM VALUES (7), ({2**63}) AS t(number)"
    )
    found = dispatch(frame, topology, row="number").toArrow().to_pylist()
    assert sorted((str(line["row"]), str(line["blocked_by"])) for line in found) == [
        ("7", "None"), ("None", "the number of the row is missing or beyond long")
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["customer.id", "a`b"])
def test_a_column_may_have_any_name(spark: Any, name: str) -> None:
    topology = Topology(
        source=Source(destination="q.{" + name + "}", path="x", group=name), consumers=(Consumer("c", "q.>", "n > 1"),)
    )
    frame = spark.createDataFrame([(0, "a", 1), (1, "b", 2)], ["row.number", name, "n"])
    found = dispatch(frame, topology, row="row.number").toArrow().sort_by("row").to_pylist()
    assert [(each["destination"], each["consumer"], each["group"]) for each in found] == [
        ("q.a", None, "a"), ("q.b", "c", "b")
    ]  # fmt: skip
    groups = ConsumerGroups(
        [("a", "broker-a", 1), ("b", "broker-a", 2)], [ConsumerGroup("g", ["c"], {"a": "*"})],
        MessageColumns(topic=name, queue_id="n"),
    )  # fmt: skip
    consumed = dispatch(frame, groups, row="row.number").toArrow().sort_by("row").to_pylist()
    assert [(each["row"], each["consumer"], each["reason"]) for each in consumed] == [
        (0, "c", None),
        (1, None, "no_group"),
    ]


def test_a_type_that_spark_does_not_hand_to_python_is_told_before_anything_runs(spark: Any) -> None:
    frame = spark.sql("SELECT 1L AS number, INTERVAL '1' MONTH AS span, 'a' AS queue")
    topology = Topology(source=Source(destination="{queue}", path="x"), consumers=(Consumer("c", ">", "span > 1"),))
    for ask in (
        lambda: dispatch(frame, topology, row="number"),
        lambda: ps.match(frame, {"a": "span > 1"}),
        lambda: ps.where(frame, "span > 1"),
    ):
        with pytest.raises(UnsupportedColumnError, match="'span' of type interval month"):
            ask()


@pytest.mark.parametrize("kind", ["double", "string", "timestamp", "decimal(9, 1)"])
def test_a_number_of_rows_that_is_not_whole_is_told_before_anything_runs(spark: Any, kind: str) -> None:
    """As a bigint 1.2 and 1.7, or two moments of a second, would be one number."""
    frame = spark.sql(f"SELECT CAST(NULL AS {kind}) AS number, 'a' AS queue")
    with pytest.raises(UnsupportedColumnError, match="cast it to bigint"):
        dispatch(frame, Topology(source=Source(destination="{queue}", path="x")), row="number")


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True])
def test_a_number_of_tasks_or_files_is_one(spark: Any, tmp_path: Path, count: Any) -> None:
    """No shard would hold no message."""
    topology = Topology(source=Source(destination="{queue}", path=str(tmp_path)), consumers=(Consumer("c", ">"),))
    frame = spark.createDataFrame([(1, "a")], "number long, queue string")
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path))
    folders: dict[str, Any] = {"state": tmp_path / "state", "sink": tmp_path / "sink"}
    for ask in (
        lambda: ps.write_shards(spark, topology, tmp_path / "shards", shards=count),
        lambda: ps.run(topology, tmp_path / "out", spark=spark, partitions=count),
        lambda: dispatch(frame, topology, row="number", partitions=count),
        lambda: ps.dispatch_stream(stream, topology, row="number", shards=count, **folders),
        lambda: ps.dispatch_stream(stream, topology, row="number", partitions=count, **folders),
    ):
        with pytest.raises(ConfigurationError, match="1 or more"):
            ask()


def test_a_missing_column_is_told_before_anything_runs(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "a")], "regio int, queue string")
    topology = Topology(
        source=Source(destination="{queue}", path="x"), consumers=(Consumer("c", "a", selector="region = 1"),)
    )
    with pytest.raises(MissingColumnError, match="did you mean 'regio'"):
        dispatch(frame, topology)
    with pytest.raises(MissingColumnError, match="queues"):
        dispatch(frame, Topology(source=Source(destination="{queues}", path="x")))


def test_an_unusable_type_is_told_before_anything_runs(spark: Any) -> None:
    frame = spark.sql("SELECT X'00' AS price, 'a' AS queue")
    topology = Topology(
        source=Source(destination="{queue}", path="x"), consumers=(Consumer("c", "a", selector="price > 1"),)
    )
    with pytest.raises(UnsupportedColumnError, match="price"):
        dispatch(frame, topology)


@pytest.mark.parametrize(
    ("column", "value"),
    [("id", "timestamp'2020-01-01'"), ("tag", "array('x')"), ("n", "X'00'"), ("n", "interval '1' month")],
)
def test_a_column_that_consumer_groups_cannot_use_is_told_before_anything_runs(
    spark: Any, column: str, value: str
) -> None:
    frame = spark.sql("SELECT 'a' AS topic, 1 AS id, 'x' AS tag, '5' AS n")
    groups = ConsumerGroups(
        [("a", "broker-a", 1)], [ConsumerGroup("g", ["c"], {"a": sql("n > 1")}), ConsumerGroup("h", ["c"], {"a": "x"})],
        MessageColumns("topic", "id", tags="tag"),
    )  # fmt: skip
    assert dispatch(frame, groups).count() == 2
    with pytest.raises(UnsupportedColumnError, match=f"'{column}' of type"):
        dispatch(frame.withColumn(column, F.expr(value)), groups)


def test_a_name_of_a_message_s_own_column_is_told_before_anything_runs(spark: Any) -> None:
    frame = spark.createDataFrame([("a", 7, 8)], "queue string, __row bigint, __queue bigint")
    for name in ("__row", "__queue"):
        topology = Topology(
            source=Source(destination="{queue}", path="x"), consumers=(Consumer("c", "a", selector=f"{name} > 1"),)
        )
        with pytest.raises(UnsupportedColumnError, match=name):
            dispatch(frame, topology)
    groups = ConsumerGroups([("a", "b", 8)], [ConsumerGroup("g", ["c"], {"a": "*"})], MessageColumns("queue", "__row"))
    with pytest.raises(UnsupportedColumnError, match="__row"):
        dispatch(frame, groups)
    topology = Topology(source=Source(destination="{queue}", path="x"), consumers=(Consumer("c", "a"),))
    assert dispatch(frame, topology, row="__row").toArrow().column("row").to_pylist() == [7]


def test_a_worker_runs_the_installed_package_by_reference() -> None:
    from pyspark import cloudpickle

    from pyengine.spark.functions import SelectorMask

    packed = cloudpickle.dumps(SelectorMask("price > 1", "activemq", ("price",), "raise", "arrow"))
    assert b"pyengine.spark.functions" in packed
    assert len(packed) < 300
    assert Path(__file__).name.encode() not in packed


ONE_QUEUE = Topology(
    source=Source(destination="{queue}", path="x", properties=()), consumers=(Consumer("c", ">", prefetch=1000),)
)


def told(answer: Any) -> list[tuple[Any, ...]]:
    """Lines of an answer, in any order: row, who got it or why not, what is wrong with it."""
    return sorted(((row.row, row.consumer or row.reason, row.blocked_by) for row in answer.collect()), key=str)


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_of_a_queue_with_one_number_are_rejected(spark: Any, partitions: int) -> None:
    rows = [("a", 1), ("a", 2), ("a", 2), ("b", 2), ("a", 3), ("b", 5), ("b", 5), ("b", 5), ("a", 9), (None, 1)]
    frame = spark.createDataFrame(rows, "queue string, offset int").repartition(4)
    problem = "offset = '{}': the number comes more than once among the rows of its queue"
    wanted = [
        (1, "c", None), (1, "rejected", "queue = '': the column that names the destination is empty"), (2, "c", None),
        *[(2, "rejected", problem.format(2))] * 2, (3, "c", None),
        *[(5, "rejected", problem.format(5))] * 3, (9, "c", None),
    ]  # fmt: skip
    assert told(dispatch(frame, ONE_QUEUE, row="offset", partitions=partitions)) == sorted(wanted, key=str)


def test_rows_with_one_number_meet_over_the_ends_of_batches() -> None:
    numbers = [1, 2, 2, 3, 4, 4, 4, 5, 6, 6]
    wanted = [1, 3, 5]
    for cuts in itertools.product([0, 1], repeat=len(numbers) - 1):
        bounds = [0, *(at + 1 for at, cut in enumerate(cuts) if cut), len(numbers)]
        batches = [
            pa.RecordBatch.from_pydict({"q": [7] * (stop - start), "n": numbers[start:stop]})
            for start, stop in itertools.pairwise(bounds)
        ]
        found = list(parted(batches, ["q", "n"]))
        assert [n for once, _ in found for n in once.column("n").to_pylist()] == wanted
        assert [n for _, repeated in found for n in repeated.column("n").to_pylist()] == [2, 2, 4, 4, 4, 6, 6]


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_several_columns_may_number_the_rows(spark: Any, partitions: int) -> None:
    """The offsets of Kafka's partitions; what waits is told with its numbers when its queue ends."""
    consumers = (Consumer("one", "q.0", prefetch=3, acknowledges=False), Consumer("rest", "q.>", selector="n > 50"))
    topology = Topology(source=Source(destination="q.{queue}", path="x"), consumers=consumers)
    rows = [(n % 5, n // 30, n % 30, n) for n in range(300)]
    rows += [(1, 2, 2**62, None), (1, 2, 2**62, None), (1, None, 5, 1)]
    frame = spark.createDataFrame(rows, "queue int, partition int, offset long, n int").repartition(3)
    found = dispatch(frame, topology, row=("partition", "offset"), partitions=partitions)
    assert found.schema["row"].dataType.simpleString() == "struct<partition:bigint,offset:bigint>"
    lines = found.collect()
    one = dispatch(frame.where("n < 300 AND partition IS NOT NULL"), topology, row=F.expr("partition * 30 + offset"))
    wanted = [((n.row // 30, n.row % 30), n.consumer, n.delivery, n.reason) for n in one.collect()]
    rejected = [line for line in lines if line.reason == "rejected"]
    got = [(tuple(line.row), line.consumer, line.delivery, line.reason) for line in lines if line.reason != "rejected"]
    assert sorted(got, key=str) == sorted(wanted, key=str)
    assert (
        sorted((line.row, line.blocked_by) for line in rejected if line.row[0] is not None)
        == [
            (
                (2, 2**62),
                f"partition, offset = '(2, {2**62})': the number comes more than once among the rows of its queue",
            )
        ]
        * 2
    )
    assert [line.blocked_by for line in rejected if line.row[0] is None] == [
        "the number of the row is missing or beyond long"
    ]
    groups = ConsumerGroups([("t", "b", 0)], [ConsumerGroup("g", ["c"], {"t": "*"})], MessageColumns("topic", "queue"))
    consumed = dispatch(
        frame.selectExpr("'t' AS topic", "queue", "partition", "offset").where("queue = 0"),
        groups,
        row=["partition", "offset"],
    )
    assert sorted(tuple(line.row) for line in consumed.collect()) == sorted((n // 30, n % 30) for n in range(0, 300, 5))
    for wrong in ([], ["offset", "offset"], ["offset", "no"], ["offset", 5]):
        with pytest.raises(PyengineError):
            dispatch(frame, topology, row=wrong)


@pytest.mark.parametrize("rows_a_call", [1, 7, 1000])
def test_several_numbers_stay_with_their_rows_however_late_the_line_comes(
    monkeypatch: pytest.MonkeyPatch, rows_a_call: int
) -> None:
    """Queues that hold messages to their end beside topics whose subscriptions have a window over several."""
    consumers = (
        Consumer("one", "q.>", prefetch=1, acknowledges=False),
        Consumer("all", "topic://t.>", prefetch=2, acknowledges=False),
    )
    names = ["q.a", "topic://t.b", "q.c", "topic://t.d", "q.e"]
    rows = pa.table({"queue": [name for name in names for _ in range(6)], "n": pa.array(range(30))})
    for every in (consumers, consumers[:1]):
        topology = Topology(source=Source(destination="{queue}", path="x"), consumers=every)
        table = rows if len(every) == 2 else rows.filter(pc.starts_with(rows.column("queue"), "q."))
        made, _ = to_messages(table, table.column("n").to_numpy(), topology.source)
        made = made.select(columns_read(topology, made.column_names))
        keys = pa.array([names.index(name) for name in made.column(DESTINATION).to_pylist()], pa.int64())
        numbers = made.column(ROW)
        parts = {
            "__row:0": pc.divide(numbers, 4),
            "__row:1": pc.subtract(numbers, pc.multiply(pc.divide(numbers, 4), 4)),
        }
        batch = made.append_column(QUEUE, keys).drop_columns([ROW])
        for name, part in parts.items():
            batch = batch.append_column(name, part)
        monkeypatch.setattr(Assignment, "most_rows", rows_a_call)
        work = Assignment(topology.to_text(), ("x", "y"), (QUEUE, "__row:0", "__row:1"))
        found = pa.Table.from_batches(work(batch.combine_chunks().to_batches(max_chunksize=rows_a_call))).to_pylist()
        plain = pa.Table.from_batches(
            dispatch_batches(topology, made.append_column(QUEUE, keys).to_batches())
        ).to_pylist()
        found = [line | {"row": line["row"]["x"] * 4 + line["row"]["y"]} for line in found]
        assert sorted(found, key=str) == sorted(plain, key=str)


def test_a_moment_is_milliseconds_in_every_call(spark: Any) -> None:
    """JMSTimestamp, JMSExpiration and properties, of timestamps with and without a zone, and of dates."""
    frame = spark.sql(
        "SELECT 'q' AS queue, timestamp'2024-02-29 12:00:00.25Z' AS JMSTimestamp, date'2024-02-29' AS day,"
        " timestamp_ntz'2024-02-29 12:00:00.25' AS at, timestamp'2200-01-01 00:00:00Z' AS JMSExpiration"
    )
    text = (
        "JMSTimestamp = 1709208000250 AND at = 1709208000250 AND day = 1709164800000 AND JMSExpiration = 7258118400000"
    )
    assert frame.where(ps.matches(text)).count() == 1
    assert frame.where(ps.matches(text, using="pandas")).count() == 1
    assert frame.transform(ps.where, text).count() == 1
    assert frame.transform(ps.match, {"x": text}).first().subscriptions == ["x"]
    plain = Source(destination="{queue}", path="x")
    mapped = Source(
        destination="{queue}",
        path="x",
        properties=("at", "day"),
        timestamp=TimeColumn("JMSTimestamp"),
        expiration=TimeColumn("JMSExpiration"),
    )
    for source in (plain, mapped):
        topology = Topology(source=source, consumers=(Consumer("c", "q", selector=text),))
        assert [line.consumer for line in dispatch(frame, topology).collect()] == ["c"]
    assert Selector(text).mask(frame.drop("queue").toPandas()).tolist() == [True]


def test_decimals_are_exact_numbers_and_intervals_milliseconds(spark: Any) -> None:
    topology = Topology(
        source=Source(destination="q", path="x"),
        consumers=(Consumer("a", "q", "price = 0.1 AND took = 1500"), Consumer("b", "q", "price = 9007199254740993")),
    )
    frame = spark.sql(
        "SELECT CAST(n AS long) AS n, CAST(price AS decimal(20, 2)) AS price, took FROM VALUES "
        "(0, '0.10', interval '1.5' second), (1, '9007199254740993', NULL), (2, '9007199254740992', NULL) "
        "AS t(n, price, took)"
    )
    found = dispatch(frame, topology, row="n").toArrow().sort_by("row").to_pylist()
    assert [(line["consumer"], line["reason"]) for line in found] == [("a", None), ("b", None), (None, "selector")]
