"""The text of a file that somebody hands over: its encoding told by the file itself, its damage by a remark.

A byte order mark counts, then an XML declaration, then UTF-8. A log that was cut within a character, or that holds some
bytes of another encoding, is read all the same; only what has no text in it is refused. Rotated logs may be gzipped.
"""

from __future__ import annotations

import codecs
import gzip
import re
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from pyengine.backlog.diagnosis.evidence.model import Remark
from pyengine.backlog.findings import say
from pyengine.errors import InvalidSourceError
from pyengine.topology.spring import DECLARED

STDIN = "standard input"
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
GZIP = b"\x1f\x8b"
# Archives and compressions that are not unpacked here: what they begin with, and what unpacks them.
PACKED = (
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
    (b"BZh91AY&SY", "bzip2", "bunzip2"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"PK\x03\x04", "zip", "unzip"),
)
_COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Opened:
    """A file's text. modified: ms since 1970, None for standard input."""

    text: str
    name: str
    modified: int | None
    remarks: tuple[Remark, ...] = ()


def open_text(path: str | Path, encoding: str = "") -> Opened:
    """A file's text; ``-`` is standard input. encoding: a name of it, or empty: as the file itself says.

    Raises InvalidSourceError for what cannot be read and for what is no text.
    """
    if str(path) == "-":
        return _text(sys.stdin.buffer.read(), STDIN, None, encoding)
    try:
        data, modified = Path(path).read_bytes(), Path(path).stat().st_mtime_ns // 1_000_000
    except OSError as error:
        raise InvalidSourceError(str(path), f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # a name with a NUL in it
        raise InvalidSourceError(str(path), f"cannot be read: {error}") from error
    return _text(data, str(path), modified, encoding)


def open_whole(path: str | Path, encoding: str = "") -> Opened:
    """The same of a configuration, which is taken as it is or not at all: damage raises InvalidSourceError too."""
    opened = open_text(path, encoding)
    for remark in opened.remarks:
        raise InvalidSourceError(f"{remark.file}:{remark.line}", remark.why)
    return opened


def _text(data: bytes, name: str, modified: int | None, encoding: str) -> Opened:
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidSourceError(name, f"cannot be read: {error}") from error
    for mark, kind, program in PACKED:
        if data.startswith(mark):
            raise InvalidSourceError(
                name, f"is packed with {kind}", f"unpack it with {program}; gzip alone is read as it is"
            )
    chosen = encoding or next((each for mark, each in MARKS if data.startswith(mark)), "")
    declared = DECLARED.match(data[:500])
    chosen = chosen or (declared[1].decode() if declared else "utf-8")
    remarks: tuple[Remark, ...] = ()
    try:
        text = data.decode(chosen)
    except LookupError as error:
        raise InvalidSourceError(name, f"unknown encoding: {chosen}", "give --encoding with its name") from error
    except UnicodeDecodeError as error:
        # A NUL is in no log: this is no text at all, or text of two or four bytes a character without a mark.
        if encoding or chosen != "utf-8" or b"\0" in data:
            hint = "name its encoding: --encoding gb18030" if chosen == "utf-8" and not encoding else ""
            raise InvalidSourceError(name, f"is not text in {chosen.upper()} (byte {error.start})", hint) from error
        text = data.decode(errors="replace")
        line = data.count(b"\n", 0, error.start) + 1
        broken = "\N{REPLACEMENT CHARACTER}"
        shown = text.split("\n")[line - 1].strip()
        why = say("{count:character is|characters are} not UTF-8; try --encoding gb18030", count=text.count(broken))
        remarks = (Remark(name, line, shown[:200], why),)
    except ValueError as error:  # some codecs say no more than that
        raise InvalidSourceError(name, f"cannot be read: {error}", "give --encoding with another name") from error
    return Opened(_COLOURS.sub("", text).replace("\r\n", "\n"), name, modified, remarks)
