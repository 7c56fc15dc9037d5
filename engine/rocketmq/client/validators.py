"""Which values a client may start with or send, and the real one's words for those it may not (spec rocketmq 7)."""

import re
from collections.abc import Iterable, Mapping

from pyengine.errors import MQClientError

FAQ = "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
SUGGESTION = f"\nSee {FAQ} for further details."
MORE = f"\nFor more information, please visit the url, {FAQ}"
UNBROKEN = frozenset("\u0085\u00a0\u2007\u202f")
NAME = re.compile("[%|a-zA-Z0-9_-]+")
MESSAGE_ILLEGAL = 13
# What brokers write themselves (TopicValidator).
SYSTEM_TOPICS = frozenset(
    (
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    )
)
AUTO_CREATE_TOPIC = "TBW102"  # whose queues a topic gets that a send makes
# The topics that brokers keep for themselves (TopicValidator); clients may send to the added ones.
OWN_TOPICS = SYSTEM_TOPICS | {AUTO_CREATE_TOPIC, "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "CHECKPOINT_TOPIC"}

# name, lowest, highest, value that switches the limit off
RANGES = (
    ("consumeThreadMin", 1, 1000, None),
    ("consumeThreadMax", 1, 1000, None),
    ("consumeConcurrentlyMaxSpan", 1, 65535, None),
    ("pullThresholdForQueue", 1, 65535, None),
    ("pullThresholdForTopic", 1, 6553500, -1),
    ("pullThresholdSizeForQueue", 1, 1024, None),
    ("pullThresholdSizeForTopic", 1, 102400, -1),
    ("pullInterval", 0, 65535, None),
    ("consumeMessageBatchMaxSize", 1, 1024, None),
    ("pullBatchSize", 1, 1024, None),
    ("popInvisibleTime", 5000, 300000, None),
    ("popBatchNums", 1, 32, None),
)


def suggested(problem: str) -> str:
    """The text with the real client's pointer to its questions and answers."""
    return problem + SUGGESTION


def attached(problem: str, code: int | None = None) -> str:
    """The text of an MQClientException: its code in front, the FAQ behind unless a pointer is there already."""
    if code is not None:
        problem = f"CODE: {code}  DESC: {problem}"
    return problem if "\nSee " in problem else problem + MORE


def is_blank(name: str) -> bool:
    return not name or (name.isspace() and UNBROKEN.isdisjoint(name))


def length(name: str) -> int:
    """UTF-16 units."""
    return len(name.encode("utf-16-le", "surrogatepass")) // 2


def is_name(name: str) -> bool:
    """Nothing but letters and digits of ASCII and a few signs."""
    return NAME.fullmatch(name) is not None


def check_group(group: str | None) -> None:
    """Raise MQClientError unless a group may have this name (Validators.checkGroup)."""
    if group is None or is_blank(group):
        raise MQClientError(attached("the specified group is blank"))
    if length(group) > 120:
        raise MQClientError(attached(f"the specified group[{group}] is longer than group max length: 120."))
    if not is_name(group):
        raise MQClientError(
            attached(f"the specified group[{group}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
        )


def check_consumer_group(group: str | None) -> None:
    """Raise MQClientError unless a consumer may be of this group."""
    check_group(group)
    if group == "DEFAULT_CONSUMER":
        raise MQClientError(suggested("consumerGroup can not equal DEFAULT_CONSUMER, please specify another one."))


def check_topic(topic: str | None) -> None:
    """Raise MQClientError unless a topic may have this name (Validators.checkTopic)."""
    if topic is not None and is_name(topic) and len(topic) <= 127:
        return  # as nearly always, at the cost of one look
    if topic is None or is_blank(topic):
        raise MQClientError(attached("The specified topic is blank"))
    if length(topic) > 127:
        raise MQClientError(attached("The specified topic is longer than topic max length 127."))
    if not is_name(topic):
        raise MQClientError(
            attached(f"The specified topic[{topic}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
        )


def check_message(topic: str | None, body: bytes | None, most: int) -> None:
    """Raise MQClientError unless such a message may be sent (Validators.checkMessage). most: bytes of a body."""
    check_topic(topic)
    if topic in SYSTEM_TOPICS:
        raise MQClientError(attached(f"Sending message to topic[{topic}] is forbidden."))
    if body is None:
        problem = "the message body is null"
    elif not body:
        problem = "the message body length is zero"
    elif len(body) > most:
        problem = f"the message body size over max value, MAX: {most}"
    else:
        return
    raise MQClientError(attached(problem, MESSAGE_ILLEGAL), MESSAGE_ILLEGAL)


def check_given(names: Iterable[str], values: Mapping[str, object]) -> None:
    """Raise MQClientError for the first of these parameters that is None."""
    for name in names:
        if values[name] is None:
            raise MQClientError(suggested(f"{name} is null"))


def check_ranges(values: Mapping[str, int]) -> None:
    """Raise MQClientError for the first number out of its range, in the real client's order. values: by Java names."""
    for name, low, high, off in RANGES:
        value = values[name]
        if value != off and not low <= value <= high:
            raise MQClientError(suggested(f"{name} Out of range [{low}, {high}]"))
        if name == "consumeThreadMax" and values["consumeThreadMin"] > value:
            raise MQClientError(
                attached(f"consumeThreadMin ({values['consumeThreadMin']}) is larger than consumeThreadMax ({value})")
            )


def allowed_core_pool_size(size: int, maximum: int) -> bool:
    """True if updateCorePoolSize acts on it: a positive short below consumeThreadMax."""
    return 0 < size <= 32767 and size < maximum
