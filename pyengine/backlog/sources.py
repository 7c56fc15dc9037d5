"""Rows from files people have: Parquet, JSON lines, CSV, or the data inside an installed Python package.

A row that cannot be read is not dropped: it becomes a Reject with its number and the reason. Needs pyarrow.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import importlib.util
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pyengine.backlog.declared_types import arrow_type, one_column, shown, typed
from pyengine.errors import (
    InvalidSourceError,
    MissingExtraError,
    PyengineError,
    UnsupportedColumnError,
)
from pyengine.topology import Source

FORMATS = ("parquet", "jsonl", "csv")
SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}
PACKED = (".zip", ".gz")
_BLOCK = 1 << 20  # bytes of a CSV file that are looked at together; a row is no longer


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
        rows = _read(name, io.BytesIO(data), SUFFIXES[_suffix(name)], dict(source.types))
    else:
        rows = read_files(_paths(source.path), source.format, dict(source.types))
    for column in (*source.columns, *(source.properties or ()), *(column for column, _ in source.types)):
        one_column(column, rows.table.column_names, source.path or f"{source.package}:{source.table}")
    return rows


def read_files(paths: Iterable[str | Path], format: str = "", types: dict[str, Any] | None = None) -> Rows:
    """The rows of several files as one table, in the order given; columns that a file lacks are null there.

    format: "parquet", "jsonl", "csv", or "" = by suffix. types: column -> name of a Java type. Raises as read_source.
    """
    paths = list(paths)
    parts: list[Rows] = []
    for path in paths:
        kind = format or SUFFIXES.get(_suffix(path), "")
        if not kind:
            hint = "name it .parquet, .jsonl or .csv, or give the format"
            raise InvalidSourceError(str(path), "has no known suffix", hint)
        parts.append(_read(str(path), path, kind, types or {}))
    if not parts:
        raise InvalidSourceError("", "no file was given", "name at least one file")
    return _together(parts, ", ".join(map(str, paths)))


def _together(parts: Sequence[Rows], names: str) -> Rows:
    """Rows of several files one after another, as one table with running numbers."""
    arrow = _arrow()
    if len(parts) == 1:
        return parts[0]
    try:
        table = arrow.concat_tables([_plain(part.table) for part in parts], promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise InvalidSourceError(names, f"the files do not fit together: {error}", "declare types") from error
    numbers, rejects, start = [], [], 0
    for part in parts:
        numbers.append(arrow.compute.add(part.numbers, start))
        rejects += [Reject(each.row + start, each.column, each.value, each.reason) for each in part.rejects]
        start += len(part.numbers) + len({each.row for each in part.rejects})
    return Rows(table, arrow.concat_arrays(numbers), tuple(rejects))


def _plain(table: Any) -> Any:
    """A table without dictionaries, which Arrow puts together with nothing else: another file may have the values."""
    for place, given in enumerate(table.schema):
        if _arrow().types.is_dictionary(given.type):
            table = table.set_column(place, given.name, table.column(place).cast(given.type.value_type))
    return table


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
    if any(
        (source.format or SUFFIXES.get(_suffix(path), "")) != "parquet" or path.lower().endswith(PACKED)
        for path in paths
    ):
        return None
    import pyarrow.parquet

    pieces: list[Piece] = []
    first = 0
    shape = None
    for path in paths:
        with _told(path, "parquet"), pyarrow.parquet.ParquetFile(path) as file:
            shape = shape or file.schema_arrow.remove_metadata()
            if file.schema_arrow.remove_metadata() != shape:
                return None
            sizes = [file.metadata.row_group(each).num_rows for each in range(file.metadata.num_row_groups)]
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

    with _told(piece.path, "parquet"), pyarrow.parquet.ParquetFile(piece.path) as file:
        table = file.schema_arrow.empty_table()
    return _apply_types(piece.path, table, _numbers(0), [], dict(source.types)).table.schema


def read_piece(piece: Piece, source: Source) -> Rows:
    """The rows of a piece, with the declared types applied. Raises as read_source."""
    arrow = _arrow()
    import pyarrow.parquet

    with _told(piece.path, "parquet"), pyarrow.parquet.ParquetFile(piece.path) as file:
        wanted = None
        if source.properties is not None:
            types = (column for column, _ in source.types)
            wanted = list(dict.fromkeys((*source.columns, *source.properties, *types)))
            for name in wanted:
                one_column(name, file.schema_arrow.names, piece.path)
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
    path = Path(str(path).lower())
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def _paths(pattern: str) -> list[str]:
    """A file, the data files in a folder, or what a glob finds, in name order."""
    path = Path(pattern)
    if path.is_dir():
        found = sorted(
            str(each)
            for each in path.rglob("*")
            if _suffix(each) in SUFFIXES and not _is_hidden(each.relative_to(path)) and each.is_file()
        )
        if not found:
            raise InvalidSourceError(pattern, "the folder holds no .parquet, .jsonl or .csv file", "check source.path")
        return found
    if path.exists() or not glob.has_magic(pattern):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise InvalidSourceError(pattern, "no file matches", "check source.path")
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


def _read_packed(name: str, file: Any, kind: str, types: dict[str, Any]) -> Rows:
    """What is in a .zip or .gz; the data files of an archive in name order."""
    if name.lower().endswith(".gz"):
        with gzip.open(file) as packed:
            return _read(name[:-3], io.BytesIO(packed.read()), kind, types)
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
                )
                for each in known or plain
            ],
            name,
        )


@contextmanager
def _told(name: str, kind: str) -> Iterator[None]:
    """Around reading a file: what makes it unreadable is raised as InvalidSourceError."""
    arrow = _arrow()
    try:
        yield
    except PyengineError:
        raise
    except OSError as error:
        problem = error.strerror or next(iter(str(error).splitlines()), "it ends too early")
        raise InvalidSourceError(name, f"cannot be read: {problem}", "check the path and the file") from error
    except (arrow.ArrowException, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError) as error:
        raise InvalidSourceError(name, f"is not valid {kind}: {error}", "check the file and its format") from error


def _read(name: str, file: Any, kind: str, types: dict[str, Any]) -> Rows:
    readers: dict[str, Callable[[str, Any, dict[str, Any]], tuple[Any, Any, list[Reject]]]] = {
        "parquet": _read_parquet,
        "jsonl": _read_jsonl,
        "csv": _read_csv,
    }
    with _told(name, kind):
        if name.lower().endswith(PACKED):
            return _read_packed(name, file, kind, types)
        table, numbers, rejects = readers[kind](name, file, types)
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


@contextmanager
def _opened(file: Any) -> Iterator[BinaryIO]:
    """A path opened, or a stream from its beginning."""
    if isinstance(file, (str, Path)):
        with Path(file).open("rb") as opened:
            yield opened
    else:
        file.seek(0)
        yield file


class _Followed(io.RawIOBase):
    """Blocks of a file, and behind them bytes of our own."""

    def __init__(self, blocks: Iterable[bytes], ending: bytes) -> None:
        self.blocks = chain(blocks, (ending,))
        self.left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self.left) < size:
            block = next(self.blocks, None)
            if block is None:
                break
            self.left += block
        size = len(self.left) if size < 0 else size
        found, self.left = self.left[:size], self.left[size:]
        return found


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(_BLOCK), b"")


# Bytes that are no UTF-8, as Python keeps them in a text. Without them a line of nothing else would be none, and a
# quote behind them could begin a value: there a missing value takes their place.
_NOT_UTF8 = re.compile(r"(?P<kept>(?<![^\r\n])[\udc80-\udcff]+(?![^\r\n])|[\udc80-\udcff]+(?=\"))|[\udc80-\udcff]+")


def _in_utf8(file: BinaryIO, mark: str | None) -> Iterator[bytes]:
    """The lines of a file with a mark in the place of bytes that are no UTF-8, or, with None, without them."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    left = ""
    for block in chain(_blocks(file), (b"",)):
        text = left + decoder.decode(block, final=not block)
        end = max(text.rfind("\n"), text.rfind("\r")) + 1 if block else len(text)
        text, left = text[:end], text[end:]
        yield _NOT_UTF8.sub(lambda found: ("NA" if found["kept"] else "") if mark is None else mark, text).encode()


def _looked_at(file: BinaryIO) -> tuple[int, bool, bool]:
    """Of a CSV file: the commas in its first block, whether it has quotes, whether it is UTF-8."""
    commas, quoted, valid = -1, False, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    for block in chain(_blocks(file), (b"",)):
        commas = block.count(b",") if commas < 0 else commas
        quoted = quoted or b'"' in block
        try:
            if valid:
                decoder.decode(block, final=not block)
        except UnicodeDecodeError:
            valid = False
    return commas, quoted, valid


def _read_csv(name: str, file: Any, types: dict[str, Any]) -> tuple[Any, Any, list[Reject]]:
    """Declared columns are read as text and converted afterwards, so that a bad value costs its row, not the file.

    A file with quotes gets a last line that has too many fields for a row: a quote that is open swallows it. Its texts
    are read once more, because what is in quotes may be null in a column of numbers, and is a text elsewhere. A file
    with bytes that are no UTF-8 is read without them, and once more to tell the rows that have them.
    """
    from pyarrow import csv

    arrow = _arrow()
    rejects: list[Reject] = []
    with _opened(file) as opened:
        commas, quoted, valid = _looked_at(opened)
    closed = False
    last = "," * (commas + 2)
    ending = f"\n{last}\n".encode() if quoted else b"\n"

    def refuse(row: Any) -> str:
        nonlocal closed
        if quoted and row.text == last:
            closed = True
            return "skip"
        # pyarrow numbers lines from 1 with the header first, and only without threads.
        reason = f"has {row.actual_columns} fields, the header has {row.expected_columns}"
        rejects.append(Reject(row.number - 2, "", row.text[:200], reason))
        return "skip"

    def read(refuse: Any, mark: str | None = None, **convert: Any) -> Any:
        with _opened(file) as opened:
            return csv.read_csv(
                _Followed(_blocks(opened) if valid else _in_utf8(opened, mark), ending),
                read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
                parse_options=csv.ParseOptions(invalid_row_handler=refuse, newlines_in_values=quoted),
                convert_options=csv.ConvertOptions(strings_can_be_null=True, **convert),
            )

    try:
        if not valid:
            mark = _unused_character(file)
            marked = read(lambda row: "skip", mark)
            if any(mark in column for column in marked.column_names):
                raise InvalidSourceError(name, "the header is not UTF-8", "write the file in UTF-8")
        table = read(refuse, column_types={column: arrow.string() for column in types})
    except arrow.ArrowInvalid as error:
        problems = {
            "straddling": f"a row is longer than {_BLOCK:,} bytes, as one is where a quote opens and never closes",
            "Empty CSV": "a quote opens in the header and never closes",
        }
        for found, problem in problems.items():
            if quoted and found in str(error):
                raise InvalidSourceError(name, problem, "double a quote that is part of a value") from error
        raise
    if quoted and not closed:
        row = table.num_rows + len(rejects) - 1
        raise InvalidSourceError(
            name, f"a quote opens in row {row} (from 0) and never closes", "double a quote that is part of a value"
        )
    numbers = _numbers(table.num_rows, {each.row for each in rejects})
    texts = [
        column
        for column, kind in zip(table.column_names, table.schema.types, strict=True)
        if kind == arrow.string() and types.get(column, "string") == "string"
    ]
    if quoted and len(set(table.column_names)) == table.num_columns and texts:
        again = read(
            lambda row: "skip",
            column_types={column: arrow.string() for column in texts},
            include_columns=texts,
            quoted_strings_can_be_null=False,
        )
        for column in texts:
            table = table.set_column(table.column_names.index(column), column, again.column(column))
    if not valid:
        return _without_marked(table, numbers, rejects, marked, mark)
    return table, numbers, rejects


def _unused_character(file: Any) -> str:
    """A character that a file does not hold."""
    with _opened(file) as opened:
        used = set().union(*(block.decode() for block in _in_utf8(opened, None)))
    return next(chr(code) for code in range(0xFDD0, 0x110000) if chr(code) not in used)


def _without_marked(
    table: Any, numbers: Any, rejects: list[Reject], marked: Any, mark: str
) -> tuple[Any, Any, list[Reject]]:
    """What was read without the rows in which a text of ``marked`` has the mark of bytes that are no UTF-8."""
    arrow = _arrow()
    found: dict[int, Reject] = {}
    for column, texts in zip(marked.column_names, marked.columns, strict=True):
        if texts.type == arrow.string():
            for index in arrow.compute.indices_nonzero(arrow.compute.match_substring(texts, mark)).to_pylist():
                value = texts[index].as_py().replace(mark, "\ufffd")[:200]
                found.setdefault(index, Reject(numbers[index].as_py(), column, value, "is not UTF-8"))
    keep = arrow.array([index not in found for index in range(table.num_rows)], arrow.bool_())
    return table.filter(keep), numbers.filter(keep), [*rejects, *found.values()]


def _read_jsonl(name: str, file: Any, types: dict[str, Any]) -> tuple[Any, Any, list[Reject]]:
    """One JSON object a line; a line that is none, or holds what no message can, is a reject, an empty line nothing."""
    arrow = _arrow()
    raw = Path(file).read_bytes() if isinstance(file, (str, Path)) else file.read()
    objects: list[dict[str, Any]] = []
    rows: list[int] = []
    rejects: list[Reject] = []
    names: dict[str, None] = {}
    row = -1
    for line in raw.splitlines():
        if not line.strip():
            continue
        row += 1
        try:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise TypeError("is not a JSON object")
            new = [key for key in value if key not in names]
            for key in new:
                key.encode()
        except (ValueError, TypeError, RecursionError) as error:
            problem = str(error) if isinstance(error, TypeError) else f"is not JSON: {error}"
            rejects.append(Reject(row, "", line[:200].decode("utf-8", "replace"), problem))
            continue
        names |= dict.fromkeys(new)
        objects.append(value)
        rows.append(row)
    columns: dict[str, list[Any]] = {}
    unheld: dict[int, Reject] = {}
    for column in names:
        values = [each.get(column) for each in objects]
        if column in types:
            values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        for index, value in enumerate(values):
            problem = _unheld(value)
            if problem:
                unheld.setdefault(index, Reject(rows[index], column, _printable(value), problem))
        columns[column] = values
    made = []
    for column, values in columns.items():
        kept = [value for index, value in enumerate(values) if index not in unheld] if unheld else values
        try:
            made.append(arrow.array(kept))
        except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            problem = f"column {column!r} mixes types: {error}"
            raise InvalidSourceError(name, problem, f'declare one: types = {{ {column} = "string" }}') from error
    left = [each for index, each in enumerate(rows) if index not in unheld]
    if not made:  # a table of no columns would have no rows
        return (
            arrow.Table.from_struct_array(arrow.array(objects, arrow.struct([]))),
            arrow.array(left, arrow.int64()),
            rejects,
        )
    return arrow.table(made, names=list(names)), arrow.array(left, arrow.int64()), [*rejects, *unheld.values()]


def _unheld(value: Any) -> str:
    """Why no message property can hold a value of a JSON line, or nothing."""
    if type(value) is str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return "is text with half of a surrogate pair"
    elif type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return "is an integer beyond long"
    return ""


def _printable(value: Any) -> str:
    return str(value)[:200].encode("utf-8", "backslashreplace").decode("utf-8")


def _apply_types(name: str, table: Any, numbers: Any, rejects: list[Reject], types: dict[str, Any]) -> Rows:
    arrow = _arrow()
    bad: dict[int, Reject] = {}
    # Arrow filters and sorts no views.
    plain = {arrow.string_view(): arrow.string(), arrow.binary_view(): arrow.binary()}
    for place, given in enumerate(table.schema):
        if given.type in plain:
            table = table.set_column(place, given.name, table.column(place).cast(plain[given.type]))
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
    return Rows(table, numbers, tuple(sorted([*rejects, *bad.values()], key=lambda each: each.row)))


def _convert_singly(values: Any, wanted: Any, java: str, column: str, numbers: Any, bad: dict[int, Reject]) -> Any:
    """Value by value, once for each different one; rows whose value does not fit go to ``bad`` and are null."""
    arrow = _arrow()
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
            bad[index] = Reject(numbers[index].as_py(), column, text, f"is not a {java}")
    return arrow.array(result, wanted)
