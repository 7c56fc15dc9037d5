"""The rows of one CSV file. Needs pyarrow."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pyengine.backlog.rows import Reject, required_pyarrow, row_numbers
from pyengine.errors import InvalidSourceError

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


def read_csv(name: str, file: Any, types: dict[str, Any]) -> tuple[Any, Any, list[Reject]]:
    """An Arrow table, the numbers of its rows, and the rows that cannot be read. Raises InvalidSourceError.

    Declared columns (``types``) stay texts, to be converted afterwards: a bad value costs its row, not the file.

    A file with quotes gets a last line that has too many fields for a row: a quote that is open swallows it. Its texts
    are read once more, because what is in quotes may be null in a column of numbers, and is a text elsewhere. A file
    with bytes that are no UTF-8 is read without them, and once more to tell the rows that have them.
    """
    from pyarrow import csv

    arrow = required_pyarrow()
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
    numbers = row_numbers(table.num_rows, {each.row for each in rejects})
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
    arrow = required_pyarrow()
    found: dict[int, Reject] = {}
    for column, texts in zip(marked.column_names, marked.columns, strict=True):
        if texts.type == arrow.string():
            for index in arrow.compute.indices_nonzero(arrow.compute.match_substring(texts, mark)).to_pylist():
                value = texts[index].as_py().replace(mark, "\ufffd")[:200]
                found.setdefault(index, Reject(numbers[index].as_py(), column, value, "is not UTF-8"))
    keep = arrow.array([index not in found for index in range(table.num_rows)], arrow.bool_())
    return table.filter(keep), numbers.filter(keep), [*rejects, *found.values()]
