"""Properties where they are: keys of maps, of Kafka's headers, structs, variants and JSON texts as Spark's expressions.

Only the keys that are asked for are taken out. pyengine.backlog.tables.nested does the same with Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyengine.activemq.tables.typed_names import TYPED
from pyengine.backlog.tables.places import (
    NOT_AN_OBJECT,
    NOT_JSON,
    NOT_UTF8,
    Place,
    fields_to,
    key_and_value,
    named_place,
    place_of,
    refuse_two,
)
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, MissingColumnError, UnsupportedColumnError
from pyengine.topology import Source, Topology

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

Given = Mapping[str, "Column | str | None"]
PROBLEM = "__problem"  # why a row is not a message, found before its columns cross to Python
_HINT = "keys are looked up in maps, lists of key and value, structs, variants and JSON texts"


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it, dots and all."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Found:
    """The values of a property. kind: Spark's simple type of the column. typed: JSON texts, which say their type.

    problem: why a row's value cannot be read, null for others; None: every value can.
    """

    column: Column
    kind: str
    typed: bool = False
    problem: Column | None = None


class Properties:
    """Where the properties of a DataFrame's rows are.

    frame: the DataFrame, or its schema. columns: a name that a selector reads -> a Column, a place (a column,
    ``column.key``, a key in properties_from) or None: no row has it. properties_from: the column in which the other
    names are keys.
    """

    def __init__(self, frame: DataFrame | StructType, columns: Given, properties_from: Column | str | None) -> None:
        self.frame = frame
        self.columns = columns
        self.container = properties_from
        shape: Any = getattr(frame, "schema", frame)
        self.fields: dict[str, Any] = {field.name: field.dataType for field in shape.fields}
        self.names = list(self.fields)
        if isinstance(properties_from, str) and properties_from not in self.fields:
            raise MissingColumnError(properties_from, self.names, "the DataFrame")
        self._parsed: dict[str, tuple[Any, Any]] = {}
        self._found: dict[Place, Found] = {}

    def of(self, name: str) -> Found | None:
        """A property that a selector reads; None: no row has it. Raises MissingColumnError, UnsupportedColumnError."""
        if name in self.columns:
            given = self.columns[name]
            if given is None:
                return None
            if not isinstance(given, str):
                return Found(given, self._type_of(given).simpleString())
            return self.at(given)
        if self.container is not None and not name.startswith("JMS"):
            return self._key(self.container, name)
        if name not in self.fields:
            return None
        return self._column(name)

    def at(self, text: str) -> Found:
        """A place by its name."""
        if self.container is None or isinstance(self.container, str):
            return self.in_place(place_of(text, self.names, self.container or "", "the DataFrame"))
        place = named_place(text, self.names)
        return self._key(self.container, text) if place is None else self.in_place(place)

    def in_place(self, place: Place) -> Found:
        """A column, or a key in one."""
        return self._column(place.column) if place.key is None else self._key(place.column, place.key)

    def _column(self, name: str) -> Found:
        from pyspark.sql import functions as F  # noqa: N812

        place = Place(name)
        if place not in self._found:
            self._found[place] = Found(F.col(quoted(name)), self.fields[name].simpleString())
        return self._found[place]

    def _type_of(self, column: Column) -> DataType:
        select = getattr(self.frame, "select", None)
        if select is None:
            problem, hint = "is a Column, whose type the schema does not say", "give the DataFrame as schema"
            raise ConfigurationError("schema", "StructType", problem, hint)
        found: DataType = select(column).schema.fields[0].dataType
        return found

    def _key(self, container: Column | str, key: str) -> Found:
        place = Place(container if isinstance(container, str) else "properties_from", key)
        if place not in self._found:
            self._found[place] = self._looked_up(place.column, container, key)
        return self._found[place]

    def _looked_up(self, name: str, container: Column | str, key: str) -> Found:
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql import types as T  # noqa: N812

        column, kind = (
            (F.col(quoted(container)), self.fields[container])
            if isinstance(container, str)
            else (container, self._type_of(container))
        )
        if isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
            return self._value(name, F.try_element_at(column, F.lit(key)), kind.valueType)
        if (fields := _key_and_value(kind)) is not None:
            last = F.try_element_at(F.filter(column, lambda entry: entry[fields[0]] == F.lit(key)), F.lit(-1))
            entry: Any = kind
            return self._value(name, last[fields[1]], entry.elementType[fields[1]].dataType)
        if isinstance(kind, T.StructType):
            for part in fields_to(key, kind.names):
                if not isinstance(kind, T.StructType) or part not in kind.names:
                    raise MissingColumnError(key, list(getattr(kind, "names", [])), f"the struct {name!r}")
                column, kind = column.getField(part), kind[part].dataType
            return self._value(name, column, kind)
        kinds = kind.simpleString()
        if kinds not in ("variant", "string", "binary"):
            raise UnsupportedColumnError(name, kinds, _HINT)
        require_variants(name, kinds)
        if kinds == "variant":
            return self._of_variant(column, _path(key), None)
        if name not in self._parsed:
            text = column.cast("string") if kinds == "binary" else column
            variant = F.try_parse_json(text)
            what = F.when(~F.is_valid_utf8(text), F.lit(NOT_UTF8)).when(variant.isNull(), F.lit(NOT_JSON))
            what = what.when(~F.rlike(text, F.lit(r"^\s*[{]")), F.lit(NOT_AN_OBJECT))
            self._parsed[name] = variant, _problem(name, F.make_valid_utf8(text), what)
        variant, problem = self._parsed[name]
        return self._of_variant(variant, _path(key), problem)

    def _value(self, about: str, column: Column, kind: DataType) -> Found:
        from pyspark.sql import functions as F  # noqa: N812

        name = kind.simpleString()
        if name == "binary":
            text, is_utf8, readable = _decoded(column)
            wrong = F.when(~is_utf8, F.lit(NOT_UTF8))
            return Found(text, "string", problem=_problem(about, readable, wrong))
        if name == "variant":
            return self._of_variant(column, "$", None)
        return Found(column, name)

    def _of_variant(self, variant: Column, path: str, problem: Column | None) -> Found:
        """A value as JSON has it, which says its type."""
        from pyspark.sql import functions as F  # noqa: N812

        text = F.to_json(F.try_variant_get(variant, path, "variant"))
        return Found(F.nullif(text, F.lit("null")), "string", True, problem)


def require_variants(name: str, kind: str) -> None:
    """Raise UnsupportedColumnError if this pyspark cannot look into JSON."""
    import pyspark
    from pyspark.sql import functions

    if not hasattr(functions, "try_parse_json"):
        hint = "make a map of it: from_json(value, 'map<string,string>')"
        raise UnsupportedColumnError(
            name, kind, f"pyspark {pyspark.__version__} reads no values out of JSON, 4.0 does; {hint}"
        )


def _key_and_value(kind: Any) -> tuple[str, str] | None:
    """The names of the two fields of a list of structs like Kafka's headers."""
    from pyspark.sql import types as T  # noqa: N812

    if not isinstance(kind, T.ArrayType) or not isinstance(kind.elementType, T.StructType):
        return None
    return key_and_value(kind.elementType.names)


def _decoded(column: Column) -> tuple[Column, Column, Column]:
    """Bytes as a string, null where they are not UTF-8; whether they are; the string with U+FFFD for what is not."""
    from pyspark.sql import functions as F  # noqa: N812

    if hasattr(F, "is_valid_utf8"):
        text = column.cast("string")
        return F.try_validate_utf8(text), F.is_valid_utf8(text), F.make_valid_utf8(text)
    text = F.decode(column, "UTF-8")  # pyspark 3.5
    is_utf8 = F.encode(text, "UTF-8") == column
    return F.when(is_utf8, text), is_utf8, text


def _problem(name: str, readable: Column, reason: Column) -> Column:
    """Why a string in a column cannot be read, as ``problem_of`` a Reject; null where the reason is."""
    from pyspark.sql import functions as F  # noqa: N812

    cut = F.when(F.length(readable) > 200, F.concat(F.substring(readable, 1, 197), F.lit("..."))).otherwise(readable)
    return F.concat(F.lit(f"{name} = '"), cut, F.lit("': "), reason)


def problem_parts(problem: str) -> tuple[str, str, str]:
    """The name, the text and the reason of such a problem."""
    name, _, rest = problem.partition(" = '")
    text, _, reason = rest.rpartition("': ")
    return name, text, reason


def _path(key: str) -> str:
    """A key as a path into a variant. Raises UnsupportedColumnError for one that no path can name."""
    for quote in "'\"":
        if quote not in key:
            return f"$[{quote}{key}{quote}]"
    raise UnsupportedColumnError(key, "key", "Spark's paths name no key with both kinds of quotes: rename it")


def first_problem(problems: Iterable[Column | None]) -> Column | None:
    """The first problem that each row has."""
    from pyspark.sql import functions as F  # noqa: N812

    found = list({id(problem): problem for problem in problems if problem is not None}.values())
    return None if not found else reduce(lambda one, two: F.coalesce(one, two), found)


def checked(values: Column, problem: Column | None, on_error: str, nothing: Column) -> Column:
    """An answer whose rows have problems: these fail the query, or have the answer ``nothing``."""
    from pyspark.sql import functions as F  # noqa: N812

    if problem is None:
        return values
    if on_error == "reject":
        return F.when(problem.isNotNull(), nothing).otherwise(values)
    raised = F.raise_error(F.concat(F.lit("InvalidMessageError: "), problem))
    return F.when(problem.isNotNull(), raised).otherwise(values)


@dataclass(frozen=True)
class Picked:
    """What a topology reads of a DataFrame. source: of the rows that ``columns`` are. columns: name -> expression.

    offered: the names that selectors may read. problem: why a row is not a message.
    """

    source: Source
    columns: dict[str, Any]
    offered: Sequence[str]
    problem: Column | None = None


def source_of(topology: Topology, columns: Given | None, properties_from: Column | str | None) -> Source:
    """The source with the places that a caller gives beside it, as far as they are texts."""
    source = topology.source
    if isinstance(properties_from, str):
        source = replace(source, properties_from=properties_from)
    if columns:
        texts = {name: each for name, each in columns.items() if isinstance(each, str)}
        source = replace(source, columns=tuple({**dict(source.columns), **texts}.items()))
    return source


def pick(df: DataFrame, topology: Topology, columns: Given | None, properties_from: Column | str | None) -> Picked:
    """The columns of a DataFrame that a topology's source and selectors read.

    Raises MissingColumnError, UnsupportedColumnError if two columns have a name.
    """
    source = source_of(topology, columns, properties_from)
    given: dict[str, Any] = {**dict(source.columns), **(columns or {})}
    container = source.properties_from or None if properties_from is None else properties_from
    where = Properties(df, given, container)
    listed = source.properties if source.properties is not None else () if where.container is not None else df.columns
    found: dict[str, Found] = {}
    read = topology.properties_read
    for name in (
        *(name for name in dict.fromkeys(listed) if name in read),
        *(name for name in read if name not in listed),
    ):
        if name in given or (where.container is not None and not name.startswith("JMS") and name not in listed):
            if (place := where.of(name)) is not None:
                found[name] = place
            else:  # no row has it
                found[name] = Found(_nothing(), "string")
        elif name in listed or (where.container is not None and name in df.columns):
            if name not in df.columns:
                raise MissingColumnError(name, df.columns, "the DataFrame")
            found[name] = where.in_place(Place(name))
    mapped: dict[str, Found] = {}
    for name in source.mapped_columns:
        mapped[name] = where.at(name)
        if name in found and found[name] is not mapped[name]:
            key = f"a key in {where.container}"
            refuse_two(name, dict(source.columns).get(name, key), "a column" if name in df.columns else key)
    types = tuple(item for item in source.types if item[0] in found or item[0] in mapped)
    plain = replace(source, properties=tuple(found), types=types, properties_from="", columns=())
    every = {**mapped, **found}
    return Picked(
        plain,
        {TYPED + name if each.typed else name: each.column for name, each in every.items()},
        tuple(dict.fromkeys((*listed, *found))),
        first_problem(each.problem for each in every.values()),
    )


def _nothing() -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return F.lit(None).cast("string")
