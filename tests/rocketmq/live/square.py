"""The square: one program with our client or the real ones, on our broker or the real one.

Each scenario returns what its program saw; what the real client saw on the real broker is what the others must have
seen: Java's of all but Go's. ``python -m tests.rocketmq.live.square`` plays all of them and writes the table of
docs/rocketmq-interop.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyengine import rocketmq
from pyengine.rocketmq.broker import transactions
from tests.rocketmq.faults.proxy import Proxy
from tests.rocketmq.live.corners import (
    LAST,
    TIMESTAMP,
    Client,
    GoClient,
    JavaClient,
    NotThereError,
    PythonClient,
    RefusedError,
    our_broker,
    second_levels,
)
from tests.rocketmq.live.real import Older, Real
from tests.rocketmq.live.scripts import start
from tests.waiting import until

CHECK = 5000  # ms between a broker's looks at half messages
PAGE = Path(__file__).parents[3] / "docs" / "rocketmq-interop.md"
BEGIN, END = "<!-- square: written by make interop -->", "<!-- end of square -->"
AT_ONCE = 8  # scenarios of a corner; they mostly wait
CORNERS_AT_ONCE = 3

CORNERS = {
    "Java on 5.3.3": ("java", "real"),
    "Java on pyengine": ("java", "ours"),
    "pyengine on 5.3.3": ("python", "real"),
    "pyengine on pyengine": ("python", "ours"),
    "Java 4.9.8 on pyengine": ("4.9.8", "ours"),
    "Go on 5.3.3": ("go", "real"),
    "Go on pyengine": ("go", "ours"),
    "Java 4.9.8 on 4.9.7": ("4.9.8", "older"),
    "pyengine on 4.9.7": ("python", "older"),
}
# What is played on the older broker.
ON_OLDER = (
    "tag", "two_tags", "sql_numbers", "sql_is_null", "sql_that_is_none", "comes_again", "dead_letter",
    "retry_with_a_level", "in_order", "orderly_dead_letter", "two_members_share", "a_member_leaves", "broadcasting",
    "from_first", "goes_on_where_it_was", "commits", "reset_while_a_member_consumes", "what_a_message_has",
    "a_large_body", "delay_level", "batch", "transactions_commit_and_roll_back", "lite_pull_seeks",
    "lite_pull_commits", "query_by_key", "request_and_reply", "namespace", "a_name_server_is_away",
)  # fmt: skip
OF_SEND = ("queue", "how", "decision", "transactions", "group", "namespace")
REFERENCE = "Java on 5.3.3"
# The Go client checks, retries and stores some things otherwise than Java's.
REFERENCES = {
    "Go on 5.3.3": "Go on 5.3.3", "Go on pyengine": "Go on 5.3.3", "Java 4.9.8 on 4.9.7": "Java 4.9.8 on 4.9.7",
    "pyengine on 4.9.7": "Java 4.9.8 on 4.9.7",
}  # fmt: skip
# rocketmq-client 5.3.3 gives up waiting for a reply that it has acknowledged, on either broker.
GIVES_UP = {("request_and_reply", "Java on 5.3.3"), ("request_and_reply", "Java on pyengine")}
GAVE_UP = "gives up"
SCENARIO_REFERENCES = {"request_and_reply": "pyengine on 5.3.3"}
NOT_THERE = "not there"


class Corner:
    """Where a scenario plays. name: of its topics and groups, which no other scenario has."""

    def __init__(self, client: Client, names: str, name: str) -> None:
        self.client = client
        self.topic = f"T-{name}"
        self.group = f"G-{name}"
        self.name = name
        self.names = names
        self._running: list[str] = []

    def send(self, *bodies: str, tags: Sequence[str] = ("A",), **how: Any) -> list[Any]:
        """Send bodies, tags in turn. how: of the message; ``queue``, ``how`` and ``group`` are of the send."""
        of_send = {name: how.pop(name) for name in OF_SEND if name in how}
        return [
            self.client.send(
                {"topic": self.topic, "body": body.encode(), "tags": tags[number % len(tags)], **how}, **of_send
            )
            for number, body in enumerate(bodies)
        ]

    def consume(self, wanted: str = "*", *, member: str = "", **how: Any) -> str:
        """Start a member of the group; returns its name."""
        name = f"{self.name}-{member or len(self._running)}"
        self.client.consume(name, how.pop("group", self.group), how.pop("topic", self.topic), wanted, **how)
        self._running.append(name)
        return name

    def lite(self, *, member: str = "", **how: Any) -> str:
        """Start a lite pull consumer of the group; returns its name."""
        name = f"{self.name}-{member or len(self._running)}"
        self.client.lite(name, how.pop("group", self.group), **how)
        self._running.append(name)
        return name

    def keys(self, member: str) -> list[str]:
        """What a member got, in order."""
        return [each["key"] for each in self.client.received(member)]

    def wait(self, member: str, count: int, seconds: float = 60) -> list[Any]:
        """What a member got, once it is so many."""
        until(lambda: len(self.client.received(member)) >= count, seconds)
        time.sleep(0.3)  # more would come
        return self.client.received(member)

    def stop(self, member: str) -> None:
        self._running.remove(member)
        self.client.stop(member)

    def stop_all(self) -> None:
        for member in list(self._running):
            self.stop(member)

    # What an administrator does

    def make_topic(self, queues: int = 4, perm: int = 6, topic: str | None = None) -> None:
        """updateTopic; returns when the name server has it."""
        with rocketmq.Cluster(self.names) as cluster:
            address = _broker(cluster)
            made = topic or self.topic
            fields = {
                "topic": made, "defaultTopic": "TBW102", "readQueueNums": queues, "writeQueueNums": queues,
                "perm": perm, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False,
            }  # fmt: skip
            cluster._ask(address, "CreateTopicRequestHeader", fields)
            until(lambda: cluster.topic_subscribe_info(made) is not None)

    def reset(self, timestamp: int) -> None:
        """resetOffsetByTime."""
        with rocketmq.Cluster(self.names) as cluster:
            address = _broker(cluster)
            fields = {"topic": self.topic, "group": self.group, "timestamp": timestamp, "isForce": True}
            cluster._ask(address, "ResetOffsetRequestHeader", fields)

    def offsets(self) -> tuple[list[int], list[int]]:
        """Committed and largest offsets of the queues."""
        with rocketmq.Cluster(self.names) as cluster:
            queues = cluster.topic_subscribe_info(self.topic) or []
            committed = []
            for queue in queues:
                try:
                    committed.append(cluster.query_consumer_offset(self.group, queue))
                except rocketmq.OffsetNotFoundError:
                    committed.append(-1)
            return committed, [cluster.max_offset(queue) for queue in queues]


def _broker(cluster: rocketmq.Cluster) -> str:
    """The address of the broker, once it has registered."""
    until(lambda: cluster.topic_subscribe_info("TBW102") is not None)
    (broker,) = cluster._routes.broker_addresses()
    return broker.address


Scenario = Callable[[Corner], Any]
SCENARIOS: dict[str, Scenario] = {}


def scenario(play: Scenario) -> Scenario:
    SCENARIOS[play.__name__] = play
    return play


def bodies(count: int, start: int = 0) -> list[str]:
    return [f"m{number:02}" for number in range(start, start + count)]


def refused(action: Callable[[], Any]) -> str:
    """How a call is refused."""
    try:
        action()
    except RefusedError as error:
        return str(error)
    return "taken"


# Filters


@scenario
def tag(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(12), tags=("A", "B", "C"))
    corner.wait(member := corner.consume("A"), 4)
    return sorted(corner.keys(member))


@scenario
def two_tags(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(12), tags=("A", "B", "C"))
    corner.wait(member := corner.consume("A || C"), 8)
    return sorted(corner.keys(member))


@scenario
def every_tag(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(12), tags=("A", "B", "C"))
    return sorted((each["key"], each["tags"]) for each in corner.wait(corner.consume("*"), 12))


@scenario
def a_tag_that_comes_later(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(5))
    member = corner.consume("Z")
    corner.send("z", tags=("Z",))
    corner.wait(member, 1)
    return corner.keys(member)


@scenario
def tags_with_one_hash_code(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("one", "other", tags=("Aa", "BB"))
    corner.wait(member := corner.consume("Aa"), 1)
    return corner.keys(member)


def _numbered(corner: Corner) -> None:
    corner.make_topic()
    for number in range(20):
        properties = {"n": str(number)} | ({"region": "eu" if number % 2 else "us"} if number % 3 else {})
        corner.send(f"m{number:02}", tags=("AB"[number % 2],), properties=properties)


def _sql(expression: str, count: int) -> Scenario:
    def play(corner: Corner) -> Any:
        _numbered(corner)
        corner.wait(member := corner.consume(expression, kind="sql"), count)
        return sorted(corner.keys(member))

    return play


SCENARIOS["sql_numbers"] = _sql("n > 14 AND n <= 18", 4)
SCENARIOS["sql_between_and_in"] = _sql("n BETWEEN 3 AND 5 OR region IN ('us')", 8)
SCENARIOS["sql_absent_property"] = _sql("NOT (region = 'eu')", 6)
SCENARIOS["sql_is_null"] = _sql("region IS NULL", 7)
SCENARIOS["sql_tags"] = _sql("TAGS = 'B' AND n < 6", 3)


@scenario
def sql_that_is_none(corner: Corner) -> Any:
    _numbered(corner)
    return refused(lambda: corner.consume("n >", kind="sql"))


# Retries and dead letters


@scenario
def comes_again(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m")
    found = corner.wait(corner.consume(failures=2), 3)
    return [(each["key"], each["times"], each["topic"] == corner.topic) for each in found]


@scenario
def properties_of_a_retry(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m", keys="k", properties={"own": "x"})
    found = corner.wait(corner.consume(failures=1), 2)
    return [_properties(corner, each) for each in found]


@scenario
def dead_letter(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m")
    found = corner.wait(corner.consume(failures=-1, most=2), 3)
    dead = corner.wait(corner.consume(topic=f"%DLQ%{corner.group}", group=f"{corner.group}-dead"), 1)
    return [each["times"] for each in found], [(each["key"], each["times"]) for each in dead]


@scenario
def dead_at_once(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m")
    found = corner.wait(corner.consume(failures=-1, level=-1), 1)
    dead = corner.wait(corner.consume(topic=f"%DLQ%{corner.group}", group=f"{corner.group}-dead"), 1)
    return [each["times"] for each in found], [(each["key"], each["times"]) for each in dead]


@scenario
def retry_with_a_level(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m")
    found = corner.wait(corner.consume(failures=1, level=2), 2)
    return [(each["times"], each["properties"].get("DELAY")) for each in found]


@scenario
def retry_of_a_tag(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(4), tags=("A", "B"))
    found = corner.wait(corner.consume("A", failures=1), 4)
    return sorted((each["key"], each["times"]) for each in found)


# Order


def _by_queue(found: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    queues: dict[str, list[str]] = {}
    for each in found:
        queues.setdefault(str(each["queue"]), []).append(each["key"])
    return dict(sorted(queues.items()))


@scenario
def in_order(corner: Corner) -> Any:
    corner.make_topic()
    for number, body in enumerate(bodies(20)):
        corner.send(body, queue=number % 4)
    return _by_queue(corner.wait(corner.consume(orderly=True), 20))


@scenario
def order_waits_for_what_fails(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(4), queue=1)
    return _by_queue(corner.wait(corner.consume(orderly=True, failures=2), 12))


@scenario
def orderly_dead_letter(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(2), queue=1)
    member = corner.consume(orderly=True, failures=-1, most=1)
    corner.wait(member, 4)
    dead = corner.wait(corner.consume(topic=f"%DLQ%{corner.group}", group=f"{corner.group}-dead"), 2)
    counted = [  # 4.9.8 counts one less
        (each["properties"].get("RECONSUME_TIME") == str(each["times"]), each["properties"].get("MAX_RECONSUME_TIMES"))
        for each in dead
    ]
    return corner.keys(member)[:4], sorted(each["key"] for each in dead), counted


@scenario
def order_with_two_members(corner: Corner) -> Any:
    corner.make_topic()
    members = [corner.consume(orderly=True, member=each) for each in ("one", "two")]
    until(lambda: bool(corner.client.received(members[0])) or True)
    for number, body in enumerate(bodies(40)):
        corner.send(body, queue=number % 4)
    until(lambda: len({key for member in members for key in corner.keys(member)}) == 40, 180)  # Go's takes its time
    found = [each for member in members for each in corner.client.received(member)]
    return {queue: list(dict.fromkeys(keys)) for queue, keys in _by_queue(found).items()}


# Groups


def _shares(corner: Corner, members: Sequence[str]) -> list[set[int]]:
    return [{each["queue"] for each in corner.client.received(member)} for member in members]


@scenario
def two_members_share(corner: Corner) -> Any:
    corner.make_topic(8)
    members = [corner.consume(member=each) for each in ("one", "two")]
    sent = 0

    def balanced() -> bool:
        nonlocal sent
        corner.send(*bodies(8, sent))
        sent += 8
        time.sleep(0.3)
        late = [
            {each["queue"] for each in corner.client.received(member) if each["key"] in bodies(8, sent - 8)}
            for member in members
        ]
        return [len(share) for share in late] == [4, 4]

    until(balanced)
    until(lambda: len({key for member in members for key in corner.keys(member)}) == sent)
    return "4 queues each"


@scenario
def a_member_leaves(corner: Corner) -> Any:
    corner.make_topic()
    one, two = corner.consume(member="one"), corner.consume(member="two")
    corner.send(*bodies(8))
    until(lambda: len({*corner.keys(one), *corner.keys(two)}) == 8)
    corner.stop(two)
    corner.send(*bodies(8, 8))
    until(lambda: {*corner.keys(one)} >= {*bodies(8, 8)})
    return "the other has all"


@scenario
def two_groups(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(6))
    members = [corner.consume(group=f"{corner.group}-{each}", member=each) for each in ("x", "y")]
    return [sorted(each["key"] for each in corner.wait(member, 6)) for member in members]


@scenario
def broadcasting(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(6))
    members = [corner.consume(broadcasting=True, member=each) for each in ("one", "two")]
    return [sorted(each["key"] for each in corner.wait(member, 6)) for member in members]


@scenario
def broadcasting_does_not_retry(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(2))
    found = corner.wait(corner.consume(broadcasting=True, failures=-1), 2)
    time.sleep(3)
    return sorted((each["key"], each["times"]) for each in found)


# Where a group begins, and goes on


@scenario
def from_first(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(8))
    member = corner.consume()
    corner.wait(member, 8)
    return sorted(corner.keys(member))


@scenario
def from_last_of_a_young_topic(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(8))
    member = corner.consume(**{"from": LAST})
    corner.wait(member, 8)
    return sorted(corner.keys(member))


@scenario
def from_a_time_long_ago(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(8))
    member = corner.consume(**{"from": TIMESTAMP, "timestamp": "20200101000000"})
    corner.wait(member, 8)
    return sorted(corner.keys(member))


@scenario
def goes_on_where_it_was(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(8))
    first = corner.consume(member="first")
    corner.wait(first, 8)
    until(lambda: corner.offsets()[0] == corner.offsets()[1])
    corner.stop(first)
    corner.send(*bodies(8, 8))
    second = corner.consume(member="second")
    corner.wait(second, 8)
    return sorted(corner.keys(second))


@scenario
def a_name_server_is_away(corner: Corner) -> Any:
    corner.make_topic()
    before = Proxy(0, corner.names, bool, calm=True)
    first = corner.consume(names=before.address)
    corner.send("before")
    corner.wait(first, 1)
    before.close()
    corner.send("meanwhile")
    seen = [each["key"] for each in corner.wait(first, 2)]
    with closing(Proxy(0, corner.names, bool, port=int(before.address.rpartition(":")[2]), calm=True)) as after:
        second = corner.consume(group=f"{corner.group}-second", names=after.address)
        corner.wait(second, 2)
        corner.send("after")
        corner.wait(first, 3)
        corner.wait(second, 3)
        found = [seen, corner.keys(first), sorted(corner.keys(second))]
        corner.stop_all()
    return found


@scenario
def commits(corner: Corner) -> Any:
    corner.make_topic(2)
    corner.send(*bodies(3), queue=1)
    member = corner.consume()
    corner.wait(member, 3)
    until(lambda: corner.offsets()[0][1] == 3)
    corner.stop(member)
    return corner.offsets()


@scenario
def reset_while_nobody_consumes(corner: Corner) -> Any:
    corner.make_topic(2)
    corner.send(*bodies(6))
    member = corner.consume(member="first")
    corner.wait(member, 6)
    until(lambda: corner.offsets()[0] == corner.offsets()[1])
    corner.stop(member)
    corner.reset(0)
    again = corner.consume(member="again")
    corner.wait(again, 6)
    return sorted(corner.keys(again))


@scenario
def reset_while_a_member_consumes(corner: Corner) -> Any:
    corner.make_topic(2)
    corner.send(*bodies(6))
    member = corner.consume()
    corner.wait(member, 6)
    until(lambda: corner.offsets()[0] == corner.offsets()[1])
    corner.reset(0)
    corner.wait(member, 12, 90)
    return sorted(corner.keys(member))


# Lite pull


def _polled(corner: Corner, member: str, count: int, seconds: float = 60) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def enough() -> bool:
        found.extend(corner.client.lite_call(member, "poll", timeout=300))
        return len(found) >= count

    until(enough, seconds)
    return found


@scenario
def lite_pull_subscribes(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(12), tags=("A", "B", "C"))
    member = corner.lite(topic=corner.topic, wanted="A || C")
    keys = sorted(each["key"] for each in _polled(corner, member, 8))
    return keys, corner.client.lite_call(member, "assignment")


@scenario
def lite_pull_members_share(corner: Corner) -> Any:
    corner.make_topic()
    members = [corner.lite(topic=corner.topic, member=each) for each in ("one", "two")]
    until(lambda: [len(corner.client.lite_call(each, "assignment")) for each in members] == [2, 2])
    corner.stop(members[1])
    until(lambda: corner.client.lite_call(members[0], "assignment") == [0, 1, 2, 3])
    return "the other has all"


@scenario
def lite_pull_seeks(corner: Corner) -> Any:
    corner.make_topic()
    corner.send(*bodies(6), queue=2)
    member = corner.lite()
    assigned = corner.client.lite_call(member, "assign", topic=corner.topic, queues=[2])
    first = [each["key"] for each in _polled(corner, member, 6)]
    place: dict[str, Any] = {"topic": corner.topic, "queue": 2}
    corner.client.lite_call(member, "seek", offset=4, **place)
    again = [each["key"] for each in _polled(corner, member, 2)]
    too_far = refused(lambda: corner.client.lite_call(member, "seek", offset=7, **place))
    not_mine = refused(lambda: corner.client.lite_call(member, "seek", offset=0, topic=corner.topic, queue=1))
    at = corner.client.lite_call(member, "offsetForTimestamp", timestamp=1, **place)
    return assigned, first, again, too_far, not_mine, at


@scenario
def lite_pull_commits(corner: Corner) -> Any:
    corner.make_topic(2)
    corner.send(*bodies(4), queue=1)
    member = corner.lite(member="first")
    place: dict[str, Any] = {"topic": corner.topic, "queue": 1}
    corner.client.lite_call(member, "assign", topic=corner.topic, queues=[1])
    _polled(corner, member, 4)
    before = corner.client.lite_call(member, "committed", **place)
    corner.client.lite_call(member, "commit")
    after = corner.client.lite_call(member, "committed", **place)
    corner.stop(member)
    until(lambda: corner.offsets()[0][1] == 4)
    corner.send("new", queue=1)
    again = corner.lite(member="again")
    corner.client.lite_call(again, "assign", topic=corner.topic, queues=[1])
    return before, after, [each["key"] for each in _polled(corner, again, 1)]


@scenario
def lite_pull_pauses(corner: Corner) -> Any:
    corner.make_topic(1)
    member = corner.lite()
    corner.client.lite_call(member, "assign", topic=corner.topic, queues=[0])
    place: dict[str, Any] = {"topic": corner.topic, "queue": 0}
    corner.send("first")
    _polled(corner, member, 1)
    time.sleep(1)  # the next pull is held by now
    corner.client.lite_call(member, "pause", **place)
    corner.send("lets the held pull end")
    _polled(corner, member, 1)
    corner.send("m")
    time.sleep(1.5)
    paused = len(corner.client.lite_call(member, "poll", timeout=500))
    corner.client.lite_call(member, "resume", **place)
    return paused, [each["key"] for each in _polled(corner, member, 1)]


# Look-up, requests and replies


@scenario
def query_by_key(corner: Corner) -> Any:
    corner.make_topic()
    results = corner.send(*bodies(2), keys="k1 k2") + corner.send("other", keys="k2")

    def found(key: str) -> list[str]:
        try:
            return sorted(each["key"] for each in corner.client.query(corner.topic, key))
        except RefusedError:
            return []

    until(lambda: len(found("k2")) == 3)  # the real broker indexes a little later
    nobody = refused(lambda: corner.client.query(corner.topic, "nobody"))
    return found("k1"), found("k2"), nobody, corner.client.view(corner.topic, results[1]["offsetId"])["key"]


@scenario
def request_and_reply(corner: Corner) -> Any:
    corner.make_topic()
    corner.consume(answers="answer")
    try:
        reply = corner.client.request({"topic": corner.topic, "body": b"question", "tags": "A"})
    except RefusedError as error:
        return str(error)
    given = {name: value for name, value in reply["properties"].items() if name in ("MSG_TYPE", "TTL")}
    return reply["key"], reply["topic"], given


# Namespaces


@scenario
def namespace(corner: Corner) -> Any:
    corner.make_topic(topic=f"ns%{corner.topic}")
    (result,) = corner.send("m", namespace="ns", queue=1)
    found = corner.wait(corner.consume(namespace="ns", failures=1), 2)
    shown = [(each["key"], each["times"], each["topic"] == corner.topic) for each in found]
    plain = corner.consume(topic=f"ns%{corner.topic}", group=f"{corner.group}-plain")
    (outside,) = corner.wait(plain, 1)
    return result["topic"] == corner.topic, shown, outside["topic"][:3], _properties(corner, outside)


@scenario
def lite_pull_in_a_namespace(corner: Corner) -> Any:
    corner.make_topic(1, topic=f"ns%{corner.topic}")
    corner.send("m", namespace="ns")
    member = corner.lite(namespace="ns", topic=corner.topic)
    return [(each["key"], each["topic"] == corner.topic) for each in _polled(corner, member, 1)]


# Topics and queues


@scenario
def an_unknown_topic_is_made(corner: Corner) -> Any:
    (result,) = corner.send("m")
    _, most = corner.offsets()
    return result["status"], len(most)


@scenario
def one_queue_keeps_its_order(corner: Corner) -> Any:
    corner.make_topic(8)
    results = corner.send(*bodies(10), queue=5)
    return [(each["queue"], each["offset"]) for each in results]


@scenario
def a_queue_that_is_not_there(corner: Corner) -> Any:
    corner.make_topic(2)
    return refused(lambda: corner.send("m", queue=7)).split()[0]


@scenario
def a_topic_that_cannot_be_written(corner: Corner) -> Any:
    corner.make_topic(2, perm=4)
    return refused(lambda: corner.send("m"))


@scenario
def a_topic_gets_more_queues(corner: Corner) -> Any:
    corner.make_topic(2)
    corner.send(*bodies(4))
    member = corner.consume()
    corner.wait(member, 4)
    corner.make_topic(4)
    corner.send(*bodies(2), queue=1)
    with rocketmq.Cluster(corner.names) as cluster:
        queue = rocketmq.MessageQueue(corner.topic, "broker-a", 3)
        cluster.topic_subscribe_info(corner.topic)
        cluster.send_message("senders", rocketmq.Message(corner.topic, b"new"), queue)
    until(lambda: "new" in corner.keys(member), 60)
    return sorted(set(corner.keys(member)))


@scenario
def topic_names(corner: Corner) -> Any:
    found = {}
    for name in ("has space", "has/slash", "n" * 127, "n" * 128, "TBW102"):
        message = {"topic": name, "body": b"m"}
        found[f"{name[:10]} {len(name)}"] = refused(lambda message=message: corner.client.send(message))  # type: ignore[misc]
    return found


# Messages


def _properties(corner: Corner, message: dict[str, Any]) -> dict[str, str]:
    """Without what differs from one send to the next."""
    changing = {"UNIQ_KEY", "CONSUME_START_TIME", "ORIGIN_MESSAGE_ID", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"}
    changing |= {"TIMER_OUT_MS", "__transactionId__", "MIN_OFFSET", "MAX_OFFSET", "REAL_QID"}
    return {
        name: ("..." if name in changing else value.replace(corner.name, "NAME"))
        for name, value in sorted(message["properties"].items())
    }


@scenario
def what_a_message_has(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m", keys="k1 k2", flag=7, properties={"own": "x", "другое": "значение 🚀", "quote": "\"'\\\n"})
    (message,) = corner.wait(corner.consume(), 1)
    shown = {name: message[name] for name in ("key", "tags", "keys", "flag", "times", "offset")}
    return shown, _properties(corner, message)


@scenario
def a_large_body(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("large " * 200_000)
    (message,) = corner.wait(corner.consume(), 1)
    return len(message["body"]), message["body"][-6:].decode()


@scenario
def a_body_too_large(corner: Corner) -> Any:
    corner.make_topic()
    return refused(lambda: corner.send("x" * (4 * 1024 * 1024 + 1)))


@scenario
def a_body_of_nothing(corner: Corner) -> Any:
    corner.make_topic()
    return refused(lambda: corner.send(""))


@scenario
def many_large_bodies(corner: Corner) -> Any:
    corner.make_topic(1)
    for number in range(12):
        corner.client.send({"topic": corner.topic, "body": bytes([65 + number]) * 3000 * 30, "tags": "A"})
    found = corner.wait(corner.consume(), 12)
    return [(each["key"][:1], len(each["body"])) for each in sorted(found, key=lambda each: int(each["offset"]))]


@scenario
def delay_level(corner: Corner) -> Any:
    corner.make_topic()
    (result,) = corner.send("m", level=3)
    (message,) = corner.wait(corner.consume(), 1)
    return result["topic"] == corner.topic, _properties(corner, message), message["times"]


@scenario
def delay_level_too_high(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m", level=99)
    (message,) = corner.wait(corner.consume(), 1)
    return message["properties"]["DELAY"]


@scenario
def timer(corner: Corner) -> Any:
    corner.make_topic()
    begun = time.time()
    corner.send("m", timers={"TIMER_DELAY_MS": "2500"})
    (message,) = corner.wait(corner.consume(), 1)
    return time.time() - begun >= 2.4, _properties(corner, message)


@scenario
def timer_of_the_past(corner: Corner) -> Any:
    corner.make_topic()
    corner.send("m", timers={"TIMER_DELIVER_MS": "1000"})
    (message,) = corner.wait(corner.consume(), 1)
    return _properties(corner, message)


@scenario
def timer_too_far(corner: Corner) -> Any:
    corner.make_topic()
    return refused(lambda: corner.send("m", timers={"TIMER_DELAY_SEC": str(4 * 24 * 3600)}))


@scenario
def one_way(corner: Corner) -> Any:
    corner.make_topic()
    results = corner.send(*bodies(6), how="oneway")
    found = corner.wait(corner.consume(), 6)
    return results, sorted(each["key"] for each in found)


@scenario
def asynchronous(corner: Corner) -> Any:
    corner.make_topic()
    results = corner.send(*bodies(6), how="async")
    found = corner.wait(corner.consume(), 6)
    return [each["status"] for each in results], sorted(each["key"] for each in found)


@scenario
def batch(corner: Corner) -> Any:
    corner.make_topic()
    messages = [
        {"topic": corner.topic, "body": body.encode(), "tags": "AB"[n % 2]} for n, body in enumerate(bodies(10))
    ]
    result = corner.client.send({"topic": corner.topic}, how="batch", messages=messages)
    found = corner.wait(corner.consume("A"), 5)
    return result["status"], len(result["offsetId"].split(",")), sorted(each["key"] for each in found)


@scenario
def transactions_commit_and_roll_back(corner: Corner) -> Any:
    corner.make_topic()
    about = {"how": "transaction", "transactions": True, "group": f"P-{corner.name}"}
    states = [
        corner.send(body, decision=decision, **about)
        for body, decision in (("kept", "COMMIT_MESSAGE"), ("dropped", "ROLLBACK_MESSAGE"))
    ]
    found = corner.wait(corner.consume(), 1)
    return states, [(each["key"], _properties(corner, each)) for each in found]


@scenario
def transactions_are_asked_for(corner: Corner) -> Any:
    corner.make_topic()
    about = {"how": "transaction", "transactions": True, "group": f"P-{corner.name}"}
    name = f"late-{corner.name}"
    corner.client.decide(name, "COMMIT_MESSAGE")
    corner.send(name, decision="UNKNOW", **about)
    (message,) = corner.wait(corner.consume(), 1, 60)
    return message["key"] == name, message["properties"]["TRANSACTION_CHECK_TIMES"]


# Playing them


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scenario saw in a corner: a value, or why there is none."""

    value: Any = None
    failure: str = ""


@contextmanager
def corners(with_older: bool) -> Iterator[dict[str, tuple[Client, str]]]:
    """Corner -> its client, and the name server."""
    home = Path(tempfile.mkdtemp(prefix="square-"))
    transactions.CHECK_INTERVAL = CHECK
    with ExitStack() as stack:
        jvm = Real(home)
        stack.callback(jvm.close)
        names = {"real": start(jvm, home, home / "store", second_levels(), timers=True, check=CHECK)}
        names["ours"] = stack.enter_context(our_broker(message_delay_level=second_levels())).name_server_address
        if with_older:
            older = Older(home / "older", second_levels(), CHECK)
            stack.callback(older.close)
            names["older"] = older.names
        found: dict[str, tuple[Client, str]] = {}
        for title, (kind, broker) in CORNERS.items():
            if broker not in names:
                continue
            own = home / title.replace(" ", "-")
            client: Client
            if kind == "python":
                client = PythonClient(own)
            else:
                client = GoClient(own) if kind == "go" else JavaClient("5.3.3" if kind == "java" else kind, own)
            client.names = names[broker]
            stack.callback(client.close)
            found[title] = client, names[broker]
        yield found


def play(title: str, name: str, client: Client, names: str) -> Outcome:
    """One scenario in one corner."""
    if CORNERS[title][1] == "older" and name not in ON_OLDER:
        return Outcome(failure=f"{NOT_THERE}: not played")
    # Both clients of a broker play it, one after the other.
    corner = Corner(client, names, f"{name.replace('_', '-')}-{id(client) % 10_000}")
    try:
        return Outcome(plain(SCENARIOS[name](corner)))
    except NotThereError as error:
        return Outcome(failure=f"{NOT_THERE}: {error}")
    except (AssertionError, RefusedError, rocketmq.MQClientError, rocketmq.MQBrokerError, OSError) as error:
        traceback.print_exc()
        return Outcome(failure=f"{type(error).__name__}: {error}")
    finally:
        corner.stop_all()


def plain(value: Any) -> Any:
    """Lists for tuples, so that values of all clients compare."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def play_all(chosen: Sequence[str]) -> dict[str, dict[str, Outcome]]:
    """Scenario -> corner -> what it saw."""
    outcomes: dict[str, dict[str, Outcome]] = {name: {} for name in chosen}

    def in_corner(title: str, client: Client, names: str) -> None:
        begun = time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for name, outcome in pool.map(lambda name: (name, play(title, name, client, names)), chosen):
                outcomes[name][title] = outcome
        print(f"{title}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)

    with corners(any(name in ON_OLDER for name in chosen)) as found, ThreadPoolExecutor(CORNERS_AT_ONCE) as pool:
        for done in [pool.submit(in_corner, title, *each) for title, each in found.items()]:
            done.result()
    return outcomes


def reference(name: str, title: str) -> str:
    """The corner that a corner is compared with."""
    return REFERENCES.get(title) or SCENARIO_REFERENCES.get(name, REFERENCE)


def verdict(outcome: Outcome, reference: Outcome) -> str:
    """What the table says of one corner."""
    if outcome.failure.startswith(NOT_THERE):
        return "-"
    if outcome.failure:
        return "fails"
    return "same" if outcome.value == reference.value else "differs"


def table(outcomes: dict[str, dict[str, Outcome]]) -> str:
    """The table in Markdown."""
    lines = [f"| scenario | {' | '.join(CORNERS)} |", f"|---|{'---|' * len(CORNERS)}"]
    for name, found in outcomes.items():
        cells = [
            GAVE_UP if (name, title) in GIVES_UP else verdict(found[title], found[reference(name, title)])
            for title in CORNERS
            if title in found
        ]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write(text: str) -> None:
    """Put the table into its page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    assert rest, f"{PAGE} has no {BEGIN}"
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    chosen = [name for name in SCENARIOS if not arguments or name in arguments]
    outcomes = play_all(chosen)
    wrong = 0
    for name, found in outcomes.items():
        for title, outcome in found.items():
            expected = found[reference(name, title)]
            if (name, title) in GIVES_UP:
                continue
            if verdict(outcome, expected) in ("fails", "differs"):
                wrong += 1
                print(f"{name}, {title}: {outcome.failure or outcome.value}\n  not {expected.value}")
    text = table(outcomes)
    print(text)
    if not arguments:
        write(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
