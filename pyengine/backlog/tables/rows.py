"""What reading a source gives: rows with their numbers, and those that could not be read, with the reason."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from pyengine.dataclass import dataclass
from pyengine.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that did not become a message. row: from 0 over the whole source. column: "" for the whole row."""

    row: int
    column: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rows:
    """What was read. table: an Arrow table. numbers: int64 array, each row's number, rejected rows counted. files: the
    number of each file's first row, and its name, in the order in which they were read. lines: of files of lines, from
    which row on which line (from 0) of its file a row begins at, each further row a line further.
    """

    table: Any
    numbers: Any
    rejects: tuple[Reject, ...] = field(default=())
    files: tuple[tuple[int, str], ...] = field(default=())
    lines: tuple[tuple[int, int], ...] = field(default=())


def required_pyarrow() -> Any:
    """pyarrow, with its functions. Raises MissingExtraError."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise MissingExtraError("spark", "pyarrow") from error
    return pyarrow


def row_numbers(count: int, skipped: set[int] = frozenset()) -> Any:  # type: ignore[assignment]
    """Numbers of ``count`` rows in order, without those that were skipped."""
    arrow = required_pyarrow()
    if not skipped:
        return arrow.array(range(count), arrow.int64())
    return arrow.array((row for row in range(count + len(skipped)) if row not in skipped), arrow.int64())
