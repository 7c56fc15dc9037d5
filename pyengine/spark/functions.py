"""Functions from Columns to a Column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pyengine import Selector
from pyengine.spark.session import require_spark

if TYPE_CHECKING:
    from pyspark.sql import Column

OnError = Literal["raise", "reject"]


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

        from pyengine.activemq.dispatch import compiled

        if self.kind == "pandas":
            arrays = tuple(pa.Array.from_pandas(series) for series in arrays)
        names = self.names or ("",)
        batch = pa.RecordBatch.from_arrays([_plain(array) for array in arrays], names=list(names))
        mask = compiled(self.text, self.dialect).mask(batch, self.on_error)
        if self.kind == "pandas":
            import pandas as pd

            return pd.Series(mask)
        return pa.array(mask)


def _plain(array: Any) -> Any:
    return array.combine_chunks() if hasattr(array, "combine_chunks") else array


def matches(
    selector: str,
    *,
    columns: Mapping[str, Column | str | None] | None = None,
    dialect: Literal["activemq", "rocketmq"] = "activemq",
    on_error: OnError = "raise",
    using: Literal["arrow", "pandas"] = "arrow",
) -> Column:
    """Whether a selector matches each row, a boolean Column that is never null: ``df.where(matches("price > 100"))``.

    Every name that the selector reads is the column of that name, headers (JMSPriority, ...) included: a name that the
    DataFrame lacks is Spark's UNRESOLVED_COLUMN error, never a silent default. columns: where a name comes from
    instead, as a Column or a column's name (dots reach into structs); None means that no message has it, so a header
    gets the value of a freshly made message. Column types decide the Java types (spec activemq 1.9): byte, short, int,
    long, float, double, boolean, string; a timestamp is a long of microseconds. A null is an absent property.

    on_error: what a row on which the selector cannot be evaluated does, as in Selector.mask: "raise" fails the query
    with SelectorEvaluationError in its text, "reject" does not match. using: "arrow" needs pyspark 4.1; "pandas" is for
    older Spark and is slower.

    Raises InvalidSelectorError here and now, with the position; MissingExtraError without pyspark.
    """
    require_spark()
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

    compiled = Selector(selector, dialect)
    columns = dict(columns or {})
    for name in columns:
        if name not in compiled.names:
            raise ValueError(
                f"columns names {name!r}, which the selector does not read: it reads {', '.join(compiled.names)}"
            )
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
    if not inputs:
        inputs = [F.lit(1)]  # a function needs a column to know how many rows there are
    work = SelectorMask(selector, dialect, tuple(names), on_error, using)
    made: Any = arrow_udf if using == "arrow" else pandas_udf
    found: Column = made(work, "boolean")(*inputs)
    return found


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it, dots and all."""
    return "`" + name.replace("`", "``") + "`"
