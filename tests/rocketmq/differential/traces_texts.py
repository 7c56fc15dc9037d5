"""Random texts: SQL92 filters, subscriptions, names, times, parameters, and files of offsets."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from pyengine.rocketmq import MessageQueue
from pyengine.rocketmq.broker.offset_files import local_offset_text
from tests.model import selector_text
from tests.model.selector_text import Selectors

LEAST, MOST = -(2**63), 2**63 - 1
NAMES = tuple(name for name in selector_text.NAMES if not name.startswith("JMS"))
EDGES = (0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53 + 1, MOST, LEAST)
VALUES = (
    "",
    " ",
    "a",
    "A",
    "true",
    "TRUE",
    "false",
    "yes",
    "gold%",
    "it's",
    "a_c",
    "é",
    "😀",
    "\ud800",
    "\0",
    "3",
    "+3",
    "-3",
    "03",
    "3.",
    ".5",
    "0.5",
    "1e3",
    "1E-3",
    "5d",
    "5F",
    "5L",
    " 5",
    "5 ",
    "5\u3000",
    "1_0",
    "٣",
    "\U0001d7df",
    "²",
    "0x1F",
    "0x1p3",
    "0x.8p1d",
    "0x1",
    "NaN",
    "-NaN",
    "Infinity",
    "+Infinity",
    "-infinity",
    "inf",
    "-0",
    "-0.0",
    "1e400",
    "1e-400",
    "4.9E-324",
    "9007199254740993",
    "2147483647.5",
    "1.7976931348623157E308",
    "0." + "0" * 30 + "1",
    "9" * 40,
    "0" * 40 + "7",
    *map(str, EDGES),
    str(MOST + 1),
    str(LEAST - 1),
)
COMPARED = (
    "{n} = {c}",
    "{n} <> {c}",
    "{n} < {c}",
    "{n} <= {c}",
    "{n} > {c}",
    "{n} >= {c}",
    "{c} = {n}",
    "{c} < {n}",
    "{n} BETWEEN {c} AND {d}",
    "{n} NOT BETWEEN {c} AND {d}",
    "{n} = {m}",
    "{n} < {m}",
    "{n} >= {m}",
    "{n} IN ({t}, {u})",
    "{n} NOT IN ({t})",
    "{n} CONTAINS {t}",
    "{n} NOT STARTSWITH {t}",
    "{n} ENDSWITH {t}",
    "-{n} = {c}",
    "{n} = -{c}",
    "{n} = TRUE",
    "TRUE = {n}",
    "{n} = {n}",
    "{n} IS NULL",
    "NOT ({n} = {c})",
    "{c} = {d}",
    "{c} > {d}",
)
CONSTANTS = (
    "0",
    "3",
    "3L",
    "3l",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775807L",
    "9223372036854775808",
    "0.5",
    "3.0",
    "1e3",
    "1.",
    ".5e1",
    "1.7976931348623157E308",
    "4.9E-324",
    "1e309",
    "9007199254740993",
    "9007199254740992.0",
    "'3'",
    "'a'",
    "''",
    "TRUE",
    "FALSE",
    "NULL",
)
TEXTS = ("''", "'a'", "'A'", "'é'", "'😀'", "'3'", "'it''s'", "' '")
ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata")
SIGNS = (
    "",
    " ",
    "\t",
    "\u3000",
    "\u00a0",
    "\u0085",
    "\x1c",
    "\ufeff",
    "-",
    "_",
    "%",
    "|",
    "||",
    " || ",
    "*",
    "a",
    "TagA",
    "主",
    "é",
    "😀",
    "\ud800",
    "\0",
    "@",
    "+",
    "\u0661",
)
NUMBERS = (
    "consumeThreadMin",
    "consumeThreadMax",
    "consumeConcurrentlyMaxSpan",
    "pullThresholdForQueue",
    "pullThresholdForTopic",
    "pullThresholdSizeForQueue",
    "pullThresholdSizeForTopic",
    "pullInterval",
    "consumeMessageBatchMaxSize",
    "pullBatchSize",
    "popInvisibleTime",
    "popBatchNums",
    "pullBatchSizeInBytes",
    "maxReconsumeTimes",
    "suspendCurrentQueueTimeMillis",
    "consumeTimeout",
    "adjustThreadPoolNumsThreshold",
    "popThresholdForQueue",
    "awaitTerminationMillisWhenShutdown",
)
LIMITS = (
    *(-2, -1, 0, 1, 2, 20, 21, 32, 33, 1000, 1001, 1024, 1025, 4999, 5000, 65535, 65536, 102400, 102401),
    *(300000, 300001, 6553500, 6553501, 2**31 - 1, -(2**31)),
)
KNOWN = (
    *("consumerGroup", "messageModel", "consumeFromWhere", "consumeTimestamp", "messageListener", "subscription"),
    "allocateMessageQueueStrategy",
)


def whole(text: str) -> str:
    """Two halves of a character that meet are that character, as in Java."""
    read: str = json.loads(json.dumps(text))
    return read


def signs(random: Random, most: int = 6) -> str:
    return whole("".join(random.choices(SIGNS, k=random.randrange(most))))


def sql(random: Random) -> list[list[Any]]:
    texts = Selectors(random.randrange(2**32), "rocketmq")
    made: list[list[Any]] = []
    for _ in range(20):
        expression = texts.any() if random.random() < 0.5 else compared(random)
        if random.random() < 0.1:
            expression = f"{compared(random)} {random.choice(('AND', 'OR'))} {expression}"
        for _ in range(2):
            names = random.sample(NAMES, random.randrange(1, len(NAMES)))
            made.append([whole(expression), {name: random.choice(VALUES) for name in names}])
    return made


def compared(random: Random) -> str:
    pick = random.choice
    return pick(COMPARED).format(
        n=pick(NAMES), m=pick(NAMES), c=pick(CONSTANTS), d=pick(CONSTANTS), t=pick(TEXTS), u=pick(TEXTS)
    )


def timestamp(random: Random) -> list[Any]:
    rare = random.random()
    if rare < 0.5:
        # Around the changes of summer time of the zones above.
        day = random.choice(("20240310", "20241103", "20240331", "20241027", "20240407", "20241006", "19860504"))
        return ["timestamp", random.choice(ZONES), f"{day}{random.randrange(5):02}{random.randrange(60):02}00"]
    if rare < 0.75:
        year = random.choice((1970, 1999, 2000, 2024, 2038, 2100))
        rest = "".join(f"{random.randrange(most):02}" for most in (14, 33, 26, 62, 62))
        return ["timestamp", random.choice(ZONES), f"{year}{rest}{random.choice(('', '', 'x', '9', ' '))}"]
    parts = ["2024", "01", "1", "-1", " 2", "0", "E2", "00", "99", "-", " ", "NaN", "∞", "٣", "x", ":"]
    return ["timestamp", "UTC", "".join(random.choices(parts, k=random.randrange(10)))]


def parameters(random: Random) -> list[Any]:
    rows: list[list[Any]] = []
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        rows.append([random.choice(NUMBERS), random.choice(LIMITS)])
    if random.random() < 0.4:
        name = random.choice(KNOWN)
        value: Any = None
        if name == "consumerGroup" and random.random() < 0.9:
            value = random.choice((signs(random), "G" * random.choice((119, 120)), "DEFAULT_CONSUMER"))
        elif name == "consumeTimestamp":
            value = timestamp(random)[2]
        elif random.random() < 0.5:
            value = {"messageModel": "BROADCASTING", "consumeFromWhere": "CONSUME_FROM_MAX_OFFSET"}.get(name)
            value = "orderly" if name == "messageListener" else value
        rows.insert(random.randrange(len(rows) + 1), [name, value])
    return ["config", rows]


def queue_row(random: Random) -> list[Any]:
    names = ("T", "t", "T1", "T10", "主题", "😀", "\ue000", "", "%RETRY%G", "a\ud800")
    return [random.choice(names), random.choice(names), random.choice((0, 1, 2, 10, 2**31 - 1))]


def texts(random: Random) -> list[list[Any]]:
    makers: list[Callable[[], list[Any]]] = [
        lambda: ["subscription", None if random.random() < 0.05 else signs(random, 9), random.choice((None, "TAG"))],
        lambda: ["subscription", signs(random, 3), random.choice(("SQL92", "x", "tag", " ", ""))],
        lambda: ["tags_code", None if random.random() < 0.1 else signs(random)],
        lambda: timestamp(random),
        lambda: timestamp(random),
        lambda: ["queue", queue_row(random)],
        lambda: ["sort", [queue_row(random) for _ in range(random.randrange(9))]],
        lambda: ["sort_clients", [signs(random) for _ in range(random.randrange(9))]],
        lambda: ["names", random.choice(("G", "", "%RETRY%G", "主", "%DLQ%G"))],
        lambda: ["send", topic(random), random.choice((None, 0, 1, 1, 999, 1000, 1001))],
        lambda: parameters(random),
        lambda: parameters(random),
        lambda: parameters(random),
    ]
    return [random.choice(makers)() for _ in range(30)]


def topic(random: Random) -> str:
    system = ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "TBW102", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT")
    return random.choice((signs(random), "T" * random.choice((126, 127, 128)), "😀" * 64, "T", "T", *system))


def file_text(random: Random) -> str | None:
    """What a file may hold: nothing, what the store writes, that cut off, or the same in other words."""
    rare = random.random()
    if rare < 0.1:
        return None
    if rare < 0.2:
        return random.choice(("", "{}", "null", "x", "{", '{"offsetTable":{}}', '{"more":[{}]}'))
    table = {}
    for _ in range(random.randrange(4)):
        topic, broker, number = local_queue(random).split("/")
        table[MessageQueue(topic, broker, int(number))] = random.choice(EDGES)
    text = local_offset_text(table)
    if random.random() < 0.2:
        return text[: random.randrange(len(text))]
    while random.random() < 0.5:
        old, new = random.choice(OTHER_WORDS)
        places = [at for at in range(len(text)) if text.startswith(old, at)]
        if places:
            at = random.choice(places)
            text = text[:at] + new + text[at + len(old) :]
    return text


def local_queue(random: Random) -> str:
    """topic/broker/number."""
    names = random.choice(("T", "主题", '"', "a\\b")), random.choice(("broker-a", "b@c"))
    return f"{'/'.join(names)}/{random.randrange(3)}"


def local_offsets(random: Random) -> list[list[Any]]:
    def queue() -> str | None:
        return None if random.random() < 0.03 else local_queue(random)

    makers: list[tuple[int, Callable[[], list[Any]]]] = [
        (6, lambda: ["update", queue(), random.choice(EDGES), random.random() < 0.5]),
        (1, lambda: ["freeze", queue(), random.choice(EDGES)]),
        (3, lambda: ["read", queue(), random.choice(PLACES)]),
        (3, lambda: ["persist_all", None if random.random() < 0.1 else [local_queue(random) for _ in range(3)]]),
        (2, lambda: ["persist", queue()]),
        (1, lambda: ["remove", queue()]),
        (1, lambda: ["write", random.choice(("main", "main", "bak")), file_text(random)]),
        (1, lambda: ["restart"]),
        (1, lambda: ["load"]),
    ]
    chosen = random.choices([make for _, make in makers], [weight for weight, _ in makers], k=random.randrange(1, 30))
    return [["write", "main", file_text(random)], ["load"], *(make() for make in chosen)]


OTHER_WORDS = (
    (",", ", "),
    ("}", "}}"),
    ("}", ",}"),
    ("}", ""),
    ("}", "]"),
    (":", " : "),
    (":", ":\n"),
    (":", "="),
    ("\n", "\r\n"),
    ("\n", "\u00a0"),
    ("\n", "/* c */"),
    ("\n", "// c\n"),
    ('"topic"', "topic"),
    ('"topic"', "'topic'"),
    ('"topic"', '"more":{"a":[1,2.5,true,null]},"topic"'),
    ('"topic"', '"to\\u0070ic"'),
    ('"queueId":1', '"queueId":"1"'),
    ('"queueId"', '"queue_id"'),
    ('"brokerName"', '"BrokerName"'),
    ('"offsetTable"', '"OFFSET-table"'),
    ('"topic":"T"', '"topic":0'),
    ('"queueId":1', '"queueId":1.0'),
    ('"queueId":1', '"queueId":null'),
    ('"queueId":1', '"queueId":2147483648'),
    (":0\n", ":0L\n"),
    (":0\n", ':"0"\n'),
    (":0\n", ":0.0\n"),
    (":0\n", ":1e2\n"),
    (":0\n", ":00\n"),
    (":0\n", ":null\n"),
    (":0\n", ":9223372036854775808\n"),
    ('{\n\t"off', '\ufeff{\n\t"off'),
    ('{\n\t"off', '{"dataVersion":{"counter":1},\n\t"off'),
)
PLACES = ("READ_FROM_MEMORY", "READ_FROM_STORE", "MEMORY_FIRST_THEN_STORE")
