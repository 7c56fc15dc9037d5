"""Topics in batches: what the embedded broker hands out, and the same on any number of partitions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyengine import Message, activemq
from pyengine.activemq.broker.events import MessageDiscarded
from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.tables.messages import to_messages
from pyengine.clock import ManualClock
from pyengine.rocketmq import sql
from pyengine.rocketmq.tables.dispatch import ConsumerGroup, ConsumerGroups, MessageColumns, dispatch_messages
from pyengine.spark.transforms import dispatch
from pyengine.topology import Consumer, Source, TimeColumn, Topology
from pyengine.topology.policy import (
    ConstantPendingMessageLimitStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    Policy,
    UniquePropertyMessageEvictionStrategy,
)

TOPICS = ["topic://p.eu", "topic://p.us", "topic://p.\U0001f600"]
SCHEMA = pa.schema([("to", pa.string()), ("n", pa.int32()), ("key", pa.string()), ("p", pa.int32())])

consumers = st.lists(
    st.builds(
        Consumer,
        name=st.uuids().map(str),
        destination=st.sampled_from(["topic://p.>", "topic://p.eu", "topic://p.*", "topic://p.us", "p.>"]),
        selector=st.sampled_from(["", "n > 2", "key = 'k\U0001f534'", "n IS NULL"]),
        prefetch=st.sampled_from([None, 0, 1, 2, 3, -1]),
        acknowledges=st.booleans(),
    ),
    max_size=4,
)
policies = st.builds(
    Policy,
    destination=st.just("topic://p.>"),
    pending_message_limit_strategy=st.sampled_from(
        [None, ConstantPendingMessageLimitStrategy(0), ConstantPendingMessageLimitStrategy(2)]
    ),
    message_eviction_strategy=st.sampled_from(
        [OldestMessageWithLowestPriorityEvictionStrategy(), UniquePropertyMessageEvictionStrategy("key")]
    ),
    topic_prefetch=st.sampled_from([32_767, 4, 0, -1]),
    dispatch_policy=st.sampled_from(["simple", "round_robin", "priority"]),
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "to": st.sampled_from([*TOPICS, "p.queue"]),
            "n": st.none() | st.integers(0, 5),
            "key": st.none() | st.sampled_from(["k\U0001f534", "b"]),
            "p": st.integers(0, 9),
        }
    ),
    max_size=25,
)


def topology_of(consumers: list[Consumer], policy: Policy) -> Topology:
    return Topology(
        source=Source(destination="{to}", path="x", priority="p"), consumers=tuple(consumers), policies=(policy,)
    )


def answer(topology: Topology, rows: list[dict[str, Any]]) -> pa.Table:
    messages, _ = to_messages(pa.Table.from_pylist(rows, SCHEMA), range(len(rows)), topology.source)
    return dispatch_table(topology, messages)


def from_the_broker(topology: Topology, rows: list[dict[str, Any]]) -> tuple[list[tuple[str, int]], Counter[int]]:
    """(consumer, row) in the order handed out for topics, and how often each row was discarded."""
    broker = activemq.Broker(policies=topology.policies, clock=ManualClock())
    discarded: Counter[int] = Counter()
    broker.on(MessageDiscarded, lambda event: discarded.update([event.message.properties()["row"]]))
    given: list[tuple[str, int]] = []
    keeping: list[tuple[str, activemq.MessageConsumer]] = []
    connection = activemq.ConnectionFactory(broker=broker).create_connection()
    connection.start()
    sending = connection.create_session(activemq.AUTO_ACKNOWLEDGE)
    for each in topology.consumers:
        if not each.destination.startswith("topic://"):
            continue
        mode = activemq.AUTO_ACKNOWLEDGE if each.acknowledges else activemq.CLIENT_ACKNOWLEDGE
        session = connection.create_session(mode)
        options = f"?consumer.prefetchSize={each.prefetch}" if each.prefetch is not None else ""
        consumer = session.create_consumer(
            session.create_topic(each.destination.removeprefix("topic://") + options), each.selector or None
        )
        pulls = topology.topic_prefetch_under(topology.consumer_policy(each), each) == 0  # and nobody asks
        if each.acknowledges and not pulls:
            consumer.message_listener = lambda message, name=each.name: given.append(
                (name, message.properties()["row"])
            )
        else:
            keeping.append((each.name, consumer))
    producer = sending.create_producer(None)
    for number, row in enumerate(rows):
        if row["to"].startswith("topic://"):
            values = {name: row[name] for name in ("n", "key") if row[name] is not None}
            producer.send(Message({**values, "row": number}), sending.create_topic(row["to"][8:]), priority=row["p"])
    handed = {view.consumer_id: view.dispatched_queue_size for view in broker.subscriptions()}
    for name, consumer in keeping:  # reading makes room for more, which a consumer that keeps all would not get
        for _ in range(handed[consumer.consumer_id]):
            message = consumer.receive_no_wait()
            assert message is not None
            given.append((name, message.properties()["row"]))
    connection.close()
    broker.close()
    return given, discarded


@settings(max_examples=25)
@example(  # a property that no selector reads decides what is evicted
    consumers=[Consumer("c", "topic://p.>", acknowledges=False)],
    policy=Policy(
        "topic://p.>",
        pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(2),
        message_eviction_strategy=UniquePropertyMessageEvictionStrategy("key"),
        topic_prefetch=1,
    ),
    rows=[{"to": TOPICS[0], "n": None, "key": "k" if number == 3 else None, "p": 4} for number in range(4)],
)
@given(consumers=consumers, policy=policies, rows=rows)
def test_a_batch_gives_what_the_broker_gives(
    consumers: list[Consumer], policy: Policy, rows: list[dict[str, Any]]
) -> None:
    found = answer(topology_of(consumers, policy), rows).to_pylist()
    given, discarded = from_the_broker(topology_of(consumers, policy), rows)
    copies = Counter((line["consumer"], line["row"]) for line in found if line["consumer"] and line["row"] is not None)
    to_topics = {number for number, row in enumerate(rows) if row["to"].startswith("topic://")}
    assert Counter({copy: count for copy, count in copies.items() if copy[1] in to_topics}) == Counter(given)
    assert {line["row"] for line in found} == set(range(len(rows)))
    if policy.pending_message_limit_strategy != ConstantPendingMessageLimitStrategy(0):  # drops without a word
        assert Counter(line["row"] for line in found if line["reason"] == "discarded") == discarded


def test_every_line_says_why() -> None:
    source = Source(destination="{to}", path="x", connection="by", id="id", expiration=TimeColumn("until"))
    topology = Topology(
        source=source,
        consumers=(
            Consumer("fast", "topic://p.eu", selector="n > 1"),
            Consumer("slow", "topic://p.>", prefetch=1, acknowledges=False, connection="c1", no_local=True),
            Consumer("own", "topic://q", connection="c1", no_local=True),
        ),
        policies=(Policy("topic://p.>"),),
    )
    table = pa.table(
        {
            "to": ["topic://p.eu", "topic://p.us", "topic://p.eu", "topic://q", "topic://r", "topic://p.eu"],
            "n": pa.array([2, 2, 1, 2, 2, 2], pa.int32()),
            "by": ["c2", "c2", "c1", "c1", "c1", "c2"],
            "id": ["P:1", "P:2", "P:3", "P:4", "P:5", "P:1"],
            "until": [0, 0, 0, 0, 0, 0],
        }
    )
    messages, _ = to_messages(table, range(6), source)
    found = dispatch_table(topology, messages).to_pylist()
    assert sorted(
        (line["row"], line["consumer"] or "", line["reason"] or "", line["blocked_by"] or "") for line in found
    ) == [
        (0, "fast", "", ""),
        (0, "slow", "", ""),
        (1, "", "no_credit", "slow"),
        (2, "", "selector", ""),
        (3, "", "no_local", ""),
        (4, "", "no_consumer", ""),
        (5, "", "duplicate", ""),
    ]
    assert [line["delivery"] for line in found if line["consumer"]] == [0, 1]


@pytest.mark.parametrize("partitions", [2, 7])
def test_any_number_of_partitions_gives_the_same(spark: Any, partitions: int) -> None:
    rows = [
        {"to": TOPICS[n % 3] if n % 4 else "p.queue", "n": n % 7 or None, "key": "b", "p": n % 10} for n in range(100)
    ]
    consumers = [Consumer("all", "topic://p.>"), Consumer("some", "topic://p.eu", "n > 2"), Consumer("queue", "p.>")]
    if partitions % 2:  # a window over several topics
        consumers.append(Consumer("slow", "topic://p.>", prefetch=5, acknowledges=False))
    topology = topology_of(consumers, Policy("topic://p.>", dispatch_policy="round_robin"))
    expected = answer(topology, rows)
    numbered = pa.Table.from_pylist(rows, SCHEMA).append_column("number", pa.array(range(100), pa.int64()))
    found = spark.createDataFrame(numbered).transform(dispatch, topology, row="number", partitions=partitions)
    order = [("row", "ascending"), ("consumer", "ascending"), ("blocked_by", "ascending")]
    assert found.toArrow().cast(expected.schema).sort_by(order).drop_columns(["bytes"]) == expected.sort_by(
        order
    ).drop_columns(["bytes"])


@pytest.mark.parametrize("destination", ["q", "topic://t"])
def test_a_negative_expiration_is_none(destination: str) -> None:
    source = Source(destination=destination, path="x", timestamp=TimeColumn("at"), expiration=TimeColumn("until"))
    rows = pa.table({"at": [10, 10, 10, None], "until": [-5, 5, 0, -(2**63)]})
    consumers = (Consumer("c", destination, selector="JMSExpiration < 0"), Consumer("d", destination, priority=-1))
    messages, _ = to_messages(rows, range(4), source)
    found = dispatch_table(Topology(source, consumers), messages).to_pylist()
    assert {line["row"] for line in found if line["reason"] == "expired"} == {1}
    assert {line["row"] for line in found if line["consumer"] == "c"} == {0, 3}


def test_the_property_that_decides_what_is_evicted_may_have_a_dot(spark: Any) -> None:
    policy = Policy(
        "topic://p",
        topic_prefetch=-1,  # takes nothing, so that all wait
        pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(1),
        message_eviction_strategy=UniquePropertyMessageEvictionStrategy("order.key"),
    )
    source = Source("topic://p", timestamp=TimeColumn("at"))
    topology = Topology(source, (Consumer("c", "topic://p"),), policies=(policy,))
    rows = pa.table({"order.key": ["a", "b", "a"], "at": [1, 2, 3], "number": [0, 1, 2]})
    messages, _ = to_messages(rows, range(3), topology.source)
    found = spark.createDataFrame(rows).transform(dispatch, topology, row="number").toArrow()
    expected = dispatch_table(topology, messages)
    assert found.cast(expected.schema).drop_columns(["bytes"]).sort_by("row") == expected.drop_columns(
        ["bytes"]
    ).sort_by("row")


def test_a_topology_with_topics_is_read_from_toml() -> None:
    topology = Topology.from_text(
        '[source]\npath = "x.parquet"\ndestination = "topic://p.{to}"\n'
        '[[consumer]]\nname = "c"\ndestination = "topic://p.>"\n'
        '[[policy]]\ndestination = "topic://p.>"\ntopic_prefetch = 7\n'
    )
    assert topology.consumers_of("topic://p.eu") == topology.consumers
    assert topology.consumers_of("p.eu") == ()
    assert topology.topic_prefetch_under(topology.consumer_policy(topology.consumers[0]), topology.consumers[0]) == 7


def test_consumer_groups_of_rocketmq_on_spark(spark: Any) -> None:
    queues = [("t", "broker-a", number) for number in range(5)]
    groups = ConsumerGroups(
        queues,
        [ConsumerGroup("g", ("c1", "c2"), {"t": "A"}), ConsumerGroup("h", ("d",), {"t": sql("n > 3")})],
        MessageColumns(tags="tags"),
    )
    table = pa.table(
        {
            "topic": ["t", "t", "x"] * 30,
            "queue_id": pa.array([n % 7 for n in range(90)], pa.int32()),
            "tags": ["A", None, "B", "\U0001f600"] * 22 + ["A", "A"],
            "n": pa.array([n % 6 if n % 5 else None for n in range(90)], pa.int32()),
            "number": pa.array(range(90), pa.int64()),
        }
    )
    expected = dispatch_messages(groups, table, range(90))
    found = spark.createDataFrame(table).transform(dispatch, groups, row="number", partitions=7).toArrow()
    order = [("row", "ascending"), ("group", "ascending")]
    assert found.cast(expected.schema).sort_by(order) == expected
    assert set(expected.column("reason").to_pylist()) == {None, "filtered", "unknown_queue"}
