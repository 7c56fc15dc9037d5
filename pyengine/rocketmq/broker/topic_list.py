"""Lists of message queues as files: a RocketMQ broker's topics.json, or a short form of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyengine._engine.rocketmq.client.validators import OWN_TOPICS
from pyengine._engine.wire import fastjson
from pyengine._engine.wire.fastjson import INT32, whole_of
from pyengine.errors import InvalidSourceError
from pyengine.rocketmq.broker.broker_files import MOST_QUEUES, read_topics
from pyengine.rocketmq.broker.topic_config import INHERITED, READ_WRITE, READABLE
from pyengine.rocketmq.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.whole_numbers import is_whole_number

SHORT_FORMS = 'accepted: {"topic": 8}, {"topic": {"broker-a": 4}}, [["topic", "broker-a", 0]], a broker\'s topics.json'

# Beside OWN_TOPICS: what a real broker keeps for itself, and what is a single group's.
_OWN_PREFIXES = ("rmq_sys_", RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)
_REPLY_SUFFIX = "_REPLY_TOPIC"


def read_queues(path: str | Path, brokers: Sequence[str] = ("broker-a",)) -> list[MessageQueue]:
    """The message queues that a JSON file lists.

    brokers: where topics lie whose entry names no broker; each of them has the topic's number of queues. Accepted are
    a broker's own topics.json (its readQueueNums, without the topics that it keeps for itself, those of retries and
    dead letters, and those that may not be read), ``{"topic": queues}``, ``{"topic": {"broker": queues}}`` and a list
    of ``[topic, broker, queue id]``. Raises InvalidSourceError for a file that cannot be read or
    says something else, and for more than MOST_QUEUES.
    """
    source = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        hint = "give the path of a JSON file of topics, as a broker's topics.json"
        raise InvalidSourceError(source, f"cannot be read: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise InvalidSourceError(source, f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from error
    except ValueError as error:  # a name with a NUL in it
        raise InvalidSourceError(source, f"cannot be read: {error}") from error
    return queues_in(text, source, brokers)


def queues_in(text: str, source: str, brokers: Sequence[str] = ("broker-a",)) -> list[MessageQueue]:
    """The same of a file's content. source: where it is from."""
    if not text.strip():
        raise InvalidSourceError(source, "is empty", SHORT_FORMS)
    document = fastjson.loads(text, source)
    queues: list[MessageQueue] = []
    if isinstance(document, list):
        for place, item in enumerate(document):
            match item:
                case [str(topic), str(broker), int(queue_id)] if 0 <= queue_id < INT32 and not isinstance(
                    queue_id, bool
                ):
                    queues.append(MessageQueue(topic, broker, queue_id))
                case _:
                    raise InvalidSourceError(source, f"item {place} is {item!r}, no message queue", SHORT_FORMS)
    elif isinstance(document, dict):
        counts = list(_counts(document, text, source, brokers))
        total = sum(count for _, _, count in counts)
        if total > MOST_QUEUES:
            raise InvalidSourceError(source, f"lists {total} queues, more than {MOST_QUEUES}", SHORT_FORMS)
        queues = [MessageQueue(topic, broker, i) for topic, broker, count in counts for i in range(count)]
    else:
        raise InvalidSourceError(source, "is not a list of topics", SHORT_FORMS)
    if not queues:
        raise InvalidSourceError(source, "lists no queue", SHORT_FORMS)
    return queues


def _counts(document: dict[Any, Any], text: str, source: str, brokers: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Topic, broker and how many queues of the topic it has."""
    table = fastjson.member(document, "topicConfigTable")
    topics = document if table is None else _consumed(table, text, source)
    for topic, places in topics.items():
        for broker, count in (places if isinstance(places, dict) else dict.fromkeys(brokers, places)).items():
            if not is_whole_number(count, 0):
                raise InvalidSourceError(source, f"{topic}: {count!r} is not a number of queues", SHORT_FORMS)
            yield str(topic), str(broker), count


def _consumed(table: dict[str, Any], text: str, source: str) -> dict[str, int]:
    """The topics of a broker's topics.json that a consumer group may share among its clients. table: its entries."""
    topics = read_topics(text, source)
    rights = {
        topic: whole_of(
            fastjson.member(table[topic], "perm"), INT32, f"topicConfigTable.{topic}.perm", source, absent=READ_WRITE
        )
        for topic in topics
    }
    # Those named as the cluster and the broker.
    passed_on = {topic for topic, perm in rights.items() if perm & INHERITED}
    return {
        topic: queues
        for topic, queues in topics.items()
        if topic not in OWN_TOPICS
        and not topic.startswith(_OWN_PREFIXES)
        and rights[topic] & READABLE
        and topic not in passed_on
        and not (topic.endswith(_REPLY_SUFFIX) and topic.removesuffix(_REPLY_SUFFIX) in passed_on)
    }
