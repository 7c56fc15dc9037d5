"""Standard output and standard error, which a reader may leave before the end: ``pyengine ... | head``."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
from typing import Any, TextIO

from pyengine.errors import PyengineError
from pyengine.visible import COMMANDS, one_line, visible, visible_json

_BY_NUMBER = "pyengine.by_number"
_BUT_COLOURS = r"(?!\x1b\[[0-9;]*m)" + COMMANDS


class _Outlet(io.FileIO):
    """A descriptor; what is written after its reader has left is dropped without an error. left: whether it has."""

    left = False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # Windows reports EINVAL for a pipe without a reader.
            if not isinstance(error, BrokenPipeError) and (sys.platform, error.errno) != ("win32", errno.EINVAL):
                raise
            self.left = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)


class _Console(io.RawIOBase):
    """A stream of Python's own, as a Windows console's, which shows UTF-8 that its descriptor would not."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._raw.isatty()

    def fileno(self) -> int:
        return self._raw.fileno()

    def write(self, data: Any, /) -> int:
        left = memoryview(data)
        while left:  # a long write may be partial, and no buffer keeps the rest
            left = left[self._raw.write(left) or 0 :]
        return len(data)


class _Shown(io.TextIOWrapper):
    """What people read, now or later. Names come from files and brokers: what of them would move a terminal's cursor,
    set its title or turn its text around is shown as its number."""

    def write(self, text: str, /) -> int:
        return super().write(visible(text))


class _Coloured(_Shown):
    """The same where the colours that a command has set pass."""

    def write(self, text: str, /) -> int:
        return io.TextIOWrapper.write(self, visible(text, _BUT_COLOURS))


def _by_number(error: UnicodeError) -> tuple[str, int]:
    """What an encoding does not have, as JSON writes it, which a result may be."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)), error.end


def that_may_be_left(stream: TextIO) -> TextIO:
    """The same stream through an outlet; what it cannot show, as an undecodable file name, is written as its number."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    raw: Any = getattr(stream.buffer, "raw", stream.buffer)
    outlet: Any = _Outlet(stream.fileno(), "w", closefd=False) if isinstance(raw, io.FileIO) else _Console(raw)
    codecs.register_error(_BY_NUMBER, _by_number)
    wrapper: type[io.TextIOWrapper] = _Coloured if stream.isatty() or os.environ.get("FORCE_COLOR") else _Shown
    if stream is sys.stderr and wrapper is _Coloured:
        wrapper = io.TextIOWrapper  # bars move a cursor there
    return wrapper(
        io.BufferedWriter(outlet) if isinstance(stream.buffer, io.BufferedWriter) else outlet,  # else it keeps nothing
        encoding=stream.encoding,
        errors=_BY_NUMBER,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def tell(text: str) -> None:
    """A line of standard error; control characters in names are shown, not sent."""
    print(one_line(text), file=sys.stderr)


def refuse(error: PyengineError) -> None:
    """An error's own lines, on standard error."""
    print(visible(f"pyengine: {error}"), file=sys.stderr)


def print_line(line: str) -> None:
    """A line of standard output; control characters in names are shown, not sent."""
    print(one_line(line))


def print_json(document: object) -> None:
    """A JSON document, with no control characters for the terminal that shows it."""
    print(visible_json(json.dumps(document, ensure_ascii=False, indent=2)))


def is_left() -> bool:
    """Whether the reader of the results has closed its end."""
    buffer = getattr(sys.stdout, "buffer", None)
    return bool(getattr(getattr(buffer, "raw", buffer), "left", False))
