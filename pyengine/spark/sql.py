"""Selectors, subscriptions and dispatch as functions of SQL, for sessions, views and what else speaks SQL to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyengine import Selector, Subscriptions
from pyengine.errors import ConfigurationError, InvalidMessageError, MissingColumnError
from pyengine.spark.session import require_spark
from pyengine.topology.checked import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROPERTIES = "properties"


def register(session: SparkSession, subscriptions: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Make these functions known to the SQL of a session, Classic or Connect:

    - ``pyengine_matches(selector, properties)``: whether a selector matches, never null. properties: a struct
      (``struct(*)``), a map, Kafka's headers or a JSON text, or each property by its name, ``price => price``.
    - ``pyengine_match(subscriptions, properties)``: the names of the subscriptions that match, an array. subscriptions:
      a map of names to selectors, or the name of one of ``subscriptions`` given here.
    - ``pyengine_dispatch(TABLE(t), topology, row)``: a table function, the answer of ``ps.dispatch``. topology: TOML;
      row: the column that numbers the rows. A queue's rows are kept in the memory of one task.
    - ``pyengine_held(state)``: a table function, what waits in a stream, as ``ps.held``.

    A row on which a selector cannot be evaluated, or whose properties cannot be read, fails the query. Raises
    ConfigurationError on pyspark 3.5 and 4.0, which have no functions of Arrow, InvalidSelectorError,
    MissingExtraError.
    """
    require_spark()
    check("subscriptions", subscriptions, Mapping[str, Mapping[str, str]] | None)
    import pyspark

    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        problem = "has no functions of Arrow, in which rows reach a selector with their types"
        version = f"pyspark {pyspark.__version__}"
        raise ConfigurationError("register", version, problem, "use pyspark 4.1 or newer") from None
    from pyspark.sql.functions import udtf

    from pyengine.spark.table_functions import DispatchRows, HeldRows

    known = {name: tuple(texts.items()) for name, texts in (subscriptions or {}).items()}
    for texts in known.values():
        Subscriptions(texts)
    function: Any = arrow_udf
    table: Any = udtf
    session.udf.register("pyengine_matches", function(Matches(), "boolean"))
    session.udf.register("pyengine_match", function(Match(known), "array<string>"))
    session.udtf.register("pyengine_dispatch", table(DispatchRows))
    session.udtf.register("pyengine_held", table(HeldRows))


def _rows_of(names: tuple[str, ...], given: tuple[Any, ...], named: Mapping[str, Any], size: int) -> Any:
    """A batch with these properties, which are looked up in the arguments of a function."""
    import pyarrow as pa

    from pyengine.activemq.tables.typed_names import TYPED
    from pyengine.backlog.tables.nested import Keyed

    if len(given) > 1:
        problem = "is more than one value without a name"
        raise ConfigurationError("properties", f"{len(given)} values", problem, "name the others: price => amount")
    found: dict[str, Any] = {"": pa.nulls(size)}
    places = [Keyed(_PROPERTIES, column) for column in given]
    for name in names:
        if name in named:
            found[name] = named[name]
            continue
        if name.startswith("JMS") and not (given and name in _fields(given[0].type)):
            continue  # that of a freshly made message
        if not places:
            raise MissingColumnError(name, list(named), "the call")
        values, typed, wrong = places[0].get(name)
        if wrong:
            value, problem = next(iter(wrong.values()))
            raise InvalidMessageError(_PROPERTIES, value, problem)
        found[TYPED + name if typed else name] = values
    return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))


def _fields(kind: Any) -> list[str]:
    import pyarrow as pa

    return [field.name for field in kind] if pa.types.is_struct(kind) else []


class Matches:
    """What a worker runs for ``pyengine_matches``."""

    # Without annotations: Spark would read them as the shape of the function.
    def __call__(self, selector, *given, **named):  # type: ignore[no-untyped-def]
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from pyengine.activemq.tables.assignments import compiled
        from pyengine.activemq.tables.typed_texts import TypedRows

        mask = np.zeros(len(selector), bool)
        for text in pc.unique(selector).drop_null().to_pylist():
            at = np.flatnonzero(pc.equal(selector, text).fill_null(False).to_numpy(zero_copy_only=False))
            asked: Selector = compiled(text)
            places = None if len(at) == len(selector) else pa.array(at)
            taken = [column if places is None else column.take(places) for column in given]
            by_name = {name: column if places is None else column.take(places) for name, column in named.items()}
            mask[at] = TypedRows(_rows_of(asked.names, tuple(taken), by_name, len(at))).mask(asked, missing="null")
        return pa.array(mask)


class Match:
    """What a worker runs for ``pyengine_match``. known: texts of subscriptions by name."""

    def __init__(self, known: Mapping[str, tuple[tuple[str, str], ...]]) -> None:
        self.known = dict(known)

    # Without annotations: Spark would read them as the shape of the function.
    def __call__(self, subscriptions, *given, **named):  # type: ignore[no-untyped-def]
        import pyarrow as pa

        from pyengine.spark.transforms import index_of, lists_of

        found: list[list[str]] = [[]] * len(subscriptions)
        groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for place, asked in enumerate(subscriptions.to_pylist()):
            groups.setdefault(self._texts(asked), []).append(place)
        for texts, places in groups.items():
            at = pa.array(places)
            index = index_of(texts, "activemq", "raise")
            names = tuple(dict.fromkeys(name for key in index for name in index[key].names))
            taken = tuple(column.take(at) for column in given)
            rows = _rows_of(names, taken, {name: column.take(at) for name, column in named.items()}, len(places))
            for place, wanted in zip(places, lists_of(index, rows).to_pylist(), strict=True):
                found[place] = wanted
        return pa.array(found, pa.list_(pa.string()))

    def _texts(self, asked: Any) -> tuple[tuple[str, str], ...]:
        if asked is None:
            return ()
        if isinstance(asked, str):
            if asked not in self.known:
                problem, hint = "is not the name of subscriptions", "give them to register, or a map of selectors"
                raise ConfigurationError("pyengine_match", asked, problem, hint)
            return self.known[asked]
        return tuple(asked)
