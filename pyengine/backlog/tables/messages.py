"""Rows become messages: the Source mapping of a topology over Arrow tables. Rows that cannot come back with the reason.

A table of messages has the properties under their own names, the JMS headers that the source fills under theirs, and
four columns that no selector reads: ``__row`` (int64, the row's number in the source), ``__destination`` (string),
``__connection`` (string, only if the source names one) and ``__bytes`` (int64, size of body and properties). Null means
absent.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine.activemq.tables.typed_names import NO_PROPERTY, TYPED, typed_names
from pyengine.activemq.tables.typed_texts import by_type, plain_texts
from pyengine.backlog.tables.declared_types import MILLISECONDS, arrow_type, misfit, one_column, scaled, shown, typed
from pyengine.backlog.tables.nested import flat
from pyengine.backlog.tables.places import is_nested
from pyengine.backlog.tables.rows import Reject
from pyengine.errors import UnsupportedColumnError
from pyengine.topology import JAVA_TYPES, Source, Steps, TimeColumn

ROW, DESTINATION, CONNECTION, BYTES = "__row", "__destination", "__connection", "__bytes"
OWN_COLUMNS = (ROW, DESTINATION, CONNECTION, BYTES)
# What stands beside the properties of a message on its way: here, in a dispatch, a stream's state and a Spark job.
_TAKEN = {
    *OWN_COLUMNS,
    "__queue",
    "__key",
    "__attempts",
    "__error",
    "__event",
    "__shard",
    "__reject",
    "__problem",
    "__mark",
}
_TAKEN_PREFIXES = ("__truth:", "__row:", TYPED)

REJECT_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("column", pa.string()),
        ("value", pa.string()),
        ("reason", pa.string()),
        ("file", pa.string()),
        ("file_row", pa.int64()),
    ]
)

NO_TIME = "is no ISO 8601 time of the years 1 to 9999"
NO_MOMENT = "leads to no moment that fits a long"
_HAS_OFFSET = r"(Z|z|[+-]\d\d:?\d\d|[+-]\d\d)$"


def stored_type(name: str, type: pa.DataType) -> pa.DataType:
    """The Arrow type in which a property column of this type is kept; raises UnsupportedColumnError.

    Unsigned numbers widen to the next signed type, moments become epoch milliseconds (long), times of day and durations
    milliseconds, dictionaries their values; decimals stay the exact numbers that they are.
    """
    if pa.types.is_dictionary(type):
        return stored_type(name, type.value_type)
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return pa.string()
    if pa.types.is_null(type):
        return pa.string()
    if type in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()):
        return type
    widened = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.int64(),
        pa.float16(): pa.float32(),
    }
    if type in widened:
        return widened[type]
    kinds = pa.types
    if kinds.is_timestamp(type) or kinds.is_date(type) or kinds.is_time(type) or kinds.is_duration(type):
        return pa.int64()
    if kinds.is_decimal(type):
        return type if kinds.is_decimal256(type) else pa.decimal128(type.precision, type.scale)
    raise UnsupportedColumnError(name, str(type), "leave it out of the source's properties")


def refuse_own_name(name: str) -> None:
    """Raises UnsupportedColumnError for a name under which a message's own columns are kept."""
    if name in _TAKEN or name.startswith(_TAKEN_PREFIXES):
        raise UnsupportedColumnError(
            name,
            "taken",
            "pyengine keeps a column of its own under this name: rename it, or leave it out of properties",
        )


def message_schema(columns: pa.Schema, source: Source, where: str = "the source") -> pa.Schema:
    """The schema of the messages that rows of ``columns`` become.

    Raises MissingColumnError for a column that the source names and the rows lack, UnsupportedColumnError for a
    property whose type no message can carry or whose name is taken, and for a header's column of a type that cannot
    become it.
    """
    if is_nested(source):
        found = flat(columns.empty_table(), source, where)
        return message_schema(found.rows.schema, found.source, where)
    typed_by_row = {*typed_names(columns.names)}
    columns = pa.schema([field.with_name(field.name.removeprefix(TYPED)) for field in columns])
    names = columns.names
    properties = names if source.properties is None else list(source.properties)
    declared = {name: arrow_type(java) for name, java in source.types}
    for name in (*source.mapped_columns, *properties, *declared):
        refuse_own_name(name)
        one_column(name, names, where)
    for (name, java), wanted in zip(source.types, declared.values(), strict=True):
        try:
            typed(pa.array([], columns.field(name).type), wanted)
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedColumnError(name, str(columns.field(name).type), f"it cannot become {java}") from error
    _check_headers({name: declared.get(name, columns.field(name).type) for name in source.mapped_columns}, source)
    fields = [pa.field(ROW, pa.int64()), pa.field(DESTINATION, pa.string())]
    if source.connection:
        fields.append(pa.field(CONNECTION, pa.string()))
    fields.append(pa.field(BYTES, pa.int64()))
    if source.id:
        fields.append(pa.field("JMSMessageID", pa.string()))
    if source.group:
        fields.append(pa.field("JMSXGroupID", pa.string()))
    if source.group_sequence:
        fields.append(pa.field("JMSXGroupSeq", pa.int32()))
    if source.priority is not None:
        fields.append(pa.field("JMSPriority", pa.int32()))
    if source.timestamp is not None:
        fields.append(pa.field("JMSTimestamp", pa.int64()))
    if source.expiration is not None:
        fields.append(pa.field("JMSExpiration", pa.int64()))
    taken = {field.name for field in fields}
    for name in properties:
        if name not in taken:
            type = declared[name] if name in declared else stored_type(name, columns.field(name).type)
            fields.append(pa.field(TYPED + name if name in typed_by_row and name not in declared else name, type))
    return pa.schema(fields)


def _check_headers(types: Mapping[str, pa.DataType], source: Source) -> None:
    """That columns of these types can be read as what the source takes from them. Raises UnsupportedColumnError."""
    plain = {name: type.value_type if pa.types.is_dictionary(type) else type for name, type in types.items()}
    texts = (*source.destination_columns, source.id, source.group, source.connection)
    wanted = [*((name, pa.string()) for name in texts), (source.group_sequence, pa.int32())]
    if source.body and not pa.types.is_binary(plain[source.body]):
        wanted.append((source.body, pa.string()))
    if isinstance(source.priority, str):
        wanted.append((source.priority, pa.int32()))
    elif source.priority is not None:
        wanted.append((source.priority.column, pa.float64()))
    for moment in (source.timestamp, source.expiration):
        if moment is not None:
            wanted.append((moment.plus_minutes, pa.int64()))
            kind = plain[moment.column]
            if not any(is_(kind) for is_ in (pa.types.is_integer, _is_clock, _is_text, pa.types.is_null)):
                hint = "a moment is a whole number, a timestamp or ISO 8601 text"
                raise UnsupportedColumnError(moment.column, str(kind), hint)
    for name, type in (each for each in wanted if each[0]):
        try:
            typed(pa.nulls(0, plain[name]), type)
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedColumnError(name, str(plain[name]), f"it cannot become {_java_name(type)}") from error


def to_messages(rows: pa.Table, numbers: Any, source: Source) -> tuple[pa.Table, list[Reject]]:
    """Rows of a source as messages, and the rows that cannot be one.

    numbers: int64 array, the number of each row, kept in ``__row`` and in the rejects. Raises as message_schema does.
    """
    numbers = np.asarray(numbers, np.int64)
    rows = rows.combine_chunks()
    problems: dict[int, tuple[str, str, str]] = {}
    if is_nested(source):
        found = flat(rows, source)
        rows, source, problems = found.rows.combine_chunks(), found.source, found.problems
    schema = message_schema(rows.schema, source)
    reading = _Reading(rows, numbers, source)
    for index, problem in problems.items():
        reading.reject(index, *problem)
    columns: dict[str, Any] = {ROW: pa.array(numbers, pa.int64()), DESTINATION: _destination(reading, source)}
    if source.connection:
        columns[CONNECTION] = reading.cast(source.connection, pa.string())
    if source.id:
        columns["JMSMessageID"] = reading.cast(source.id, pa.string(), required="the id of a message")
    if source.group:
        columns["JMSXGroupID"] = reading.cast(source.group, pa.string())
    if source.group_sequence:
        columns["JMSXGroupSeq"] = reading.cast(source.group_sequence, pa.int32())
    if source.priority is not None:
        columns["JMSPriority"] = _priority(reading, source.priority)
    if source.timestamp is not None:
        in_order = "the timestamp that orders the rows is missing"
        columns["JMSTimestamp"] = _moment(reading, source.timestamp, in_order if source.order == "timestamp" else "")
    if source.expiration is not None:
        columns["JMSExpiration"] = _moment(reading, source.expiration)
    for field in schema:
        if field.name not in columns and field.name != BYTES:
            columns[field.name] = reading.property(field.name, field.type)
    columns[BYTES] = _bytes(reading, source, columns, schema)
    table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
    if not reading.rejects:
        return table, []
    keep = np.ones(len(numbers), bool)
    keep[list(reading.rejects)] = False
    return table.filter(pa.array(keep)), [reading.rejects[index] for index in sorted(reading.rejects)]


class _Reading:
    """Columns of one table of rows, and what went wrong with which row (the first problem counts)."""

    def __init__(self, rows: pa.Table, numbers: np.ndarray[Any, Any], source: Source) -> None:
        self.rows = rows
        self.numbers = numbers
        self.declared = {name: arrow_type(java) for name, java in source.types}
        self.rejects: dict[int, Reject] = {}

    def reject(self, index: int, field: str, value: object, reason: str) -> None:
        self.rejects.setdefault(index, Reject(int(self.numbers[index]), field, _short(value), reason))

    def property(self, name: str, type: pa.DataType) -> Any:
        """A column of the messages, those with types by row as they are."""
        if not name.startswith(TYPED):
            return self.cast(name, type)
        texts = self._stored(name)
        self._refuse_objects(name.removeprefix(TYPED), by_type(texts))
        return texts

    def _refuse_objects(self, name: str, values: dict[str, Any]) -> None:
        if (objects := values.pop("other", None)) is not None:
            for index in np.flatnonzero(objects.is_valid().to_numpy(zero_copy_only=False)):
                self.reject(int(index), name, objects[index].as_py(), NO_PROPERTY)

    def typed(self, name: str) -> dict[str, Any] | None:
        """The values of a column with types by row for each type; None for another column."""
        if TYPED + name not in self.rows.column_names:
            return None
        values = by_type(self._stored(TYPED + name))
        self._refuse_objects(name, values)
        return values

    def column(self, name: str) -> Any:
        if (values := self.typed(name)) is not None:
            return self._as_one(name, values, self.declared.get(name, pa.string()))
        plain = self._stored(name)
        return self.converted(name, plain, self.declared[name]) if name in self.declared else plain

    def _as_one(self, name: str, values: dict[str, Any], type: pa.DataType) -> Any:
        if type == pa.string():
            return plain_texts(self._stored(TYPED + name))
        found: Any = pa.nulls(len(self.numbers), type)
        for each in values.values():
            found = pc.coalesce(found, self.converted(name, each, type))
        return found

    def _stored(self, name: str) -> Any:
        column = self.rows.column(name)
        array = (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
        )
        return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

    def cast(self, name: str, type: pa.DataType, required: str = "") -> Any:
        """The column in another type; a row whose value has no exact counterpart is rejected."""
        typed_values = self.typed(name) if name not in self.declared else None
        array = self.column(name) if typed_values is None else self._as_one(name, typed_values, type)
        if required:
            for index in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)):
                self.reject(int(index), name, None, f"{required} is missing")
        return self.converted(name, array, type)

    def converted(self, name: str, array: Any, type: pa.DataType) -> Any:
        if array.type == type:
            return array
        try:
            return typed(array, type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return self.each(name, array, type, lambda value: typed(value, type)[0].as_py())

    def each(self, name: str, array: Any, type: pa.DataType, convert: Callable[[Any], Any], problem: str = "") -> Any:
        """The slow way, one value (an array of it) at a time, to find the rows that do not convert.

        problem: why they are rejected; empty: they do not fit the type.
        """
        found: list[Any] = []
        valid = array.is_valid().to_pylist()
        for index in range(len(array)):
            try:
                found.append(convert(array.slice(index, 1)) if valid[index] else None)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, OverflowError):
                found.append(None)
                self.reject(index, name, shown(array[index]), problem or misfit(_java_name(type)))
        return pa.array(found, type)


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _is_clock(type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type) or pa.types.is_date(type))


def _java_name(type: pa.DataType) -> str:
    return next((java for java in JAVA_TYPES if arrow_type(java) == type), str(type))


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _destination(reading: _Reading, source: Source) -> Any:
    parts = source.destination_parts
    size = len(reading.numbers)
    if len(parts) == 1:
        return pa.array([parts[0]]).take(pa.array(np.zeros(size, np.int64)))
    pieces: list[Any] = []
    for position, part in enumerate(parts):
        if position % 2 == 0:
            pieces.append(pa.scalar(part))
        else:
            name = part.strip()
            text = reading.cast(name, pa.string())
            missing = pc.or_kleene(text.is_null(), pc.equal(text, "")).to_numpy(zero_copy_only=False)
            for index in np.flatnonzero(missing.astype(bool)):
                reading.reject(int(index), name, None, "the column that names the destination is empty")
            pieces.append(text)
    return pc.binary_join_element_wise(*pieces, "")


def _bytes(reading: _Reading, source: Source, columns: dict[str, Any], schema: pa.Schema) -> Any:
    """The size of each message: body and properties, texts in UTF-8, numbers by their width, a null nothing."""
    total = np.zeros(len(reading.numbers), np.int64)
    if source.body:
        body = reading.column(source.body)
        text = body if pa.types.is_binary(body.type) or _is_text(body.type) else reading.cast(source.body, pa.string())
        total += pc.fill_null(pc.binary_length(text), 0).to_numpy(zero_copy_only=False)
    for name in schema.names:
        if name in OWN_COLUMNS or name.startswith("JMS"):
            continue
        values = plain_texts(columns[name]) if name.startswith(TYPED) else columns[name]
        if pa.types.is_string(values.type):
            total += pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
        else:
            total += pc.is_valid(values).to_numpy(zero_copy_only=False) * max(1, values.type.bit_width // 8)
    return pa.array(total)


def _priority(reading: _Reading, priority: str | Steps) -> Any:
    if isinstance(priority, str):
        array = pc.fill_null(reading.cast(priority, pa.int32()), 4)
        values = array.to_numpy(zero_copy_only=False)
        for index in np.flatnonzero((values < 0) | (values > 9)):
            reading.reject(int(index), priority, int(values[index]), "a priority is 0 to 9")
        return array
    numbers = reading.cast(priority.column, pa.float64()).to_numpy(zero_copy_only=False)
    thresholds = np.array([threshold for threshold, _ in priority.steps], np.float64)
    ladder = np.array([priority.below, *(step for _, step in priority.steps)], np.int32)
    found = ladder[np.searchsorted(thresholds, numbers, side="right")]
    return pa.array(np.where(np.isnan(numbers), np.int32(priority.missing), found), pa.int32())


def _moment(reading: _Reading, moment: TimeColumn, required: str = "") -> Any:
    """Epoch milliseconds; a null is 0, as on a message that was not given the header, or where one is required a reject
    with these words."""
    typed_values = reading.typed(moment.column) if moment.column not in reading.declared else None
    if typed_values is None:
        array = reading.column(moment.column)
        found = _milliseconds_of(reading, moment, array)
    else:
        found = array = pa.nulls(len(reading.numbers), pa.int64())
        for kind, values in typed_values.items():
            if kind not in ("string", "long"):
                for index in np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)):
                    reading.reject(int(index), moment.column, values[index].as_py(), NO_TIME)
                continue
            found = pc.coalesce(found, _milliseconds_of(reading, moment, values))
            array = pc.if_else(values.is_valid(), 0, array)
    if moment.plus_minutes:
        found = _later(reading, moment.plus_minutes, found)
    if required:
        for index in np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)):
            name = moment.plus_minutes if array[index].is_valid else moment.column
            reading.reject(int(index), name, None, required)
    return pc.fill_null(found, 0)


def _milliseconds_of(reading: _Reading, moment: TimeColumn, array: Any) -> Any:
    if pa.types.is_integer(array.type):
        whole = reading.converted(moment.column, array, pa.int64())
        found = _scaled(reading, moment.column, whole, MILLISECONDS[moment.unit])
    elif _is_clock(array.type):
        if pa.types.is_date(array.type):
            array = array.cast(pa.timestamp("ms"))
        found = _scaled(reading, moment.column, array.cast(pa.int64()), MILLISECONDS[array.type.unit])
        found = found if array.type.tz else _zoned(found, moment)
    elif _is_text(array.type):
        found = _parsed(reading, moment, array.cast(pa.string()))
    else:
        found = pa.nulls(len(array), pa.int64())
    return found


def _scaled(reading: _Reading, name: str, whole: Any, factor: int) -> Any:
    try:
        return scaled(whole, factor)
    except pa.ArrowInvalid:
        return reading.each(name, whole, pa.int64(), lambda value: scaled(value, factor)[0].as_py(), NO_MOMENT)


def _later(reading: _Reading, name: str, moments: Any) -> Any:
    """Moments and a column of minutes."""
    minutes = reading.cast(name, pa.int64())
    try:
        return pc.add_checked(moments, pc.multiply_checked(minutes, 60_000))
    except pa.ArrowInvalid:
        found: list[int | None] = []
        for index, (moment, more) in enumerate(zip(moments.to_pylist(), minutes.to_pylist(), strict=True)):
            found.append(None if moment is None or more is None else moment + more * 60_000)
            if not -(2**63) <= (found[-1] or 0) < 2**63:
                found[-1] = None
                reading.reject(index, name, more, NO_MOMENT)
        return pa.array(found, pa.int64())


def _zoned(local: Any, moment: TimeColumn) -> Any:
    """Milliseconds of clocks in a zone as those since 1970: the first of two, the one before a gap of the clocks.

    Raises UnsupportedColumnError where Arrow does not know the zone, as without the system's database.
    """
    if moment.timezone == "UTC":
        return local
    clock = local.cast(pa.timestamp("ms"))
    try:
        found = pc.assume_timezone(clock, moment.timezone, ambiguous="earliest", nonexistent="earliest")
    except pa.ArrowInvalid as error:
        if "timezone" not in str(error):
            raise
        hint = "Arrow finds no such zone: install the system's tzdata"
        raise UnsupportedColumnError(moment.column, f"clock in {moment.timezone}", hint) from error
    return found.cast(pa.int64())


def _parsed(reading: _Reading, moment: TimeColumn, array: Any) -> Any:
    offsets = pc.fill_null(pc.match_substring_regex(array, _HAS_OFFSET), True)
    try:
        if pc.any(pc.starts_with(array, "0000")).as_py():
            pass  # the calendar of those found one by one begins with the year 1
        elif pc.all(offsets).as_py():
            return array.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        elif not pc.any(offsets).as_py():
            return _zoned(array.cast(pa.timestamp("ms")).cast(pa.int64()), moment)
    except pa.ArrowInvalid:
        pass  # some row is no moment, or finer than a millisecond: found one by one below
    return reading.each(moment.column, array, pa.int64(), lambda text: _milliseconds(text[0].as_py(), moment), NO_TIME)


def _milliseconds(text: str, moment: TimeColumn) -> int:
    if re.fullmatch(r"\s*\d{1,4}\s*", text):
        raise ValueError(text)
    found = datetime.fromisoformat(text.strip())
    whole = (found.replace(tzinfo=found.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return whole if found.tzinfo else int(_zoned(pa.array([whole]), moment)[0].as_py())


def rejects_table(
    rejects: Iterable[Reject], files: Sequence[tuple[int, str]], lines: Sequence[tuple[int, int]] = ()
) -> pa.Table:
    """Rejects as a table of REJECT_SCHEMA, by row. files, lines: as in Rows; what is in no file has no ``file``."""
    found: Sequence[Reject] = sorted(rejects, key=lambda reject: (reject.row, reject.column))
    firsts, begins = [first for first, _ in files], [row for row, _ in lines]
    places = [bisect_right(firsts, reject.row) - 1 for reject in found]

    def file_row(row: int, place: int) -> int | None:
        if place < 0:
            return None
        known = bisect_right(begins, row) - 1
        if known >= 0 and begins[known] >= firsts[place]:
            return lines[known][1] + row - begins[known]
        return row - firsts[place]

    return pa.Table.from_pydict(
        {
            "row": [reject.row for reject in found],
            "column": [reject.column for reject in found],
            "value": [reject.value for reject in found],
            "reason": [reject.reason for reject in found],
            "file": [files[place][1] if place >= 0 else None for place in places],
            "file_row": [file_row(reject.row, place) for reject, place in zip(found, places, strict=True)],
        },
        schema=REJECT_SCHEMA,
    )
