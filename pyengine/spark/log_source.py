"""What the data sources of the embedded brokers have in common: a directory that is read and appended to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, MissingColumnError, UnsupportedColumnError
from pyengine.spark.session import require_path
from pyengine.spark.staging import forget, paths_of, stage, sweep_left

ROWS = 4096  # of an Arrow batch


class LogSource(DataSource):
    """The directory of a broker. READ: the columns of what is read; GROWS: why nothing there can be overwritten."""

    READ: ClassVar[pa.Schema]
    GROWS: ClassVar[str]

    def schema(self) -> StructType:
        return from_arrow_schema(self.READ)

    @property
    def directory(self) -> str:
        path = self.options.get("path")
        if not path:
            raise ConfigurationError("path", path, "missing", "load(DIRECTORY): what the Broker was given")
        require_path("path", path)
        return path

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        if overwrite:
            raise ConfigurationError("mode", "overwrite", self.GROWS, '"append" is accepted')
        return TableWriter(self.target(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        if overwrite:
            raise ConfigurationError("outputMode", "complete", self.GROWS, '"append" is accepted')
        checkpoint = self.options.get("checkpointLocation", "")
        if not checkpoint:  # as where the session's settings name one
            raise ConfigurationError(
                "checkpointLocation", checkpoint, "missing among the options of the stream",
                "two streams of one name are told apart by it",
            )  # fmt: skip
        return self.stream_writer(schema, self.options.get("stream", ""), checkpoint)

    @abstractmethod
    def target(self, schema: StructType) -> Target:
        """The broker as something to write such rows to."""

    @abstractmethod
    def stream_writer(self, schema: StructType, name: str, checkpoint: str) -> StreamWriter:
        """Writes micro-batches. Raises ConfigurationError for a name that a stream cannot have."""


@dataclass(frozen=True)
class TableReader(DataSourceReader):
    """What a broker has. directory: its own."""

    directory: Path

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes one up where there is none.
        return iter(()) if type(partition) is InputPartition else self.rows(partition)

    @abstractmethod
    def rows(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages of a partition of ``partitions``."""


@dataclass(frozen=True)
class Target(ABC):
    """A broker that is written to. directory: its own; folder: for the files of the tasks."""

    directory: str
    folder: str

    @abstractmethod
    def check(self, batch: pa.RecordBatch) -> None:
        """Raises InvalidMessageError for rows that the broker will not take."""

    @abstractmethod
    def send(self, paths: Sequence[str]) -> None:
        """Send the rows of these files."""

    def stage(self, batches: Iterable[pa.RecordBatch]) -> WriterCommitMessage:
        """Keep the rows of a task, all of which the broker will take: none is stored before that is known."""
        return stage(self.folder, map(self._checked, batches))

    def finish(self, paths: Iterable[str]) -> None:
        """Let go of files whose rows were sent, and of what other writes left that were killed."""
        forget(paths, self.folder)
        sweep_left(self.directory)

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.check(batch)
        return batch


@dataclass(frozen=True)
class TableWriter(DataSourceArrowWriter):
    """All messages when every task is done, none before."""

    target: Target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.target.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.target.send(paths_of(messages))
        self.target.finish(paths_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        forget(paths_of(messages), self.target.folder)


@dataclass(frozen=True)
class StreamWriter(DataSourceStreamArrowWriter):
    """A micro-batch once, however often it is committed. checkpoint: where Spark writes down how far it came."""

    target: Target
    name: str
    checkpoint: str

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.target.stage(iterator)


def another_checkpoint(stream: str, there: str, batch: int) -> ConfigurationError:
    """The error of a new stream under a name that is taken."""
    return ConfigurationError(
        "stream", stream, f"{there} has it up to micro-batch {batch} of another checkpoint",
        "a stream that begins anew needs a new name",
    )  # fmt: skip


def batches_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow batches."""
    rows = iter(rows)
    while some := list(islice(rows, ROWS)):
        columns = [pa.array(values, field.type) for values, field in zip(zip(*some, strict=True), schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def check_columns(schema: StructType, sent: Mapping[str, str], *needed: str) -> None:
    """Raises MissingColumnError and UnsupportedColumnError for rows that are not messages.

    sent: the type of each column that a message may have; needed: those it must have.
    """
    types = {field.name: field.dataType.simpleString() for field in schema}
    for name in needed:
        if name not in types:
            raise MissingColumnError(name, types, "the DataFrame")
    for name, kind in types.items():
        if sent.get(name) != kind:
            wanted = f"cast it to {sent[name]}" if name in sent else f"a message has {', '.join(sent)}"
            raise UnsupportedColumnError(name, kind, wanted)
