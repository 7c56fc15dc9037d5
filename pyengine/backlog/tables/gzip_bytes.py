"""What is in a .gz, also of one that breaks off."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_GZIP = 31  # zlib's word for a header and checksum of gzip around the data
_PIECE = 1 << 16


def unpacked(file: Any) -> tuple[bytes, bool]:
    """The bytes in a .gz of one or more members, and whether it breaks off.

    file: a path, or a stream. Raises zlib.error for one that is damaged: its bytes may be wrong from anywhere on.
    """
    found: list[bytes] = []
    member = zlib.decompressobj(_GZIP)
    begun = False
    for piece in _pieces(file):
        while piece and (begun or piece.strip(b"\0")):  # zeros behind a member are padding
            begun = True
            found.append(member.decompress(piece))
            piece = member.unused_data
            if member.eof:
                member, begun = zlib.decompressobj(_GZIP), False
    return b"".join(found), begun


def _pieces(file: Any) -> Iterator[bytes]:
    if isinstance(file, (str, Path)):
        with Path(file).open("rb") as opened:
            yield from iter(lambda: opened.read(_PIECE), b"")
    else:
        yield from iter(lambda: file.read(_PIECE), b"")


def whole_lines(data: bytes, quotes: bool) -> int:
    """How many bytes are whole lines. quotes: a line end in quotes ends no line."""
    end = data.rfind(b"\n") + 1
    while quotes and end and data.count(b'"', 0, end) % 2:
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end
