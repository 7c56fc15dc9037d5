"""Functions from Columns to a Column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pyengine import Selector
from pyengine.activemq.tables.typed_names import TYPED
from pyengine.errors import ConfigurationError, InvalidMessageError, MissingColumnError, UnsupportedColumnError
from pyengine.spark.native import NotNativeError, truth_of
from pyengine.spark.properties import PROBLEM, Found, Properties, checked, first_problem, problem_parts
from pyengine.spark.properties import quoted as quoted
from pyengine.spark.session import require_spark
from pyengine.topology.checked import check

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

OnError = Literal["raise", "reject"]
Using = Literal["auto", "native", "arrow", "pandas"]


def unread(batch: Any, on_error: OnError) -> tuple[Any, np.ndarray[Any, Any] | None]:
    """The rows without the column of their problems, and which of them have one; the values of these are null.

    Raises InvalidMessageError for the first one if on_error is "raise".
    """
    import pyarrow.compute as pc

    from pyengine.activemq.tables.typed_texts import are_objects

    found = None
    if PROBLEM in batch.schema.names:
        problems = batch.column(PROBLEM)
        if on_error == "raise" and problems.null_count < len(problems):
            raise InvalidMessageError(*problem_parts(pc.drop_null(problems)[0].as_py()))
        found = problems.is_valid()
        batch = batch.drop_columns([PROBLEM])
    for name in batch.schema.names if on_error == "reject" else ():
        if name.startswith(TYPED):
            texts = batch.column(name)
            objects = are_objects(texts)
            found = objects if found is None else pc.or_(found, objects)
            batch = batch.set_column(batch.schema.get_field_index(name), name, pc.if_else(objects, None, texts))
    return batch, None if found is None else found.to_numpy(zero_copy_only=False)


class SelectorMask:
    """What a worker runs for ``matches``: pickled by reference with the selector's text, compiled once per worker."""

    def __init__(self, text: str, dialect: str, names: tuple[str, ...], on_error: OnError, kind: str) -> None:
        self.text = text
        self.dialect = dialect
        self.names = names
        self.on_error = on_error
        self.kind = kind

    # Without annotations: Spark would read them as the shape of the function.
    def __call__(self, *arrays):  # type: ignore[no-untyped-def]
        import pyarrow as pa

        from pyengine.activemq.tables.dispatch import compiled
        from pyengine.activemq.tables.typed_texts import TypedRows

        batch, problems = unread(columns_of(self.kind, self.names, arrays), self.on_error)
        mask = TypedRows(batch).mask(compiled(self.text, self.dialect), self.on_error)
        if problems is not None:
            mask &= ~problems
        if self.kind == "pandas":
            import pandas as pd

            return pd.Series(mask)
        return pa.array(mask)


def udf_of(using: Using) -> tuple[Literal["arrow", "pandas"], Any]:
    """The evaluation in a worker as a function of columns: Arrow's where pyspark has it, from 4.1 on.

    Raises ConfigurationError where "arrow" is asked for and not there.
    """
    if using != "pandas":
        try:
            from pyspark.sql.pandas.functions import arrow_udf
        except ImportError:
            if using == "arrow":
                raise ConfigurationError("using", using, "needs pyspark 4.1", "'pandas' and 'auto' do not") from None
        else:
            return "arrow", arrow_udf
    from pyspark.sql.pandas.functions import pandas_udf

    return "pandas", pandas_udf


def worker_inputs(kind: Literal["arrow", "pandas"], inputs: list[Any]) -> list[Any]:
    """The columns that such a function is called with."""
    from pyspark.sql import functions as F  # noqa: N812

    if not inputs:
        return [F.lit(1)]  # a function needs a column to know how many rows there are
    if kind == "arrow":
        return inputs
    members = [each.alias(str(place)) for place, each in enumerate(inputs)]
    return [F.to_json(F.struct(*members), _JSON), *(F.typeof(each) for each in inputs)]


def columns_of(kind: str, names: tuple[str, ...], arrays: Sequence[Any]) -> Any:
    """A record batch of what a worker gets for ``worker_inputs``."""
    import pyarrow as pa

    if kind == "pandas":
        return _from_json(names, *arrays)
    return pa.RecordBatch.from_arrays(list(arrays), names=list(names or ("",)))


# pandas has no nulls among whole numbers, tells no null from NaN and shifts moments to the session's time zone, so rows
# reach it as JSON, in which every value of a Java type is exact, beside the names of the columns' types.
_JSON = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "dateFormat": "yyyy-MM-dd",
}


def _from_json(names: tuple[str, ...], rows: Any, *kinds: Any) -> Any:
    """The columns of rows that are JSON objects with the members 0, 1, ..., in the types that Spark names."""
    import pyarrow as pa

    if not names or rows.empty:
        return pa.RecordBatch.from_arrays([pa.nulls(len(rows)) for _ in names or ("",)], names=list(names or ("",)))
    objects = [json.loads(row, parse_float=Decimal) for row in rows]
    arrays = [
        _from_texts(name, kinds[place].iloc[0], [each.get(str(place)) for each in objects])
        for place, name in enumerate(names)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _from_texts(name: str, kind: str, values: list[Any]) -> Any:
    """A column as JSON has its values, in the type that Spark names. Raises UnsupportedColumnError."""
    import pyarrow as pa

    if kind in _ARROW_TYPES:
        if kind in ("float", "double"):
            values = [None if value is None else float(value) for value in values]
        return pa.array(values).cast(getattr(pa, _ARROW_TYPES[kind])())
    if exact := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return pa.array(
            [None if each is None else Decimal(each) for each in values], pa.decimal128(*map(int, exact.groups()))
        )
    read = _LONGS.get(re.sub(r" .*(day|hour|minute|second)$|\(\d+\)$", "", kind))
    if read is None:
        raise UnsupportedColumnError(name, kind, "cast it, or leave it out of the selector")
    return pa.array([None if value is None else read(value) for value in values], pa.int64())


def _since(text: str, unit: Literal["D", "us", "ns"]) -> int:
    """Milliseconds of a moment, since 1970; years may have a sign and more than four digits."""
    stored = int(np.datetime64(text, unit).astype(np.int64))
    return stored * 86_400_000 if unit == "D" else stored // (1000 if unit == "us" else 1_000_000)


def _milliseconds(interval: str) -> int:
    """From a string such as INTERVAL '-1 02:03:04.5' DAY TO SECOND, which begins with the unit of the first number."""
    sign, numbers, unit = re.findall(r"'(-?)(.*)' (\w+)", interval)[0]
    whole, _, fraction = numbers.partition(".")
    units = [86_400, 3_600, 60, 1][("DAY", "HOUR", "MINUTE", "SECOND").index(unit) :]
    seconds = sum(int(number) * unit for number, unit in zip(re.split("[ :]", whole), units, strict=False))
    return int(f"{sign}{seconds}{fraction:0<6}") // 1000


_ARROW_TYPES = {
    "tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32", "double": "float64",
    "boolean": "bool_", "string": "string", "void": "null",
}  # fmt: skip
_LONGS: dict[str, Callable[[str], int]] = {
    "timestamp": partial(_since, unit="us"),
    "timestamp_ntz": partial(_since, unit="us"),
    "date": partial(_since, unit="D"),
    "time": lambda text: _since(f"1970-01-01T{text}", "ns"),
    "interval": _milliseconds,
}


def matches(
    selector: str,
    *,
    columns: Mapping[str, Column | str | None] | None = None,
    dialect: Literal["activemq", "rocketmq"] = "activemq",
    on_error: OnError = "raise",
    using: Using = "auto",
    schema: StructType | DataFrame | None = None,
    properties_from: Column | str | None = None,
) -> Column:
    """Whether a selector matches each row, a boolean Column that is never null: ``df.where(matches("price > 100"))``.

    Every name that the selector reads is the column of that name, headers (JMSPriority, ...) included: a name that the
    DataFrame lacks is Spark's UNRESOLVED_COLUMN error, never a silent default. columns: where a name comes from
    instead, as a Column or a column's name (dots reach into structs); None means that no message has it, so a header
    gets the value of a freshly made message. Column types decide the Java types (spec activemq 1.9): byte, short, int,
    long, float, double, boolean, string; a timestamp, date, time or interval is a long of milliseconds, a decimal the
    exact number. A null is an absent property.

    on_error: what a row on which the selector cannot be evaluated does, as in Selector.mask: "raise" fails the query
    with SelectorEvaluationError in its text, "reject" does not match.

    using: how to evaluate. "auto": Spark's own expressions if they mean exactly the same for the columns' types, so
    that no row leaves the JVM; schema (df.schema, or df) says the types, and without it, or where the meaning differs,
    a Python worker. "native": those expressions or NotNativeError with the reason. "arrow": a worker, needs pyspark
    4.1; "pandas": the same through pandas, slower, and what "auto" takes on pyspark 3.5 and 4.0.

    properties_from: the column in which the properties are keys, as in ``match``; it needs the schema. What no map,
    header or struct has by itself, the types of values in JSON, is evaluated by a worker.

    Raises here and now InvalidSelectorError, with the position, UnsupportedColumnError where schema has a type that no
    property can have, ConfigurationError for another on_error or using, ValueError for columns that are not read,
    MissingExtraError without pyspark.
    """
    require_spark()
    _check_arguments(selector, columns, dialect, on_error, using)
    if properties_from is not None:
        if schema is None:
            hint = "give schema=df: the type of its column decides how keys are looked up"
            raise ConfigurationError("properties_from", properties_from, "needs the schema", hint)
        return _of_keys(
            selector, columns or {}, dialect, on_error, using, Properties(schema, columns or {}, properties_from)
        )
    if using in ("auto", "native"):
        try:
            truth = native_truth(selector, columns or {}, dialect, schema)
        except NotNativeError:
            if using == "native":
                raise
        else:
            from pyspark.sql.functions import coalesce, lit

            return coalesce(truth, lit(False))
        using = "auto"
    from pyspark.sql import functions as F  # noqa: N812

    kind, made = udf_of(using)
    compiled = Selector(selector, dialect)
    columns = dict(columns or {})
    if schema is not None:
        compiled.mask(no_rows(schema, {name: columns.get(name, name) for name in compiled.names}), missing="null")
    names: list[str] = []
    inputs: list[Any] = []
    for name in compiled.names:
        given = columns.get(name, quoted(name))
        if given is not None:
            names.append(name)
            inputs.append(F.col(given) if isinstance(given, str) else given)
        elif not name.startswith("JMS"):
            names.append(name)
            inputs.append(F.lit(None).cast("string"))
    work = SelectorMask(selector, dialect, tuple(names), on_error, kind)
    found: Column = made(work, "boolean")(*worker_inputs(kind, inputs))
    return found


def _of_keys(
    selector: str,
    columns: Mapping[str, Column | str | None],
    dialect: Literal["activemq", "rocketmq"],
    on_error: OnError,
    using: Using,
    places: Properties,
) -> Column:
    """``matches`` for properties that are keys in a column."""
    from pyspark.sql import functions as F  # noqa: N812

    found: dict[str, Found] = {}
    for name in Selector(selector, dialect).names:
        if (place := places.of(name)) is not None:
            found[name] = place
        elif not name.startswith("JMS"):
            found[name] = Found(F.lit(None).cast("string"), "string")
    problem = first_problem(each.problem for each in found.values())
    if using in ("auto", "native"):
        try:
            if typed := [name for name, each in found.items() if each.typed]:
                raise NotNativeError(selector, f"{typed[0]} has the type that each value has by itself")
            types = {name: each.kind for name, each in found.items()}
            truth = truth_of(selector, types, {name: each.column for name, each in found.items()}, dialect)
        except NotNativeError:
            if using == "native":
                raise
        else:
            return checked(F.coalesce(truth, F.lit(False)), problem, on_error, F.lit(False))
    kind, worker = udf_of(using)
    names = [TYPED + name if each.typed else name for name, each in found.items()]
    inputs = [each.column for each in found.values()]
    if problem is not None:
        names.append(PROBLEM)
        inputs.append(problem)
    for name, each in found.items():
        if not re.match(r"(?!binary|array|map|struct|variant)", each.kind):
            raise UnsupportedColumnError(name, each.kind, "cast it, or leave it out of the selector")
    work = SelectorMask(selector, dialect, tuple(names), on_error, kind)
    mask: Column = worker(work, "boolean")(*worker_inputs(kind, inputs))
    return mask


def _check_arguments(
    selector: str,
    columns: Mapping[str, Column | str | None] | None,
    dialect: Literal["activemq", "rocketmq"],
    on_error: OnError,
    using: Using,
) -> None:
    """What a worker, or nobody, would complain about. Raises ConfigurationError, ValueError, InvalidSelectorError."""
    from pyspark.sql import Column

    check("on_error", on_error, OnError)
    check("using", using, Using)
    check("columns", columns, Mapping[str, Column | str | None] | None)
    read = Selector(selector, dialect).names
    for name in columns or ():
        if name not in read:
            raise ValueError(f"columns names {name!r}, which the selector does not read: it reads {', '.join(read)}")


def where(
    df: DataFrame,
    selector: str,
    *,
    columns: Mapping[str, Column | str | None] | None = None,
    dialect: Literal["activemq", "rocketmq"] = "activemq",
    on_error: OnError = "raise",
    using: Using = "auto",
    properties_from: Column | str | None = None,
) -> DataFrame:
    """The rows that a selector matches, for ``df.transform(ps.where, "price > 100")``.

    As ``df.where(matches(...))`` with the schema of df; a native expression reaches the source as a pushed filter.
    Raises also MissingColumnError for a name that is not a column of df, and UnsupportedColumnError if two columns have
    it.
    """
    require_spark()
    _check_arguments(selector, columns, dialect, on_error, using)
    given = columns or {}
    if properties_from is not None:
        return df.where(
            matches(
                selector, columns=columns, dialect=dialect, on_error=on_error, using=using, schema=df,
                properties_from=properties_from,
            )
        )  # fmt: skip
    read = [source for name in Selector(selector, dialect).names if isinstance(source := given.get(name, name), str)]
    plain = [source for source in read if source not in given.values() or "." not in source]  # dots reach into structs
    for source in plain:
        if not has_column(df, source):
            raise MissingColumnError(source, df.columns, "the DataFrame")
    refuse_ambiguous(df, plain)
    if using in ("auto", "native"):
        try:
            return df.where(native_truth(selector, columns or {}, dialect, df))
        except NotNativeError:
            if using == "native":
                raise
        kind, _ = udf_of("auto")  # what matches would ask once more
        using = kind
    return df.where(matches(selector, columns=columns, dialect=dialect, on_error=on_error, using=using, schema=df))


def native_truth(
    selector: str, given: Mapping[str, Column | str | None], dialect: str, schema: StructType | DataFrame | None
) -> Column:
    """The truth of a selector as Spark's own expression. Raises NotNativeError, InvalidSelectorError."""
    from pyspark.sql import functions as F  # noqa: N812

    if schema is None:
        raise NotNativeError(selector, "the types of the columns are not known: give the schema")
    shape: Any = getattr(schema, "schema", schema)
    types: dict[str, str] = {}
    columns: dict[str, Column] = {}
    for name in Selector(selector, dialect).names:  # type: ignore[arg-type]
        source = given.get(name, name)
        if not isinstance(source, str) or (name in given and "." in source):
            raise NotNativeError(selector, f"{name} is not read from a column of the schema")
        found = [field.dataType.simpleString() for field in shape.fields if field.name == source]
        if len(found) == 1:
            types[name], columns[name] = found[0], F.col(quoted(source))
    return truth_of(selector, types, columns, dialect)


def no_rows(schema: StructType | DataFrame, sources: Mapping[str, Column | str | None]) -> Any:
    """Columns as Spark hands them over, without a row: a type that no property has is refused before a job starts.

    sources: name -> the name of its column; names that are not columns of the schema are left out.
    """
    import pyarrow as pa

    shape: Any = getattr(schema, "schema", schema)
    fields = {field.name: field for field in shape.fields}
    found = {name: fields[source] for name, source in sources.items() if isinstance(source, str) and source in fields}
    arrays = [pa.array([], kind) for kind in arrow_schema(found.values()).types]
    return pa.RecordBatch.from_arrays(arrays, names=list(found))


def arrow_schema(fields: Iterable[StructField]) -> Any:
    """The Arrow schema of Spark's columns, as a worker sees it. Raises UnsupportedColumnError where it sees none."""
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    found = []
    convert: Any = to_arrow_type
    # Spark 4.1 gives timestamps in UTC, later releases need the time zone.
    zone = {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}
    for field in fields:
        try:
            found.append(pa.field(field.name, convert(field.dataType, **zone)))
        except PySparkException as error:
            kind = field.dataType.simpleString()
            raise UnsupportedColumnError(field.name, kind, "Spark hands no such column to Python: cast it") from error
    return pa.schema(found)


class Named:
    """What a worker runs on rows whose columns Spark knows by their numbers."""

    def __init__(self, names: Sequence[str], work: Callable[[Iterable[Any]], Iterator[Any]]) -> None:
        self.names = list(names)
        self.work = work

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        return self.work(_in_utc(batch.rename_columns(self.names)) for batch in batches)


def _in_utc(batch: Any) -> Any:
    """The batch, whose moments Spark tells in the session's time zone: as texts they would be others in another one."""
    import pyarrow as pa

    types = [
        pa.timestamp(kind.unit, kind.tz and "UTC") if pa.types.is_timestamp(kind) else kind
        for kind in batch.schema.types
    ]
    columns = [column.cast(kind) for column, kind in zip(batch.columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def map_in_arrow(
    rows: DataFrame, work: Callable[[Iterable[Any]], Iterator[Any]], schema: StructType | str
) -> DataFrame:
    """``rows.mapInArrow(work, schema)`` for columns of any name: pyspark's own takes ``a.b`` for a field of ``a``."""
    names = rows.columns
    return rows.toDF(*map(str, range(len(names)))).mapInArrow(Named(names, work), schema)


def has_column(df: DataFrame, name: str) -> bool:
    """Whether Spark finds a column by this name; its setting decides whether case matters."""
    if name in df.columns:
        return True
    heeded = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return not heeded and name.lower() in (each.lower() for each in df.columns)


def refuse_ambiguous(df: DataFrame, names: Iterable[str]) -> None:
    """Raise UnsupportedColumnError for a name by which Spark finds two columns."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F  # noqa: N812

    for name in names:
        alike = [each for each in df.columns if each.lower() == name.lower()]
        if len(alike) < 2:
            continue
        try:
            _ = df.select(F.col(quoted(name))).schema  # one column twice, or in other capitals, may be no problem
        except AnalysisException as error:
            hint = f"the DataFrame has {', '.join(alike)}, which Spark cannot tell apart by this name; rename one"
            raise UnsupportedColumnError(name, "ambiguous", hint) from error
