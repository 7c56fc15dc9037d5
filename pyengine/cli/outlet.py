"""Standard output and standard error, which a reader may leave before the end: ``pyengine ... | head``."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from pyengine.backlog.visible import COMMANDS, visible

_BUT_COLOURS = r"(?!\x1b\[[0-9;]*m)" + COMMANDS


class _Outlet(io.FileIO):
    """A descriptor; what comes when its reader has left goes nowhere and fails nobody. left: whether it has."""

    left = False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self.left = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)


class _Screen(io.TextIOWrapper):
    """A terminal. Names come from files and brokers: what of them would move its cursor, set its title or turn its
    text around is shown as its number; colours pass."""

    def write(self, text: str, /) -> int:
        return super().write(visible(text, _BUT_COLOURS))


def that_may_be_left(stream: TextIO) -> TextIO:
    """The same stream through an outlet; what it cannot show, as an undecodable file name, is written as its number."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    outlet: Any = _Outlet(stream.fileno(), "w", closefd=False)
    wrapper = _Screen if stream is sys.stdout and stream.isatty() else io.TextIOWrapper
    return wrapper(
        io.BufferedWriter(outlet) if isinstance(stream.buffer, io.BufferedWriter) else outlet,  # else it keeps nothing
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def tell(text: str) -> None:
    """A line of standard error, whatever stands in its names; bars that move a cursor go there too."""
    print(visible(text), file=sys.stderr)


def is_left() -> bool:
    """Whether whoever reads the results has seen enough of them."""
    buffer = getattr(sys.stdout, "buffer", None)
    return bool(getattr(getattr(buffer, "raw", buffer), "left", False))
