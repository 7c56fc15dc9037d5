"""data_frames: what pandas, polars, DuckDB and pyarrow need before their columns can be imported, and their errors.

The types of their objects are recognised by their attributes; none of the libraries is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy

from pyengine.errors import PyengineError

ROWS_BY = (  # library, method of its lazy objects that computes the rows
    ("polars", "collect"),
    ("pyarrow", "to_table"),
    ("dask", "compute"),
    ("dask_expr", "compute"),
    ("ibis", "to_pyarrow"),
    ("datasets", "to_polars"),
)


def query_hint(batch: object) -> str:
    """How to get the rows of an object that stands for a query, by its library; otherwise an empty string."""
    library = (type(batch).__module__ or "").partition(".")[0]
    if library == "pyspark":
        return "; pyengine.spark.where and match ask a DataFrame of Spark"
    for module, method in ROWS_BY:
        if library == module and hasattr(batch, method):
            return f"; give {type(batch).__name__}.{method}()"
    return ""


def expressions(relation: Any, names: Sequence[str]) -> list[str]:
    """The columns of a relation in DuckDB's SQL. DuckDB exports a UHUGEINT from 2^127 on as a negative number; the cast
    of such a value fails."""
    kinds = dict(zip(relation.columns, relation.types, strict=True))
    written = []
    for name in names:
        column = '"' + name.replace('"', '""') + '"'
        written.append(f"CAST({column} AS HUGEINT) AS {column}" if kinds[name] == "UHUGEINT" else column)
    return written


def with_decimals(frame: Any, name: str) -> Any:
    """A pandas frame in which a column of Decimals and whole numbers has Decimals only; None for other columns. pyarrow
    finds a precision for all values of a column of Decimals, but not for a mixed one."""
    any_decimal = False
    try:
        values, absent = frame[name].tolist(), frame[name].isna().tolist()
        for row, value in enumerate(values):
            if absent[row]:
                values[row] = None
            elif isinstance(value, (int, numpy.integer)) and not isinstance(value, bool):
                values[row] = Decimal(int(value))
            elif isinstance(value, Decimal):
                any_decimal = True
            else:
                return None
        if not any_decimal:
            return None
        frame = frame.copy(deep=False)
        frame.isetitem(frame.columns.get_loc(name), values)
    except Exception:  # of pandas: the error of the column itself is reported
        return None
    return frame


def holds_infinity(frame: Any, name: str) -> bool:
    """Whether a column of a pandas frame has an infinite Decimal."""
    try:
        return any(isinstance(value, Decimal) and value.is_infinite() for value in frame[name].tolist())
    except Exception:  # of pandas: the error of the column itself is reported
        return False


def has_rows(batch: Any) -> bool:
    """Whether the number of rows is known without their columns; otherwise the batch as a whole cannot be read."""
    try:
        len(batch)
    except BaseException as error:
        if not is_foreign(error):
            raise
        return False
    return True


def is_foreign(error: BaseException) -> bool:
    """Whether an error is another library's; a panic of polars is not an Exception."""
    return not isinstance(error, (PyengineError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit))


def reason(error: BaseException) -> str:
    """The message of another library's error, in one line."""
    text: object = error
    if error.args and isinstance(error.args[0], str) and not isinstance(error, UnicodeError):
        text = error.args[0]
    return " ".join(str(text).split())[:300] or type(error).__name__


def described_column(batch: Any, name: str) -> str:
    """The type of a column as its library names it."""
    try:
        kinds = batch.dtypes
        return str(kinds[batch.columns.index(name) if isinstance(kinds, list) else name])
    except Exception:  # a message about an error must not raise another one
        return type(batch).__name__
