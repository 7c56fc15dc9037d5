"""Lists of message queues as files: a RocketMQ broker's topics.json, or a short form of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyengine.errors import InvalidSourceError
from pyengine.rocketmq import fastjson
from pyengine.rocketmq.allocation import MessageQueue
from pyengine.rocketmq.broker_files import MOST_QUEUES, read_topics
from pyengine.rocketmq.offset_files import INT32

SHORT_FORMS = 'accepted: {"topic": 8}, {"topic": {"broker-a": 4}}, [["topic", "broker-a", 0]], a broker\'s topics.json'


def read_queues(path: str | Path, brokers: Sequence[str] = ("broker-a",)) -> list[MessageQueue]:
    """The message queues that a JSON file lists.

    brokers: where topics lie whose entry names no broker; each of them has the topic's number of queues. Accepted are
    a broker's own topics.json (its readQueueNums), ``{"topic": queues}``, ``{"topic": {"broker": queues}}`` and a list
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
        raise InvalidSourceError(source, "is no list of topics", SHORT_FORMS)
    if not queues:
        raise InvalidSourceError(source, "lists no queue", SHORT_FORMS)
    return queues


def _counts(document: dict[Any, Any], text: str, source: str, brokers: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Topic, broker and how many queues of the topic it has."""
    topics = read_topics(text, source) if "topicConfigTable" in document else document
    for topic, places in topics.items():
        for broker, count in (places if isinstance(places, dict) else dict.fromkeys(brokers, places)).items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise InvalidSourceError(source, f"{topic}: {count!r} is no number of queues", SHORT_FORMS)
            yield str(topic), str(broker), count
