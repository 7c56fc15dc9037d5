"""The journal of a durable broker: the units that its database does not have yet, a record each.

A record takes less time than a transaction, and most messages are gone before the database has to know of them.
"""

from __future__ import annotations

import struct
from pathlib import Path
from zlib import crc32

from pyengine.activemq._runtime.record_file import RecordFile
from pyengine.disk_sync import sync_file, sync_folder
from pyengine.errors import StoreError

JOURNAL = "broker.journal"
MARK = "journal"  # of the database: the number of the last record that it has
MOST = 1 << 20  # bytes of records, after which the database takes over what they say
HEAD = b"pyengine journal 1\n"
_RECORD = struct.Struct("<IIQ")  # bytes of the unit; CRC-32 of its number and itself; its number


def read(path: Path) -> bytes:
    """What is in a journal, b"" where there is none. Raises StoreError for a foreign file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(str(path), f"cannot be read: {error.strerror}") from error
    if not HEAD.startswith(data[: len(HEAD)].rstrip(b"\0")):  # zeros: the power failed before it was on the disk
        raise StoreError(str(path), "is not a journal of a broker")
    return data


def records(data: bytes, after: int) -> list[bytes]:
    """The units of the records with the numbers ``after`` + 1, + 2, ...

    They end with the first that is not whole, which was never confirmed, and before one that does not follow: of what
    was not yet on the disk when the power failed, something later may be.
    """
    found: list[bytes] = []
    at = len(HEAD)
    while at + _RECORD.size <= len(data):
        size, check, number = _RECORD.unpack_from(data, at)
        text = data[at + _RECORD.size : at + _RECORD.size + size]
        following = after + len(found) + 1
        if len(text) < size or check != _check(number, text) or number > following:
            break
        if number == following:
            found.append(text)
        at += _RECORD.size + size
    return found


def _check(number: int, text: bytes) -> int:
    return crc32(text, crc32(number.to_bytes(8, "little")))


class Journal:
    """An empty journal. newest: the last record that the database has. synced: records must reach the disk.
    most: bytes of records.

    file: its ``newest`` is the number of the last record, new as soon as the record is there, even if the
    caller is interrupted. Raises StoreError.
    """

    def __init__(self, path: Path, newest: int, *, synced: bool, most: int = MOST) -> None:
        self._most = most
        self._synced = newest if synced else None  # the last record on the disk; None: no caller waits for that
        try:
            self._handle = path.open("ab", buffering=0)  # a file, which is closed by itself wherever Ctrl-C comes
            self._handle.truncate(0)
            self._handle.write(HEAD)
            if synced:
                sync_folder(path.parent)
        except OSError as error:
            raise StoreError(str(path), f"cannot be written: {error.strerror}") from error
        self.file = RecordFile(self._handle.fileno(), newest)

    def has_room(self, text: bytes) -> bool:
        """Whether one more record leaves it small enough."""
        return self.file.size + _RECORD.size + len(text) <= self._most

    def append(self, text: bytes) -> None:
        """Write a record with the next number. Raises OSError."""
        number = self.file.newest + 1
        self.file.append(number, _RECORD.pack(len(text), _check(number, text), number) + text)

    @property
    def is_synced(self) -> bool:
        """Whether the records are where ``synced`` wants them."""
        return self._synced is None or self._synced == self.file.newest

    def sync(self) -> None:
        """Return when the records are on the disk. Raises OSError."""
        newest = self.file.newest
        sync_file(self._handle.fileno())
        self._synced = newest

    def empty(self) -> None:
        """The database has all that the records say. Raises OSError."""
        if self.file.size:
            self._handle.truncate(len(HEAD))
            self.file.emptied()

    def close(self) -> None:
        """Close the file; another thread that still writes gets an error."""
        self.file.closed()
        self._handle.close()
