"""Compressed bodies: zlib of the standard library, LZ4 and zstd of the extra ``rocketmq``."""

from __future__ import annotations

import zlib
from typing import Any

from pyengine.errors import MissingExtraError, ProtocolError
from pyengine.rocketmq.message import MAX_MESSAGE_SIZE

# Bits of a system flag (MessageSysFlag): 0x700 has the algorithm, 0 is zlib, which is what clients before 5.0 write.
TYPES = {"LZ4": 0x100, "ZSTD": 0x200, "ZLIB": 0x300}
MOST_EXPANDED = 16 * MAX_MESSAGE_SIZE
LZ4_RATIO = 255  # a byte of a length stands for 255 bytes at most


def compress(body: bytes, kind: str = "ZLIB", level: int = 5) -> bytes:
    """A body made smaller. kind: ZLIB, LZ4 or ZSTD, the names of CompressionType. Raises MissingExtraError."""
    packed: bytes
    if kind == "LZ4":
        packed = _lz4().compress(body)
    elif kind == "ZSTD":
        packed = _zstandard().ZstdCompressor(level=level).compress(body)
    else:
        packed = zlib.compress(body, level)
    return packed


def decompress(body: bytes, sys_flag: int, most: int = MOST_EXPANDED) -> bytes:
    """A body as it was sent. sys_flag: the message's, which has the algorithm. most: bytes that it may have.

    Raises ProtocolError for what cannot be decompressed, MissingExtraError if the library for it is not installed.
    """
    kind, limit = sys_flag & 0x700, most + 1
    if kind in (0, TYPES["ZLIB"]):
        expander: Any = zlib.decompressobj()
        errors: tuple[type[Exception], ...] = (zlib.error,)
    elif kind == TYPES["LZ4"]:
        expander, errors = _lz4().LZ4FrameDecompressor(), (RuntimeError, EOFError)
        # It takes memory for as many bytes as it may return, so the limit is what LZ4's ratio allows, if that is less.
        limit = min(limit, LZ4_RATIO * len(body) + 1)
    elif kind == TYPES["ZSTD"]:
        return _zstd(_zstandard(), body, most)
    else:
        raise ProtocolError(f"Unknown compress type value: {kind >> 8}")
    try:
        expanded: bytes = expander.decompress(body, limit)
    except errors as error:
        raise ProtocolError(f"a body cannot be decompressed: {error}") from error
    return _whole(expanded, expander.eof, most)


def _zstd(library: Any, body: bytes, most: int) -> bytes:
    expander = library.ZstdDecompressor().decompressobj()
    expanded = bytearray()
    try:
        for at in range(0, len(body), 256):  # bytes, of which each four can become 128 KiB
            expanded += expander.decompress(body[at : at + 256])
            if len(expanded) > most or expander.eof:
                break
    except library.ZstdError as error:
        raise ProtocolError(f"a body cannot be decompressed: {error}") from error
    return _whole(bytes(expanded), expander.eof, most)


def _whole(expanded: bytes, ended: bool, most: int) -> bytes:
    if len(expanded) > most:
        raise ProtocolError(f"a body has more than {most} bytes once it is decompressed")
    if not ended:
        raise ProtocolError("a compressed body ends too early")
    return expanded


def _lz4() -> Any:
    try:
        import lz4.frame
    except ImportError as error:
        raise MissingExtraError("rocketmq", "lz4") from error
    return lz4.frame


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("rocketmq", "zstandard") from error
    return zstandard
