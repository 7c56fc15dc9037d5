"""The rows of one CSV file. Needs pyarrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pyengine.backlog.tables.rows import Reject, required_pyarrow, row_numbers
from pyengine.errors import InvalidSourceError, counted

_BLOCK = 1 << 20  # bytes that are looked at together; a row is no longer


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


def _looked_at(file: BinaryIO, delimiter: bytes) -> tuple[int, bool, bool]:
    """Of a CSV file: the delimiters in its first block, whether it has quotes, whether it is UTF-8."""
    commas, quoted, valid = -1, False, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    for block in chain(_blocks(file), (b"",)):
        commas = block.count(delimiter) if commas < 0 else commas
        quoted = quoted or b'"' in block
        try:
            if valid:
                decoder.decode(block, final=not block)
        except UnicodeDecodeError:
            valid = False
    return commas, quoted, valid


def _row_lines(file: Any, quoted: bool, delimiter: str) -> list[tuple[int, int]]:
    """Lines of rows, as in Rows: a header, empty lines, and line ends in quotes are lines and no rows."""
    with _opened(file) as opened:
        if not quoted and not _has_empty_lines(opened):
            return [(0, 1)]
    lines: list[tuple[int, int]] = []
    with _opened(file) as opened:
        text = io.TextIOWrapper(opened, "utf-8", "surrogateescape", newline="")
        try:
            reader = csv.reader(text, delimiter=delimiter)
            row, begins = -2, 0
            for record in reader:
                if record:
                    row += 1
                    if row >= 0 and (not lines or begins - row != lines[-1][1] - lines[-1][0]):
                        lines.append((row, begins))
                begins = reader.line_num
        except csv.Error:
            pass  # a field beyond its limit: rows behind it have the lines that they would have without it
        finally:
            text.detach()
    return lines or [(0, 1)]


def _has_empty_lines(file: BinaryIO) -> bool:
    before = b"\n"
    for block in _blocks(file):
        text = before[-2:] + block
        if b"\n\n" in text or b"\n\r" in text or b"\r\r" in text:
            return True
        before = text
    return False


def read_csv(
    name: str, file: Any, types: dict[str, Any], wanted: Container[str] | None, delimiter: str = ","
) -> tuple[Any, Any, list[Reject], list[tuple[int, int]]]:
    """An Arrow table, the numbers of its rows, the rows that cannot be read, and the lines of rows as in Rows.

    Raises InvalidSourceError.

    Declared columns (``types``) stay texts, to be converted afterwards: a bad value costs its row, not the file.

    A file with quotes gets a last line that has too many fields for a row: a quote that is open swallows it. Its texts
    are read once more, because what is in quotes may be null in a column of numbers, and is a text elsewhere. A file
    with bytes that are no UTF-8 is read without them, and once more to tell the rows that have them. Columns of doubles
    that somebody reads (``wanted``) are read once more where a whole number may have been rounded.
    """
    from pyarrow import csv as arrow_csv

    arrow = required_pyarrow()
    rejects: list[Reject] = []
    with _opened(file) as opened:
        commas, quoted, valid = _looked_at(opened, delimiter.encode())
    closed = False
    last = delimiter * (commas + 2)
    ending = f"\n{last}\n".encode() if quoted else b"\n"

    def refuse(row: Any) -> str:
        nonlocal closed
        if quoted and row.text == last:
            closed = True
            return "skip"
        # pyarrow numbers lines from 1 with the header first, and only without threads.
        reason = f"has {counted(row.actual_columns, 'field')}, the header has {row.expected_columns}"
        rejects.append(Reject(row.number - 2, "", row.text[:200], reason))
        return "skip"

    def read(refuse: Any, mark: str | None = None, **convert: Any) -> Any:
        with _opened(file) as opened:
            return arrow_csv.read_csv(
                _Followed(_blocks(opened) if valid else _in_utf8(opened, mark), ending),
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, invalid_row_handler=refuse, newlines_in_values=quoted
                ),
                convert_options=arrow_csv.ConvertOptions(strings_can_be_null=True, **convert),
            )

    try:
        if not valid:
            mark = _unused_character(file)
            marked = read(lambda row: "skip", mark)
            if any(mark in column for column in marked.column_names):
                raise InvalidSourceError(name, "the header is not UTF-8", "write the file in UTF-8")
        table = read(refuse, column_types={column: arrow.string() for column in types})
    except arrow.ArrowInvalid as error:
        long, double = f"a row is longer than {_BLOCK:,} bytes", "double a quote that is part of a value"
        if "straddling" in str(error) and quoted:
            raise InvalidSourceError(name, f"{long}, as one is where a quote opens and never closes", double) from error
        if "straddling" in str(error):
            raise InvalidSourceError(name, long, "give such rows as JSON lines or Parquet") from error
        if "Empty CSV" in str(error) and quoted:
            raise InvalidSourceError(name, "a quote opens in the header and never closes", double) from error
        raise
    if quoted and not closed:
        row = table.num_rows + len(rejects) - 1
        raise InvalidSourceError(
            name, f"a quote opens in row {row} (from 0) and never closes", "double a quote that is part of a value"
        )
    numbers = row_numbers(table.num_rows, {each.row for each in rejects})
    unheld: dict[int, Reject] = {}
    unique = [column for column in table.column_names if table.column_names.count(column) == 1]
    rounded = [
        column
        for column in unique
        if (wanted is None or column in wanted)
        and table.schema.field(column).type == arrow.float64()
        and _may_be_rounded(table.column(column)).to_numpy().any()
    ]
    if rounded:
        written = {column: arrow.string() for column in rounded}
        again = read(lambda row: "skip", column_types=written, include_columns=rounded)
        for column in rounded:
            whole = _without_rounded(table.column(column), again.column(column), numbers, column, unheld)
            table = table.set_column(table.column_names.index(column), column, whole)
    texts = [
        column
        for column, kind in zip(table.column_names, table.schema.types, strict=True)
        if kind == arrow.string() and types.get(column, "string") == "string"
    ]
    if quoted and len(unique) == table.num_columns and texts:
        again = read(
            lambda row: "skip",
            column_types={column: arrow.string() for column in texts},
            include_columns=texts,
            quoted_strings_can_be_null=False,
        )
        for column in texts:
            table = table.set_column(table.column_names.index(column), column, again.column(column))
    if not valid:
        _find_marked(marked, mark, numbers, unheld)
    if unheld:
        keep = arrow.array([index not in unheld for index in range(table.num_rows)], arrow.bool_())
        table, numbers = table.filter(keep), numbers.filter(keep)
    return table, numbers, [*rejects, *unheld.values()], _row_lines(file, quoted, delimiter)


def _may_be_rounded(doubles: Any) -> Any:
    """Whether doubles are so large that they do not tell whole numbers apart."""
    compute = required_pyarrow().compute
    return compute.fill_null(compute.greater_equal(compute.abs(doubles), float(1 << 53)), False)


def _without_rounded(doubles: Any, texts: Any, numbers: Any, name: str, found: dict[int, Reject]) -> Any:
    """A column of doubles, or of longs where its texts hold no fraction; whole numbers that it cannot hold as they are
    written go to ``found``, as from JSON lines."""
    arrow = required_pyarrow()
    compute = arrow.compute
    texts = compute.utf8_trim_whitespace(texts.combine_chunks())
    whole = compute.match_substring_regex(texts, "^[+-]?[0-9]+$")
    beyond: dict[int, str] = {}
    between: dict[int, str] = {}
    for index in compute.indices_nonzero(compute.and_(_may_be_rounded(doubles), whole)).to_pylist():
        text = texts[index].as_py()
        if len(text.lstrip("+-0")) > 19 or not -(1 << 63) <= int(text) < 1 << 63:
            beyond[index] = "is an integer beyond long"
        elif int(text) != doubles[index].as_py():
            between[index] = "is not a double, as the column's other values are"
    held = compute.if_else(arrow.array([index in beyond for index in range(len(texts))], arrow.bool_()), None, texts)
    if compute.all(compute.match_substring_regex(held, "^-?[0-9]+$"), min_count=0).as_py():
        doubles, between = held.cast(arrow.int64()), {}
    for index, reason in (beyond | between).items():
        found.setdefault(index, Reject(numbers[index].as_py(), name, texts[index].as_py()[:200], reason))
    return doubles


def _unused_character(file: Any) -> str:
    """A character that a file does not hold."""
    with _opened(file) as opened:
        used = set().union(*(block.decode() for block in _in_utf8(opened, None)))
    return next(chr(code) for code in range(0xFDD0, 0x110000) if chr(code) not in used)


def _find_marked(marked: Any, mark: str, numbers: Any, found: dict[int, Reject]) -> None:
    """The rows in which a text of ``marked`` has the mark of bytes that are no UTF-8 go to ``found``."""
    arrow = required_pyarrow()
    for column, texts in zip(marked.column_names, marked.columns, strict=True):
        if texts.type == arrow.string():
            for index in arrow.compute.indices_nonzero(arrow.compute.match_substring(texts, mark)).to_pylist():
                value = texts[index].as_py().replace(mark, "\ufffd")[:200]
                found.setdefault(index, Reject(numbers[index].as_py(), column, value, "is not UTF-8"))
