"""Properties whose values have a type of their own each, as those of JSON: one column of JSON texts for all types.

The column of a property ``price`` is called ``__json:price`` and holds ``"7"``, ``7``, ``6.5`` or ``true``; null is an
absent property. A whole number within long is a long (7.0 too), another number a double. A selector is asked of columns
that have one type: rows are divided by the types of the properties that the selector reads, which in most logs is one
part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine import Columns, Selector
from pyengine.activemq.tables.typed_names import NO_PROPERTY, TYPED, typed_names
from pyengine.errors import InvalidMessageError

_PLAIN_LONG = r"^-?[0-9]{1,18}$"
_OBJECTS = ["{", "["]  # how objects and lists begin

Part = tuple[np.ndarray[Any, Any] | None, Any]


def _contiguous(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def by_type(texts: Any) -> dict[str, Any]:
    """The values of such a column for each type that occurs, as an array in which the others are null: "string",
    "boolean", "long", "double"; "other" are texts of objects and lists, which no property can be."""
    column = _contiguous(texts)
    first = pc.utf8_slice_codeunits(column, 0, 1)
    found: dict[str, Any] = {}
    starts = set(pc.unique(first).drop_null().to_pylist())
    rest = pc.is_valid(column)
    if '"' in starts:
        strings = pc.equal(first, '"')
        found["string"] = _unquoted(pc.if_else(strings, column, None))
        rest = pc.and_(rest, pc.invert(pc.fill_null(strings, False)))
    for kind, letters in (("boolean", ["t", "f"]), ("other", _OBJECTS)):
        if starts.intersection(letters):
            those = pc.is_in(first, pa.array(letters))
            found[kind] = pc.if_else(those, column, None)
            rest = pc.and_(rest, pc.invert(those))
    if "boolean" in found:
        found["boolean"] = found["boolean"].cast(pa.bool_())
    if pc.any(rest).as_py():
        found |= _numbers(pc.if_else(rest, column, None))
    return found


def are_objects(texts: Any) -> Any:
    """Whether each of such texts is an object or a list, which no property can be."""
    return pc.is_in(pc.utf8_slice_codeunits(texts, 0, 1), pa.array(_OBJECTS))


def _unquoted(quoted: Any) -> Any:
    inner = pc.utf8_slice_codeunits(quoted, 1, -1)
    if not pc.any(pc.match_substring(inner, "\\")).as_py():
        return inner
    return pa.array([None if text is None else json.loads(text) for text in quoted.to_pylist()], pa.string())


def _numbers(texts: Any) -> dict[str, Any]:
    plain = pc.match_substring_regex(texts, _PLAIN_LONG)
    if pc.all(plain).as_py():
        return {"long": texts.cast(pa.int64())}
    longs: list[int | None] = []
    doubles: list[float | None] = []
    for text in texts.to_pylist():
        value = None if text is None else _number(text)
        longs.append(value if isinstance(value, int) else None)
        doubles.append(value if isinstance(value, float) else None)
    found = {"long": pa.array(longs, pa.int64()), "double": pa.array(doubles, pa.float64())}
    return {kind: values for kind, values in found.items() if values.null_count < len(values)}


def _number(text: str) -> int | float:
    value = float(text)
    if value.is_integer() and -(2.0**63) <= value < 2.0**63:
        whole = int(text) if text.lstrip("-").isdigit() else int(value)
        return whole if -(1 << 63) <= whole < 1 << 63 else value
    return value


def plain_texts(texts: Any) -> Any:
    """The values as texts: strings without their quotes, others as JSON has them."""
    column = _contiguous(texts)
    strings = by_type(column).get("string")
    if strings is None:
        return column
    return pc.coalesce(strings, pc.if_else(pc.starts_with(column, '"'), None, column))


def refuse_objects(name: str, texts: Any) -> None:
    """Raise InvalidMessageError for the first value that no property can be."""
    other = pc.drop_null(texts)
    raise InvalidMessageError(name, other[0].as_py()[:200], NO_PROPERTY)


class TypedRows:
    """Rows of messages that selectors are asked about; their properties may have any types."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self._typed = typed_names(rows.schema.names)
        self._arrays: dict[str, dict[str, Any]] = {}
        self._parts: dict[tuple[str, ...], list[Part]] = {}
        self._columns: dict[tuple[str, ...], list[tuple[np.ndarray[Any, Any] | None, Columns]]] = {}

    def parts(self, names: Iterable[str]) -> list[Part]:
        """The rows with plain columns for these properties: (places, None for all rows; rows)."""
        wanted = set(names)
        read = tuple(name for name in self._typed if name in wanted)
        if read not in self._parts:
            self._parts[read] = list(self._divided(read))
        return self._parts[read]

    def mask(
        self,
        selector: Selector,
        on_error: Literal["raise", "reject"] = "raise",
        missing: Literal["raise", "null"] = "raise",
    ) -> np.ndarray[Any, Any]:
        """As ``Selector.mask`` of all rows."""
        found = np.zeros(self.rows.num_rows, bool)
        for at, part in self.parts(selector.names):
            found[slice(None) if at is None else at] = selector.mask(part, on_error, missing)
        return found

    def truth(self, selector: Selector, missing: Literal["raise", "null"] = "raise") -> np.ndarray[Any, Any]:
        """As ``Selector.truth`` of all rows."""
        read = tuple(name for name in self._typed if name in selector.names)
        if read not in self._columns:
            self._columns[read] = [(at, Columns(part)) for at, part in self.parts(read)]
        columns = self._columns[read]
        if len(columns) == 1 and columns[0][0] is None:
            return selector.truth(columns[0][1], missing=missing)
        truth = np.zeros(self.rows.num_rows, np.int8)
        for at, part in columns:
            truth[at] = selector.truth(part, missing=missing)
        return truth

    def _divided(self, read: Sequence[str]) -> Iterable[Part]:
        for name in read:
            if name not in self._arrays:
                self._arrays[name] = by_type(self.rows.column(TYPED + name))
                if "other" in self._arrays[name]:
                    refuse_objects(name, self._arrays[name]["other"])
        several = [name for name in read if len(self._arrays[name]) > 1]
        if not several:
            yield None, self._with(self.rows, {name: next(iter(self._arrays[name].values()), None) for name in read})
            return
        codes = np.zeros((len(several), self.rows.num_rows), np.int8)
        for code, name in zip(codes, several, strict=True):
            for number, values in enumerate(self._arrays[name].values()):
                code[pc.is_valid(values).to_numpy(zero_copy_only=False)] = number
        kinds, which = np.unique(codes, axis=1, return_inverse=True)
        for number, kind in enumerate(kinds.T):
            at = np.flatnonzero(which.reshape(-1) == number)
            values = {name: next(iter(self._arrays[name].values()), None) for name in read}
            for place, name in zip(kind.tolist(), several, strict=True):
                values[name] = list(self._arrays[name].values())[place]
            yield at, self._with(self.rows, values).take(pa.array(at))

    def _with(self, rows: Any, values: dict[str, Any]) -> Any:
        for name, column in values.items():
            array = pa.nulls(rows.num_rows, pa.string()) if column is None else column
            place = rows.schema.get_field_index(TYPED + name)
            rows = rows.set_column(place, name, array)
        return rows
