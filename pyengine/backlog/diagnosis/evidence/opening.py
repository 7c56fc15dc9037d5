"""The text of a file as it was brought: its encoding found from its bytes, its damage noted in a remark.

A byte order mark counts, then an XML declaration, then UTF-8. A log that was cut within a character, or that holds some
bytes of another encoding, is read all the same; only files without text are refused. Rotated logs may be gzipped.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
import zlib
from pathlib import Path

from pyengine.backlog.diagnosis.evidence.model import Remark
from pyengine.backlog.findings import say
from pyengine.backlog.tables.gzip_bytes import unpacked
from pyengine.dataclass import dataclass
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
# Other files that are brought by mistake: where the mark is, its bytes, the kind of file, and what to bring instead.
BINARY = (
    (0, b"\x89PNG\r\n", "a picture (PNG)", "paste the text that it shows"),
    (0, b"\xff\xd8\xff", "a picture (JPEG)", "paste the text that it shows"),
    (0, b"GIF8", "a picture (GIF)", "paste the text that it shows"),
    (0, b"BM", "a picture (BMP)", "paste the text that it shows"),
    (8, b"WEBPVP8", "a picture (WebP)", "paste the text that it shows"),
    (0, b"%PDF-", "a PDF", "paste the text that it shows"),
    (0, b"\xd0\xcf\x11\xe0", "a document of Office", "paste the text that it shows"),
    (0, b"\xca\xfe\xba\xbe", "a compiled Java class", ""),
    (0, b"\x7fELF", "a compiled program", ""),
    (0, b"MZ", "a program of Windows", ""),
    (0, b"JAVA PROFILE 1.0", "a heap dump", "give thread dumps instead: `jstack PID`, three times, some seconds apart"),
    (0, b"FLR\0", "a recording of Java Flight Recorder", "give its thread dumps: `jfr print --events ThreadDump FILE`"),
    (0, b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)", "give the client's log of that time"),
    (0, b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)", "give the client's log of that time"),
    (0, b"\x4d\x3c\xb2\xa1", "a capture of packets (pcap)", "give the client's log of that time"),
    (0, b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)", "give the client's log of that time"),
    (0, b"SQLite format 3\0", "a database of SQLite", ""),
    (0, b"PAR1", "Parquet, which holds messages and not their state", "`pyengine run` reads it"),
    (257, b"ustar", "an archive (tar)", "unpack it with tar"),
    (0, b"7z\xbc\xaf\x27\x1c", "packed with 7z", "unpack it with 7z"),
    (0, b"Rar!\x1a\x07", "packed with RAR", "unpack it with unrar"),
    (0, b"LZIP", "packed with lzip", "unpack it with lzip"),
    (0, b"\x04\x22\x4d\x18", "packed with lz4", "unpack it with lz4"),
    (4, b"\xda\xa3\x20\xa7", "a commit log of RocketMQ", "give `mqadmin consumerProgress -g GROUP` instead"),
)  # fmt: skip
JAR = b"META-INF/"
CONTROLS = frozenset(range(9)) | frozenset(range(14, 27)) | frozenset(range(28, 32))
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

    Raises InvalidSourceError for a file that cannot be read or has no text.
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
    remarks: tuple[Remark, ...] = ()
    if data.startswith(GZIP):
        try:
            data, broken_off = unpacked(io.BytesIO(data))
        except zlib.error as error:
            raise InvalidSourceError(name, f"cannot be read: {error}") from error
        if broken_off and not data:
            raise InvalidSourceError(name, "cannot be read: the gzip file breaks off before its first line")
        if broken_off:
            remarks = (Remark(name, 0, Path(name).name, say("the gzip file breaks off: what came before is read")),)
    _refuse_binary(data, name)
    chosen = encoding or next((each for mark, each in MARKS if data.startswith(mark)), "")
    declared = DECLARED.match(data[:500])
    chosen = chosen or (declared[1].decode() if declared else "utf-8")
    if chosen == "utf-8" and not encoding:
        chosen = _unmarked(data)
    try:
        text = data.decode(chosen)
    except LookupError as error:
        raise InvalidSourceError(name, f"unknown encoding: {chosen}", "give --encoding with its name") from error
    except UnicodeDecodeError as error:
        # A NUL is in no log: this is a binary file, or text of two or four bytes a character without a mark.
        if encoding or chosen != "utf-8" or _is_binary(data):
            if chosen == "utf-8" and not encoding:
                raise InvalidSourceError(
                    name, f"is binary data, not text (byte {error.start})", "give what a tool prints, or a log"
                ) from error
            hint = ""
            raise InvalidSourceError(name, f"is not text in {chosen.upper()} (byte {error.start})", hint) from error
        text = data.decode(errors="replace")
        line = data.count(b"\n", 0, error.start) + 1
        broken = "\N{REPLACEMENT CHARACTER}"
        shown = text.split("\n")[line - 1].strip()
        why = say("{count:character is|characters are} not UTF-8; try --encoding gb18030", count=text.count(broken))
        remarks = (*remarks, Remark(name, line, shown[:200], why))
    except ValueError as error:  # some codecs say no more than that
        raise InvalidSourceError(name, f"cannot be read: {error}", "give --encoding with another name") from error
    return Opened(_COLOURS.sub("", text).replace("\r\n", "\n"), name, modified, remarks)


def _refuse_binary(data: bytes, name: str) -> None:
    """Raises InvalidSourceError for known binary formats, with the format and what to do."""
    for mark, kind, program in PACKED:
        if data.startswith(mark):
            if kind == "zip" and JAR in data[:4096]:
                raise InvalidSourceError(name, "is a jar, compiled Java, not text")
            raise InvalidSourceError(
                name, f"is packed with {kind}", f"unpack it with {program}; gzip alone is read as it is"
            )
    for at, mark, what, instead in BINARY:
        if data[at : at + len(mark)] == mark and _is_binary(data):
            raise InvalidSourceError(name, f"is {what}, not text", instead)


def _is_binary(data: bytes) -> bool:
    """A NUL is in no text, and other control characters are rare."""
    start = data[:8192]
    return b"\0" in data or sum(byte in CONTROLS for byte in start) * 20 > len(start)


def _unmarked(data: bytes) -> str:
    """UTF-16 without a byte order mark, recognised by its NULs, else UTF-8."""
    start = data[:4096]
    half = len(start) // 2
    for nuls, others, chosen in ((start[1::2], start[::2], "utf-16-le"), (start[::2], start[1::2], "utf-16-be")):
        if half > 8 and nuls.count(0) * 3 > half and not others.count(0):
            return chosen
    return "utf-8"
