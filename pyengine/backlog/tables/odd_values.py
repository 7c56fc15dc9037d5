"""Columns that have values of several types in files that declare none: the type of most of them counts, and the rows
of the others are rejects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any

from pyengine.backlog.tables.rows import Reject, required_pyarrow

MIXED = b"mixed types"  # of a field whose values are JSON: where they differ
_KINDS: dict[type, str] = {
    str: "text", bool: "boolean", int: "number", float: "number", list: "list", dict: "object",
}  # fmt: skip
_NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"
_WHOLE = r"^[ \t]*[+-]?[0-9]{1,18}[ \t]*$"
_LOOKED_AT = 1000  # texts of a column that tell whether all are worth a look


def kind_of(value: object) -> str:
    """What JSON calls a value; nothing for null."""
    return _KINDS.get(type(value), "")


def settled_json(table: Any, numbers: Any, convert: Any) -> tuple[Any, Any, list[Reject]]:
    """Columns of JSON lines that mix types, as the type of most of their values where one has more than half.

    convert: values and their row numbers as an Arrow array, and what is wrong with some of them by place. A column
    without such a type, or mostly of objects or lists, stays as it is.
    """
    arrow = required_pyarrow()
    bad: dict[int, Reject] = {}
    for place, field in enumerate(table.schema):
        if not field.metadata or MIXED not in field.metadata:
            continue
        values = [None if text is None else json.loads(text) for text in table.column(place).to_pylist()]
        kinds = [kind_of(value) for value in values]
        counts = Counter(kind for kind in kinds if kind)
        usual, most = counts.most_common(1)[0]
        if 2 * most <= counts.total() or usual in ("object", "list"):
            continue
        rows = numbers.to_pylist()
        for index, kind in enumerate(kinds):
            if kind and kind != usual:
                shown = json.dumps(values[index], ensure_ascii=False) if kind in ("object", "list") else values[index]
                article = "an" if kind == "object" else "a"
                reason = f"is {article} {kind}, most values of the column are of the type {usual}"
                bad.setdefault(index, Reject(rows[index], field.name, printable(shown), reason))
                values[index] = None
        made, problems = convert(field.name, values, rows)
        for index, problem in problems.items():
            bad.setdefault(index, problem)
        table = table.set_column(place, arrow.field(field.name, made.type), made)
    return _without(table, numbers, bad)


def settled_texts(
    table: Any, numbers: Any, declared: Container[str], wanted: Container[str] | None
) -> tuple[Any, Any, list[Reject]]:
    """Columns of texts of which more than half are numbers as columns of numbers."""
    arrow = required_pyarrow()
    compute = arrow.compute
    bad: dict[int, Reject] = {}
    for place, field in enumerate(table.schema):
        if field.type != arrow.string() or field.name in declared:
            continue
        if wanted is not None and field.name not in wanted:
            continue
        texts = table.column(place)
        first = compute.match_substring_regex(texts.slice(0, _LOOKED_AT).drop_null(), _NUMBER)
        if 2 * (compute.sum(first).as_py() or 0) <= len(first):
            continue
        texts = texts.combine_chunks()
        fits = compute.fill_null(compute.match_substring_regex(texts, _NUMBER), True)
        odd = compute.indices_nonzero(compute.invert(fits)).to_pylist()
        if 2 * len(odd) >= len(texts) - texts.null_count:
            continue
        plain = compute.utf8_trim_whitespace(compute.if_else(fits, texts, None))
        kind = arrow.int64() if compute.all(compute.match_substring_regex(plain, _WHOLE)).as_py() else arrow.float64()
        for index in odd:
            reason = f"is not a {'long' if kind == arrow.int64() else 'double'}, as most values of the column are"
            bad.setdefault(index, Reject(numbers[index].as_py(), field.name, texts[index].as_py()[:200], reason))
        signless = compute.replace_substring_regex(plain, r"^\+", "")
        table = table.set_column(place, field.name, signless.cast(kind))
    return _without(table, numbers, bad)


def _without(table: Any, numbers: Any, bad: dict[int, Reject]) -> tuple[Any, Any, list[Reject]]:
    if bad:
        arrow = required_pyarrow()
        keep = arrow.array([index not in bad for index in range(table.num_rows)], arrow.bool_())
        table, numbers = table.filter(keep), numbers.filter(keep)
    return table, numbers, list(bad.values())


def odd_one(values: Sequence[Any], rows: Sequence[int]) -> str:
    """The first value of a column of JSON lines whose type is another than that of those before it, or nothing."""
    before = ""
    for row, value in zip(rows, values, strict=True):
        kind = kind_of(value)
        if kind and before and kind != before:
            return f"row {row} (from 0) has the {kind} {printable(value)}, after values of type {before}"
        before = before or kind
    return ""


def printable(value: Any) -> str:
    """At most 200 characters of a value, halves of surrogate pairs escaped."""
    return str(value)[:200].encode("utf-8", "backslashreplace").decode("utf-8")
