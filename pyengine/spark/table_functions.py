"""Table functions of SQL: dispatch of a table's rows, and what waits in a stream. Imported where pyspark is there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udtf import AnalyzeResult, PartitioningColumn

from pyengine.activemq.tables.dispatch import ASSIGNMENT_SCHEMA, DESTINATION, QUEUE, order_columns
from pyengine.errors import MissingColumnError
from pyengine.spark.functions import arrow_schema, quoted
from pyengine.spark.streaming import held_schema, waiting
from pyengine.spark.transforms import Assignment, Preparation
from pyengine.topology import Topology


@dataclass
class AnalyzedDispatch(AnalyzeResult):
    """topology: as text, with the places of properties. columns: Arrow's schema of the table, serialized."""

    topology: str = ""
    columns: bytes = b""
    row: str = ""


def _topology(text: str) -> Topology:
    """A topology by its TOML, which needs no path of the rows, or by the path of its file."""
    if text.endswith(".toml") and "\n" not in text:
        return Topology.load(text)
    source = tomllib.loads(text).get("source", {})
    if isinstance(source, dict) and not {"path", "package"} & {*source}:
        text = text.replace("[source]", '[source]\npath = "TABLE"', 1)
    return Topology.from_text(text)


class DispatchRows:
    """What a worker runs for ``pyengine_dispatch``: the rows of whole queues, dispatched when the last one has come."""

    def __init__(self, analyzed: AnalyzedDispatch) -> None:
        self.analyzed = analyzed
        self.rows: list[dict[str, Any]] = []

    @staticmethod
    def analyze(rows: Any, topology: Any, row: Any) -> AnalyzedDispatch:
        """The columns of the answer, and that a queue's rows come together."""
        found = _topology(topology.value).with_places()
        names = [field.name for field in rows.dataType.fields]
        if row.value not in names:
            raise MissingColumnError(row.value, names, "the table")
        if found.source.properties is None and not found.source.properties_from:
            read = tuple(name for name in names if name in found.properties_read)
            found = replace(found, source=replace(found.source, properties=read))
        queues = [name for name in found.source.destination_columns if name in names]
        alone = len(queues) < len(found.source.destination_columns) or not queues or found.has_topics
        return AnalyzedDispatch(
            schema=from_arrow_schema(ASSIGNMENT_SCHEMA),
            withSinglePartition=alone,
            partitionBy=[] if alone else [PartitioningColumn(quoted(name)) for name in queues],
            topology=found.to_text(),
            columns=arrow_schema(rows.dataType.fields).serialize().to_pybytes(),
            row=row.value,
        )

    def eval(self, rows: Any, topology: str, row: str) -> None:
        self.rows.append({name: _plain(value) for name, value in rows.asDict(recursive=True).items()})

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        from pyengine.backlog.tables.messages import ROW

        if not self.rows:
            return
        topology = Topology.from_text(self.analyzed.topology)
        schema = pa.ipc.read_schema(pa.py_buffer(self.analyzed.columns))
        table = pa.Table.from_pylist(self.rows, schema)
        numbers = table.column(self.analyzed.row).cast(pa.int64())
        table = table.append_column(ROW, numbers).combine_chunks()
        messages = pa.Table.from_batches(Preparation(self.analyzed.topology, (ROW,))(table.to_batches()))
        names = messages.column(DESTINATION)
        messages = messages.append_column(
            QUEUE, pc.rank(names, tiebreaker="min", null_placement="at_end").cast(pa.int64())
        )
        order = order_columns(topology, messages.column_names)
        messages = messages.sort_by([(name, "ascending") for name in order]).combine_chunks()
        for batch in Assignment(self.analyzed.topology, (self.analyzed.row,), tuple(order))(messages.to_batches()):
            for line in batch.to_pylist():
                yield tuple(line.values())


def _plain(value: Any) -> Any:
    """A map as Arrow takes it."""
    return list(value.items()) if isinstance(value, dict) else value


class HeldRows:
    """What a worker runs for ``pyengine_held``."""

    @staticmethod
    def analyze(state: Any) -> AnalyzeResult:
        """The columns of what waits."""
        return AnalyzeResult(schema=from_arrow_schema(held_schema(state.value)))

    def eval(self, state: str) -> Iterator[tuple[Any, ...]]:
        for table in waiting(state):
            for line in table.to_pylist():
                yield tuple(line.values())
