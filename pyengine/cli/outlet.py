"""Standard output and standard error, which a reader may leave before the end: ``pyengine ... | head``."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Any, TextIO

# Control characters but for tabs, ends of lines and colours, and those that turn a text around.
_COMMANDS = re.compile("(?!\x1b\\[[0-9;]*m)[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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
        return super().write(_COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text))


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


def is_left() -> bool:
    """Whether whoever reads the results has seen enough of them."""
    buffer = getattr(sys.stdout, "buffer", None)
    return bool(getattr(getattr(buffer, "raw", buffer), "left", False))
