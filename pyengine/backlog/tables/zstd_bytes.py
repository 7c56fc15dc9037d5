"""The bytes in a .zst, also in one that breaks off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyengine.backlog.tables.rows import required_pyarrow

_LARGE, _SMALL = 1 << 16, 1


def unpacked(file: Any) -> tuple[bytes, bool]:
    """The bytes in a .zst of one or more frames, and whether it breaks off. file: a path, or a stream.

    Raises OSError for one that is damaged.
    """
    found = bytearray()
    if not _read(file, found, _LARGE):
        return bytes(found), False
    # The read that failed had bytes before the break: they come in small pieces.
    tail = bytearray()
    _read(file, tail, _SMALL, len(found))
    return bytes(found + tail), True


def _read(file: Any, found: bytearray, size: int, skipped: int = 0) -> bool:
    """Read a file behind so many bytes, in pieces; whether it breaks off."""
    arrow = required_pyarrow()
    if not isinstance(file, (str, Path)):
        file.seek(0)
    packed = arrow.OSFile(str(file)) if isinstance(file, (str, Path)) else arrow.BufferReader(file.read())
    with packed, arrow.CompressedInputStream(packed, "zstd") as stream:
        try:
            stream.read(skipped)
            while piece := stream.read(size):
                found += piece
        except OSError as error:
            if "runcated" not in str(error):
                raise
            return True
    return False
