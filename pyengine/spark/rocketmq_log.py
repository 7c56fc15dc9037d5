"""Spark data source ``rocketmq_log``: the logs of an embedded RocketMQ cluster, read and written.

Reading locks nothing, the brokers may be running. Writing opens the cluster itself when all tasks are done: what is
stored, where and with what ids is the brokers' own doing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine._engine.rocketmq.client.validators import check_group, check_message
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, InvalidMessageError, InvalidSourceError
from pyengine.rocketmq.broker.broker import Broker
from pyengine.rocketmq.broker.log_reader import LogReader, brokers_of
from pyengine.rocketmq.broker.message_check import check_sent_message
from pyengine.rocketmq.broker.message_store import SCHEDULE_TOPIC
from pyengine.rocketmq.message import (
    MAX_MESSAGE_SIZE,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    Message,
    MessageExt,
)
from pyengine.rocketmq.remoting.producer import Producer
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.spark.log_source import (
    LogSource,
    StreamWriter,
    TableReader,
    Target,
    another_checkpoint,
    batches_of,
    check_columns,
)
from pyengine.spark.staging import forget, new_folder, paths_of, staged_rows
from pyengine.spark.state_files import write_whole

HOST = bytes(8)

_READ = pa.schema(
    [
        ("topic", pa.string()), ("broker_name", pa.string()), ("queue_id", pa.int32()), ("queue_offset", pa.int64()),
        ("commit_log_offset", pa.int64()), ("msg_id", pa.string()), ("tags", pa.string()), ("keys", pa.string()),
        ("body", pa.binary()), ("properties", pa.map_(pa.string(), pa.string())), ("flag", pa.int32()),
        ("born_timestamp", pa.int64()), ("store_timestamp", pa.int64()), ("born_host", pa.string()),
        ("reconsume_times", pa.int32()),
    ]
)  # fmt: skip
_SENT = {
    "topic": "string", "body": "binary", "tags": "string", "keys": "string", "properties": "map<string,string>",
    "flag": "int", "delay_time_level": "int", "broker_name": "string", "queue_id": "int",
}  # fmt: skip


class RocketMQLog(LogSource):
    """What ``.format("rocketmq_log")`` means to Spark; see docs/logs.md."""

    READ = _READ
    GROWS = "a log only grows"

    @classmethod
    def name(cls) -> str:
        return "rocketmq_log"

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.options.get("topic", "").split(",") if name.strip())

    def reader(self, schema: StructType) -> _Reader:
        return _Reader(Path(self.directory), self.topics)

    def streamReader(self, schema: StructType) -> _StreamReader:  # noqa: N802
        at = self.options.get("startingOffsets", "earliest")
        if at not in ("earliest", "latest"):
            raise ConfigurationError("startingOffsets", at, "unknown", "earliest or latest are accepted")
        return _StreamReader(Path(self.directory), self.topics, at == "latest")

    def target(self, schema: StructType) -> _Target:
        check_columns(schema, _SENT, "topic", "body")
        names = tuple(name.strip() for name in self.options.get("brokers", "").split(",") if name.strip())
        if not names:
            try:
                names = tuple(brokers_of(Path(self.directory)))
            except InvalidSourceError:  # nothing was ever stored there
                names = ("broker-a",)
        group = self.options.get("group", "DEFAULT_PRODUCER")
        check_group(group)
        return _Target(self.directory, new_folder(self.directory), names, group)

    def stream_writer(self, schema: StructType, name: str, checkpoint: str) -> _StreamWriter:
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigurationError(
                "stream", name, "needs a name of letters, digits, - and _", "the log knows by it what it already has"
            )
        return _StreamWriter(self.target(schema), name, checkpoint)


# Reading


@dataclass(frozen=True)
class _Part(InputPartition):
    """A piece of a broker's log. smallest: the smallest offsets that are left, by topic and queue id."""

    broker: str
    start: int
    end: int
    smallest: tuple[tuple[tuple[str, int], int], ...] = ()


def _batches(directory: Path, topics: frozenset[str], part: _Part) -> Iterator[pa.RecordBatch]:
    smallest = dict(part.smallest)
    found = (
        _row(message)
        for message in LogReader(directory, part.broker).messages(part.start, part.end)
        if (message.topic in topics if topics else message.topic != SCHEDULE_TOPIC)
        and message.queue_offset >= smallest.get((message.topic, message.queue_id), 0)
    )
    return batches_of(found, _READ)


def _row(message: MessageExt) -> tuple[Any, ...]:
    return (
        message.topic, message.broker_name, message.queue_id, message.queue_offset, message.commit_log_offset,
        message.msg_id, message.tags, message.keys, message.body, list(message.properties.items()), message.flag,
        message.born_timestamp, message.store_timestamp, message.born_host, message.reconsume_times,
    )  # fmt: skip


@dataclass(frozen=True)
class _Reader(TableReader):
    """What the brokers still have."""

    topics: frozenset[str]

    def partitions(self) -> Sequence[InputPartition]:
        found: list[InputPartition] = []
        for name in brokers_of(self.directory):
            log = LogReader(self.directory, name)
            start, end = log.start(), log.end()
            smallest = tuple(log.smallest_offsets(start, end).items())
            found += [_Part(name, low, high, smallest) for low, high in log.parts(start, end)]
        return found

    def rows(self, partition: _Part) -> Iterator[pa.RecordBatch]:
        return _batches(self.directory, self.topics, partition)


class _StreamReader(DataSourceStreamReader):
    """Every message that is stored; an offset is {broker: position in its log}."""

    def __init__(self, directory: Path, topics: frozenset[str], from_latest: bool) -> None:
        self.directory = directory
        self.topics = topics
        self.from_latest = from_latest
        self._ends: dict[str, int] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        if self.from_latest:
            return self.latestOffset()
        return {name: LogReader(self.directory, name).start() for name in brokers_of(self.directory)}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        for name in brokers_of(self.directory):
            self._ends[name] = LogReader(self.directory, name).end(self._ends.get(name, 0))
        return dict(self._ends)

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        found: list[InputPartition] = []
        for name, upto in end.items():
            log = LogReader(self.directory, name)
            begin = start[name] if name in start else log.start()  # a broker that is new begins with its log
            found += [_Part(name, low, high) for low, high in log.parts(begin, upto)]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        return _batches(self.directory, self.topics, partition)


# Writing


@dataclass(frozen=True)
class _Target(Target):
    brokers: tuple[str, ...]
    group: str

    def open(self) -> Broker:
        return Broker(self.directory, names=self.brokers)

    def send(self, paths: Sequence[str]) -> None:
        with self.open() as broker:
            _make_ready(broker, paths, self)
            producer = Producer(broker, self.group)
            for row in staged_rows(paths):
                message, queue = self.message(row)
                producer.send(message, queue=queue)

    def check(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            message, _ = self.message(row)
            check_message(message.topic, message.body, MAX_MESSAGE_SIZE)
            check_sent_message(message.body, message.properties, 0, MAX_MESSAGE_SIZE)
            # Refuses properties that no log can hold.
            record.encode_message(message.topic, None, message.properties, (0, 0, 0), Origin(0, HOST), (0, HOST))
        if "broker_name" in batch.schema.names:
            for broker in batch.column("broker_name").unique().to_pylist():
                if broker is not None and broker not in self.brokers:
                    raise InvalidMessageError(
                        "broker_name", broker, "no broker of the cluster", hint=f"there are {', '.join(self.brokers)}"
                    )

    def message(self, row: Mapping[str, Any]) -> tuple[Message, MessageQueue | None]:
        message = Message(
            row["topic"], row["body"], tags=row.get("tags"), keys=row.get("keys"),
            properties=dict(row.get("properties") or ()), flag=row.get("flag") or 0,
        )  # fmt: skip
        message.properties.pop(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, None)
        if row.get("delay_time_level"):
            message.delay_time_level = row["delay_time_level"]
        if row.get("queue_id") is None:
            return message, None
        return message, MessageQueue(row["topic"], row.get("broker_name") or self.brokers[0], row["queue_id"])


def _make_ready(broker: Broker, paths: Iterable[str], target: _Target) -> None:
    """Make topics that messages for a queue need, and raise InvalidMessageError for a queue that there is not."""
    queues = {
        (row["topic"], row.get("broker_name") or target.brokers[0], row["queue_id"])
        for row in staged_rows(paths)
        if row.get("queue_id") is not None
    }
    for queue in sorted(queues):
        known = broker.publish_queues(queue[0])
        if MessageQueue(*queue) not in known:
            raise InvalidMessageError("queue_id", queue[2], f"topic {queue[0]!r} of {queue[1]!r} has no such queue")


@dataclass(frozen=True)
class _StreamWriter(StreamWriter):
    """What a micro-batch is, and where the logs ended before it, is written down before its first message is stored,
    and each message has an id with its place in it. After a crash the next attempt leaves out those that are there.
    """

    target: _Target

    @property
    def _path(self) -> Path:
        return Path(self.target.directory) / ".spark" / f"{self.name}.json"

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with self.target.open() as broker:
            known = self._noted()
            if known is not None and (known["checkpoint"] != self.checkpoint or batchId < known["batch"]):
                raise another_checkpoint(self.name, "the log", known["batch"])
            if known is None or batchId > known["batch"]:
                known = {
                    "batch": batchId,
                    "checkpoint": self.checkpoint,
                    "files": paths_of(messages),
                    "logs": {name: node.store.log.end for name, node in broker.nodes.items()},
                    "done": False,
                }
                self._note(known)
            if not known["done"]:
                self._send(broker, known)
                self._note({**known, "done": True, "files": [], "logs": {}})
            self.target.finish([*known["files"], *paths_of(messages)])

    def _noted(self) -> Any:
        return json.loads(self._path.read_text("utf-8")) if self._path.exists() else None

    def _note(self, known: Mapping[str, Any]) -> None:
        write_whole(self._path, json.dumps(known).encode())

    def _send(self, broker: Broker, known: Mapping[str, Any]) -> None:
        there: set[str] = set()
        for name, start in known["logs"].items():
            log = LogReader(Path(self.target.directory), name)
            there |= {
                message.msg_id for message in log.messages(max(start, log.start()), broker.nodes[name].store.log.end)
            }
        _make_ready(broker, known["files"], self.target)
        producer = Producer(broker, self.target.group)
        for number, row in enumerate(staged_rows(known["files"])):
            id = f"{self.name}-{known['batch']}-{number}"
            if id not in there:
                message, queue = self.target.message(row)
                message.properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX] = id
                producer.send(message, queue=queue)
        for node in broker.nodes.values():
            node.store.log.sync()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing of the micro-batch was stored; or its commit failed, and the next one goes on with the same files."""
        known = self._noted()
        forget(set(paths_of(messages)) - set(known["files"] if known is not None else []), self.target.folder)
