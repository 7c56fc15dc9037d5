"""Columns in the Java types that a source declares, and moments as epoch milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyengine.errors import MissingColumnError, UnsupportedColumnError
from pyengine.topology import JAVA_TYPES
from pyengine.topology.model import JavaTypeName

MILLISECONDS = {"s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000}  # in a unit, or how many units are one


def one_column(name: str, names: Sequence[str], where: str) -> None:
    """That there is one column of this name. Raises MissingColumnError, UnsupportedColumnError."""
    if name not in names:
        raise MissingColumnError(name, names, where)
    if list(names).count(name) > 1:
        raise UnsupportedColumnError(name, "ambiguous", f"two columns of {where} have this name; rename one")


def arrow_type(java: JavaTypeName) -> Any:
    """The Arrow type in which a column of a declared Java type is kept."""
    import pyarrow as pa

    kinds = ("int8", "int16", "int32", "int64", "float32", "float64", "bool_", "string")
    return getattr(pa, dict(zip(JAVA_TYPES, kinds, strict=True))[java])()


def misfit(java: str) -> str:
    """Why a value of a row is rejected that has no counterpart in a Java type."""
    return f"is not {'an' if java.startswith('i') else 'a'} {java}"


def typed(values: Any, wanted: Any) -> Any:
    """Values in another Arrow type; moments become epoch milliseconds, times and durations milliseconds, 0 and 1 and
    their texts booleans.

    Raises ArrowInvalid where some value has no counterpart, ArrowNotImplementedError where none of its type has.
    """
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_null(values.type):
        return pa.nulls(len(values), wanted)
    if kinds.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kinds.is_boolean(wanted) and not kinds.is_boolean(values.type):
        return values.cast(pa.string()).cast(wanted)
    if (kinds.is_timestamp(values.type) or kinds.is_date(values.type)) and wanted == pa.int64():
        return milliseconds(values)
    if (kinds.is_time(values.type) or kinds.is_duration(values.type)) and wanted == pa.int64():
        whole = values.cast(pa.int32()) if kinds.is_time32(values.type) else values
        return scaled(whole.cast(pa.int64()), MILLISECONDS[values.type.unit])
    return values.cast(wanted)


def milliseconds(moments: Any) -> Any:
    """Timestamps or dates as epoch milliseconds, rounded down. Raises ArrowInvalid for one that does not fit."""
    import pyarrow as pa

    if not pa.types.is_timestamp(moments.type):
        moments = moments.cast(pa.timestamp("ms"))
    return scaled(moments.cast(pa.int64()), MILLISECONDS[moments.type.unit])


def scaled(whole: Any, factor: int) -> Any:
    """Whole numbers times ``factor``, or divided by ``-factor`` and rounded down. Raises ArrowInvalid."""
    import pyarrow.compute as pc

    if factor > 0:
        return pc.multiply_checked(whole, factor)
    low = pc.divide(whole, -factor)
    return pc.subtract(low, pc.less(whole, pc.multiply(low, -factor)).cast(whole.type))


def shown(value: Any) -> str:
    """An Arrow value as a reject shows it; a moment that Python has no datetime for as its number."""
    try:
        return str(value.as_py())[:200]
    except (ValueError, OverflowError):
        import pyarrow as pa

        return str(value.cast(pa.string()).as_py())[:200]
