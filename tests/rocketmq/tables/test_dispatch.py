"""Consumer groups over a table of messages: each line is what the rules say of that row alone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine import MissingColumnError, Selector
from pyengine.errors import AllocationError, MQClientError, SelectorEvaluationError, UnsupportedColumnError
from pyengine.rocketmq import MessageModel, MessageQueue, allocate, sort_client_ids, sort_queues, sql
from pyengine.rocketmq.tables.dispatch import ConsumerGroup, ConsumerGroups, MessageColumns, dispatch_messages

QUEUES = [MessageQueue(topic, broker, number) for topic in ("t", "u") for broker in ("b-a", "b-b") for number in (0, 1)]
QUEUES.append(MessageQueue("%RETRY%g0", "b-a", 0))
COLUMNS = MessageColumns(broker_name="broker", tags="tags", message_id="id")
CLIENTS = ["c1", "c\U0001f600", "c2", "\uff5ec"]

groups = st.builds(
    lambda index, clients, subscriptions, strategy, model: ConsumerGroup(
        f"g{index}", tuple(clients), subscriptions, strategy, model
    ),
    st.just(0),
    st.lists(st.sampled_from(CLIENTS), unique=True, max_size=4),
    st.dictionaries(
        st.sampled_from(["t", "u", "v"]),
        st.sampled_from(["*", "A || B", "A", "Aa", " ", None, sql("n > 2"), sql("TAGS = 'A' OR n IS NULL")]),
    ),
    st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]),
    st.sampled_from([MessageModel.CLUSTERING, MessageModel.BROADCASTING]),
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.none() | st.sampled_from(["t", "u", "v", "%RETRY%g0"]),
            "broker": st.none() | st.sampled_from(["b-a", "b-b"]),
            "queue_id": st.none() | st.integers(0, 2),
            "tags": st.none() | st.sampled_from(["A", "B", "BB", "", "\U0001f600"]),
            "n": st.none() | st.sampled_from(["1", "3", "x"]),
            "id": st.none() | st.just("m"),
        }
    ),
    max_size=20,
)
SCHEMA = pa.schema(
    [(name, pa.int32() if name == "queue_id" else pa.string()) for name in
     ("topic", "broker", "queue_id", "tags", "n", "id")]
)  # fmt: skip


def expected(every: list[ConsumerGroup], row: dict[str, Any]) -> list[tuple[str | None, str | None, str | None]]:
    """The slow way for one row: ask each client for its queues, and the selector for this message."""
    queue = MessageQueue(row["topic"], row["broker"], row["queue_id"])
    if queue not in QUEUES:
        return [(None, None, "unknown_queue")]
    queues = sort_queues([each for each in QUEUES if each.topic == queue.topic])
    lines: list[tuple[str | None, str | None, str | None]] = []
    for group in every:
        data = group.data.get(queue.topic)
        if data is None:
            continue
        if data.expression_type == "SQL92":
            known = {"n": row["n"], "TAGS": row["tags"]}
            try:
                taken = Selector(data.sub_string, "rocketmq").matches({k: v for k, v in known.items() if v is not None})
            except SelectorEvaluationError:
                lines.append((group.name, None, "evaluation_error"))
                continue
        elif data.sub_string == "*":
            taken = True
        else:
            taken = row["tags"] in data.tags_set
            if not data.tags_set:
                taken = False
        ids = sort_client_ids(group.client_ids)
        if not taken:
            lines.append((group.name, None, "filtered"))
        elif group.message_model is MessageModel.BROADCASTING:
            lines += [(group.name, client, None) for client in ids] or [(group.name, None, "no_owner")]
        else:
            owner = [client for client in ids if queue in allocate(group.strategy, group.name, client, queues, ids)]
            lines.append((group.name, owner[0], None) if owner else (group.name, None, "no_owner"))
    return lines or [(None, None, "no_group")]


@settings(max_examples=60, deadline=None)
@given(first=groups, second=groups, rows=rows)
def test_every_row_gets_what_the_rules_say(
    first: ConsumerGroup, second: ConsumerGroup, rows: list[dict[str, Any]]
) -> None:
    other = ConsumerGroup("g1", second.client_ids, second.subscriptions, second.strategy, second.message_model)
    cluster = pickle.loads(pickle.dumps(ConsumerGroups(QUEUES, [first, other], COLUMNS)))
    table = pa.Table.from_pylist(rows, SCHEMA)
    found = dispatch_messages(cluster, table, np.arange(len(rows)) + 100).to_pylist()
    by_row: dict[int, list[tuple[str | None, str | None, str | None]]] = {number: [] for number in range(len(rows))}
    for line in found:
        by_row[line["row"] - 100].append((line["group"], line["consumer"], line["reason"]))
    assert by_row == {number: expected([first, other], row) for number, row in enumerate(rows)}


def test_what_cannot_be_right_is_told_at_once() -> None:
    with pytest.raises(AllocationError, match="two groups"):
        ConsumerGroups(QUEUES, [ConsumerGroup("g", ("c",), {}), ConsumerGroup("g", ("d",), {})])
    with pytest.raises(MQClientError):
        ConsumerGroup("g", ("c",), {"t": "||"})
    cluster = ConsumerGroups(QUEUES, [ConsumerGroup("g", ("c",), {"t": sql("colour = 'x'")})])
    with pytest.raises(MissingColumnError, match="colour"):
        cluster.columns_read(["topic", "queue_id"])


def test_a_topic_that_a_dictionary_holds_twice_is_served_once() -> None:
    cluster = ConsumerGroups([("t", "b", 0)], [ConsumerGroup("g", ("c",), {"t": "*"})], MessageColumns(broker="b"))
    topics = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["t", "t"]))
    table = pa.table({"topic": topics, "queue_id": [0, 0, 0]})
    found = dispatch_messages(cluster, table, pa.array([7, None, 9], pa.int64())).to_pylist()
    assert [(line["row"], line["consumer"], line["reason"]) for line in found] == [
        (7, "c", None),
        (None, "c", None),
        (9, None, "unknown_queue"),
    ]


def test_a_column_that_names_no_queue_is_told() -> None:
    cluster = ConsumerGroups([("t", "b", 0)], [ConsumerGroup("g", ("c",), {"t": "*"})], MessageColumns(broker="b"))
    for column, wrong in (("queue_id", [2**40]), ("topic", [b"\xff"])):
        with pytest.raises(UnsupportedColumnError, match=column):
            dispatch_messages(cluster, pa.table({"topic": ["t"], "queue_id": [0]} | {column: wrong}), [0])
