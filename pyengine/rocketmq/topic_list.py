"""Lists of message queues as files: a RocketMQ broker's topics.json, or a short form of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyengine.errors import InvalidSourceError
from pyengine.rocketmq import fastjson
from pyengine.rocketmq.allocation import MessageQueue
from pyengine.rocketmq.broker_files import read_topics

SHORT_FORMS = 'accepted: {"topic": 8}, {"topic": {"broker-a": 4}}, [["topic", "broker-a", 0]], a broker\'s topics.json'


def read_queues(path: str | Path, brokers: Sequence[str] = ("broker-a",)) -> list[MessageQueue]:
    """The message queues that a JSON file lists.

    brokers: where topics lie whose entry names no broker; each of them has the topic's number of queues. Accepted are
    a broker's own topics.json (its readQueueNums), ``{"topic": queues}``, ``{"topic": {"broker": queues}}`` and a list
    of ``[topic, broker, queue id]``. Raises InvalidSourceError for a file that cannot be read or says something else.
    """
    source = str(path)
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(source, f"cannot be read: {error}") from error
    document = fastjson.loads(text, source)
    queues: list[MessageQueue] = []
    if isinstance(document, list):
        for place, item in enumerate(document):
            match item:
                case [str(topic), str(broker), int(queue_id)] if queue_id >= 0 and not isinstance(queue_id, bool):
                    queues.append(MessageQueue(topic, broker, queue_id))
                case _:
                    raise InvalidSourceError(source, f"item {place} is {item!r}, no message queue", SHORT_FORMS)
    elif isinstance(document, dict) and "topicConfigTable" in document:
        for topic, number in read_topics(text, source).items():
            queues += [MessageQueue(topic, broker, i) for broker in brokers for i in range(number)]
    elif isinstance(document, dict):
        for topic, places in document.items():
            for broker, count in (places if isinstance(places, dict) else dict.fromkeys(brokers, places)).items():
                if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                    raise InvalidSourceError(source, f"{topic}: {count!r} is no number of queues", SHORT_FORMS)
                queues += [MessageQueue(str(topic), str(broker), i) for i in range(count)]
    else:
        raise InvalidSourceError(source, "is no list of topics", SHORT_FORMS)
    if not queues:
        raise InvalidSourceError(source, "lists no queue", SHORT_FORMS)
    return queues
