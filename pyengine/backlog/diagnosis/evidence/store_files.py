"""RocketMQ's own files, in fastjson's dialect: consumerOffset.json, offsets.json, topics.json, subscriptionGroup.json,
and the JSON of ConsumeStats (what the admin tools get from a broker). The other files of a broker's config folder are
known and tell nothing of a backlog."""

from __future__ import annotations

import re
from typing import Any

from pyengine._engine.wire import fastjson
from pyengine.backlog.diagnosis.evidence.model import (
    Evidence,
    GroupSettings,
    OffsetState,
    Remark,
    Source,
    TopicSettings,
)
from pyengine.backlog.diagnosis.evidence.needs import BROKER_OFFSETS_TOO, PROGRESS_TOO
from pyengine.backlog.diagnosis.evidence.numbers import object_of, whole
from pyengine.backlog.findings import say
from pyengine.rocketmq.broker.offset_files import read_consumer_offsets, read_local_offsets

TABLES = ("offsetTable", "topicConfigTable", "subscriptionGroupTable")
# What stands in the other files of a broker's config folder: filters, modes, mappings and half messages.
UNJUDGED = ("filterDataByTopic", "messageRequestModeMap", "topicQueueMappingInfoMap", "transactionCount")
ORDER_INFO = re.compile(r'\s*\{\s*"table"\s*:')  # consumerOrderInfo.json


def recognises(text: str) -> bool:
    """True for a document with one of the tables, or another of a broker's files."""
    named = any(f'"{name}"' in text for name in (*TABLES, *UNJUDGED))
    return (text.lstrip()[:1] == "{" and named) or ORDER_INFO.match(text) is not None


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Offsets, topics or groups; an offset file knows nothing of the broker's newest offset."""
    document = fastjson.loads(text, file)
    found = Evidence()
    table = document.get("offsetTable")
    name = _name(document)
    needs = BROKER_OFFSETS_TOO if name in ("consumerOffset.json", "offsets.json") else PROGRESS_TOO
    found.sources.append(Source(file, name, () if modified is None else (modified,), needs=needs))
    if not _is_judged(document):
        return found
    if "topicConfigTable" in document:
        _topics(object_of("topicConfigTable", document["topicConfigTable"]), file, found)
    elif "subscriptionGroupTable" in document:
        _groups(object_of("subscriptionGroupTable", document["subscriptionGroupTable"]), file, found)
    elif (
        isinstance(table, dict)
        and table
        and all(isinstance(value, dict) and "brokerOffset" in value for value in table.values())
    ):
        _consume_stats(table, file, modified, found)
    elif isinstance(table, dict) and table and all(isinstance(key, tuple) for key in table):
        for queue, offset in read_local_offsets(text, file).items():
            found.offsets.append(
                _state(file, modified, _group_of(file), queue.topic, queue.broker_name, queue.queue_id, None, offset)
            )
    else:
        for key, queues in read_consumer_offsets(text, file)[0].items():
            topic, _, group = key.partition("@")
            for queue_id, offset in queues.items():
                found.offsets.append(_state(file, modified, group, topic, "", queue_id, None, offset))
    return found


def _name(document: dict[str, Any]) -> str:
    """What the file is called in a broker's or client's folder."""
    table = document.get("offsetTable")
    if "topicConfigTable" in document:
        return "topics.json"
    if "subscriptionGroupTable" in document:
        return "subscriptionGroup.json"
    if not _is_judged(document):
        return say("a file of the broker's config folder")
    if isinstance(table, dict) and table and all(isinstance(key, tuple) for key in table):
        stats = all(isinstance(value, dict) and "brokerOffset" in value for value in table.values())
        return "ConsumeStats" if stats else "offsets.json"
    return "consumerOffset.json"


def _is_judged(document: dict[str, Any]) -> bool:
    """False for files of a broker that tell nothing of a backlog; so does delayOffset.json, whose keys are levels."""
    table = document.get("offsetTable")
    if isinstance(table, dict) and table and all(isinstance(level, int) for level in table):
        return False
    return any(name in document for name in TABLES) or not any(name in document for name in (*UNJUDGED, "table"))


def _state(
    file: str, time: int | None, group: str, topic: str, broker: str, queue: int, newest: int | None, offset: int
) -> OffsetState:
    return OffsetState(file, time, "rocketmq", group, topic, broker, queue, newest, offset)


def _group_of(file: str) -> str:
    """The real client keeps offsets.json in a folder named after the group."""
    parts = file.replace("\\", "/").split("/")
    return parts[-2] if len(parts) > 1 and parts[-1].startswith("offsets.json") else ""


def _consume_stats(table: dict[Any, dict[str, Any]], file: str, time: int | None, found: Evidence) -> None:
    for key, wrapper in table.items():
        queue = dict(key) if isinstance(key, tuple) else {}
        consumer, pulled = whole("consumerOffset", wrapper.get("consumerOffset")), wrapper.get("pullOffset")
        found.offsets.append(
            OffsetState(
                file,
                time,
                "rocketmq",
                "",
                str(queue.get("topic", key)),
                str(queue.get("brokerName", "")),
                whole("queueId", queue.get("queueId", 0)),
                whole("brokerOffset", wrapper["brokerOffset"]),
                consumer,
                inflight=None if pulled is None else whole("pullOffset", pulled) - consumer,
                last_time=whole("lastTimestamp", wrapper.get("lastTimestamp", 0)),
            )
        )


def _topics(table: dict[str, Any], file: str, found: Evidence) -> None:
    for name, topic in table.items():
        if not isinstance(topic, dict):
            found.remarks.append(
                Remark(file, 0, f"topic {name}", say("not a topic's settings: {error}", error=repr(topic)))
            )
            continue
        try:
            numbers = (
                whole("readQueueNums", topic["readQueueNums"]),
                whole("writeQueueNums", topic["writeQueueNums"]),
                whole("perm", topic.get("perm", 6)),
            )
        except (KeyError, TypeError, ValueError) as error:
            found.remarks.append(
                Remark(file, 0, f"topic {name}", say("not a topic's settings: {error}", error=repr(error)))
            )
            continue
        found.topics.append(TopicSettings(file, str(name), *numbers))


def _groups(table: dict[str, Any], file: str, found: Evidence) -> None:
    for name, group in table.items():
        if not isinstance(group, dict):
            found.remarks.append(Remark(file, 0, f"group {name}", say("not a group's settings")))
            continue
        try:
            retries = whole("retryMaxTimes", group.get("retryMaxTimes", 16))
            queues = whole("retryQueueNums", group.get("retryQueueNums", 1))
        except ValueError as error:
            found.remarks.append(Remark(file, 0, f"group {name}: {error}", say("a number was expected")))
            continue
        found.group_settings.append(
            GroupSettings(file, str(name), bool(group.get("consumeEnable", True)), retries, queues)
        )
