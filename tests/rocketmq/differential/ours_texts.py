"""What pyengine makes of texts and parameters, as java/RealTexts.java and java/RealLocalOffsets.java answer."""

from __future__ import annotations

import atexit
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import pyengine
from pyengine import rocketmq
from pyengine.errors import MQClientError, NullArgumentError, PyengineError
from pyengine.rocketmq.broker.offset_files import read_local_offsets
from tests.conformance.activemq_selector import answers
from tests.rocketmq.differential.traces import Operation

CLIENT = "org.apache.rocketmq.client.exception.MQClientException"


class Sql:
    """A filter, asked in every shape."""

    def play(self, operation: Operation) -> Any:
        expression, properties = operation
        try:
            selector = pyengine.Selector(expression, "rocketmq")
        except pyengine.InvalidSelectorError:
            return "parse"
        found = answers(selector, pyengine.Message(properties), properties)
        asked = {json.dumps([value, all(rest)]) for (_, value, *rest) in found.values()}
        if len(asked) > 1:
            return found
        value = found["dict"][1]
        matches = "TRUE" if value == "TRUE" else "ERROR-eval" if value == "ERROR-eval" else "FALSE"
        if any(answer[0] != matches for answer in found.values()):
            return found
        return {"TRUE": True, "FALSE": False, "NULL": None, "ERROR-eval": "eval"}[value]

    def state(self) -> None:
        return None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: "_" + match.group(1).lower(), name)


class Texts:
    """Subscriptions, names, times and parameters."""

    def play(self, operation: Operation) -> Any:
        name, *asked = operation
        try:
            return getattr(self, name)(*asked)
        except MQClientError as error:
            return {"class": CLIENT, "text": error._words()}
        except NullArgumentError:
            return {"class": "java.lang.NullPointerException", "text": None}

    def subscription(self, text: str | None, kind: str | None) -> Any:
        try:
            data = rocketmq.build_subscription("T", rocketmq.MessageSelector(text, kind))
        except NullArgumentError as error:
            return {"class": "java.lang.IllegalArgumentException", "text": error._words()}
        except MQClientError as error:
            return {"class": "java.lang.Exception", "text": error._words()}
        tags = sorted(data.tags_set, key=lambda tag: tag.encode("utf-16-be", "surrogatepass"))
        return [data.sub_string, tags, sorted(data.code_set), data.expression_type]

    def tags_code(self, tags: str | None) -> int:
        return rocketmq.tags_code(tags)

    def timestamp(self, zone: str, text: str) -> int | None:
        if rocketmq.parse_consume_timestamp(text) is None:
            return None
        before = os.environ.get("TZ")
        try:
            os.environ["TZ"] = zone
            time.tzset()
            return rocketmq.ConsumerParameters(consume_timestamp=text).consume_timestamp_millis()
        finally:
            if before is None:
                del os.environ["TZ"]
            else:
                os.environ["TZ"] = before
            time.tzset()

    def queue(self, row: list[Any]) -> list[Any]:
        queue = rocketmq.MessageQueue(*row)
        return [str(queue), queue.hash_code()]

    def sort(self, rows: list[list[Any]]) -> list[list[Any]]:
        return [list(queue) for queue in rocketmq.sort_queues([rocketmq.MessageQueue(*row) for row in rows])]

    def sort_clients(self, clients: list[str]) -> list[str]:
        return list(rocketmq.sort_client_ids(clients))

    def names(self, group: str) -> list[str]:
        return [rocketmq.retry_topic(group), rocketmq.dlq_topic(group)]

    def send(self, topic: str, size: int | None) -> None:
        PRODUCER.send(rocketmq.Message(topic, None if size is None else bytes(size)))

    def config(self, rows: list[list[Any]]) -> None:
        consumer = rocketmq.DefaultMQPushConsumer("G", broker=BROKER)
        consumer.register_message_listener(lambda messages, context: None)
        for name, value in rows:
            given = value
            if value is not None and name == "messageModel":
                given = rocketmq.MessageModel[value]
            elif value is not None and name == "consumeFromWhere":
                given = rocketmq.ConsumeFromWhere[value]
            elif value == "orderly":
                given = rocketmq.MessageListenerOrderly(lambda messages, context: None)
            setattr(consumer, _snake(name), given)
        consumer.check_config(consumer.consumer_group)

    def state(self) -> None:
        return None


def _queue(name: str) -> rocketmq.MessageQueue:
    topic, broker, number = name.split("/")
    return rocketmq.MessageQueue(topic, broker, int(number))


class LocalOffsets:
    """The offsets of a broadcasting consumer and their files."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="offsets", dir=FOLDER.name)
        self.restart()

    def restart(self) -> None:
        self.store = rocketmq.LocalFileOffsetStore("C", "G", directory=Path(self.folder))

    def play(self, operation: Operation) -> Any:
        name, *asked = operation
        if name in ("restart", "load"):
            return {"restart": self.restart, "load": self.store.load}[name]()
        if name == "write":
            path = self.store.path.with_name("offsets.json" + (".bak" if asked[0] == "bak" else ""))
            path.parent.mkdir(parents=True, exist_ok=True)
            if asked[1] is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(asked[1].encode())
            return None
        if name == "persist_all":
            return self.store.persist_all(asked[0] and {_queue(name) for name in asked[0]})
        queue = None if asked[0] is None else _queue(asked[0])
        if name == "update":
            return self.store.update_offset(queue, asked[1], increase_only=asked[2])
        if name == "freeze":
            return self.store.update_and_freeze_offset(queue, asked[1])
        if name == "read":
            return self.store.read_offset(queue, rocketmq.ReadOffsetType[asked[1]])
        return {"persist": self.store.persist, "remove": self.store.remove_offset}[name](queue)

    def state(self) -> Any:
        memory = [[*queue, offset] for queue, offset in self.store.offsets().items()]
        paths = (self.store.path, self.store.path.with_name("offsets.json.bak"))
        return local_state([memory, *(path.read_bytes().decode() if path.exists() else None for path in paths)])


def local_state(state: list[Any]) -> list[Any]:
    """The memory and what is read in both files, where the order of entries means nothing."""
    memory, *files = state
    found: list[Any] = [sorted(memory, key=str)]
    for text in files:
        try:
            table = None if text is None else read_local_offsets(text)
        except PyengineError:
            found.append(text)
        else:
            found.append(table and sorted(([*queue, offset] for queue, offset in table.items()), key=str))
    return found


FOLDER = tempfile.TemporaryDirectory(prefix="pyengine-rocketmq-")
atexit.register(FOLDER.cleanup)
BROKER = rocketmq.Broker()
PRODUCER = rocketmq.Producer(BROKER, max_message_size=1000)
