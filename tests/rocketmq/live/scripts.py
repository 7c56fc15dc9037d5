"""Random scripts for a broker: what clients ask of it over the network, of the real one and of ours."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import MQBrokerError, OffsetNotFoundError
from pyengine.rocketmq import ConsumeFromWhere, MessageModel, MessageQueue, MessageSelector, PullResult
from pyengine.rocketmq.remoting.mq_client_api import HeartbeatData, PullMessageRequest
from tests.rocketmq.live.real import Real, free_port

TOPICS = {"One": 2, "Two": 1}
# So long that nothing is due before the script is over.
LEVELS = " ".join(f"{hours}h" for hours in range(1, 19))
# What the real client and broker add.
ADDED = ("UNIQ_KEY", "WAIT", "MSG_REGION", "TRACE_ON", "CLUSTER")
MOST = 2**63 - 1
SQL = (
    *("a = 1", "a > 1 OR b IS NULL", "NOT (a = 1)", "a = 'x'", "TAGS = 'A'", "a >", "a BETWEEN 1 AND 2"),
    *("a > 0.5", "a = TRUE", "TRUE = a", "a = b", "a < b", "a NOT CONTAINS 'x'", "a = 05", "a = 1 --c\n", "a"),
)
# Of one hash code: "Aa" and "BB", "AaBB" and "BBAa".
TAGS = ("A", "B", "C", "", "Aa", "BB", "AaBB", "BBAa", "A||B", " A", "*", "é", "😀")
STATS = (None, None, None, "One", "Two", "%RETRY%K", "%RETRY%G", "Nope")
WANTED = ("*", "A", "A || B", "C||D", "D", "Aa", "BB || C", "BBAa", "* || A", "A||", " * ", "A  ||  é", "A | B", "😀")


def operations(random: Random, count: int) -> Iterator[list[Any]]:
    """The operations of one script."""

    def queue() -> list[Any]:
        rare = random.random()
        if rare < 0.12:
            return random.choice((["%RETRY%G", 0], ["%RETRY%H", 0], ["%DLQ%G", 0], ["Nope", 0], ["One", 7]))
        return random.choice((["One", 0], ["One", 1], ["Two", 0]))

    def properties() -> dict[str, str]:
        made: dict[str, str] = {}
        if random.random() < 0.6:
            made["TAGS"] = random.choice(TAGS)
        for name in ("a", "b"):
            if random.random() < 0.5:
                made[name] = random.choice(("1", "2", "x", " 1", "é", "+1", "1e0", "true", "2147483648"))
        if random.random() < 0.1:
            made[random.choice(("TIMER_DELAY_MS", "TIMER_OUT_MS", "INNER_NUM", "TRAN_MSG"))] = "5"
        if random.random() < 0.15:
            made["DELAY"] = str(random.choice((1, 2, 18, 19, 100, 0, -1, "+1", "007", "+99")))
        return made

    def send() -> list[Any]:
        usual = (["One", 0], ["One", 1], ["Two", 0], ["%RETRY%G", 0], ["%RETRY%H", 0])
        rare = (["One", 7], ["%RETRY%G", 1], ["Fresh", 0], ["Fresh", 3], ["Fresh", 4], ["%RETRY%H", 1], ["%RETRY%K", 3])
        to, given = random.choice(usual if random.random() < 0.95 else rare), properties()
        if to[0].startswith("%"):
            given["RECONSUME_TIME"] = str(random.choice((0, 1, 2, 3, 16, 17)))
            if random.random() < 0.7:
                given["MAX_RECONSUME_TIMES"] = str(random.choice((-1, 0, 1, 2, 16, 2**31 - 1)))
        return ["send", to, given]

    def back() -> list[Any]:
        level, most = random.choice((0, 0, 1, 3, 18, 19, 30, -1, -2)), random.choice((16, 16, 0, 1, 2, -1, 3))
        return ["back", group(), random.randrange(1000), level, most]

    def pull() -> list[Any]:
        kind = random.choice(("TAG", "TAG", "SQL92"))
        wanted = random.choice(WANTED) if kind == "TAG" else random.choice(SQL)
        offset = random.choice((0, 1, 2, 5, 9, 20, 33, 40, 1000, MOST))
        return ["pull", queue(), wanted, kind, offset, random.choice((1, 2, 3, 10, 32, 33, 100))]

    def group() -> str:
        return random.choice(("G", "H"))

    def some() -> list[Any]:
        return random.sample([["One", 0], ["One", 1], ["Two", 0], ["Nope", 3]], random.randrange(4))

    version, last = 0, dict[str, int]()
    known = set[str]()

    def member() -> str:
        return random.choice(("K", "L"))

    def beat() -> list[Any]:
        # Versions grow: what an older one does to a filter is listed (docs/differences.md).
        nonlocal version
        wanted, to = [], member()
        known.add(to)
        for topic in random.sample(("One", "Two", f"%RETRY%{to}", "Nope"), random.randrange(4)):
            kind = random.choice(("TAG", "TAG", "SQL92"))
            version += 1
            last[to + topic] = version
            wanted.append([topic, random.choice(WANTED if kind == "TAG" else SQL), kind, version])
        return ["beat", to, random.choice(("c1", "c2", "c3")), wanted]

    def wants() -> list[Any]:
        by, where = member(), queue()
        latest = last.get(by + where[0], 0)
        return [
            *("wants", by, where, random.choice((0, 1, 5, 33, 1000)), random.choice((1, 3, 32))),
            random.choice((0, latest, latest, latest + 1)),
        ]

    def stats() -> list[Any]:
        # G has offsets of topics that are not of the script, too (test_live).
        of = random.choice(("G", "H", "K", "L", "new"))
        return ["stats", of, random.choice(STATS if of != "G" else STATS[3:])]

    makers: list[tuple[int, Callable[[], list[Any]]]] = [
        (14, send),
        (8, back),
        (10, pull),
        (2, lambda: ["min", queue()]),
        (2, lambda: ["max", queue()]),
        (3, lambda: ["search", queue(), random.randrange(1000), random.choice((0, 0, 1, -1, -(10**12), 10**12))]),
        (3, lambda: ["commit", random.choice(("G", "H", *sorted(known))), queue(), random.choice((0, 1, 5, 100, -1))]),
        (4, lambda: ["query", random.choice(("G", "H", "new")), queue()]),
        (4, lambda: ["lock", group(), random.choice(("c1", "c2")), some()]),
        (2, lambda: ["unlock", group(), random.choice(("c1", "c2")), some()]),
        (5, beat),
        (2, lambda: ["leave", member(), random.choice(("c1", "c2", "c3"))]),
        (2, lambda: ["members", member()]),
        (4, stats),
        (7, wants),
    ]
    for make in random.choices([make for _, make in makers], [weight for weight, _ in makers], k=count):
        yield make()


class Ours:
    """pyengine's broker, asked the same; its time is that of the real one's messages."""

    def __init__(self, now: int) -> None:
        self.clock = ManualClock(now=now)
        self.broker = rocketmq.Broker(clock=self.clock, message_delay_level=LEVELS)
        for topic, queues in TOPICS.items():
            self.broker.create_topic(topic, queues)
        self.broker.create_topic("%RETRY%G", 1)  # which the heartbeat of the real client makes
        self.node = self.broker.nodes["broker-a"]
        self.stored: list[rocketmq.MessageExt] = []

    def play(self, operation: list[Any], stored_at: int | None) -> Any:
        """stored_at: when the real broker stored the message of this operation, ms."""
        if stored_at is not None and stored_at > self.clock.now():
            self.clock.advance(stored_at - self.clock.now())
        try:
            return getattr(self, "_" + operation[0])(*operation[1:])
        except OffsetNotFoundError:
            return "none"
        except MQBrokerError as error:
            return ["refused", error.code, error.problem]

    def _put(self, end: int) -> dict[str, Any]:
        message = self.node._decode(end)
        self.stored.append(message)
        return {
            "place": [message.topic, message.queue_id, message.queue_offset],
            "id": self.node.sender.offset_msg_id(message.commit_log_offset),
            "time": message.store_timestamp,
            "reconsumeTimes": message.reconsume_times,
            "properties": dict(message.properties),
        }

    def _send(self, to: list[Any], properties: dict[str, str]) -> Any:
        end = self.node.store.log.end
        message = rocketmq.Message(to[0], b"\1", properties=properties)
        self.broker.send_message("P", message, _queue(to))
        return self._put(end)

    def _back(self, group: str, place: int, level: int, most: int) -> Any:
        if not self.stored:
            return None
        end = self.node.store.log.end
        self.broker.consumer_send_message_back(group, self.stored[place % len(self.stored)], level, most)
        return self._put(end)

    def _pull(self, queue: list[Any], wanted: str, kind: str, offset: int, count: int) -> Any:
        request = PullMessageRequest(
            "c", "G", _queue(queue), offset, count, sys_flag=0, sub_expression=wanted, expression_type=kind
        )
        # The real client looks at the tags themselves, the broker at their hash codes.
        return self._pulled(request, rocketmq.build_subscription("", wanted).tags_set if kind == "TAG" else frozenset())

    def _pulled(self, request: PullMessageRequest, tags: frozenset[str] = frozenset()) -> Any:
        answers: list[Any] = []
        self.broker.pull_message(request, answers.append)
        self.broker.settle()
        (answer,) = answers
        if not isinstance(answer, PullResult):
            raise answer
        offsets = [message.queue_offset for message in answer.messages if not tags or message.tags in tags]
        return [answer.status.name, answer.next_begin_offset, answer.min_offset, answer.max_offset, offsets]

    def _min(self, queue: list[Any]) -> int:
        return self.broker.min_offset(_queue(queue))

    def _max(self, queue: list[Any]) -> int:
        return self.broker.max_offset(_queue(queue))

    def _search(self, queue: list[Any], place: int, more: int) -> int:
        then = self.stored[place % len(self.stored)].store_timestamp if self.stored else 0
        return self.broker.search_offset(_queue(queue), then + more)

    def _commit(self, group: str, queue: list[Any], offset: int) -> None:
        self.broker.update_consumer_offset(group, _queue(queue), offset)

    def _query(self, group: str, queue: list[Any]) -> int:
        return self.broker.query_consumer_offset(group, _queue(queue))

    def _lock(self, group: str, client: str, queues: list[Any]) -> Any:
        held = self.broker.lock_batch_mq(group, client, map(_queue, queues))
        return sorted([queue.topic, queue.queue_id] for queue in held)

    def _unlock(self, group: str, client: str, queues: list[Any]) -> None:
        self.broker.unlock_batch_mq(group, client, map(_queue, queues))

    def _beat(self, group: str, client: str, wanted: list[Any]) -> None:
        subscriptions = tuple(
            rocketmq.build_subscription(topic, MessageSelector(text, kind), version)
            for topic, text, kind, version in wanted
        )
        where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
        self.broker.send_heartbeat(HeartbeatData(client, group, MessageModel.CLUSTERING, where, subscriptions))

    def _leave(self, group: str, client: str) -> None:
        self.broker.unregister_client(client, group)

    def _members(self, group: str) -> list[str]:
        return sorted(self.broker.get_consumer_id_list("One", group))

    def _stats(self, group: str, topic: str | None) -> list[list[Any]]:
        table = rocketmq.consume_stats(self.broker, group, *filter(None, (topic,))).offset_table
        return [
            [queue.topic, queue.queue_id, row.broker_offset, row.consumer_offset, row.pull_offset, row.last_timestamp]
            for queue, row in sorted(table.items())
        ]

    def _wants(self, group: str, queue: list[Any], offset: int, count: int, version: int) -> Any:
        return self._pulled(
            PullMessageRequest("c", group, _queue(queue), offset, count, sys_flag=0, sub_version=version)
        )


def differences(real: Real, count: int, seed: int) -> Iterator[str]:
    """What differs in a script of so many operations, on a cluster that has the topics and no message of them yet."""
    ours = Ours(real.ask("now"))
    real_ids: dict[str, int] = {}
    our_ids: dict[str, int] = {}
    try:
        for operation in operations(Random(seed), count):
            there: Any = real.ask("play", operation=operation)
            here = ours.play(operation, there["time"] if isinstance(there, dict) else None)
            there, here = comparable(there, real_ids), comparable(here, our_ids)
            if there != here:
                yield f"{json.dumps(operation)}\n  real {json.dumps(there)}\n  ours {json.dumps(here)}"
    finally:
        ours.broker.close()


def start(real: Real, home: Path, store: Path, levels: str = LEVELS, **options: object) -> str:
    """Start a cluster on the loopback that goes on with a store; returns the address of its name server.

    options: timers=True, check=ms between looks at half messages.
    """
    ports = {"namesPort": free_port(), "brokerPort": free_port()}
    real.ask("start", home=str(home), store=str(store), broker="broker-a", group="G", levels=levels, **ports, **options)
    return f"127.0.0.1:{ports['namesPort']}"


def patiently(ask: Callable[[], object]) -> object:
    """What the real cluster answers once its broker has registered at the name server; at most five minutes."""
    end = time.monotonic() + 300
    while True:
        try:
            return ask()
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _queue(row: list[Any]) -> MessageQueue:
    return MessageQueue(row[0], "broker-a", row[1])


def comparable(answer: Any, ids: dict[str, int]) -> Any:
    """An answer with the numbers of messages for their ids, which ids learns, and without what the real ones add."""
    if isinstance(answer, list) and answer[:1] == ["refused"]:
        return [*answer[:2], re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:0", answer[2])]
    if not isinstance(answer, dict):
        return answer
    ids[answer["id"]] = len(ids)
    properties = {name: value for name, value in answer["properties"].items() if name not in ADDED}
    if "ORIGIN_MESSAGE_ID" in properties:
        properties["ORIGIN_MESSAGE_ID"] = ids[properties["ORIGIN_MESSAGE_ID"]]
    return {"place": answer["place"], "reconsumeTimes": answer["reconsumeTimes"], "properties": properties}
