"""Spark data source ``activemq_store``: the store of an embedded ActiveMQ broker, read and written.

Reading locks nothing, the broker may be running. Writing opens the broker itself when all tasks are done and sends in
one transaction: virtual destinations and durable subscriptions are the broker's own doing.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyengine import Char
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode
from pyengine._engine.message.message import Message
from pyengine.activemq.broker.broker import Broker
from pyengine.activemq.client.connection_factory import ConnectionFactory
from pyengine.activemq.store.store_file import Stored
from pyengine.activemq.store.store_reader import StoreReader
from pyengine.dataclass import dataclass
from pyengine.destinations import parse_destination
from pyengine.errors import ConfigurationError, InvalidMessageError
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

_TEXTS = pa.map_(pa.string(), pa.string())
_READ = pa.schema(
    [
        ("destination", pa.string()), ("sequence", pa.int64()), ("message_id", pa.string()), ("text", pa.string()),
        ("body", pa.binary()), ("priority", pa.int32()), ("timestamp", pa.int64()), ("expiration", pa.int64()),
        ("type", pa.string()), ("correlation_id", pa.string()), ("reply_to", pa.string()), ("group_id", pa.string()),
        ("group_sequence", pa.int32()), ("redeliveries", pa.int32()), ("properties", _TEXTS),
        ("property_types", _TEXTS),
    ]
)  # fmt: skip
_SENT = {
    "destination": "string", "text": "string", "body": "binary", "priority": "int", "time_to_live_ms": "bigint",
    "type": "string", "correlation_id": "string", "reply_to": "string", "group_id": "string", "group_sequence": "int",
    "properties": "map<string,string>", "property_types": "map<string,string>",
}  # fmt: skip
_HEADERS = ("type", "correlation_id", "reply_to", "group_id", "group_sequence")
_SETTERS = {
    "byte": Message.set_byte_property,
    "short": Message.set_short_property,
    "int": Message.set_int_property,
    "long": Message.set_long_property,
}


class ActiveMQStore(LogSource):
    """What ``.format("activemq_store")`` means to Spark; see docs/logs.md."""

    READ = _READ
    GROWS = "consumers remove messages"

    @classmethod
    def name(cls) -> str:
        return "activemq_store"

    @property
    def destinations(self) -> frozenset[str]:
        wanted = self.options.get("destination", "")
        return frozenset(str(each) for each in parse_destination(wanted)) if wanted.strip() else frozenset()

    def reader(self, schema: StructType) -> _Reader:
        return _Reader(Path(self.directory), self.destinations)

    def streamReader(self, schema: StructType) -> _StreamReader:  # noqa: N802
        return _StreamReader(Path(self.directory), self.destinations)

    def target(self, schema: StructType) -> _Target:
        check_columns(schema, _SENT, "destination")
        return _Target(self.directory, new_folder(self.directory))

    def stream_writer(self, schema: StructType, name: str, checkpoint: str) -> _StreamWriter:
        if not name:
            raise ConfigurationError("stream", name, "needs a name", "the store knows by it what it already has")
        return _StreamWriter(self.target(schema), name, checkpoint)


# Reading


@dataclass(frozen=True)
class _Part(InputPartition):
    """What arrived at a destination after one sequence number, up to another."""

    name: str
    number: int
    after: int
    upto: int


def _batches(directory: Path, part: _Part) -> Iterator[pa.RecordBatch]:
    found = StoreReader(directory).messages(part.number, part.after, part.upto)
    return batches_of((_row(part.name, stored) for stored in found), _READ)


def _row(destination: str, stored: Stored) -> tuple[Any, ...]:
    message = stored.message
    body = message.body
    types = message.property_types()
    return (
        destination, stored.sequence, message.message_id, body if isinstance(body, str) else None,
        body if isinstance(body, bytes) else None, message.priority, message.timestamp, message.expiration,
        message.type, message.correlation_id, message.reply_to, message.group_id, message.group_sequence,
        stored.redeliveries, [(name, _text(message, name, kind)) for name, kind in types.items()], list(types.items()),
    )  # fmt: skip


def _text(message: Message, name: str, kind: str) -> str | None:
    """A property as text: Java's, of a list or map its JSON."""
    if kind == "char":
        return str(message.get_object_property(name))
    if kind == "object":
        return json.dumps(message.get_object_property(name), ensure_ascii=False)
    return message.get_string_property(name)


def _parts(directory: Path, wanted: frozenset[str], after: int, upto: int) -> list[InputPartition]:
    known = StoreReader(directory).destinations()
    return [
        _Part(name, number, after, upto)
        for name, number in known.items()
        if after < upto and (name in (wanted or known))
    ]


@dataclass(frozen=True)
class _Reader(TableReader):
    """What nobody has acknowledged yet."""

    destinations: frozenset[str]

    def partitions(self) -> Sequence[InputPartition]:
        return _parts(self.directory, self.destinations, -1, StoreReader(self.directory).newest())

    def rows(self, partition: _Part) -> Iterator[pa.RecordBatch]:
        return _batches(self.directory, partition)


class _StreamReader(DataSourceStreamReader):
    """Every message that is there when the stream looks; an offset is {"sequence": the newest that was seen}."""

    def __init__(self, directory: Path, destinations: frozenset[str]) -> None:
        self.directory = directory
        self.destinations = destinations
        self._newest = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"sequence": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        seen = start["sequence"] if start else 0
        self._newest = max(self._newest, seen, StoreReader(self.directory).newest())
        return {"sequence": self._newest}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        return _parts(self.directory, self.destinations, start["sequence"], end["sequence"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        return _batches(self.directory, partition)


# Writing


def _message(row: Mapping[str, Any]) -> Message:
    """Raises InvalidMessageError for what no message can carry."""
    if row.get("text") is not None and row.get("body") is not None:
        raise InvalidMessageError("body", row["body"], "a message has text or body", hint="leave one of them null")
    headers = {name: row[name] for name in _HEADERS if row.get(name) is not None}
    body = row["text"] if row.get("text") is not None else row.get("body")
    message = Message(None, body=body, **headers)
    types = dict(row.get("property_types") or ())
    for name, text in row.get("properties") or ():
        _set(message, name, text, types.get(name, "string"))
    return message


def _set(message: Message, name: str, text: str | None, kind: str) -> None:
    try:
        if text is None or kind == "string":
            message.set_string_property(name, text)
        elif kind in _SETTERS:
            _SETTERS[kind](message, name, int(text))
        elif kind == "float":
            message.set_float_property(name, float(text))
        elif kind == "double":
            message.set_double_property(name, float(text))
        elif kind == "char":
            message.set_property(name, Char(text))
        elif kind == "boolean" and text in ("true", "false"):
            message.set_boolean_property(name, text == "true")
        elif kind == "object":
            message.set_object_property(name, json.loads(text))
        else:
            raise ValueError(f"no value of type {kind}")
    except ValueError as error:
        if isinstance(error, InvalidMessageError):
            raise
        raise InvalidMessageError(name, text, f"is no {kind}") from error


@dataclass(frozen=True)
class _Target(Target):
    def check(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            _message(row)
            if not row["destination"]:
                raise InvalidMessageError("destination", row["destination"], "a message goes somewhere")
            parse_destination(row["destination"])

    def send(self, paths: Sequence[str], stream: str = "", batch: int = -1, checkpoint: int = 0) -> None:
        """Everything in one transaction. stream: what is marked as done with it, if the store has not got it yet."""
        with Broker(self.directory, name=f"spark-{uuid.uuid4().hex}") as broker:
            store = broker.store
            assert store is not None
            if stream:
                known = store.mark(f"spark {stream}", -1)
                if known > batch or (known >= 0 and store.mark(f"spark {stream} checkpoint", 0) != checkpoint):
                    raise another_checkpoint(stream, "the store", known)
                if known == batch:
                    return
            with ConnectionFactory(broker=broker).create_connection() as connection:
                session = connection.create_session(AcknowledgeMode.SESSION_TRANSACTED)
                producer = session.create_producer()
                for row in staged_rows(paths):
                    producer.send(
                        _message(row), row["destination"], priority=row.get("priority"),
                        time_to_live_ms=row.get("time_to_live_ms"),
                    )  # fmt: skip
                with broker.outbox:  # one change of the broker: all of it is kept, or nothing
                    session.commit()
                    if stream:
                        store.set_mark(f"spark {stream}", batch)
                        store.set_mark(f"spark {stream} checkpoint", checkpoint)


@dataclass(frozen=True)
class _StreamWriter(StreamWriter):
    """The number of a micro-batch is part of the transaction that sends it."""

    target: _Target

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self.target.send(paths_of(messages), self.name, batchId, zlib.crc32(self.checkpoint.encode()))
        self.target.finish(paths_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        forget(paths_of(messages), self.target.folder)
