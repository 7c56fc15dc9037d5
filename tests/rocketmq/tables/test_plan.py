"""Plans over many topics: against each client's own answer, their skew, and what moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine import rocketmq
from pyengine.errors import AllocationError, ConfigurationError, InvalidSourceError
from pyengine.rocketmq import MessageQueue, Move, Skew
from pyengine.rocketmq.broker.topic_list import read_queues

QUEUES = [MessageQueue(topic, "broker-a", i) for topic in ("B", "A") for i in range(8)]
IDS = ["c3", "c1", "c2"]
STRATEGIES = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]


@given(
    st.sampled_from(STRATEGIES),
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from("xy"), st.integers(0, 9)), min_size=1, unique=True),
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6, unique=True),
)
def test_the_plan_is_what_each_client_works_out_for_each_topic(
    strategy: str, queues: list[tuple[str, str, int]], ids: list[str]
) -> None:
    listed = [MessageQueue(*queue) for queue in queues]
    plan = rocketmq.allocate_topics(strategy, listed, ids)
    for client_id in ids:
        expected = []
        for topic in sorted({queue.topic for queue in listed}):
            mine = rocketmq.sort_queues([queue for queue in listed if queue.topic == topic])
            expected += rocketmq.allocate(strategy, "G", client_id, mine, rocketmq.sort_client_ids(ids))
        assert plan.of(client_id) == expected
    assert sum(load.queues for load in plan.loads()) == len(queues)


def test_averages_over_topics_favour_the_first_clients() -> None:
    plan = rocketmq.allocate_topics("AVG", QUEUES, IDS)
    assert [tuple(load) for load in plan.loads()] == [("c1", 6, 3), ("c2", 6, 3), ("c3", 4, 2)]
    assert plan.skew() == Skew(4, 6, 16 / 3, 6 / (16 / 3), 0, 0)
    assert plan.owner(MessageQueue("A", "broker-a", 7)) == "c3"
    assert plan.of("c9") == []


def test_who_leaves_and_what_moves() -> None:
    plan = rocketmq.allocate_topics("CONSISTENT_HASH", QUEUES, IDS)
    after = plan.without_clients(["c3"])
    moves = plan.moves(after)
    assert {move.before for move in moves} == {"c3"}
    assert len(moves) == len(plan.of("c3"))
    assert after.moves(plan) == [Move(queue, new, old) for queue, old, new in moves]
    assert plan.moves(plan.with_clients([])) == []
    circle = rocketmq.compare_strategies(STRATEGIES, QUEUES, IDS, ["c1", "c2"])
    assert [(name, before.most, after.most) for name, before, after, _ in circle][:2] == [
        ("AVG", 6, 8),
        ("AVG_BY_CIRCLE", 6, 8),
    ]
    moved = {name: count for name, _, _, count in circle}
    assert moved["CONSISTENT_HASH"] == len(moves) < moved["AVG_BY_CIRCLE"]


def test_what_cannot_be_planned_is_refused() -> None:
    plan = rocketmq.allocate_topics("AVG", QUEUES, IDS)
    with pytest.raises(AllocationError, match="mqAll is null or mqAll empty"):
        rocketmq.allocate_topics("AVG", [], IDS)
    with pytest.raises(AllocationError, match="cidAll is null or cidAll empty"):
        rocketmq.allocate_topics("AVG", QUEUES, [])
    with pytest.raises(AllocationError, match="c9 is not in the plan"):
        plan.without_clients(["c9"])
    with pytest.raises(AllocationError, match="different queues"):
        plan.moves(rocketmq.allocate_topics("AVG", QUEUES[:3], IDS))


def test_topics_from_files(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    expected = [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)]
    for document in ({"T": 2}, {"T": {"a": 2}}, [["T", "a", 0], ["T", "a", 1]]):
        path.write_text(json.dumps(document))
        assert read_queues(path, ["a"]) == expected
    with rocketmq.Broker(tmp_path, names=["a"]) as broker:
        broker.create_topic("T", 2)
    assert read_queues(tmp_path / "a" / "config" / "topics.json", ["a"]) == expected


def test_what_a_real_broker_keeps_for_itself_is_not_planned(tmp_path: Path) -> None:
    # The first twelve as a broker of release 5.3.3 writes them when it has started for the first time.
    rows = """
        SELF_TEST_TOPIC 1 6, TBW102 8 7, BenchmarkTest 1024 6, DefaultCluster 16 7, DefaultCluster_REPLY_TOPIC 1 6,
        broker-a 1 7, OFFSET_MOVED_EVENT 1 6, SCHEDULE_TOPIC_XXXX 18 6, RMQ_SYS_TRANS_HALF_TOPIC 1 6,
        RMQ_SYS_TRANS_OP_HALF_TOPIC 1 6, rmq_sys_REVIVE_LOG_DefaultCluster 8 6,
        rmq_sys_SYNC_BROKER_MEMBER_broker-a 1 1, T 2 6, W 4 2, %RETRY%G 1 6, %DLQ%G 1 6, my_REPLY_TOPIC 1 4
    """
    table = {
        topic: {"topicName": topic, "readQueueNums": int(queues), "perm": int(perm)}
        for topic, queues, perm in map(str.split, rows.split(","))
    }
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topicConfigTable": table}))
    found = read_queues(path, ["a"])
    assert found == [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1), MessageQueue("my_REPLY_TOPIC", "a", 0)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "lists no queue"),
        ("3", "is not a list of topics"),
        ('{"T": "x"}', "T: 'x' is not a number of queues"),
        ('[["T", 1, 0]]', "item 0 is"),
        ('{"topicConfigTable": {"T": {"readQueueNums": []}}}', "readQueueNums = []"),
        ('{"topicConfigTable": {"T": 4}}', "topicConfigTable.T is 4, not an object"),
        ('{"T": ', "ends within a value"),
    ],
)
def test_files_that_list_no_topics(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "topics.json"
    path.write_text(text)
    with pytest.raises(InvalidSourceError) as raised:
        read_queues(path)
    assert words in str(raised.value)
    with pytest.raises(InvalidSourceError, match="cannot be read"):
        read_queues(tmp_path / "nowhere.json")


PLAN: Any = rocketmq.allocate_topics("AVG", QUEUES, ["c1", "c2"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rocketmq.allocate("AVG", "g", "c1", QUEUES, "c1"), "client_ids = 'c1' is not a list of client ids"),
        (lambda: rocketmq.allocate("AVG", "g", "c1", "ab", ["c1"]), "queues = 'ab' is not a list of message queues"),
        (lambda: rocketmq.allocate("AVG", "g", "c1", 5, ["c1"]), "queues = 5 is not a list of message queues"),
        (lambda: rocketmq.allocate_all("AVG", QUEUES, "c1"), "client_ids = 'c1' is not a list of client ids"),
        (lambda: rocketmq.allocate_all("AVG", QUEUES, iter(["c1"])), "client_ids = <list_iterator"),
        (lambda: rocketmq.allocate_topics("AVG", QUEUES, "c1"), "client_ids = 'c1' is not a list of client ids"),
        (lambda: rocketmq.allocate_topics("AVG", 5, ["c1"]), "queues = 5 is not a list of message queues"),
        (lambda: rocketmq.allocate_topics("AVG", QUEUES, [5]), "client_ids has 5, which is not a client id"),
        (
            lambda: rocketmq.compare_strategies("AVG", QUEUES, ["a"], ["b"]),
            "strategies = 'AVG' is not a list of strategies",
        ),
        (lambda: rocketmq.sort_client_ids(b"c1"), "client_ids = b'c1' is not a list of client ids"),
        (lambda: rocketmq.sort_queues("ab"), "queues = 'ab' is not a list of message queues"),
        (lambda: PLAN.with_clients("c1"), "client_ids = 'c1' is not a list of client ids"),
        (lambda: PLAN.with_clients(5), "client_ids = 5 is not a list of client ids"),
        (lambda: PLAN.without_clients(None), "client_ids = None is not a list of client ids"),
        (lambda: PLAN.owner(5), "5 is not a queue of the plan"),
        (lambda: PLAN.moves(None), "after = None is not a plan"),
    ],
)
def test_what_is_no_list_is_no_group(call: Callable[[], object], words: str) -> None:
    with pytest.raises(AllocationError) as refused:
        call()
    assert words in str(refused.value)


def test_an_expression_is_a_text() -> None:
    for make in (rocketmq.sql, rocketmq.tag, lambda wrong: rocketmq.build_subscription("t", wrong)):
        with pytest.raises(ConfigurationError, match="expression=5: a string is needed"):
            make(5)  # type: ignore[arg-type, no-untyped-call]
    with pytest.raises(ConfigurationError, match="expression_type=1: a string is needed"):
        rocketmq.MessageSelector("a", 1)  # type: ignore[arg-type]


QUEUE_NAMES = st.sampled_from(["a", "", "b", "A", "topic-1", "topic-10", "\ue000", "\U0001f600", "\ud83d", "é"])
QUEUE_IDS = st.integers(-3, 9) | st.sampled_from([2**31, -(2**63), 2**63 - 1, 2**63, 2**80])


@given(st.lists(st.tuples(QUEUE_NAMES, QUEUE_NAMES, QUEUE_IDS), max_size=30), st.booleans())
def test_queues_are_sorted_as_java_compares_their_names(drawn: list[tuple[str, str, int]], sort: bool) -> None:
    """Names beyond U+D7FF by UTF-16, numbers of any size, equal queues in the order in which they came."""
    queues = [MessageQueue(*each) for each in drawn]
    expected = sorted(queues, key=lambda each: (utf16(each.topic), utf16(each.broker_name), each.queue_id))
    found = rocketmq.sort_queues(expected if sort else queues)
    assert found == expected
    if queues:
        plan = rocketmq.allocate_topics("AVG", drawn, ["c1", "c2"])
        assert plan.queues == expected
        assert {type(each) for each in plan.queues} == {MessageQueue}


def utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
