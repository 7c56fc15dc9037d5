"""Rows from files people have: Parquet, JSON lines, CSV, or the data inside an installed Python package.

A row that cannot be read is not dropped: it becomes a Reject with its number and the reason. Needs pyarrow.
"""

from __future__ import annotations

import glob
import importlib.util
import io
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pyengine.errors import InvalidSourceError, MissingColumnError, MissingExtraError, UnsupportedColumnError
from pyengine.topology import JAVA_TYPES, Source

FORMATS = ("parquet", "jsonl", "csv")
SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that did not become a message. row: from 0 over the whole source. column: "" for the whole row."""

    row: int
    column: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rows:
    """What was read. table: an Arrow table. numbers: int64 array, each row's number, rejected rows counted."""

    table: Any
    numbers: Any
    rejects: tuple[Reject, ...] = field(default=())


def read_source(source: Source) -> Rows:
    """Every row of a topology's source, with its declared types applied.

    Raises InvalidSourceError for what cannot be found or read, MissingColumnError for a column that the topology names
    and the data does not have, UnsupportedColumnError for one that cannot take its declared type, MissingExtraError.
    """
    if source.package:
        name, data = _packaged(source.package, source.table)
        rows = _read_bytes(name, data, dict(source.types))
    else:
        rows = read_files(_paths(source.path), source.format, dict(source.types))
    names = rows.table.column_names
    for column in (*source.columns, *(source.properties or ()), *(column for column, _ in source.types)):
        if column not in names:
            raise MissingColumnError(column, names, source.path or f"{source.package}:{source.table}")
    return rows


def read_files(paths: Iterable[str | Path], format: str = "", types: dict[str, Any] | None = None) -> Rows:
    """The rows of several files as one table, in the order given; columns that a file lacks are null there.

    format: "parquet", "jsonl", "csv", or "" = by suffix. types: column -> name of a Java type. Raises as read_source.
    """
    arrow = _arrow()
    parts: list[Rows] = []
    for path in paths:
        kind = format or SUFFIXES.get(_suffix(path), "")
        if not kind:
            hint = "name it .parquet, .jsonl or .csv, or give the format"
            raise InvalidSourceError(str(path), "has no known suffix", hint)
        parts.append(_read(str(path), path, kind, types or {}))
    if not parts:
        raise InvalidSourceError("", "no file was given", "name at least one file")
    if len(parts) == 1:
        return parts[0]
    try:
        table = arrow.concat_tables([part.table for part in parts], promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise InvalidSourceError(
            ", ".join(map(str, paths)), f"the files do not fit together: {error}", "declare types"
        ) from error
    numbers, rejects, start = [], [], 0
    for part in parts:
        numbers.append(arrow.compute.add(part.numbers, start))
        rejects += [Reject(each.row + start, each.column, each.value, each.reason) for each in part.rejects]
        start += len(part.numbers) + len({each.row for each in part.rejects})
    return Rows(table, arrow.concat_arrays(numbers), tuple(rejects))


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of one Parquet file that are read in one go. first: the number of their first row in the source."""

    path: str
    row_groups: tuple[int, ...]
    first: int
    rows: int


def parquet_pieces(source: Source, rows: int = 500_000) -> list[Piece] | None:
    """A source of Parquet files cut into pieces of about so many rows, at least a row group; None for other sources,
    and for files whose columns differ.

    Only the files' footers are read. Raises InvalidSourceError.
    """
    if source.package:
        return None
    paths = _paths(source.path)
    if any((source.format or SUFFIXES.get(_suffix(path), "")) != "parquet" for path in paths):
        return None
    arrow = _arrow()
    import pyarrow.parquet

    pieces: list[Piece] = []
    first = 0
    shape = None
    for path in paths:
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                shape = shape or file.schema_arrow.remove_metadata()
                if file.schema_arrow.remove_metadata() != shape:
                    return None
                sizes = [file.metadata.row_group(each).num_rows for each in range(file.metadata.num_row_groups)]
        except OSError as error:
            problem = error.strerror or str(error).splitlines()[0]
            raise InvalidSourceError(path, f"cannot be read: {problem}", "check the path and the file") from error
        except arrow.ArrowInvalid as error:
            raise InvalidSourceError(path, f"is not valid parquet: {error}", "check the file") from error
        taken: list[int] = []
        for number in range(len(sizes)):
            taken.append(number)
            held = sum(sizes[each] for each in taken)
            if held >= rows or number == len(sizes) - 1:
                pieces.append(Piece(path, tuple(taken), first, held))
                first += held
                taken = []
    return pieces


def source_files(source: Source) -> list[str]:
    """The files of a source on disk, none for a package's. Raises InvalidSourceError."""
    return [] if source.package else [path for path in _paths(source.path) if Path(path).exists()]


def read_schema(piece: Piece, source: Source) -> Any:
    """The Arrow schema of a piece's rows with the declared types applied. Raises as read_source."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(piece.path) as file:
        table = file.schema_arrow.empty_table()
    return _apply_types(piece.path, table, _numbers(0), [], dict(source.types)).table.schema


def read_piece(piece: Piece, source: Source) -> Rows:
    """The rows of a piece, with the declared types applied. Raises as read_source."""
    arrow = _arrow()
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(piece.path) as file:
        wanted = None
        if source.properties is not None:
            types = (column for column, _ in source.types)
            wanted = list(dict.fromkeys((*source.columns, *source.properties, *types)))
            for name in wanted:
                if name not in file.schema_arrow.names:
                    raise MissingColumnError(name, file.schema_arrow.names, piece.path)
        table = file.read_row_groups(list(piece.row_groups), columns=wanted, use_threads=False)
    numbers = arrow.compute.add(_numbers(table.num_rows), piece.first)
    return _apply_types(piece.path, table, numbers, [], dict(source.types))


def read_stream(stream: BinaryIO, format: str, name: str) -> Rows:
    """The rows of an open binary stream, read to its end. name: for errors. Raises as read_source."""
    return _read(name, io.BytesIO(stream.read()), format, {})


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise MissingExtraError("spark", "pyarrow") from error
    return pyarrow


def _suffix(path: str | Path) -> str:
    path = Path(path)
    return Path(path.stem).suffix if path.suffix in (".zip", ".gz") else path.suffix


def _paths(pattern: str) -> list[str]:
    """A file, the data files in a folder, or what a glob finds, in name order."""
    path = Path(pattern)
    if path.is_dir():
        found = sorted(str(each) for each in path.rglob("*") if each.is_file() and _suffix(each) in SUFFIXES)
        if not found:
            raise InvalidSourceError(pattern, "the folder holds no .parquet, .jsonl or .csv file", "check source.path")
        return [name for name in found if not Path(name).name.startswith(("_", "."))]
    if path.exists() or not glob.has_magic(pattern):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise InvalidSourceError(pattern, "no file matches", "check source.path")
    return found


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


def _read_bytes(name: str, data: bytes, types: dict[str, Any]) -> Rows:
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            inner = archive.namelist()[0]
            return _read(f"{name}/{inner}", io.BytesIO(archive.read(inner)), SUFFIXES[Path(inner).suffix], types)
    return _read(name, io.BytesIO(data), SUFFIXES[_suffix(name)], types)


def _read(name: str, file: Any, kind: str, types: dict[str, Any]) -> Rows:
    arrow = _arrow()
    readers: dict[str, Callable[[str, Any, dict[str, Any]], tuple[Any, Any, list[Reject]]]] = {
        "parquet": _read_parquet,
        "jsonl": _read_jsonl,
        "csv": _read_csv,
    }
    try:
        if isinstance(file, (str, Path)) and str(file).endswith(".zip"):
            return _read_bytes(str(file), Path(file).read_bytes(), types)
        table, numbers, rejects = readers[kind](name, file, types)
    except OSError as error:
        problem = error.strerror or str(error).splitlines()[0]
        raise InvalidSourceError(name, f"cannot be read: {problem}", "check the path and the file") from error
    except (arrow.ArrowInvalid, arrow.ArrowKeyError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise InvalidSourceError(name, f"is not valid {kind}: {error}", "check the file and its format") from error
    return _apply_types(name, table, numbers, rejects, types)


def _numbers(count: int, skipped: set[int] = frozenset()) -> Any:  # type: ignore[assignment]
    arrow = _arrow()
    if not skipped:
        return arrow.array(range(count), arrow.int64())
    return arrow.array((row for row in range(count + len(skipped)) if row not in skipped), arrow.int64())


def _read_parquet(name: str, file: Any, types: dict[str, Any]) -> tuple[Any, Any, list[Reject]]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file).read()
    return table, _numbers(table.num_rows), []


def _read_csv(name: str, file: Any, types: dict[str, Any]) -> tuple[Any, Any, list[Reject]]:
    """Declared columns are read as text and converted afterwards, so that a bad value costs its row, not the file."""
    from pyarrow import csv

    rejects: list[Reject] = []

    def refuse(row: Any) -> str:
        # pyarrow numbers lines from 1 with the header first, and only without threads.
        reason = f"has {row.actual_columns} fields, the header has {row.expected_columns}"
        rejects.append(Reject(row.number - 2, "", row.text[:200], reason))
        return "skip"

    arrow = _arrow()
    table = csv.read_csv(
        file,
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(invalid_row_handler=refuse),
        convert_options=csv.ConvertOptions(
            strings_can_be_null=True, column_types={column: arrow.string() for column in types}
        ),
    )
    return table, _numbers(table.num_rows, {each.row for each in rejects}), rejects


def _read_jsonl(name: str, file: Any, types: dict[str, Any]) -> tuple[Any, Any, list[Reject]]:
    """One JSON object a line; a line that is none is a reject, an empty line counts for nothing."""
    arrow = _arrow()
    raw = Path(file).read_bytes() if isinstance(file, (str, Path)) else file.read()
    objects: list[dict[str, Any]] = []
    rejects: list[Reject] = []
    row = -1
    for line in raw.splitlines():
        if not line.strip():
            continue
        row += 1
        try:
            value = json.loads(line)
        except ValueError as error:
            rejects.append(Reject(row, "", line[:200].decode("utf-8", "replace"), f"is not JSON: {error}"))
            continue
        if isinstance(value, dict):
            objects.append(value)
        else:
            rejects.append(Reject(row, "", line[:200].decode("utf-8", "replace"), "is not a JSON object"))
    names = list(dict.fromkeys(key for each in objects for key in each))
    columns = []
    for column in names:
        values = [each.get(column) for each in objects]
        if column in types:
            values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        try:
            columns.append(arrow.array(values))
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            problem = f"column {column!r} mixes types: {error}"
            raise InvalidSourceError(name, problem, f'declare one: types = {{ {column} = "string" }}') from error
    return (
        arrow.table(columns, names=names),
        _numbers(len(objects), {each.row for each in rejects}),
        rejects,
    )


def _apply_types(name: str, table: Any, numbers: Any, rejects: list[Reject], types: dict[str, Any]) -> Rows:
    arrow = _arrow()
    wanted = dict(
        zip(
            JAVA_TYPES,
            (
                arrow.int8(),
                arrow.int16(),
                arrow.int32(),
                arrow.int64(),
                arrow.float32(),
                arrow.float64(),
                arrow.bool_(),
                arrow.string(),
            ),
            strict=True,
        )
    )
    bad: dict[int, Reject] = {}
    for column, java in types.items():
        if column not in table.column_names:
            raise MissingColumnError(column, table.column_names, name)
        values = table.column(column)
        try:
            converted = values.cast(wanted[java])
        except arrow.ArrowNotImplementedError as error:
            raise UnsupportedColumnError(column, str(values.type), f"it cannot become {java}") from error
        except (arrow.ArrowInvalid, arrow.ArrowTypeError):
            converted = _convert_singly(values, wanted[java], java, column, numbers, bad)
        table = table.set_column(table.column_names.index(column), column, converted)
    if bad:
        keep = arrow.array([index not in bad for index in range(table.num_rows)])
        table, numbers = table.filter(keep), numbers.filter(keep)
    return Rows(table, numbers, tuple(sorted([*rejects, *bad.values()], key=lambda each: each.row)))


def _convert_singly(values: Any, wanted: Any, java: str, column: str, numbers: Any, bad: dict[int, Reject]) -> Any:
    """Value by value, once for each different one; rows whose value does not fit go to ``bad`` and are null."""
    arrow = _arrow()
    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    encoded = plain.dictionary_encode()
    fits: list[Any] = []
    for value in encoded.dictionary:
        try:
            fits.append(arrow.array([value.as_py()], plain.type).cast(wanted)[0].as_py())
        except (arrow.ArrowInvalid, arrow.ArrowTypeError):
            fits.append(None)
    result: list[Any] = []
    for index, code in enumerate(encoded.indices.to_pylist()):
        result.append(None if code is None else fits[code])
        if code is not None and fits[code] is None and index not in bad:
            text = str(encoded.dictionary[code].as_py())[:200]
            bad[index] = Reject(numbers[index].as_py(), column, text, f"is not a {java}")
    return arrow.array(result, wanted)
