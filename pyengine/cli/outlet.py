"""Standard output and standard error, which a reader may leave before the end: ``pyengine ... | head``."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


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


def that_may_be_left(stream: TextIO) -> TextIO:
    """The same stream through an outlet; what it cannot show, as an undecodable file name, is written as its number."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    outlet: Any = _Outlet(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
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
