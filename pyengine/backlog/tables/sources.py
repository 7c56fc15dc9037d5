"""Rows from files people have: Parquet, JSON lines, CSV, or the data inside an installed Python package.

A row that cannot be read is not dropped: it becomes a Reject with its number and the reason. Needs pyarrow.
"""

from __future__ import annotations

import codecs
import glob
import importlib.util
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from pyengine.backlog.tables import zstd_bytes
from pyengine.backlog.tables.csv_rows import read_csv
from pyengine.backlog.tables.declared_types import arrow_type, misfit, one_column, shown, typed
from pyengine.backlog.tables.gzip_bytes import unpacked, whole_lines
from pyengine.backlog.tables.hive_folders import FolderColumns, folder_columns, with_folder_columns
from pyengine.backlog.tables.odd_values import MIXED, odd_one, printable, settled_json, settled_texts
from pyengine.backlog.tables.places import is_nested, places
from pyengine.backlog.tables.rows import Reject, Rows, required_pyarrow, row_numbers
from pyengine.backlog.tables.table_formats import foreign_hint, refuse_tables
from pyengine.dataclass import dataclass
from pyengine.errors import (
    InvalidSourceError,
    PyengineError,
    UnsupportedColumnError,
    json_problem,
)
from pyengine.topology import Source

FORMATS = ("parquet", "jsonl", "csv")
SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}
PACKED = (".zip", ".gz", ".zst")


@dataclass(frozen=True, slots=True)
class FileForm:
    """How a file is read. delimiter: of CSV. encoding: of CSV and JSON lines, as Python names it. folders: columns that
    the folders of its path say. nested: columns in which keys are looked up; in JSON lines their values may differ in
    type, and are JSON then.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    folders: FolderColumns = ()
    nested: tuple[str, ...] = ()


_USUAL = FileForm()


def read_source(source: Source) -> Rows:
    """Every row of a topology's source, with its declared types applied.

    Raises InvalidSourceError for what cannot be found or read, MissingColumnError for a column that the topology names
    and the data does not have, UnsupportedColumnError for one that cannot take its declared type, MissingExtraError.
    """
    wanted, form = _wanted(source), FileForm(source.delimiter, source.encoding, nested=_nested(source))
    if source.package:
        name, data = _packaged(source.package, source.table)
        rows = _read(name, io.BytesIO(data), SUFFIXES[_suffix(name)], _columns_declared(source), wanted, form=form)
        _refuse_mixed([rows])
    else:
        paths = _paths(source.path)
        declared, folders = _columns_declared(source), folder_columns(source.path, paths)
        rows = read_files(paths, source.format, declared, wanted, form=form, folders=folders)
    if not rows.table.num_columns and not rows.table.num_rows and not rows.rejects:
        raise _nothing(source)
    if not rows.table.num_columns and rows.rejects:
        first = rows.rejects[0]
        problem = f"has no row that can be read; row {first.row} (from 0) {first.reason}"
        raise InvalidSourceError(_name(source), problem, "write one JSON object a line")
    for column in _needed(source, rows.table.column_names, _name(source)):
        one_column(column, rows.table.column_names, _name(source))
    return rows


def _needed(source: Source, names: Sequence[str], where: str) -> Iterable[str]:
    """Of columns with these names those that must be there."""
    if is_nested(source):
        return dict.fromkeys(place.column for place in places(source, names, where).values())
    return (*source.mapped_columns, *(source.properties or ()), *(column for column, _ in source.types))


def _wanted(source: Source) -> tuple[str, ...] | None:
    """The columns that a source reads, and perhaps names of keys in them; None: all."""
    if source.properties is None and not source.properties_from:
        return None
    types = (column for column, _ in source.types)
    texts = dict(source.columns).values()
    nested = (source.properties_from, *texts, *(text.partition(".")[0] for text in texts))
    wanted = (*source.mapped_columns, *(source.properties or ()), *types, *nested)
    return tuple(dict.fromkeys(name for name in wanted if name))


def _declared(source: Source, names: Container[str]) -> dict[str, Any]:
    """The declared types of columns; those of keys count where messages are made."""
    if not is_nested(source):
        return dict(source.types)
    renamed = dict(source.columns)
    return {name: java for name, java in source.types if name in names and name not in renamed}


def _nested(source: Source) -> tuple[str, ...]:
    """Names of columns in which the source looks up keys, and perhaps of others."""
    heads = (text.partition(".")[0] for text in dict(source.columns).values())
    return tuple(name for name in (source.properties_from, *heads) if name)


def _columns_declared(source: Source) -> dict[str, Any]:
    """The declared types of a source of files whose columns are not known yet."""
    nested = is_nested(source)
    return {name: java for name, java in source.types if not nested or name in (source.properties or ())}


def _name(source: Source) -> str:
    return source.path or f"{source.package}:{source.table}"


def _nothing(source: Source) -> InvalidSourceError:
    return InvalidSourceError(_name(source), "is empty", "give at least one file that has columns")


def read_files(
    paths: Iterable[str | Path],
    format: str = "",
    types: dict[str, Any] | None = None,
    wanted: Container[str] | None = None,
    *,
    asked: Container[str] | None = None,
    form: FileForm = _USUAL,
    folders: Mapping[str, FolderColumns] = {},
) -> Rows:
    """The rows of several files as one table, in the order given; columns that a file lacks are null there.

    A file without a byte has no rows and no columns, whatever its format. format: "parquet", "jsonl", "csv", or "" = by
    suffix. types: column -> name of a Java type. wanted: the columns that are read; None: all. Most values of a column
    decide which type it has, and rows with others are rejects. asked: the columns of a single file for which that
    counts; where a file of JSON lines has values of several types under one key, they stay as JSON (see mixed_columns).
    form: of texts. folders: columns that the folders of a path say. Raises as read_source.
    """
    paths = list(paths)
    refuse_tables(paths)
    parts: list[Rows] = []
    for path in paths:
        kind = format or SUFFIXES.get(_suffix(path), "")
        if not kind:
            hint = (
                foreign_hint([Path(path).suffix], str(path)) or "name it .parquet, .jsonl or .csv, or give the format"
            )
            raise InvalidSourceError(str(path), "has no known suffix", hint)
        own = replace(form, folders=folders.get(str(path), ()))
        parts.append(_read(str(path), path, kind, types or {}, wanted, asked=asked, form=own))
    if not parts:
        raise InvalidSourceError("", "no file was given", "name at least one file")
    if asked is None:
        _refuse_mixed(parts)
    return _together(parts, ", ".join(map(str, paths)))


def _together(parts: Sequence[Rows], names: str) -> Rows:
    """Rows of several files one after another, as one table with running numbers."""
    arrow = required_pyarrow()
    if len(parts) == 1:
        return parts[0]
    _refuse_mixed(parts)
    tables = [_plain(part.table) for part in parts]
    for table in tables:
        for column, number in Counter(table.column_names).items():
            if number > 1:
                one_column(column, table.column_names, names)
    try:
        table = arrow.concat_tables(tables, promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        every = dict.fromkeys(name for table in tables for name in table.column_names)
        column = next(name for name in every if not _fits(name, tables))
        problem = f"the files do not fit together in column {column!r}: {error}"
        raise InvalidSourceError(names, problem, f'declare its type: types = {{ {column} = "string" }}') from error
    numbers, rejects, files, lines, start = [], [], [], [], 0
    for part in parts:
        files += [(first + start, name) for first, name in part.files]
        lines += [(first + start, line) for first, line in part.lines]
        numbers.append(arrow.compute.add(part.numbers, start))
        rejects += [Reject(each.row + start, each.column, each.value, each.reason) for each in part.rejects]
        start += len(part.numbers) + len({each.row for each in part.rejects})
    return Rows(table, arrow.concat_arrays(numbers), tuple(rejects), tuple(files), tuple(lines))


def mixed_columns(table: Any) -> set[str]:
    """The columns whose values are JSON because they have several types; empty but for what was read with ``asked``."""
    return {field.name for field in table.schema if field.metadata and MIXED in field.metadata}


def _refuse_mixed(parts: Iterable[Rows]) -> None:
    for part in parts:
        for field in part.table.schema:
            if field.metadata and MIXED in field.metadata:
                problem = f"column {field.name!r} mixes types: {field.metadata[MIXED].decode()}"
                hint = f'declare one: types = {{ {field.name} = "string" }}'
                raise InvalidSourceError(part.files[0][1], problem, hint)


def _fits(name: str, tables: Sequence[Any]) -> bool:
    """Whether the columns of one name have types, and values, that can be put together."""
    arrow = required_pyarrow()
    try:
        parts = [table.select([name]) for table in tables if name in table.column_names]
        arrow.concat_tables(parts, promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        return False
    return True


def _plain(table: Any) -> Any:
    """A table without dictionaries, which Arrow puts together with nothing else: another file may have the values."""
    for place, given in enumerate(table.schema):
        if required_pyarrow().types.is_dictionary(given.type):
            table = table.set_column(place, given.name, table.column(place).cast(given.type.value_type))
    return table


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of one Parquet file that are read in one go. first: the number of their first row in the source.
    file_first: that of the file's first row. folders: columns that the folders of its path say.
    """

    path: str
    row_groups: tuple[int, ...]
    first: int
    rows: int
    file_first: int
    folders: FolderColumns = ()


def parquet_pieces(source: Source, rows: int = 500_000) -> list[Piece] | None:
    """A source of Parquet files cut into pieces of about so many rows, at least a row group; None for other sources,
    and for files whose columns differ.

    Only the files' footers are read. Raises InvalidSourceError.
    """
    if source.package:
        return None
    paths = _paths(source.path)
    if any(
        (source.format or SUFFIXES.get(_suffix(path), "")) != "parquet" or path.lower().endswith(PACKED)
        for path in paths
    ):
        return None
    import pyarrow.parquet

    pieces: list[Piece] = []
    folders = folder_columns(source.path, paths)
    first = 0
    shape = None
    for path in paths:
        with _told(path, "parquet"):
            if _is_empty(path):
                continue
        with _told(path, "parquet"), pyarrow.parquet.ParquetFile(path) as file:
            shape = shape or file.schema_arrow.remove_metadata()
            if file.schema_arrow.remove_metadata() != shape:
                return None
            sizes = [file.metadata.row_group(each).num_rows for each in range(file.metadata.num_row_groups)]
        taken: list[int] = []
        file_first = first
        for number in range(len(sizes)):
            taken.append(number)
            held = sum(sizes[each] for each in taken)
            if held >= rows or number == len(sizes) - 1:
                pieces.append(Piece(path, tuple(taken), first, held, file_first, folders.get(path, ())))
                first += held
                taken = []
    if shape is None:
        raise _nothing(source)
    return pieces


def source_files(source: Source) -> list[str]:
    """The files of a source on disk, none for a package's. Raises InvalidSourceError."""
    return [] if source.package else [path for path in _paths(source.path) if Path(path).exists()]


def read_schema(piece: Piece, source: Source) -> Any:
    """The Arrow schema of a piece's rows with the declared types applied. Raises as read_source."""
    import pyarrow.parquet

    with _told(piece.path, "parquet"), pyarrow.parquet.ParquetFile(piece.path) as file:
        table = file.schema_arrow.empty_table()
    table = with_folder_columns(table, piece.folders, dict(source.types), _wanted(source))
    declared = _declared(source, table.column_names)
    return _apply_types(piece.path, table, row_numbers(0), [], declared).table.schema


def read_piece(piece: Piece, source: Source) -> Rows:
    """The rows of a piece, with the declared types applied. Raises as read_source."""
    arrow = required_pyarrow()
    import pyarrow.parquet

    with _told(piece.path, "parquet"), pyarrow.parquet.ParquetFile(piece.path) as file:
        wanted, names = _wanted(source), file.schema_arrow.names
        said = [name for name, _, _ in piece.folders if name not in names]
        if wanted is not None and is_nested(source):
            wanted = tuple(_needed(source, [*names, *said], piece.path))
        for name in wanted or ():
            one_column(name, [*names, *said], piece.path)
        columns = None if wanted is None else [name for name in wanted if name not in said]
        table = file.read_row_groups(list(piece.row_groups), columns=columns, use_threads=False)
    table = with_folder_columns(table, piece.folders, dict(source.types), wanted)
    numbers = arrow.compute.add(row_numbers(table.num_rows), piece.first)
    declared = _declared(source, table.column_names)
    return _apply_types(piece.path, table, numbers, [], declared, piece.file_first, texts_may_break=True)


def read_stream(stream: BinaryIO, format: str, name: str, asked: Container[str]) -> Rows:
    """The rows of an open binary stream, read to its end, as of one file. name: for errors. Raises as read_source."""
    return _read(name, io.BytesIO(stream.read()), format, {}, None, asked=asked)


def _suffix(path: str | Path) -> str:
    path = Path(str(path).lower())
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def _paths(pattern: str) -> list[str]:
    """A file, the data files in a folder, or what a glob finds, in name order."""
    path = Path(pattern)
    if path.is_dir():
        refuse_tables([path])
        found = sorted(
            str(each)
            for each in path.rglob("*")
            if _suffix(each) in SUFFIXES and not _is_hidden(each.relative_to(path)) and each.is_file()
        )
        if not found:
            hint = foreign_hint({each.suffix for each in path.rglob("*")}, pattern) or "check source.path"
            raise InvalidSourceError(pattern, "the folder holds no .parquet, .jsonl or .csv file", hint)
    elif path.exists() or not glob.has_magic(pattern):
        found = [pattern]
    else:
        found = sorted(glob.glob(pattern, recursive=True))
        if not found:
            raise InvalidSourceError(pattern, "no file matches", "check source.path")
    refuse_tables(found)
    return found


def _is_hidden(path: Path) -> bool:
    """Whether a file, or a folder it is in, is not finished or a writer's own (_temporary, .crc)."""
    return any(part.startswith(("_", ".")) for part in path.parts)


def _packaged(package: str, table: str) -> tuple[str, bytes]:
    """A table's file inside an installed package, found without importing the package."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise InvalidSourceError(f"package {package}", "is not installed", f"pip install {package}")
    names = [f"{table}{suffix}" for suffix in (".parquet", ".csv.zip", ".csv", ".jsonl")]
    for folder in folders:
        for name in names:
            path = Path(folder) / "data" / name
            if path.is_file():
                return str(path), path.read_bytes()
    known = sorted({file.name.partition(".")[0] for folder in folders for file in (Path(folder) / "data").glob("*.*")})
    raise InvalidSourceError(
        f"package {package}", f"ships no table {table!r}", "it ships: " + ", ".join(known) if known else "check it"
    )


def _read_packed(
    name: str,
    packed: str,
    file: Any,
    kind: str,
    types: dict[str, Any],
    wanted: Container[str] | None,
    asked: Container[str] | None,
    form: FileForm,
) -> Rows:
    """What is in a .zip, .gz or .zst; the data files of an archive in name order. Of a .gz or .zst that breaks off its
    whole lines, and a reject for what is lost. packed: the file's name inside what is unpacked already."""
    suffix = Path(packed.lower()).suffix
    if suffix != ".zip":
        data, breaks_off = unpacked(file) if suffix == ".gz" else zstd_bytes.unpacked(file)
        whole = len(data)
        if breaks_off:
            whole = 0 if kind == "parquet" else whole_lines(data, quotes=kind == "csv")
            if not whole:
                raise EOFError(f"the {suffix} breaks off")
        inner = packed[: -len(suffix)]
        rows = _read(name, io.BytesIO(data[:whole]), kind, types, wanted, asked=asked, packed=inner, form=form)
        if breaks_off:
            end = len(rows.numbers) + len({each.row for each in rows.rejects})
            reason = f"the {suffix} breaks off here: this row and those behind it are lost"
            lost = Reject(end, "", data[whole:][:200].decode("utf-8", "replace"), reason)
            rows = replace(rows, rejects=(*rows.rejects, lost))
        return rows
    with zipfile.ZipFile(file) as archive:
        plain = sorted(each for each in archive.namelist() if not each.endswith("/") and not _is_hidden(Path(each)))
        known = [each for each in plain if Path(each).suffix.lower() in SUFFIXES]
        if not plain:
            raise InvalidSourceError(name, "the archive holds no .parquet, .jsonl or .csv file", "check the file")
        return _together(
            [
                _read(
                    f"{name}/{each}",
                    io.BytesIO(archive.read(each)),
                    SUFFIXES.get(Path(each).suffix.lower(), kind),
                    types,
                    wanted,
                    asked=asked,
                    form=form,
                )
                for each in known or plain
            ],
            name,
        )


@contextmanager
def _told(name: str, kind: str) -> Iterator[None]:
    """Around reading a file: what makes it unreadable is raised as InvalidSourceError."""
    arrow = required_pyarrow()
    try:
        yield
    except PyengineError:
        raise
    except OSError as error:
        problem = error.strerror or next(iter(str(error).splitlines()), "it ends too early")
        raise InvalidSourceError(name, f"cannot be read: {problem}", "check the path and the file") from error
    except (arrow.ArrowException, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError) as error:
        raise InvalidSourceError(name, f"is not valid {kind}: {error}", "check the file and its format") from error


def _read(
    name: str,
    file: Any,
    kind: str,
    types: dict[str, Any],
    wanted: Container[str] | None = None,
    *,
    asked: Container[str] | None = None,
    packed: str | None = None,
    form: FileForm = _USUAL,
) -> Rows:
    readers: dict[str, Callable[..., tuple[Any, Any, list[Reject], list[tuple[int, int]]]]] = {
        "parquet": _read_parquet,
        "jsonl": _read_jsonl,
        "csv": partial(read_csv, delimiter=form.delimiter),
    }
    with _told(name, kind):
        if isinstance(file, (str, Path)) and not Path(file).is_file():
            file = io.BytesIO(Path(file).read_bytes())  # a pipe, of which every byte comes once
        if _is_empty(file):
            return Rows(required_pyarrow().table({}), row_numbers(0), files=((0, name),))
        packed = name if packed is None else packed
        if packed.lower().endswith(PACKED):
            return _read_packed(name, packed, file, kind, types, wanted, asked, form)
        if kind != "parquet":
            file = _as_utf8(name, file, form.encoding)
        if kind == "csv" and asked is not None:
            wanted = asked
        table, numbers, rejects, lines = readers[kind](name, file, types, wanted)
    odd: list[Reject] = []
    table = with_folder_columns(table, form.folders, types, wanted)
    if kind == "csv":
        table, numbers, odd = settled_texts(table, numbers, types, wanted)
    elif kind == "jsonl" and asked is None:
        for name in form.nested:
            if (place := table.schema.get_field_index(name)) >= 0:
                table = table.set_column(place, table.schema.field(place).remove_metadata(), table.column(place))
        table, numbers, odd = settled_json(table, numbers, _numbers_as_one)
    rejects = [*rejects, *odd]
    rows = _apply_types(name, table, numbers, rejects, types, texts_may_break=kind == "parquet")
    return replace(rows, lines=tuple(lines))


def _as_utf8(name: str, file: Any, encoding: str) -> Any:
    """A file of texts in UTF-8. Raises InvalidSourceError if it is not in its encoding."""
    if codecs.lookup(encoding).name == "utf-8":
        return file
    raw = Path(file).read_bytes() if isinstance(file, (str, Path)) else file.read()
    try:
        return io.BytesIO(raw.decode(encoding).encode())
    except UnicodeError as error:
        raise InvalidSourceError(name, f"is not {encoding}: {error}", "check source.encoding") from error


def _is_empty(file: Any) -> bool:
    """Whether a file, or a stream that stands at its beginning, has not a byte."""
    if isinstance(file, (str, Path)):
        with Path(file).open("rb") as opened:
            return not opened.read(1)
    return not file.getbuffer()


def _read_parquet(
    name: str, file: Any, types: dict[str, Any], wanted: Container[str] | None
) -> tuple[Any, Any, list[Reject], list[tuple[int, int]]]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file).read()
    return table, row_numbers(table.num_rows), [], []


def _read_jsonl(
    name: str, file: Any, types: dict[str, Any], wanted: Container[str] | None
) -> tuple[Any, Any, list[Reject], list[tuple[int, int]]]:
    """One JSON object a line; a line that is none, or holds what no message can, is a reject, an empty line nothing."""
    arrow = required_pyarrow()
    raw = Path(file).read_bytes() if isinstance(file, (str, Path)) else file.read()
    objects: list[dict[str, Any]] = []
    rows: list[int] = []
    rejects: list[Reject] = []
    names: dict[str, None] = {}
    lines: list[tuple[int, int]] = []
    row = -1
    for place, line in enumerate(raw.splitlines()):
        if not line.strip():
            continue
        row += 1
        if not lines or place - row != lines[-1][1] - lines[-1][0]:
            lines.append((row, place))
        try:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise TypeError("is not a JSON object")
            new = [key for key in value if key not in names]
            for key in new:
                key.encode()
        except (ValueError, TypeError, RecursionError) as error:
            problem = str(error) if isinstance(error, TypeError) else f"is not JSON: {json_problem(error)}"
            rejects.append(Reject(row, "", line[:200].decode("utf-8", "replace"), problem))
            continue
        names |= dict.fromkeys(new)
        objects.append(value)
        rows.append(row)
    columns: dict[str, list[Any]] = {}
    fractions: set[str] = set()
    unheld: dict[int, Reject] = {}
    for column in names:
        if wanted is not None and column not in wanted:
            columns[column] = [None] * len(objects)
            continue
        values = [each.get(column) for each in objects]
        if column in types:
            values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        if float in set(map(type, values)):
            fractions.add(column)
        for index, value in enumerate(values):
            problem = _unheld(value, column in fractions)
            if problem:
                unheld.setdefault(index, Reject(rows[index], column, printable(value), problem))
        columns[column] = values
    made = []
    fields = []
    for column, values in columns.items():
        kept = [value for index, value in enumerate(values) if index not in unheld] if unheld else values
        told = None
        try:
            made.append(
                arrow.array([float(it) if type(it) is int else it for it in kept] if column in fractions else kept)
            )
        except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            told = {MIXED: (odd_one(values, rows) or str(error)).encode()}
            made.append(arrow.array([None if value is None else json.dumps(value) for value in kept], arrow.string()))
        fields.append(arrow.field(column, made[-1].type, metadata=told))
    left = [each for index, each in enumerate(rows) if index not in unheld]
    if not made:  # a table of no columns would have no rows
        return (
            arrow.Table.from_struct_array(arrow.array(objects, arrow.struct([]))),
            arrow.array(left, arrow.int64()),
            rejects,
            lines,
        )
    table = arrow.table(made, schema=arrow.schema(fields))
    return table, arrow.array(left, arrow.int64()), [*rejects, *unheld.values()], lines


def _numbers_as_one(column: str, values: list[Any], rows: Sequence[int]) -> tuple[Any, dict[int, Reject]]:
    """Values of one JSON type as an Arrow array, and those that it cannot hold."""
    as_double = float in set(map(type, values))
    unheld: dict[int, Reject] = {}
    for index, value in enumerate(values):
        if problem := _unheld(value, as_double):
            unheld[index] = Reject(rows[index], column, printable(value), problem)
            values[index] = None
        elif as_double and type(value) is int:
            values[index] = float(value)
    return required_pyarrow().array(values), unheld


def _unheld(value: Any, as_double: bool) -> str:
    """Why no message property can hold a value of a JSON line, or nothing. as_double: its column has fractions too."""
    if type(value) is str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return "is text with half of a surrogate pair"
    elif type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return "is an integer beyond long"
    elif type(value) is int and as_double and int(float(value)) != value:
        return "is not a double, as the column's other values are"
    return ""


def _apply_types(
    name: str,
    table: Any,
    numbers: Any,
    rejects: list[Reject],
    types: dict[str, Any],
    file_first: int = 0,
    *,
    texts_may_break: bool = False,
) -> Rows:
    arrow = required_pyarrow()
    bad: dict[int, Reject] = {}
    # Arrow filters and sorts no views.
    plain = {arrow.string_view(): arrow.string(), arrow.binary_view(): arrow.binary()}
    for place, given in enumerate(table.schema):
        if given.type in plain:
            table = table.set_column(place, given.name, table.column(place).cast(plain[given.type]))
    if texts_may_break:
        for place, given in enumerate(table.schema):
            try:
                table.column(place).validate(full=True)
            except arrow.ArrowInvalid:
                texts = _without_broken(table.column(place), given, numbers, bad)
                table = table.set_column(place, given.name, texts)
    for column, java in types.items():
        one_column(column, table.column_names, name)
        values = table.column(column)
        try:
            converted = typed(values, arrow_type(java))
        except arrow.ArrowNotImplementedError as error:
            raise UnsupportedColumnError(column, str(values.type), f"it cannot become {java}") from error
        except (arrow.ArrowInvalid, arrow.ArrowTypeError):
            converted = _convert_singly(values, arrow_type(java), java, column, numbers, bad)
        table = table.set_column(table.column_names.index(column), column, converted)
    if bad:
        keep = arrow.array([index not in bad for index in range(table.num_rows)])
        table, numbers = table.filter(keep), numbers.filter(keep)
    every = tuple(sorted([*rejects, *bad.values()], key=lambda each: each.row))
    return Rows(table, numbers, every, ((file_first, name),))


def _without_broken(texts: Any, field: Any, numbers: Any, bad: dict[int, Reject]) -> Any:
    """A column of texts; rows with one that is not UTF-8 go to ``bad`` and are null. What is no text stays."""
    arrow = required_pyarrow()
    kind = field.type.value_type if arrow.types.is_dictionary(field.type) else field.type
    if not (arrow.types.is_string(kind) or arrow.types.is_large_string(kind)):
        return texts
    plain = texts.combine_chunks()
    plain = plain.dictionary_decode() if arrow.types.is_dictionary(plain.type) else plain
    whole: list[str | None] = []
    for index, value in enumerate(plain.cast(arrow.large_binary()).to_pylist()):
        try:
            whole.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            whole.append(None)
            text = value[:200].decode("utf-8", "replace")
            bad.setdefault(index, Reject(numbers[index].as_py(), field.name, text, "is not UTF-8"))
    return arrow.array(whole, kind)


def _convert_singly(values: Any, wanted: Any, java: str, column: str, numbers: Any, bad: dict[int, Reject]) -> Any:
    """Value by value, once for each different one; rows whose value does not fit go to ``bad`` and are null."""
    arrow = required_pyarrow()
    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    encoded = plain.dictionary_encode()
    fits: list[Any] = []
    for place in range(len(encoded.dictionary)):
        try:
            fits.append(typed(encoded.dictionary.slice(place, 1), wanted)[0].as_py())
        except (arrow.ArrowInvalid, arrow.ArrowTypeError):
            fits.append(None)
    result: list[Any] = []
    for index, code in enumerate(encoded.indices.to_pylist()):
        result.append(None if code is None else fits[code])
        if code is not None and fits[code] is None and index not in bad:
            text = shown(encoded.dictionary[code])
            bad[index] = Reject(numbers[index].as_py(), column, text, misfit(java))
    return arrow.array(result, wanted)
