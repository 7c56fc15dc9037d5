"""Functions from a DataFrame to a DataFrame, for ``df.transform(f, ...)``. Both are lazy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pyengine import Selector, Subscriptions
from pyengine.activemq.tables.typed_names import TYPED, typed_names
from pyengine.errors import ConfigurationError, MissingColumnError
from pyengine.spark.failure import problem_of, sent_to_driver
from pyengine.spark.functions import (
    OnError,
    arrow_schema,
    columns_of,
    has_column,
    map_in_arrow,
    quoted,
    refuse_ambiguous,
    udf_of,
    unread,
    worker_inputs,
)
from pyengine.spark.observed import ENDS, GROUP_REASONS, TOPIC_REASONS, held_reasons, observed
from pyengine.spark.properties import PROBLEM, Found, Picked, Properties, checked, first_problem, pick
from pyengine.spark.row_numbers import (
    PART,
    UNNUMBERED,
    Renumbered,
    numbers_array,
    numbers_of,
    numbers_schema,
    parted,
    repeated_problems,
)
from pyengine.spark.session import require_count, require_spark
from pyengine.topology import Topology
from pyengine.topology.checked import check
from pyengine.topology.model import TOPIC

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyengine.rocketmq.tables.dispatch import ConsumerGroups

DialectName = Literal["activemq", "rocketmq"]
REJECT = "__reject"  # why a row is not a message, on its way to the assignments


def match(
    df: DataFrame,
    subscriptions: Mapping[str, str] | Subscriptions[str],
    *,
    into: str = "subscriptions",
    explode: bool = False,
    dialect: DialectName = "activemq",
    on_error: OnError = "raise",
    columns: Mapping[str, Column | str | None] | None = None,
    properties_from: Column | str | None = None,
) -> DataFrame:
    """Which subscriptions want each row.

    subscriptions: name -> selector text, or a Subscriptions, which brings its own dialect and on_error. into: the
    column that is added: an array of names in the order of the mapping, empty if no selector matches the row; with
    explode=True one name, and a row for each. Headers are columns of their name where df has them, else a freshly made
    message's. on_error: as in ``matches``. A worker builds one index for all of them (pyengine.Subscriptions).

    properties_from: the column in which the properties are keys, a map, an array of key and value structs (Kafka's
    headers; of several with one key the last counts), a struct, a VARIANT or a JSON text (bytes are read as UTF-8), or
    a Column such as ``from_avro("value", schema)``. Only the keys that selectors name are taken out, by expressions of
    Spark. A value has the type of the map or the field, bytes are strings; in JSON and VARIANT its own: a string, a
    boolean, a long if it is a whole number within long, else a double. columns: where a name comes from instead: a
    Column, a column's name, ``column.key``, a key in properties_from, or None: no row has it. A row that cannot be read
    (no JSON, no UTF-8, an object as a value) does what on_error says.

    Raises InvalidSelectorError, MissingColumnError (a selector reads a property that is not a column),
    UnsupportedColumnError, ValueError when df has a column called ``into`` already.
    """
    require_spark()
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812

    check("into", into, str)
    if has_column(df, into):  # withColumn would replace it
        raise ValueError(f"the DataFrame has a column {into!r} already: name another one with into=")
    if isinstance(subscriptions, Subscriptions):
        wanted_by, dialect, on_error = subscriptions, subscriptions.dialect, subscriptions.on_error
    else:
        wanted_by = Subscriptions(subscriptions, dialect=dialect, on_error=on_error)
    check("subscriptions", list(wanted_by), Sequence[str])  # the names become texts of the answer
    check("columns", columns, Mapping[str, Column | str | None] | None)
    check("properties_from", properties_from, Column | str | None)
    given = columns or {}
    places = Properties(df, given, properties_from)
    read: dict[str, Found] = {}
    for name in wanted_by:
        for wanted in wanted_by[name].names:
            if wanted in read:
                continue
            place = places.of(wanted)
            if place is not None:
                read[wanted] = place
            elif not wanted.startswith("JMS"):
                if wanted not in given:
                    raise MissingColumnError(wanted, df.columns, f"the DataFrame, read by subscription {name!r},")
                read[wanted] = Found(F.lit(None).cast("string"), "string")
    for needless in given.keys() - {wanted for name in wanted_by for wanted in wanted_by[name].names}:
        raise ValueError(f"columns names {needless!r}, which no selector reads")
    refuse_ambiguous(df, [name for name in read if name not in given and properties_from is None])
    inputs = [each.column for each in read.values()]
    shape = df.select(*(column.alias(name) for column, name in zip(inputs, read, strict=True))).schema
    types = arrow_schema(shape.fields)
    nothing = pa.RecordBatch.from_arrays([pa.array([], each) for each in types.types], names=list(read))
    wanted_by.match_places(nothing, missing="null")  # a type that no property has is refused before a job starts
    kind, made = udf_of("auto")
    texts = tuple((name, wanted_by[name].text) for name in wanted_by)
    names = [TYPED + name if each.typed else name for name, each in read.items()]
    if (problem := first_problem(each.problem for each in read.values())) is not None:
        names.append(PROBLEM)
        inputs.append(problem)
    work = Subscribers(texts, tuple(names), dialect, on_error, kind)
    found = made(work, "array<string>")(*worker_inputs(kind, inputs))
    return df.withColumn(into, F.explode(found) if explode else found)


@lru_cache(maxsize=8)
def index_of(texts: tuple[tuple[str, str], ...], dialect: DialectName, on_error: OnError) -> Subscriptions[str]:
    """The Subscriptions of these texts, built once per process."""
    return Subscriptions(texts, dialect=dialect, on_error=on_error)


def lists_of(index: Subscriptions[str], batch: Any) -> Any:
    """The names of the subscriptions that match each row of a batch, as an Arrow array of lists."""
    import numpy as np
    import pyarrow as pa

    from pyengine.activemq.tables.typed_texts import TypedRows

    parts = TypedRows(batch).parts(typed_names(batch.schema.names))
    answers = [index.match_places(part, missing="null") for _, part in parts]
    if len(parts) == 1 and parts[0][0] is None:
        ((offsets, places),) = answers
    else:
        rows_of = [at for at, _ in parts if at is not None]
        of_row = np.concatenate(
            [np.repeat(at, np.diff(offsets)) for at, (offsets, _) in zip(rows_of, answers, strict=True)]
        )
        places = np.concatenate([places for _, places in answers])[np.argsort(of_row, kind="stable")]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=batch.num_rows))])
    names = pa.array(index.keys(), pa.string()).take(pa.array(places))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), names)


class Subscribers:
    """What a worker runs for ``match``."""

    def __init__(
        self,
        texts: tuple[tuple[str, str], ...],
        names: tuple[str, ...],
        dialect: DialectName,
        on_error: OnError,
        kind: str,
    ) -> None:
        self.texts = texts
        self.names = names
        self.dialect = dialect
        self.on_error = on_error
        self.kind = kind

    # Without annotations: Spark would read them as the shape of the function.
    def __call__(self, *arrays):  # type: ignore[no-untyped-def]
        import pyarrow as pa

        index = index_of(self.texts, self.dialect, self.on_error)
        batch, problems = unread(columns_of(self.kind, self.names, arrays), self.on_error)
        found = lists_of(index, batch)
        if problems is not None and problems.any():
            found = pa.array(
                [[] if wrong else each for wrong, each in zip(problems, found.to_pylist(), strict=True)], found.type
            )
        if self.kind == "pandas":
            import pandas as pd

            return pd.Series(found.to_pylist(), dtype=object)
        return found


def dispatch(
    df: DataFrame,
    topology: Topology | ConsumerGroups,
    *,
    row: Column | str | Sequence[Column | str] | None = None,
    partitions: int | None = None,
    columns: Mapping[str, Column | str | None] | None = None,
    properties_from: Column | str | None = None,
    observe: str | Any = None,
) -> DataFrame:
    """The consumer that gets each row as a message, or the reason why none does.

    topology: queues and topics of ActiveMQ, or RocketMQ's consumer groups (pyengine.rocketmq.tables.dispatch), whose
    answer has the columns of ``dispatch_messages`` and needs no shuffle. The rest is about a Topology.

    df: rows as the topology's source describes them; where they come from (path, package) is not looked at. row: a
    column of whole numbers, or several that are compared one after another (``("partition", "offset")``), that give the
    order in which rows were sent. A row without a number is rejected, and so are all rows of a queue that have one in
    common (under ``order = "timestamp"``: one number and moment), because their order is unknown. Without ``row``
    the rows are taken in the order in which Spark numbers them, which is the order of the files only while one job
    reads them the same way.
    partitions: tasks that dispatch; by default Spark's shuffle partitions. A queue is the work of one task.
    columns, properties_from: where the properties are, as in ``match``; they count before those of the source. A row
    whose properties cannot be read (no JSON, bytes that are not UTF-8, an object) is rejected.
    observe: an ``Observation`` of pyspark, or the name of one: the action that computes the answer counts in it what
    was ``delivered``, what is ``held``, and each reason by its name, without another pass.

    The answer has one line for each row and is the same for every number of partitions. Its columns:

    - row (bigint): ``row``, or the number given to it; of several columns a struct of them.
    - message_id (string): the source's id column, null without one.
    - destination (string): the queue; null for a row that is not a message.
    - consumer (string): its consumer; null if it is held. delivery (bigint): its place in its queue, from 0.
    - reason (string): null if it was delivered, else a HoldReason in lower case, or "expired", "evaluation_error",
      "rejected" (the row is not a message).
    - blocked_by (string): the consumer that the reason is about; of a rejected row what is wrong with it.
    - group (string), timestamp (bigint, ms): of the message. bytes (bigint): of the properties that selectors read.

    Raises MissingColumnError, UnsupportedColumnError, ConfigurationError before anything runs.
    """
    require_spark()
    require_count("partitions", partitions)
    from pyspark.sql import Column
    from pyspark.sql.pandas.types import from_arrow_schema

    check("columns", columns, Mapping[str, Column | str | None] | None)
    check("properties_from", properties_from, Column | str | None)
    if not isinstance(topology, Topology):
        answer = _consume(df, topology, row, partitions, columns or {}, properties_from)
        return answer if observe is None else observed(answer, observe, GROUP_REASONS, waits=False)
    if df.isStreaming:
        problem, hint = "is a stream, whose queues live on from one micro-batch to the next", "use dispatch_stream"
        raise ConfigurationError("df", "DataFrame", problem, hint)
    # As text, in which it travels, a source must come from somewhere.
    topology = replace(topology, source=replace(topology.source, path="DataFrame", package="", table=""))

    from pyengine.activemq.tables.dispatch import columns_read
    from pyengine.backlog.tables.messages import ROW, message_schema

    picked = source_read(df, topology, columns, properties_from)
    names, numbers = numbers_of(df, row)
    parts = [f"{PART}{place}" for place in range(len(names))] if len(names) > 1 else [ROW]
    given = [number.alias(part) for number, part in zip(numbers, parts, strict=True)]
    if picked.problem is not None:
        given.append(picked.problem.alias(PROBLEM))
    rows = df.select(*(column.alias(name) for name, column in picked.columns.items()), *given)
    arrow = arrow_schema(rows.schema.fields[: len(picked.columns)])
    made = message_schema(arrow, picked.source, "the DataFrame")
    columns_read(topology, list(dict.fromkeys((*made.names, *picked.offered))))
    work = Preparation(replace(topology, source=picked.source).to_text(), tuple(parts))
    messages = map_in_arrow(rows, work, from_arrow_schema(prepared_schema(made, parts)))
    answer = assign(messages, topology, partitions, names)
    if observe is None:
        return answer
    topics = TOPIC_REASONS if topology.has_topics else ()
    return observed(answer, observe, (*ENDS, *topics, *held_reasons()), waits=True)


def source_read(
    df: DataFrame,
    topology: Topology,
    columns: Mapping[str, Column | str | None] | None = None,
    properties_from: Column | str | None = None,
) -> Picked:
    """What a topology reads of a DataFrame, with the properties that selectors read.

    Raises MissingColumnError, UnsupportedColumnError if two columns have a name.
    """
    picked = pick(df, topology, columns, properties_from)
    named = (*picked.source.mapped_columns, *(picked.source.properties or ()), topology.source.properties_from)
    refuse_ambiguous(df, [name for name in named if name in df.columns])
    return picked


def _consume(
    df: DataFrame,
    groups: ConsumerGroups,
    row: Column | str | Sequence[Column | str] | None,
    partitions: int | None,
    columns: Mapping[str, Column | str | None],
    properties_from: Column | str | None,
) -> DataFrame:
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.types import from_arrow_schema

    from pyengine.backlog.tables.messages import refuse_own_name
    from pyengine.rocketmq.tables.dispatch import CONSUMPTION_SCHEMA, ConsumerGroups, dispatch_messages

    check("topology", groups, Topology | ConsumerGroups)
    if columns or properties_from is not None:
        df = _with_properties(df, groups, columns, properties_from)
    names = list(dict.fromkeys(groups.columns_read(df.columns)))
    refuse_ambiguous(df, names)
    for name in names:
        refuse_own_name(name)
    read = [F.col(quoted(name)) for name in names]
    # A type that no message has is refused here.
    nothing = pa.RecordBatch.from_pylist([], arrow_schema(df.select(*read).schema.fields))
    dispatch_messages(groups, nothing, pa.array([], pa.int64()))
    for data in (data for group in groups.groups for data in group.data.values()):
        if data.expression_type == "SQL92":
            Selector(data.sub_string, "rocketmq").mask(nothing, missing="null")
    given, numbers = numbers_of(df, row)
    rows = df.select(*read, *(number.alias(f"{PART}{place}") for place, number in enumerate(numbers)))
    rows = rows.repartition(partitions) if partitions else rows
    schema = from_arrow_schema(numbers_schema(CONSUMPTION_SCHEMA, given))
    return map_in_arrow(rows, Consumption(groups, given), schema)


def _unquoted(json: Column) -> Column:
    """A JSON text of a string, number or boolean as a plain text."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.try_variant_get(F.try_parse_json(json), "$", "string")


def _with_properties(
    df: DataFrame,
    groups: ConsumerGroups,
    columns: Mapping[str, Column | str | None],
    properties_from: Column | str | None,
) -> DataFrame:
    """The rows with a column for each property that SQL92 of the groups reads; texts, as all properties of RocketMQ."""
    from pyspark.sql import functions as F  # noqa: N812

    places = Properties(df, columns, properties_from)
    wanted: dict[str, None] = {}
    for data in (data for group in groups.groups for data in group.data.values()):
        if data.expression_type == "SQL92":
            read = Selector(data.sub_string, "rocketmq").names
            wanted |= dict.fromkeys(name for name in read if not (name == "TAGS" and groups.columns.tags))
    found = {name: places.of(name) for name in wanted}
    values = {
        name: F.lit(None).cast("string") if each is None else _unquoted(each.column) if each.typed else each.column
        for name, each in found.items()
    }  # fmt: skip
    problem = first_problem(each.problem for each in found.values() if each is not None)
    return df.withColumns({name: checked(value, problem, "raise", value) for name, value in values.items()})


def assign(
    messages: DataFrame, topology: Topology, partitions: int | None = None, numbers: Sequence[str] = ()
) -> DataFrame:
    """Dispatch for messages that are already made (pyengine.backlog.tables.messages).

    numbers: the columns that number the rows, as the caller names them; none: the rows of a queue have each another
    number.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.types import from_arrow_schema

    from pyengine.activemq.tables.dispatch import ASSIGNMENT_SCHEMA, DESTINATION, QUEUE, columns_read, order_columns

    names = columns_read(topology, messages.columns)
    names += [name for name in messages.columns if name == REJECT or name.startswith(PART)]
    key = F.xxhash64(DESTINATION)
    if topology.shares_topics:  # topics under one window are the work of one task
        key = F.when(F.startswith(F.col(DESTINATION), F.lit(TOPIC)), F.lit(0).cast("bigint")).otherwise(key)
    keyed = messages.select(*(F.col(quoted(name)) for name in names), key.alias(QUEUE))
    split = keyed.repartition(partitions, QUEUE) if partitions else keyed.repartition(QUEUE)
    order = order_columns(topology, names)
    if len(numbers) > 1:
        order = [*order[:-1], *(f"{PART}{place}" for place in range(len(numbers)))]
    ordered = split.sortWithinPartitions(*(quoted(name) for name in order))
    work = Assignment(topology.to_text(), tuple(numbers), tuple(order))
    return map_in_arrow(ordered, work, from_arrow_schema(numbers_schema(ASSIGNMENT_SCHEMA, numbers)))


def prepared_schema(made: Any, parts: Sequence[str]) -> Any:
    """The schema of messages with the columns that number them, and why a row is none."""
    import pyarrow as pa

    from pyengine.backlog.tables.messages import ROW

    fields = [pa.field(part, pa.int64()) for part in parts if part != ROW]
    return pa.schema([*made, *fields, pa.field(REJECT, pa.string())])


class Preparation:
    """What a worker runs to make messages of rows. The topology travels as text and is read once per worker.

    parts: the columns that number the rows.
    """

    def __init__(self, text: str, parts: tuple[str, ...]) -> None:
        self.text = text
        self.parts = parts

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa

        from pyengine.backlog.tables.messages import ROW, message_schema, to_messages

        with sent_to_driver():
            source = Topology.from_text(self.text).source
            for batch in batches:
                there = np.ones(batch.num_rows, bool)
                for part in self.parts:
                    there &= batch.column(part).is_valid().to_numpy(zero_copy_only=False)
                unnumbered = batch.filter(pa.array(~there)).select(self.parts)
                batch = batch if there.all() else batch.filter(pa.array(there))
                unread, reasons_unread = [], []
                if PROBLEM in batch.schema.names:
                    found_problems = batch.column(PROBLEM)
                    unread = [pa.Table.from_batches([batch.filter(found_problems.is_valid()).select(self.parts)])]
                    reasons_unread = found_problems.drop_null().to_pylist()
                    batch = batch.filter(found_problems.is_null()).drop_columns([PROBLEM])
                numbers = pa.Table.from_batches([batch.select(self.parts)])
                rows = pa.Table.from_batches([batch]).drop_columns(list(self.parts))
                schema = prepared_schema(message_schema(rows.schema, source), self.parts)
                # By their places: rows with a common number are separated later.
                made, rejects = to_messages(rows, np.arange(batch.num_rows), source)
                kept, places = numbers.take(made.column(ROW)), [reject.row for reject in rejects]
                lost = pa.concat_tables(
                    [numbers.take(pa.array(places, pa.int64())), pa.Table.from_batches([unnumbered]), *unread]
                )
                problems = [*map(problem_of, rejects), *[UNNUMBERED] * unnumbered.num_rows, *reasons_unread]
                for table, found, reasons in (
                    (made, kept, pa.nulls(made.num_rows, pa.string())),
                    (pa.table({}), lost, pa.array(problems, pa.string())),
                ):
                    columns = [
                        found.column(field.name)
                        if field.name in self.parts
                        else reasons
                        if field.name == REJECT
                        else table.column(field.name)
                        if field.name in table.column_names
                        else pa.nulls(len(reasons), field.type)
                        for field in schema
                    ]
                    yield from pa.Table.from_arrays(columns, schema=schema).combine_chunks().to_batches()


class Consumption:
    """The function of a worker that finds the clients of RocketMQ's consumer groups for its rows."""

    def __init__(self, groups: ConsumerGroups, names: tuple[str, ...]) -> None:
        self.groups = groups
        self.names = names

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa

        from pyengine.rocketmq.tables.dispatch import dispatch_messages

        with sent_to_driver():
            for batch in batches:
                parts = [name for name in batch.schema.names if name.startswith(PART)]
                if len(parts) == 1:
                    yield from dispatch_messages(self.groups, batch, batch.column(parts[0])).to_batches()
                    continue
                places = pa.array(np.arange(batch.num_rows))
                for answer in dispatch_messages(self.groups, batch, places).combine_chunks().to_batches():
                    row = numbers_array([batch.column(part).take(answer.column(0)) for part in parts], self.names)
                    schema = numbers_schema(answer.schema, self.names)
                    yield pa.RecordBatch.from_arrays([row, *answer.columns[1:]], schema=schema)


class Assignment:
    """What a worker runs to dispatch. The topology travels as text and is read once per task.

    numbers: the columns that number the rows, as the caller names them. order: the columns by which rows come sorted.
    """

    most_rows, most_bytes = 65_536, 1 << 25  # of one call of the dispatcher

    def __init__(self, text: str, numbers: tuple[str, ...] = (), order: tuple[str, ...] = ()) -> None:
        self.text = text
        self.numbers = numbers
        self.order = order

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyengine.activemq.tables.assignments import gathered
        from pyengine.activemq.tables.dispatch import QUEUE, ROW, Dispatcher

        with sent_to_driver():
            topology = Topology.from_text(self.text)
            dispatcher = Dispatcher(topology)
            several = None
            if len(self.numbers) > 1:
                several = Renumbered(self.numbers, QUEUE, ROW, every=topology.has_topics)
            lost: list[Any] = []
            messages = (
                self._once(self._messages(batches, lost), lost) if self.numbers else self._messages(batches, lost)
            )
            rows = (table.combine_chunks() for table in gathered(messages, self.most_rows, self.most_bytes))
            for batch in (batch for table in rows for batch in table.to_batches()):
                yield from lost
                lost.clear()
                answer = dispatcher.feed(several.taken(batch) if several else batch)
                yield from map(several.given, answer) if several else answer
            yield from lost
            answer = dispatcher.finish()
            yield from map(several.given, answer) if several else answer

    def _messages(self, batches: Iterable[Any], lost: list[Any]) -> Iterator[Any]:
        """The rows that are messages; the others go to ``lost`` as lines of the answer."""
        for batch in batches:
            position = batch.schema.get_field_index(REJECT)
            if position < 0:
                yield batch
                continue
            problems = batch.column(position)
            if problems.null_count < batch.num_rows:
                those = batch.filter(problems.is_valid())
                lost.append(self._rejected(those, those.column(position)))
                batch = batch.filter(problems.is_null())
            yield batch.drop_columns([REJECT])

    def _once(self, batches: Iterable[Any], lost: list[Any]) -> Iterator[Any]:
        """The rows whose number no other row of their queue has; the others go to ``lost``."""
        for once, repeated in parted(batches, self.order):
            if repeated.num_rows:
                lost.append(self._rejected(repeated, repeated_problems(self._numbers(repeated), self.numbers)))
            if once.num_rows:
                yield once

    def _numbers(self, batch: Any) -> list[Any]:
        from pyengine.activemq.tables.dispatch import ROW

        parts = [name for name in batch.schema.names if name.startswith(PART)]
        return [batch.column(name) for name in parts or [ROW]]

    def _rejected(self, rows: Any, problems: Any) -> Any:
        import pyarrow as pa

        from pyengine.activemq.tables.dispatch import ASSIGNMENT_SCHEMA

        schema = numbers_schema(ASSIGNMENT_SCHEMA, self.numbers)
        given = {
            "row": numbers_array(self._numbers(rows), self.numbers),
            "reason": ["rejected"] * rows.num_rows,
            "blocked_by": problems,
        }
        columns = [
            pa.nulls(rows.num_rows, field.type)
            if field.name not in given
            else given[field.name]
            if field.name == "row"
            else pa.array(given[field.name], field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
