"""What the data sources of the embedded brokers have in common: a directory that is read and appended to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pyengine.errors import ConfigurationError, MissingColumnError, UnsupportedColumnError

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
        return path

    def refuse_overwrite(self, key: str, mode: str) -> None:
        raise ConfigurationError(key, mode, self.GROWS, '"append" is accepted')


def batches_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow batches."""
    rows = iter(rows)
    while some := list(islice(rows, ROWS)):
        columns = [pa.array(values, field.type) for values, field in zip(zip(*some, strict=True), schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def check_columns(schema: StructType, sent: Mapping[str, str], *needed: str) -> None:
    """Raises MissingColumnError and UnsupportedColumnError for rows that are no messages.

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
