"""Properties that lie in maps, key and value structs, structs or JSON texts: taken out of Arrow columns by their keys.

pyengine.spark.properties does the same with Spark's expressions; tests compare the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine.activemq.tables.typed_names import TYPED
from pyengine.backlog.tables.places import (
    NOT_AN_OBJECT,
    NOT_JSON,
    NOT_UTF8,
    fields_to,
    key_and_value,
    listed,
    places,
)
from pyengine.dataclass import dataclass
from pyengine.errors import MissingColumnError, UnsupportedColumnError
from pyengine.topology import Source


@dataclass(slots=True)
class Flat:
    """rows: a table with a column for each property and for each column that the source names, TYPED before the name of
    one whose values have types of their own. problems: place of a row -> (name, value, reason)."""

    rows: pa.Table
    source: Source
    problems: dict[int, tuple[str, str, str]] = field(default_factory=dict)


def flat(rows: pa.Table, source: Source, where: str = "the source") -> Flat:
    """Rows with their properties as columns, and the source for them. Raises MissingColumnError for a column that is
    not there, UnsupportedColumnError for one in which no key can be looked up."""
    found: dict[str, Any] = {}
    problems: dict[int, tuple[str, str, str]] = {}
    sought: dict[str, Keyed] = {}
    spots = places(source, rows.column_names, where)
    for name, place in spots.items():
        column = rows.column(place.column)
        if place.key is None:
            found[name] = column
            continue
        if place.column not in sought:
            array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            sought[place.column] = Keyed(place.column, array)
        values, typed, wrong = sought[place.column].get(place.key)
        found[TYPED + name if typed else name] = values
        for index, (value, reason) in wrong.items():
            problems.setdefault(index, (place.column, value, reason))
    table = pa.table(found) if found else rows.select([])
    known = {name.removeprefix(TYPED) for name in found}
    properties = dict.fromkeys((*listed(source, rows.column_names), *dict(source.columns)))
    types = tuple(each for each in source.types if each[0] in known)
    plain = replace(source, properties=tuple(properties), properties_from="", columns=(), types=types)
    return Flat(table, plain, problems)


Wrong = dict[int, tuple[str, str]]


class Keyed:
    """One column in which keys are looked up. name: for errors."""

    def __init__(self, name: str, array: Any) -> None:
        self.name = name
        self.array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        self.objects: list[Mapping[str, Any] | None] = []
        self.wrong: Wrong = {}
        if _is_json(self.array.type):
            for index, text in enumerate(self.array.to_pylist()):
                value, reason = (None, "") if text is None else parsed(text)
                self.objects.append(value)
                if reason:
                    self.wrong[index] = (shown(text), reason)

    def get(self, key: str) -> tuple[Any, bool, Wrong]:
        """The values of a key, whether they are typed texts, and the rows that have none that can be read."""
        kind, array = self.array.type, self.array
        if _is_json(kind):
            return self._of_json(key)
        if pa.types.is_map(kind) and _is_text(kind.key_type):
            return _readable(pc.map_lookup(array, pa.scalar(key, kind.key_type), "last"))
        if (fields := _entry(kind)) is not None:
            return _readable(self._of_headers(key, fields))
        if pa.types.is_struct(kind):
            return _readable(self._of_struct(key))
        hint = "keys are looked up in maps, lists of key and value, structs and JSON texts"
        raise UnsupportedColumnError(self.name, str(kind), hint)

    def _of_headers(self, key: str, fields: tuple[str, str]) -> Any:
        entries = self.array.flatten()
        parents = pc.list_parent_indices(self.array).to_numpy(zero_copy_only=False)
        keys, values = (pc.struct_field(entries, part) for part in fields)
        same = pc.fill_null(pc.equal(keys.cast(pa.string()), key), False).to_numpy(zero_copy_only=False)
        places = np.full(len(self.array), -1)
        places[parents[same]] = np.flatnonzero(same)  # of several the last counts
        return values.take(pa.array(places, mask=places < 0))

    def _of_struct(self, key: str) -> Any:
        found = self.array
        for part in fields_to(key, _names(found.type)):
            names = _names(found.type)
            if part not in names:
                raise MissingColumnError(key, names, f"the struct {self.name!r}")
            found = pc.struct_field(found, part)
        return found

    def _of_json(self, key: str) -> tuple[Any, bool, Wrong]:
        values = [None if every is None else every.get(key) for every in self.objects]
        texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
        return pa.array(texts, pa.string()), True, self.wrong


def _is_json(kind: Any) -> bool:
    return _is_text(kind) or bool(pa.types.is_null(kind))


def _is_text(kind: Any) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind)
    )


def _entry(kind: Any) -> tuple[str, str] | None:
    """The fields of the entries of a list that is as Kafka's headers are."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return key_and_value(_names(kind.value_type)) if is_list else None


def _names(kind: Any) -> list[str]:
    return [each.name for each in kind] if pa.types.is_struct(kind) else []


def _readable(values: Any) -> tuple[Any, bool, Wrong]:
    """Bytes as texts."""
    kinds = pa.types
    if not (kinds.is_binary(values.type) or kinds.is_large_binary(values.type)):
        return values, False, {}
    try:
        return values.cast(pa.string()), False, {}
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        wrong: Wrong = {}
        for index, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                texts.append(None)
                wrong[index] = (shown(value), NOT_UTF8)
        return pa.array(texts, pa.string()), False, wrong


def parsed(text: str | bytes) -> tuple[Mapping[str, Any] | None, str]:
    """A JSON object, and what is wrong with its text: as Spark's parse_json, a name that comes twice is refused."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        return None, NOT_UTF8
    except (ValueError, RecursionError):
        return None, NOT_JSON
    return (value, "") if isinstance(value, dict) else (None, NOT_AN_OBJECT)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def shown(value: str | bytes) -> str:
    """At most 200 characters of a value."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text if len(text) <= 200 else text[:197] + "..."
