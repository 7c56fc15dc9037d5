"""Allocation: recorded answers, whole plans against single answers, and the properties that users rely on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine import rocketmq
from pyengine._engine.rocketmq.client import allocation as core
from pyengine.errors import ConfigurationError
from tests.conformance.__main__ import replay_file

DATA = Path(__file__).parents[2] / "conformance" / "data" / "rocketmq"


class _Rooms:
    """Rooms by the first letter."""

    def broker_deploy_in(self, queue: rocketmq.MessageQueue) -> str:
        return queue.broker_name[:1]

    def consumer_deploy_in(self, client_id: str) -> str:
        return client_id[:1]


STRATEGIES = [
    rocketmq.AllocateMessageQueueAveragely(),
    rocketmq.AllocateMessageQueueAveragelyByCircle(),
    rocketmq.AllocateMessageQueueByMachineRoom(frozenset("ab")),
    rocketmq.AllocateMessageQueueConsistentHash(),
    rocketmq.AllocateMessageQueueConsistentHash(3, lambda text: len(text) * 7919),
    rocketmq.AllocateMachineRoomNearby(rocketmq.AllocateMessageQueueAveragely(), _Rooms()),
    rocketmq.AllocateMachineRoomNearby(rocketmq.AllocateMessageQueueConsistentHash(), _Rooms()),
]
QUEUES = st.lists(
    st.builds(
        rocketmq.MessageQueue, st.just("T"), st.sampled_from(["a@1", "b@1", "c@1", "a", "b@"]), st.integers(0, 9)
    ),
    min_size=1,
    max_size=20,
)
CLIENTS = st.lists(st.sampled_from(["a-1", "a-2", "b-1", "c-1", "d-1"]), min_size=1, max_size=6)


def test_the_real_classes_agree() -> None:
    counts = replay_file("rocketmq/allocate", DATA / "allocate.jsonl", show=5)
    assert counts["agree"] == sum(counts.values()) == 647


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
@given(queues=QUEUES, clients=CLIENTS)
def test_the_whole_plan_is_what_each_client_is_told(
    strategy: rocketmq.AllocateMessageQueueAveragely, queues: list[rocketmq.MessageQueue], clients: list[str]
) -> None:
    owners = rocketmq.allocate_all(strategy, queues, clients)
    for position, client in enumerate(clients):
        mine = sorted(queues[i] for i in np.flatnonzero(owners == position))
        told = sorted(rocketmq.allocate(strategy, "g", client, queues, clients))
        assert mine == (told if clients.index(client) == position else [])


@pytest.mark.parametrize(
    ("name", "shares"),
    [("AVG", [[0, 0], [1]]), ("AVG_BY_CIRCLE", [[0, 1], [0]]), ("CONSISTENT_HASH", [[1], [0, 0]])],
)
def test_a_queue_that_is_listed_twice_counts_as_two(name: str, shares: list[list[int]]) -> None:
    """As the real classes do, which go by the places in the list, or by each one's hash."""
    queues = [rocketmq.MessageQueue("T", "b", number) for number in (0, 0, 1)]
    told = [rocketmq.allocate(name, "g", client, queues, ["c1", "c2"]) for client in ("c1", "c2")]
    assert [[queue.queue_id for queue in share] for share in told] == shares


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE"])
@given(queues=st.integers(1, 200), clients=st.integers(1, 50))
def test_averages_give_every_queue_once_and_loads_differ_by_one(name: str, queues: int, clients: int) -> None:
    all_queues = [rocketmq.MessageQueue("T", "b", i) for i in range(queues)]
    owners = rocketmq.allocate_all(name, all_queues, [f"c{i:02}" for i in range(clients)])
    loads = np.bincount(owners, minlength=clients)
    assert owners.min() >= 0
    assert loads.max() - loads.min() <= 1


@given(st.lists(st.text(max_size=150), max_size=40))
def test_hashes_are_the_heads_of_md5(texts: list[str]) -> None:
    heads = [int.from_bytes(hashlib.md5(text.encode("utf-8", "replace")).digest()[:4], "big") for text in texts]
    assert core.hash_texts(texts).tolist() == heads


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=20), st.integers(-(2**70), 2**70)), max_size=50))
def test_queues_are_hashed_as_their_texts(queues: list[tuple[str, str, int]]) -> None:
    texts = [str(rocketmq.MessageQueue(*queue)) for queue in queues]
    assert core.hash_queues(queues).tolist() == core.hash_texts(texts).tolist()
    assert core.hash_queues([list(queue) for queue in queues]).tolist() == core.hash_texts(texts).tolist()  # type: ignore[misc]


def test_a_queue_to_hash_is_a_topic_a_broker_and_a_number() -> None:
    for wrong in ((1, "b", 0), ("t", None, 0), ("t", "b")):
        with pytest.raises(TypeError):
            core.hash_queues([wrong])  # type: ignore[list-item]


# The last one: nodes that fall together, all around the ring.
@given(CLIENTS, st.integers(0, 20), st.sampled_from([(50, 1), (2**25, 1), (2**32, 1), (50, 2**26)]))
def test_a_ring_finds_the_next_node(clients: list[str], virtual_nodes: int, places: tuple[int, int]) -> None:
    count, apart = places
    hashes = core.node_hashes(clients, virtual_nodes, lambda text: int(core.hash_texts([text])[0]) % count * apart)
    ring = core.HashRing(clients, virtual_nodes, hashes)
    ring._check()
    nodes = {}
    for i, value in enumerate(hashes):
        nodes[value] = clients.index(clients[i // virtual_nodes])
    for asked in [*range(60), *hashes, 2**31, 2**32 - 1]:
        after = [value for value in sorted(nodes) if value >= asked] or sorted(nodes)
        assert ring.owners([asked]).tolist() == [nodes[after[0]] if after else -1]


def test_a_client_that_joins_takes_only_what_the_ring_gives_it() -> None:
    queues = [rocketmq.MessageQueue("T", f"b{i % 4}", i) for i in range(256)]
    before = rocketmq.allocate_all("CONSISTENT_HASH", queues, ["c1", "c2", "c3"])
    after = rocketmq.allocate_all("CONSISTENT_HASH", queues, ["c1", "c2", "c3", "c4"])
    moved = core.plan_difference(before, after)
    assert len(moved)
    assert set(after[moved].tolist()) == {3}


def test_java_orders_strings_by_utf16() -> None:
    assert rocketmq.sort_client_ids(["\ue000", "\U0001f600", "a", "B"]) == ["B", "a", "\U0001f600", "\ue000"]


@pytest.mark.parametrize(
    ("client", "queues", "clients", "text"),
    [
        ("", [("T", "b", 0)], ["c"], "currentCID is empty"),
        ("c", [], ["c"], "mqAll is null or mqAll empty"),
        ("c", [("T", "b", 0)], [], "cidAll is null or cidAll empty"),
    ],
)
def test_empty_input_is_refused_with_rocketmqs_text(client: str, queues: list, clients: list, text: str) -> None:
    with pytest.raises(rocketmq.AllocationError, match=text):
        rocketmq.allocate("AVG", "g", client, queues, clients)


def test_an_unknown_strategy_is_refused_with_a_suggestion() -> None:
    with pytest.raises(rocketmq.AllocationError, match="AVG_BY_CIRCLE"):
        rocketmq.allocate("AVG_BY_CIRCEL", "g", "c", [rocketmq.MessageQueue("T", "b", 0)], ["c"])


@pytest.mark.parametrize(
    ("strategy", "queues", "clients", "words"),
    [
        (None, [("T", "a", 0)], ["c"], "strategy = None is not an allocation strategy; give a name, as 'AVG'"),
        (rocketmq.AllocateMessageQueueAveragely, [("T", "a", 0)], ["c"], "is not an allocation strategy"),
        ("AVG", 5, ["c"], "queues = 5 is not a list of message queues"),
        ("CONSISTENT_HASH", ["T"], ["c"], "queues has 'T', which is not a message queue"),
        ("CONSISTENT_HASH", [("T", 1, 0)], ["c"], "queues has ('T', 1, 0), which is not a message queue"),
        ("AVG", [("T", "a", 0)], 5, "client_ids = 5 is not a list of client ids"),
        ("CONSISTENT_HASH", [("T", "a", 0)], ["c", 1], "client_ids has 1, which is not a client id"),
    ],
)
def test_what_is_no_strategy_no_queue_and_no_client_is_named(
    strategy: Any, queues: Any, clients: Any, words: str
) -> None:
    for ask in (
        lambda: rocketmq.allocate(strategy, "G", "c", queues, clients),
        lambda: rocketmq.allocate_all(strategy, queues, clients),
        lambda: rocketmq.allocate_topics(strategy, queues, clients),
    ):
        with pytest.raises(rocketmq.AllocationError) as refused:
            ask()
        assert words in str(refused.value)


class _Own(rocketmq.AllocateMessageQueueAveragely):
    """A user's strategy, which looks at nothing before it works with it."""

    def allocate(
        self, group: str | None, client_id: str | None, queues: Any, client_ids: Any
    ) -> list[rocketmq.MessageQueue]:
        return [queue for queue in queues if queue.queue_id % len(client_ids) == client_ids.index(client_id)]


def test_what_a_users_strategy_could_not_work_with_is_named_or_its_own_error_raised() -> None:
    queue = rocketmq.MessageQueue("T", "b", 0)
    assert rocketmq.allocate(_Own(), "G", "c1", [queue], ["c1"]) == [queue]
    for queues, words in ((5, "queues = 5 is not a list"), ([queue, 7], "queues has 7, which is not a message queue")):
        with pytest.raises(rocketmq.AllocationError, match=words):
            rocketmq.allocate(_Own(), "G", "c1", queues, ["c1"])  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="queue_id"):
        rocketmq.allocate(_Own(), "G", "c1", [("T", "b", 0)], ["c1"])  # type: ignore[list-item]


def test_the_configured_queues_are_the_first_clients_in_a_plan() -> None:
    first, second = (rocketmq.MessageQueue("T", "b", number) for number in range(2))
    strategy = rocketmq.AllocateMessageQueueByConfig((second,))
    assert rocketmq.allocate_all(strategy, [first, second], ["c1", "c2"]).tolist() == [-1, 0]
    assert rocketmq.allocate_all("CONFIG", [first, second], ["c1", "c2"]).tolist() == [-1, -1]


@pytest.mark.parametrize("count", [-1, 1.5, None, "10", True, 2**31])
def test_virtual_nodes_are_counted(count: Any) -> None:
    with pytest.raises(rocketmq.AllocationError, match=f"^illegal virtualNodeCnt :{count}$"):
        rocketmq.AllocateMessageQueueConsistentHash(count)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: rocketmq.sort_queues([1]), "queues has 1, which is not a message queue"),
        (
            lambda: rocketmq.sort_queues([("T", "a", 0), ("T", 5, 0)]),
            r"queues has \('T', 5, 0\), which is not a message",
        ),
        (lambda: rocketmq.AllocateMessageQueueByConfig(5), "message_queues = 5 is not a list of message queues"),
        (
            lambda: rocketmq.AllocateMessageQueueByConfig([("T", 0)]),
            "message_queues has .*, which is not a message queue",
        ),
        (
            lambda: rocketmq.AllocateMessageQueueByMachineRoom("hz"),
            "consumer_idcs = 'hz' is not a list of machine rooms",
        ),
        (lambda: rocketmq.AllocateMessageQueueByMachineRoom({1}), "consumer_idcs has 1, which is not a machine room"),
        (lambda: rocketmq.AllocateMachineRoomNearby("AVG", _Rooms()), "inner = 'AVG' is a strategy's name"),
        (lambda: rocketmq.AllocateMachineRoomNearby(5, _Rooms()), "strategy = 5 is not an allocation strategy"),
        (
            lambda: rocketmq.AllocateMachineRoomNearby(rocketmq.AllocateMessageQueueAveragely(), 5),
            "machine_room_resolver = 5 has no method broker_de",
        ),
        (lambda: rocketmq.allocate("AVG", "g", 5, [("T", "a", 0)], ["c"]), "client_id = 5 is not a client id"),
    ],
)
def test_what_no_strategy_can_work_with_is_named_where_it_is_given(make: Any, problem: str) -> None:
    with pytest.raises(rocketmq.AllocationError, match=problem):
        make()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: rocketmq.hash_code(5), "text=5: must be a string"),
        (lambda: rocketmq.tags_code(b"A"), "tags=b'A': must be a string"),
        (lambda: rocketmq.retry_topic(5), "group=5: must be a string"),
        (lambda: rocketmq.dlq_topic(None), "group=None: must be a string"),
        (lambda: rocketmq.consume_stats(5, "g"), "cluster=5: no RocketMQ cluster"),
        (lambda: rocketmq.RemoteBrokerOffsetStore(5, "g"), "api=5: no RocketMQ cluster"),
        (lambda: rocketmq.LocalFileOffsetStore("c", "g", directory=5), "directory=5: a path is needed"),
        (lambda: rocketmq.RecordWorker([]), r"order=\[\]: unknown"),
    ],
)
def test_what_is_no_text_and_no_cluster_is_named(make: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make()


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM"])
@pytest.mark.parametrize("strange", [1, None, "T", ("T", "b"), ("T", "b", "0"), ("T", 1, 0), ("T", "b", 0, 0)])
def test_what_is_no_queue_is_allocated_to_nobody(strategy: str, strange: Any) -> None:
    queues = [rocketmq.MessageQueue("T", "room@b", 0), strange]
    for listed in (queues, (strange,)):
        with pytest.raises(
            rocketmq.AllocationError, match=r"^queues has .*, which is not a message queue; give a list as"
        ):
            rocketmq.allocate(strategy, "G", "c1", listed, ["c1"])
    with pytest.raises(rocketmq.AllocationError, match=r"^client_ids has 1, which is not a client id; give a list as"):
        rocketmq.allocate(strategy, "G", "c1", queues[:1], ["c1", 1])  # type: ignore[list-item]


def test_a_queue_may_be_a_plain_tuple_or_list() -> None:
    given: Any = [["T", "b", 0], ("T", None, 1)]
    assert rocketmq.allocate("AVG", "G", "c1", given, ["c1"]) == given
