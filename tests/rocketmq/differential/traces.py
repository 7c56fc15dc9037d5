"""Random traces, the same for the same seed: lists of operations as the two players take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.rocketmq.differential import traces_texts

Operation = list[Any]
Trace = dict[str, Any]

LEAST, MOST = -(2**63), 2**63 - 1
SIZES = (None, 0, 1, 2, 3, 7, 100, 1 << 20)
NUMBERS = (
    "",
    "x",
    " 5",
    "5 ",
    "+7",
    "-7",
    "+",
    "-",
    "1_0",
    "٣",
    "\U0001d7df",
    "0x1",
    "1.0",
    "007",
    str(MOST),
    str(MOST + 1),
)
STARTS = ("", "5", "+5", " 5", "1_0", "٣", "\U0001d7df", "x", "-", str(MOST), str(MOST + 1))
ODD = ("", " ", "-", "@", "?", "\0", "é", "主", "😀", "\ue000", "\ud800", "\udfff", "]", ", ", "%", "a", "B", "0", "9")
TOPICS = ("T", "TopicTest", "%RETRY%group", "主题", "", "t" * 300)
BROKERS = (
    "broker-a",
    "a@b",
    "b@a",
    "@a",
    "a@",
    "a@b@",
    "a@@b",
    "a@b@c",
    "@",
    "a",
    "a-1@b",
    "a-1@c",
    "a-2@b",
    "b-1@b",
    "A-b",
    "b-2",
    "😀-1",
    "\ue000-1",
)
CLIENTS = (
    "192.168.1.1@1000",
    "192.168.1.10@9",
    "a-1",
    "a-2",
    "A-1",
    "b-1",
    "b-1",
    "c-1",
    "?",
    "\ud800",
    "\udbff",
    "a",
    "",
)
PLACES = ("READ_FROM_MEMORY", "READ_FROM_STORE", "MEMORY_FIRST_THEN_STORE")


def _process_queue(random: Random) -> list[Operation]:
    base = random.choice((0, 0, 100, 2**31 - 4, MOST - 12, LEAST, -6))
    width = random.choice((4, 12, 12))
    far = random.random() < 0.1
    high = base

    def offset() -> int:
        if far and random.random() < 0.2:
            return random.choice((LEAST, MOST, 0, -1, 1, 2**53 + 1))
        return base + random.randrange(width)

    def rows(most: int, *, ahead: bool = False) -> list[list[Any]]:
        nonlocal high
        made: list[list[Any]] = []
        for _ in range(random.randrange(most + 1)):
            at = offset()
            if ahead and random.random() < 0.5:
                high = at = min(high + random.randrange(3), base + width)
            made.append([min(at, MOST), random.choice(SIZES)])
            if ahead and random.random() < 0.4:
                near = str(max(min(made[-1][0] + random.randrange(-3, 9), MOST), LEAST))
                made[-1].append(near if random.random() < 0.8 else random.choice(NUMBERS))
        return made

    def expire() -> Operation:
        starts = [
            [
                random.randrange(30),
                random.choice(STARTS) if random.random() < 0.2 else random.randrange(6) * 60000 + 30000,
            ]
            for _ in range(random.randrange(20))
        ]
        return ["expire", starts, random.randrange(4), [offset() for _ in range(random.randrange(4))]]

    makers: list[tuple[int, Callable[[], Operation]]] = [
        (12, lambda: ["put", rows(6, ahead=True)]),
        (8, lambda: ["remove", rows(4)]),
        (6, lambda: ["take", random.choice((-1, 0, 1, 1, 2, 3, 5, 1000))]),
        (2, lambda: ["commit"]),
        (3, lambda: ["rollback"]),
        (3, lambda: ["again", rows(3)]),
        (1, lambda: ["clear"]),
        (1, lambda: ["contains", None if random.random() < 0.1 else [[offset(), 0]]]),
        (2, lambda: ["info"]),
        (2, expire),
        (1, lambda: ["set", random.choice(("dropped", "locked", "tries")), random.randrange(2)]),
        (1, lambda: ["lock_expired", random.choice((0, 20000, 30000, 30001, 40000))]),
        (1, lambda: ["pull_expired", random.choice((0, 100000, 120000, 120001))]),
    ]
    chosen = random.choices([make for _, make in makers], [weight for weight, _ in makers], k=random.randrange(2, 60))
    made: list[Operation] = []
    for make in chosen:
        made.append(make())
        if made[-1][0] == "take" and random.random() < 0.5:
            made.append([random.choice(("commit", "commit", "rollback"))])
    return [*made, ["take", 1000], ["info"]]


def _text(random: Random, known: tuple[str, ...]) -> str:
    """A known name, or a few odd pieces; two halves of a character that meet are that character, as in Java."""
    if random.random() < 0.85:
        return random.choice(known)
    text: str = json.loads(json.dumps("".join(random.choices(ODD, k=random.randrange(1, 5)))))
    return text


def _queues(random: Random, most: int) -> list[list[Any]]:
    topic, plain = _text(random, TOPICS), random.random() < 0.5
    broker = _text(random, BROKERS)
    return [
        [topic, broker, i]
        if plain
        else [
            topic,
            _text(random, BROKERS),
            random.randrange(6) if random.random() < 0.95 else random.choice((-1, 2**31 - 1, -(2**31))),
        ]
        for i in range(random.randrange(1, most))
    ]


def _allocate(random: Random) -> list[Operation]:
    made: list[Operation] = []
    inner = ("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH")
    for _ in range(random.randrange(1, 12)):
        rooms, large = random.random() < 0.5, random.random() < 0.02
        clients = [_text(random, CLIENTS) for _ in range(random.randrange(1, 8))]
        if large:
            clients += [f"10.0.{i % 3}.{i}@{random.randrange(10**5)}" for i in range(random.randrange(60))]
        queues = _queues(random, 300 if large else 24)
        if rooms:
            clients = [text for text in clients if "-" in text[1:]] or ["a-1"]
            queues = [row for row in queues if "-" in row[1][1:]] or [["T", "a-1", 0]]
        for _ in range(3):
            name = random.choice((*inner, "MACHINE_ROOM_NEARBY", "MACHINE_ROOM_NEARBY"))
            config: dict[str, Any] = {"nodes": random.choice((0, 1, 2, 3, 10, 10, 50, -1))}
            named = sorted({row[1].split("@")[0] for row in queues if "@" in row[1]})
            config["rooms"] = random.choice((None, ["a"], ["", "A"], [], named, named, named[:1]))
            config["inner"] = random.choice((*inner, *inner, None))
            nearby = name == "MACHINE_ROOM_NEARBY"
            # Unset inside another strategy: the real class fails there (docs/differences.md).
            config["queues"] = None if not nearby and random.random() < 0.2 else _queues(random, 5)
            client = random.choice(clients) if random.random() < 0.95 else random.choice((None, "", "nobody-1"))
            rare = random.random()
            made.append(
                [
                    name,
                    config,
                    client,
                    random.choice((None, [])) if rare < 0.01 else queues,
                    random.choice((None, [])) if rare > 0.99 else clients,
                ]
            )
    return made


def _offset_store(random: Random) -> list[Operation]:
    def queue() -> int | None:
        return None if random.random() < 0.03 else random.randrange(4)

    def offset() -> int:
        return random.choice((-1, 0, 1, 2, 3, 10, LEAST, MOST)) if random.random() < 0.3 else random.randrange(100)

    def some() -> list[int] | None:
        return None if random.random() < 0.1 else random.sample(range(4), random.randrange(5))

    makers: list[tuple[int, Callable[[], Operation]]] = [
        (8, lambda: ["update", queue(), offset(), random.random() < 0.5]),
        (2, lambda: ["freeze", queue(), offset()]),
        (6, lambda: ["read", queue(), random.choice(PLACES)]),
        (3, lambda: ["persist_all", some()]),
        (2, lambda: ["persist", queue()]),
        (2, lambda: ["remove", queue()]),
        (2, lambda: ["stored", random.randrange(4), None if random.random() < 0.3 else offset()]),
        (1, lambda: ["down", random.randrange(4)]),
    ]
    chosen = random.choices([make for _, make in makers], [weight for weight, _ in makers], k=random.randrange(1, 50))
    return [make() for make in chosen]


def _offset(random: Random) -> list[Operation]:
    return [
        ["freeze", random.randrange(-3, 9)]
        if random.random() < 0.1
        else ["update", random.choice((LEAST, MOST, *range(-3, 9))), random.random() < 0.6]
        for _ in range(random.randrange(1, 20))
    ]


_ALL = [f"T0/{broker}/{i}" for broker in "ab" for i in range(3)]
_FEW = ["T1/a/0", "T1/a/1", "T1/b/0"]
_RETRY = ["%RETRY%G/a/0"]
_WHERE = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP", "CONSUME_FROM_MIN_OFFSET")
_ORDERLY = ("SUCCESS", "SUCCESS", "SUCCESS", "SUSPEND_CURRENT_QUEUE_A_MOMENT", "COMMIT", "ROLLBACK", None, "throw")
_CONCURRENTLY = ("CONSUME_SUCCESS", "CONSUME_SUCCESS", "RECONSUME_LATER", None, "throw", "error")


def _parameter(random: Random) -> tuple[str, int]:
    name = random.choice(
        (
            "pullThresholdForQueue",
            "pullThresholdSizeForQueue",
            "consumeConcurrentlyMaxSpan",
            "pullThresholdForTopic",
            "pullThresholdSizeForTopic",
            "pullInterval",
            "pullBatchSize",
            "consumeMessageBatchMaxSize",
            "consumeMessageBatchMaxSize",
            "maxReconsumeTimes",
            "maxReconsumeTimes",
            "suspendCurrentQueueTimeMillis",
        )
    )
    return name, {
        "pullThresholdForQueue": random.choice((0, 3, 8, 1000)),
        "pullThresholdSizeForQueue": random.choice((-1, 0, 0, 100)),
        "consumeConcurrentlyMaxSpan": random.choice((0, 4, 10, 2000)),
        "pullThresholdForTopic": random.choice((-1, 1, 7, 30)),
        "pullThresholdSizeForTopic": random.choice((-1, 1, 7, 300)),
        "pullInterval": random.choice((0, 0, 70)),
        "pullBatchSize": random.choice((1, 32)),
        "consumeMessageBatchMaxSize": random.choice((1, 2, 3, 32)),
        "maxReconsumeTimes": random.choice((-1, 0, 1, 2, 16, -3)),
        "suspendCurrentQueueTimeMillis": random.choice((3, 1000, 40000)),
    }[name]


def _world(random: Random) -> dict[str, Any]:
    world: dict[str, Any] = {}
    if random.random() < 0.5:
        topic, queues = random.choice((("T0", _ALL), ("T0", _ALL), ("T1", _FEW), ("%RETRY%G", _RETRY)))
        rare = random.random()
        some = (
            None if rare < 0.06 else [] if rare > 0.96 else random.sample(queues, random.randrange(1, len(queues) + 1))
        )
        world["topics"] = {topic: some}
    if random.random() < 0.5:
        world["clients"] = (
            None if random.random() < 0.06 else random.sample(["C1", "C2", "C3", "c0"], random.randrange(5))
        )
    if random.random() < 0.2:
        world["denied"] = random.sample(_ALL + _FEW, random.randrange(5))
    if random.random() < 0.15:
        world["silent"] = random.sample(["a", "b"], random.choice((0, 0, 1, 1, 2)))
    if random.random() < 0.3:
        world["stored"] = {
            queue: random.choice((None, None, 0, 5, 100, 2**31 - 2, MOST - 3, "down", "down", -1, -2))
            for queue in random.sample(_ALL + _FEW, 3)
        }
    if random.random() < 0.2:
        world["max"] = random.choice((0, 7, 7, 1000, MOST, -1, "fails"))
        world["search"] = random.choice((0, 3, 3, MOST - 9, -1, "fails"))
    if random.random() < 0.3:
        world["back_fails"] = random.choice(([], [], list(range(8)), random.sample(range(8), 3)))
        world["send_fails"] = random.choice(([], list(range(8)), random.sample(range(8), 3)))
    return world


def _answer(random: Random) -> dict[str, Any]:
    rare = random.random()
    if rare < 0.03:
        return {"status": None}
    if rare < 0.08:
        return {"status": "broker", "code": random.choice((1, 25, 215))}
    if rare < 0.1:
        return {"status": "client"}
    status = "FOUND" if rare < 0.8 else random.choice(("NO_NEW_MSG", "NO_MATCHED_MSG", "NO_NEW_MSG", "OFFSET_ILLEGAL"))
    rows, at = [], 0 if random.random() < 0.9 else random.randrange(-2, 3)
    for _ in range(random.choice((0, 1, 2, 3, 4, 6, 9)) if status == "FOUND" else 0):
        size = 1 << 20 if random.random() < 0.0005 else random.choice((0, 1, 5))
        tags = random.choice((None, "A", "B", "B", "C"))
        rows.append([at, size, tags, random.choice((0, 0, 0, 1, 2, 16)), int(random.random() < 0.2)])
        at += random.choice((1, 1, 1, 1, 2, 5, 0 if random.random() < 0.1 else 1))
    following = at if random.random() < 0.95 else random.randrange(-3, 4)
    return {"status": status, "rows": rows, "next": following, "min": 0, "max": random.choice((0, 9, 50))}


def _script(random: Random, *, orderly: bool) -> list[dict[str, Any]]:
    script: list[dict[str, Any]] = []
    for _ in range(random.randrange(4)):
        answer: dict[str, Any] = {"status": random.choice(_ORDERLY if orderly else _CONCURRENTLY)}
        if random.random() < 0.03:
            answer["drop"] = True
        if orderly:
            answer["manual"] = random.random() < 0.3
            if random.random() < 0.3:
                answer["suspend"] = random.choice((-1, 5, 500, 50000))
            if random.random() < 0.1:
                answer[random.choice(("unlock", "expire"))] = True
        else:
            answer["delay"] = random.choice((0, 0, 3, -1, 18))
            if random.random() < 0.4:
                answer["ack"] = random.choice((-1, 0, 1, 2, 100, -2 if random.random() < 0.2 else 0))
        script.append(answer)
    return script


def _consumer(random: Random) -> list[Operation]:
    orderly, broadcasting = random.random() < 0.5, random.random() < 0.15
    config = {
        "me": "C2" if random.random() < 0.9 else "C9",
        "orderly": orderly,
        "broadcasting": broadcasting,
        "strategy": random.choice(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
        "where": random.choice(_WHERE),
        "post": random.random() < 0.2,
        "tags": random.choice(("*", "*", "A || B", "C")),
        "set": dict(_parameter(random) for _ in range(random.randrange(4))),
    }
    first: dict[str, Any] = {"clients": ["C1", "C2"], "max": 7, "search": 3, "topics": {"T0": _ALL[:4], "T1": _FEW[:2]}}
    if random.random() < 0.7:
        first["topics"]["%RETRY%G"] = _RETRY

    def place() -> int:
        return random.randrange(1000)

    makers: list[tuple[float, Callable[[], Operation]]] = [
        (2, lambda: ["world", _world(random)]),
        (0.6, lambda: ["set", *_parameter(random)]),
        (2, lambda: ["rebalance"]),
        (10, lambda: ["pull", place()]),
        (10, lambda: ["answer", place(), _answer(random)]),
        (12, lambda: ["run", place(), _script(random, orderly=orderly)]),
        (3, lambda: ["fire", place()]),
        (0.7, lambda: ["lock_all"]),
        (0.2, lambda: ["unlock_all"]),
        (0.7, lambda: ["clean"]),
        (1, lambda: ["stamp", place(), random.choice((870_000, 930_000))]),
        (1, lambda: ["persist"]),
        (0.2, lambda: ["suspend"]),
        (0.4, lambda: ["resume"]),
        (0.15, lambda: ["subscribe", "T0", random.choice(("*", "A", "B||C"))]),
        (0.1, lambda: ["unsubscribe", random.choice(("T0", "T1"))]),
        (0.5, lambda: ["where", random.choice(_ALL + _FEW + _RETRY)]),
        (0.2, lambda: ["room", random.choice((-1, -1, 0, 1, 3) if not orderly else (-1,))]),
        (
            1,
            lambda: [
                "age",
                place(),
                *random.choice((("lock", 10000), ("lock", 21000), ("lock", 31000), ("pull", 121000))),
            ],
        ),
        (0.4, lambda: ["mark", place(), *random.choice((("locked", 0), ("locked", 1), ("dropped", 1)))]),
        (0.3, lambda: ["hold", place(), random.randrange(2)]),
        (0.1, lambda: ["force", random.choice((0, 19999, 20000, 20001, 21000))]),
    ]
    chosen = random.choices([make for _, make in makers], [weight for weight, _ in makers], k=random.randrange(5, 90))
    made: list[Operation] = [["config", config], ["world", first], ["rebalance"], *(make() for make in chosen)]
    if random.random() < 0.2:
        made += [["shutdown"], ["pull", 0], ["pull", 0], ["answer", 0, _answer(random)], ["rebalance"]]
    return made


KINDS: dict[str, Callable[[Random], list[Operation]]] = {
    "process_queue": _process_queue,
    "allocate": _allocate,
    "offset_store": _offset_store,
    "offset": _offset,
    "consumer": _consumer,
    "sql": traces_texts.sql,
    "texts": traces_texts.texts,
    "local_offsets": traces_texts.local_offsets,
}


def trace(kind: str, seed: str) -> Trace:
    """The trace of this kind and seed."""
    return {"kind": kind, "ops": KINDS[kind](Random(f"{kind} {seed}"))}
