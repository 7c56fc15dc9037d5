"""Functions from a DataFrame to a DataFrame, for ``df.transform(f, ...)``. Both are lazy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pyengine import Selector, Subscriptions
from pyengine.errors import ConfigurationError, MissingColumnError, UnsupportedColumnError
from pyengine.spark.failure import sent_to_driver
from pyengine.spark.functions import OnError, arrow_schema, map_in_arrow, no_rows, quoted
from pyengine.spark.session import require_count, require_spark
from pyengine.topology import Source, Topology
from pyengine.topology.checked import check
from pyengine.topology.model import TOPIC

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyengine.backlog.rows import Reject
    from pyengine.rocketmq.dispatch import ConsumerGroups

DialectName = Literal["activemq", "rocketmq"]
REJECT = "__reject"  # why a row is no message, on its way to the assignments
UNNUMBERED = "the number of the row is missing or beyond long"


def match(
    df: DataFrame,
    subscriptions: Mapping[str, str] | Subscriptions[str],
    *,
    into: str = "subscriptions",
    explode: bool = False,
    dialect: DialectName = "activemq",
    on_error: OnError = "raise",
) -> DataFrame:
    """Which subscriptions want each row.

    subscriptions: name -> selector text, or a Subscriptions, which brings its own dialect and on_error. into: the
    column that is added: an array of names in the order of the mapping, empty where nobody wants the row; with
    explode=True one name, and a row for each. Headers are columns of their name where df has them, else a freshly made
    message's. on_error: as in ``matches``. A worker builds one index for all of them (pyengine.Subscriptions).

    Raises InvalidSelectorError, MissingColumnError (a selector reads a property that is no column),
    UnsupportedColumnError, ValueError when df has a column called ``into`` already.
    """
    require_spark()
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.functions import arrow_udf

    check("into", into, str)
    if has_column(df, into):  # withColumn would replace it
        raise ValueError(f"the DataFrame has a column {into!r} already: name another one with into=")
    if isinstance(subscriptions, Subscriptions):
        wanted_by, dialect, on_error = subscriptions, subscriptions.dialect, subscriptions.on_error
    else:
        wanted_by = Subscriptions(subscriptions, dialect=dialect, on_error=on_error)
    check("subscriptions", list(wanted_by), Sequence[str])  # the names become texts of the answer
    read: dict[str, None] = {}
    for name in wanted_by:
        for wanted in wanted_by[name].names:
            if wanted in df.columns:
                read[wanted] = None
            elif not wanted.startswith("JMS"):
                raise MissingColumnError(wanted, df.columns, f"the DataFrame, read by subscription {name!r},")
    wanted_by.match_places(no_rows(df, {name: name for name in read}), missing="null")
    work = Subscribers(tuple((name, wanted_by[name].text) for name in wanted_by), tuple(read), dialect, on_error)
    made: Any = arrow_udf
    inputs = [F.col(quoted(name)) for name in read] or [F.lit(1)]
    found = made(work, "array<string>")(*inputs)
    return df.withColumn(into, F.explode(found) if explode else found)


def has_column(df: DataFrame, name: str) -> bool:
    """Whether Spark finds a column by this name; it may be told to heed capitals or not."""
    heeded = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return name in df.columns or (not heeded and name.lower() in (each.lower() for each in df.columns))


@lru_cache(maxsize=8)
def _index(texts: tuple[tuple[str, str], ...], dialect: DialectName, on_error: OnError) -> Subscriptions[str]:
    """The Subscriptions of these texts, built once per process."""
    return Subscriptions(texts, dialect=dialect, on_error=on_error)


class Subscribers:
    """What a worker runs for ``match``."""

    def __init__(
        self, texts: tuple[tuple[str, str], ...], names: tuple[str, ...], dialect: DialectName, on_error: OnError
    ) -> None:
        self.texts = texts
        self.names = names
        self.dialect = dialect
        self.on_error = on_error

    # Without annotations: Spark would read them as the shape of the function.
    def __call__(self, *arrays):  # type: ignore[no-untyped-def]
        import numpy as np
        import pyarrow as pa

        index = _index(self.texts, self.dialect, self.on_error)
        batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names or ("",)))
        offsets, places = index.match_places(batch, missing="null")
        names = pa.array(index.keys(), pa.string()).take(pa.array(places))
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), names)


def dispatch(
    df: DataFrame,
    topology: Topology | ConsumerGroups,
    *,
    row: Column | str | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Who gets each row as a message, or why nobody does.

    topology: queues and topics of ActiveMQ, or RocketMQ's consumer groups (pyengine.rocketmq.dispatch), whose answer
    has the columns of ``dispatch_messages`` and needs no shuffle. The rest is about a Topology.

    df: rows as the topology's source describes them; where they come from (path, package) is not looked at. row: a
    column of whole numbers, each once, that gives the order in which rows were sent (a row without one is rejected);
    without it the rows are taken in the order in which Spark numbers them, which is the order of the files only while
    one job reads them the same way.
    partitions: tasks that dispatch; by default Spark's shuffle partitions. A queue is the work of one task.

    The answer has one line for each row and is the same for every number of partitions. Its columns:

    - row (bigint): ``row``, or the number given to it. message_id (string): the source's id column, null without one.
    - destination (string): the queue; null for a row that is no message.
    - consumer (string): who got it; null if it is held. delivery (bigint): its place in its queue, from 0.
    - reason (string): null if it was delivered, else a HoldReason in lower case, or "expired", "evaluation_error",
      "rejected" (the row is no message).
    - blocked_by (string): the consumer that the reason is about; of a rejected row what is wrong with it.
    - group (string), timestamp (bigint, ms): of the message. bytes (bigint): of the properties that selectors read.

    Raises MissingColumnError, UnsupportedColumnError, ConfigurationError before anything runs.
    """
    require_spark()
    require_count("partitions", partitions)
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.types import from_arrow_schema

    if not isinstance(topology, Topology):
        return _consume(df, topology, row, partitions)
    if df.isStreaming:
        problem, hint = "is a stream, whose queues live on from one micro-batch to the next", "use dispatch_stream"
        raise ConfigurationError("df", "DataFrame", problem, hint)
    # As text, in which it travels, a source must come from somewhere.
    topology = replace(topology, source=replace(topology.source, path="DataFrame", package="", table=""))

    from pyengine.activemq.dispatch import columns_read
    from pyengine.backlog.messages import ROW, message_schema

    source, needed, offered = source_read(df, topology)
    rows = df.select(*(F.col(quoted(name)) for name in needed), numbered(df, row).alias(ROW))
    arrow = arrow_schema(rows.schema.fields[:-1])
    made = message_schema(arrow, source, "the DataFrame")
    columns_read(topology, list(dict.fromkeys((*made.names, *offered))))
    work = Preparation(replace(topology, source=source).to_text())
    messages = map_in_arrow(rows, work, _with_reject(from_arrow_schema(made)))
    return assign(messages, topology, partitions)


def source_read(df: DataFrame, topology: Topology) -> tuple[Source, list[str], Sequence[str]]:
    """The topology's source with the properties that selectors read, the columns that takes, and what was offered.

    Raises MissingColumnError.
    """
    read = {name for consumer in topology.consumers if consumer.selector for name in Selector(consumer.selector).names}
    read |= topology.policy_properties
    offered = df.columns if topology.source.properties is None else topology.source.properties
    source = replace(
        topology.source,
        properties=tuple(name for name in offered if name in read),
        types=tuple(item for item in topology.source.types if item[0] in read or item[0] in topology.source.columns),
    )
    for name in (*source.columns, *(source.properties or ())):
        if name not in df.columns:
            raise MissingColumnError(name, df.columns, "the DataFrame")
    needed = list(dict.fromkeys((*source.columns, *(source.properties or ()))))
    return source, needed, offered


def numbered(df: DataFrame, row: Column | str | None) -> Column:
    """The numbers of the rows as bigint, null beyond it.

    Raises MissingColumnError, UnsupportedColumnError for a column that is not of whole numbers, ConfigurationError.
    """
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import IntegralType

    check("row", row, Column | str | None)
    if row is None:
        return F.monotonically_increasing_id()
    if isinstance(row, str) and not has_column(df, row):
        raise MissingColumnError(row, df.columns, "the DataFrame")
    number = F.col(quoted(row)) if isinstance(row, str) else row
    field = df.select(number).schema.fields[0]
    scale = 0 if isinstance(field.dataType, IntegralType) else getattr(field.dataType, "scale", None)
    if scale != 0:
        raise UnsupportedColumnError(
            field.name, field.dataType.simpleString(), "the number of a row is a whole one: cast it to bigint"
        )
    return number.try_cast("bigint")


def _consume(df: DataFrame, groups: ConsumerGroups, row: Column | str | None, partitions: int | None) -> DataFrame:
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.types import from_arrow_schema

    from pyengine.backlog.messages import ROW, refuse_own_name
    from pyengine.rocketmq.dispatch import CONSUMPTION_SCHEMA, ConsumerGroups, dispatch_messages

    check("topology", groups, Topology | ConsumerGroups)
    names = groups.columns_read(df.columns)
    for name in names:
        refuse_own_name(name)
    read = [F.col(quoted(name)) for name in names]
    # What has a type that no message has is told here.
    nothing = pa.RecordBatch.from_pylist([], arrow_schema(df.select(*read).schema.fields))
    dispatch_messages(groups, nothing, pa.array([], pa.int64()))
    for data in (data for group in groups.groups for data in group.data.values()):
        if data.expression_type == "SQL92":
            Selector(data.sub_string, "rocketmq").mask(nothing, missing="null")
    rows = df.select(*read, numbered(df, row).alias(ROW))
    rows = rows.repartition(partitions) if partitions else rows
    return map_in_arrow(rows, Consumption(groups), from_arrow_schema(CONSUMPTION_SCHEMA))


def assign(messages: DataFrame, topology: Topology, partitions: int | None = None) -> DataFrame:
    """Dispatch for messages that are already made (pyengine.backlog.messages)."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.types import from_arrow_schema

    from pyengine.activemq.dispatch import ASSIGNMENT_SCHEMA, DESTINATION, QUEUE, columns_read, order_columns

    names = columns_read(topology, messages.columns)
    if REJECT in messages.columns:
        names.append(REJECT)
    key = F.xxhash64(DESTINATION)
    if topology.shares_topics:  # topics under one window are the work of one task
        key = F.when(F.startswith(F.col(DESTINATION), F.lit(TOPIC)), F.lit(0).cast("bigint")).otherwise(key)
    keyed = messages.select(*(F.col(quoted(name)) for name in names), key.alias(QUEUE))
    split = keyed.repartition(partitions, QUEUE) if partitions else keyed.repartition(QUEUE)
    ordered = split.sortWithinPartitions(*order_columns(topology, names))
    return map_in_arrow(ordered, Assignment(topology.to_text()), from_arrow_schema(ASSIGNMENT_SCHEMA))


def problem_of(reject: Reject) -> str:
    """What is wrong with a rejected row, in one line."""
    return f"{reject.column} = {reject.value!r}: {reject.reason}"


def _with_reject(schema: Any) -> Any:
    from pyspark.sql.types import StringType

    return schema.add(REJECT, StringType())


class Preparation:
    """What a worker runs to make messages of rows. The topology travels as text and is read once per worker."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from pyengine.backlog.messages import ROW, message_schema, to_messages

        with sent_to_driver():
            source = Topology.from_text(self.text).source
            for batch in batches:
                unnumbered = batch.column(ROW).null_count
                batch = batch.filter(batch.column(ROW).is_valid()) if unnumbered else batch
                rows = pa.Table.from_batches([batch]).drop_columns([ROW])
                schema = message_schema(rows.schema, source).append(pa.field(REJECT, pa.string()))
                made, rejects = to_messages(rows, batch.column(ROW).to_numpy(zero_copy_only=False), source)
                made = made.append_column(REJECT, pa.nulls(made.num_rows, pa.string()))
                lost: dict[str, Any] = {name: [None] * (len(rejects) + unnumbered) for name in schema.names}
                lost[ROW] = [*(reject.row for reject in rejects), *[None] * unnumbered]
                lost[REJECT] = [*map(problem_of, rejects), *[UNNUMBERED] * unnumbered]
                for table in (made, pa.Table.from_pydict(lost, schema)):
                    yield from table.cast(schema).combine_chunks().to_batches()


class Consumption:
    """What a worker runs to say which clients of RocketMQ's consumer groups get its rows."""

    def __init__(self, groups: ConsumerGroups) -> None:
        self.groups = groups

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyengine.backlog.messages import ROW
        from pyengine.rocketmq.dispatch import dispatch_messages

        with sent_to_driver():
            for batch in batches:
                yield from dispatch_messages(self.groups, batch, batch.column(ROW)).to_batches()


class Assignment:
    """What a worker runs to dispatch. The topology travels as text and is read once per task."""

    most_rows, most_bytes = 65_536, 1 << 25  # of one call of the dispatcher

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyengine.activemq.assignments import gathered
        from pyengine.activemq.dispatch import Dispatcher

        with sent_to_driver():
            dispatcher = Dispatcher(Topology.from_text(self.text))
            rows = (table.combine_chunks() for table in gathered(batches, self.most_rows, self.most_bytes))
            for batch in (batch for table in rows for batch in table.to_batches()):
                position = batch.schema.get_field_index(REJECT)
                if position >= 0:
                    yield from _rejected(batch, position)
                    batch = batch.filter(batch.column(position).is_null())
                yield from dispatcher.feed(batch)
            yield from dispatcher.finish()


def _rejected(batch: Any, position: int) -> Iterator[Any]:
    import pyarrow as pa

    from pyengine.activemq.dispatch import ASSIGNMENT_SCHEMA, ROW

    lost = batch.filter(batch.column(position).is_valid())
    if lost.num_rows:
        given = {
            "row": lost.column(ROW),
            "reason": pa.array(["rejected"] * lost.num_rows),
            "blocked_by": lost.column(position),
        }
        columns = [
            given.get(field.name, pa.nulls(lost.num_rows, field.type)).cast(field.type) for field in ASSIGNMENT_SCHEMA
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=ASSIGNMENT_SCHEMA)
