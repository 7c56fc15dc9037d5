"""The numbers of rows, of one column or of several, and the rows of a queue that have one in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyengine.backlog.tables.rows import Reject
from pyengine.errors import ConfigurationError, MissingColumnError, UnsupportedColumnError
from pyengine.spark.functions import has_column, quoted, refuse_ambiguous
from pyengine.topology.checked import check

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PART = "__row:"  # begins the name of one of several columns of numbers
UNNUMBERED = "the number of the row is missing or beyond long"
REPEATED = "the number comes more than once among the rows of its queue"


def numbered(df: DataFrame, row: Column | str | None) -> Column:
    """The numbers of the rows as bigint, null beyond it.

    Raises MissingColumnError, UnsupportedColumnError for a column that is not of whole numbers, ConfigurationError.
    """
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812

    check("row", row, Column | str | None)
    if row is None:
        return F.monotonically_increasing_id()
    return _whole(df, row)[1]


def numbers_of(
    df: DataFrame, row: Column | str | Sequence[Column | str] | None
) -> tuple[tuple[str, ...], list[Column]]:
    """The names of the columns that number the rows, none where Spark does, and the columns as bigint.

    Raises as ``numbered``.
    """
    from pyspark.sql import Column

    if not isinstance(row, (list, tuple)):
        check("row", row, Column | str | None)
        return (() if row is None else (_whole(df, row)[0],)), [numbered(df, row)]  # type: ignore[arg-type]
    if not row:
        raise ConfigurationError("row", "[]", "names no column", "None lets Spark number the rows")
    for each in row:
        check("row", each, Column | str)
    found = [_whole(df, each) for each in row]
    names = tuple(name for name, _ in found)
    if len(set(names)) < len(names):
        raise ConfigurationError("row", ", ".join(names), "names a column twice", "name each once")
    return names, [column for _, column in found]


def _whole(df: DataFrame, row: Column | str) -> tuple[str, Column]:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import IntegralType

    if isinstance(row, str) and not has_column(df, row):
        raise MissingColumnError(row, df.columns, "the DataFrame")
    refuse_ambiguous(df, [row] if isinstance(row, str) else [])
    number = F.col(quoted(row)) if isinstance(row, str) else row
    field = df.select(number).schema.fields[0]
    scale = 0 if isinstance(field.dataType, IntegralType) else getattr(field.dataType, "scale", None)
    if scale != 0:
        raise UnsupportedColumnError(
            field.name, field.dataType.simpleString(), "the number of a row is a whole one: cast it to bigint"
        )
    if isinstance(field.dataType, IntegralType):
        return field.name, number.cast("bigint")
    within = number.between(-(1 << 63), (1 << 63) - 1)  # pyspark 3.5 has no Column.try_cast
    return field.name, F.when(within, number.cast("bigint"))


def numbers_schema(schema: Any, names: Sequence[str]) -> Any:
    """The Arrow schema of an answer whose rows are numbered by these columns: of several, ``row`` is a struct."""
    import pyarrow as pa

    if len(names) < 2:
        return schema
    return schema.set(0, pa.field("row", pa.struct([(name, pa.int64()) for name in names])))


def numbers_array(columns: Sequence[Any], names: Sequence[str]) -> Any:
    """Columns of numbers as the column ``row`` of such an answer."""
    import pyarrow as pa

    if len(names) < 2:
        return columns[0]
    return pa.StructArray.from_arrays(columns, fields=[pa.field(name, pa.int64()) for name in names])


def parted(batches: Iterable[Any], keys: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Batches sorted by columns of whole numbers as (rows whose keys no other row has, rows whose keys others have)."""
    import pyarrow as pa

    waiting, waits_repeated, last = None, False, None
    for batch in batches:
        if not batch.num_rows:
            continue
        columns = [batch.column(key).to_numpy(zero_copy_only=False) for key in keys]
        same = np.ones(batch.num_rows - 1, bool)
        for column in columns:
            same &= column[1:] == column[:-1]
        begins_alike = last == [column[0] for column in columns]
        nothing = batch.slice(0, 0)
        if waiting is not None:
            repeats = waits_repeated or begins_alike
            yield (nothing, waiting) if repeats else (waiting, nothing)
        # Whether the last row is alone is known with the next batch.
        waiting, last = batch.slice(batch.num_rows - 1), [column[-1] for column in columns]
        repeated = np.zeros(batch.num_rows, bool)
        repeated[1:] = same
        repeated[:-1] |= same
        repeated[0] |= begins_alike
        waits_repeated = bool(repeated[-1])
        rest = batch.slice(0, batch.num_rows - 1)
        if repeated[:-1].any():
            those = pa.array(repeated[:-1])
            yield rest.filter(pa.array(~repeated[:-1])), rest.filter(those)
        else:
            yield rest, nothing
    if waiting is not None:
        yield (waiting.slice(0, 0), waiting) if waits_repeated else (waiting, waiting.slice(0, 0))


def repeated_problems(columns: Sequence[Any], names: Sequence[str]) -> list[str]:
    """The problem of rows with such numbers."""
    from pyengine.spark.failure import problem_of

    values = list(zip(*(column.to_pylist() for column in columns), strict=True))
    shown = [str(value[0]) if len(names) < 2 else str(value) for value in values]
    return [problem_of(Reject(0, ", ".join(names), value, REPEATED)) for value in shown]


class Renumbered:
    """One whole number a row in the place of several, for as long as a queue is open, and the several in the answers.

    Rows come sorted by queue. Kept are the numbers of the rows of the queues that are open and of one batch more; where
    there are topics (``every``), whose lines may come after other queues' rows, all.
    """

    def __init__(self, names: Sequence[str], queue: str, row: str, *, every: bool) -> None:
        self.names = names
        self.every = every
        self.parts = [f"{PART}{place}" for place in range(len(names))]
        self.queue = queue
        self.row = row
        self.first = self.end = 0  # the numbers that are kept
        self.open = 0  # the first number of the queue that is open
        self.kept: Any = None

    def taken(self, batch: Any) -> Any:
        """A batch with numbers of our own instead."""
        import pyarrow as pa

        part = pa.Table.from_batches([batch.select(self.parts)])
        if self.kept is not None and self.open > self.first:
            self.kept = self.kept.slice(self.open - self.first)
            self.first = self.open
        self.kept = part if self.kept is None else pa.concat_tables([self.kept, part])
        keys = batch.column(self.queue).to_numpy()
        begins = int(np.flatnonzero(keys == keys[-1])[0])
        if begins and not self.every:
            self.open = self.end + begins
        numbers = pa.array(np.arange(self.end, self.end + batch.num_rows))
        self.end += batch.num_rows
        names = [name for name in batch.schema.names if name not in self.parts and name != self.row]
        return pa.RecordBatch.from_arrays([*map(batch.column, names), numbers], [*names, self.row])

    def given(self, batch: Any) -> Any:
        """Lines of an answer with the several numbers."""
        import pyarrow as pa

        schema = numbers_schema(batch.schema, self.names)
        places = pa.array(batch.column(0).to_numpy(zero_copy_only=False) - self.first)
        found = self.kept.take(places).combine_chunks()
        columns = [column.chunk(0) if column.num_chunks else pa.array([], pa.int64()) for column in found.columns]
        return pa.RecordBatch.from_arrays([numbers_array(columns, self.names), *batch.columns[1:]], schema=schema)
