"""A broker's log: every stored message, one frame behind the other (engine room ``record``)."""

from __future__ import annotations

import errno
import os
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeAlias

from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine.dataclass import dataclass
from pyengine.disk_sync import sync_file, sync_folder
from pyengine.errors import IllegalStateError, InvalidSourceError
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

SEGMENT_BYTES = 64 * 1024 * 1024

# (kind, position, size, topic, queue id, queue offset, store time, tags code, delivers), see record.scan.
Frame: TypeAlias = tuple[int, int, int, str, int, int, int, int, tuple[int, int] | None]


class CommitLog(Protocol):
    """Frames by position. ``append``, ``forget`` and ``delete_before`` are called under the broker's lock, ``flush``
    without it."""

    forgets: bool  # whether ``forget`` gives memory back
    start: int  # position of the first byte that is left
    end: int  # position of the next frame

    def frames(self) -> Iterator[Frame]:
        """Every frame that is left, in order; called once, before anything is appended."""

    def append(self, frame: bytes) -> None:
        """Put a frame at :attr:`end`; it survives the end of the process. OSError if it cannot be written."""

    def extend(self, frames: Iterable[bytes]) -> None:
        """The same with several, one behind the other. If it raises, those before :attr:`end` are there."""

    def read(self, position: int, size: int = 512) -> bytes:
        """The frame at a position. size: how large it may be; a guess."""

    def flush(self, position: int) -> bool:
        """Return when everything before ``position`` is as safe as the log was asked to keep it; False: it is not."""

    def forget(self, positions: Iterable[int]) -> None:
        """Release single frames that no reader asks for any more. A file keeps them until ``delete_before``."""

    def delete_before(self, position: int) -> None:
        """Let go of what lies before ``position``, as far as files allow."""

    def sync(self) -> bool:
        """Bring everything to the disk; False: the disk failed."""

    def close(self) -> None:
        """Bring everything to the disk and close the files."""


class MemoryLog:
    """A log that ends with its process."""

    forgets = True

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self._frames: dict[int, bytes] = {}

    def frames(self) -> Iterator[Frame]:
        """None: it begins empty."""
        return iter(())

    def append(self, frame: bytes) -> None:
        self._frames[self.end] = frame
        self.end += len(frame)

    def extend(self, frames: Iterable[bytes]) -> None:
        kept, end = self._frames, self.end
        for frame in frames:
            kept[end] = frame
            end += len(frame)
        self.end = end

    def read(self, position: int, size: int = 512) -> bytes:
        try:
            return self._frames[position]
        except KeyError:
            raise IllegalStateError(f"no frame at position {position} of the log") from None

    def flush(self, position: int) -> bool:
        """Nothing to do."""
        return True

    def forget(self, positions: Iterable[int]) -> None:
        for position in positions:
            self._frames.pop(position, None)

    def delete_before(self, position: int) -> None:
        for place in [place for place in self._frames if place < position]:
            del self._frames[place]
        self.start = position

    def sync(self) -> bool:
        """Nothing to do."""
        return True

    def close(self) -> None:
        """Nothing to do."""


def segment_files(folder: Path) -> list[tuple[int, Path]]:
    """The files of a log in order, each with the position of its first byte."""
    return sorted((int(path.name), path) for path in folder.iterdir() if path.name.isdecimal() and len(path.name) == 20)


def scanned(path: Path, data: bytes, start: int) -> tuple[list[Frame], int]:
    """The whole frames in a piece of a log's file, which begins at position ``start``, and where they end.

    Behind them may be a frame that is not written to its end. Raises InvalidSourceError if a whole one follows.
    """
    frames, end = record.scan(data, start)
    if end < start + len(data) and record.frame_follows(data, end - start):
        raise damaged(path, end)
    return frames, end


def damaged(path: Path, position: int) -> InvalidSourceError:
    """What is raised for a log's file in which ``position`` begins no whole frame, though frames follow."""
    return InvalidSourceError(
        str(path),
        f"damaged at byte {position - int(path.name)}, before its end",
        "restore the file from a copy, or move the folder away and start anew",
    )


@dataclass(slots=True)
class _Segment:
    """One file of the log. start: position of its first byte."""

    start: int
    path: Path
    descriptor: int


class FileLog:
    """A log in files of about ``segment_bytes``, each named by the position of its first byte, in ``folder``.

    A frame is written when ``append`` returns, so that the end of the process loses nothing. every_flush: ``flush``
    waits for the disk too, one wait for all threads that ask at the same time (RocketMQ's SYNC_FLUSH with group
    commit); otherwise the owner of the log calls ``sync`` now and then (ASYNC_FLUSH). If the disk fails at that, the
    system may take what it has not written for written, so nothing is appended any more; what is there can be read. So
    it is where the log's last file is found deleted or moved then: a process that opens the folder would not see what
    follows.

    Opening reads all frames (:meth:`frames`) and cuts what a crash left half written off the end. Raises
    InvalidSourceError for damage elsewhere: frames that were confirmed are not thrown away in silence. OSError if
    the files cannot be opened, read or cut.
    """

    forgets = False

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES, every_flush: bool = False) -> None:
        self.folder = folder
        self.cut = 0  # bytes that opening cut off the end
        self._segment_bytes = segment_bytes
        self._every_flush = every_flush
        self._disk = threading.Lock()  # held by the thread that brings the log to the disk
        self._closed = False
        self._failure: OSError | None = None  # why the log could not be brought to the disk
        self._leaving: list[Path] = []  # files whose frames are gone, in order
        folder.mkdir(parents=True, exist_ok=True)
        self._segments: list[_Segment] = []
        self.start = self.end = self._synced = 0
        try:
            for start, path in segment_files(folder):
                self._segments.append(_Segment(start, path, os.open(path, os.O_RDWR | _BINARY)))
            if not self._segments:
                self._segments.append(self._make(0))
        except BaseException:
            self.close()
            raise
        self.start = self._segments[0].start
        self.end = self._segments[-1].start + os.fstat(self._segments[-1].descriptor).st_size
        self._synced = self.end

    def frames(self) -> Iterator[Frame]:
        """Every frame that is left, in order. Called once, before anything is appended."""
        for number, segment in enumerate(self._segments):
            data = segment.path.read_bytes()
            found, end = scanned(segment.path, data, segment.start)
            last = number + 1 == len(self._segments)
            whole = end == segment.start + len(data)
            if not last and not (whole and end == self._segments[number + 1].start):
                raise damaged(segment.path, end)
            if not whole:
                self.cut = segment.start + len(data) - end
                os.ftruncate(segment.descriptor, end - segment.start)
                sync_file(segment.descriptor)
                self.end = self._synced = end
            yield from found

    def extend(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            self.append(frame)

    def append(self, frame: bytes) -> None:
        segment = self._segments[-1]
        if self._failure is None and self.end - segment.start >= self._segment_bytes:
            # What Ctrl-C left of a longer frame behind the last one is damage in a file that is not the last.
            os.ftruncate(segment.descriptor, self.end - segment.start)
            if self.sync():
                segment = self._make(self.end)
                self._segments.append(segment)
        if self._failure is not None:
            raise OSError(errno.EIO, f"the disk failed: {self._failure}; open the folder anew")
        place = self.end - segment.start
        written = 0
        try:
            while written < len(frame):
                written += _write_at(segment.descriptor, frame[written:] if written else frame, place + written)
        except OSError:
            try:
                os.ftruncate(segment.descriptor, place)
            except OSError as error:
                self._fail(error)
            raise
        self.end += len(frame)

    def read(self, position: int, size: int = 512) -> bytes:
        if self._closed:
            # Its descriptors may be those of other files by now.
            raise IllegalStateError(f"the log in {self.folder} is closed")
        number = bisect_right(self._segments, position, key=lambda segment: segment.start) - 1
        if number < 0 or not self.start <= position < self.end:
            raise IllegalStateError(f"no frame at position {position} of the log")
        segment = self._segments[number]
        place = position - segment.start
        try:
            data = _read_at(segment.descriptor, size, place)
            # Never more than there is: a client names the position of what it sends back.
            wanted = min(record.whole_size(data), self.end - position)
            if wanted > len(data):
                data = _read_at(segment.descriptor, wanted, place)
        except OSError as error:
            raise InvalidSourceError(str(segment.path), f"cannot be read: {error}") from error
        frame = data[:wanted]
        if not record.is_whole(frame):
            raise IllegalStateError(f"no frame at position {position} of the log")
        return frame

    def flush(self, position: int) -> bool:
        return not self._every_flush or self._synced >= position or self._sync_to(position)

    def sync(self) -> bool:
        return self._sync_to(self.end)

    def _sync_to(self, position: int) -> bool:
        """One thread brings the file to the disk for all that wait."""
        with self._disk:
            if self._synced < position and self._failure is None and not self._closed:
                target, last = self.end, self._segments[-1]
                try:
                    sync_file(last.descriptor)
                    if not os.path.samestat(os.stat(last.path), os.fstat(last.descriptor)):
                        raise FileNotFoundError(errno.ENOENT, "it is another file now", str(last.path))
                    self._synced = target
                except OSError as error:
                    self._fail(error)
            return self._synced >= position

    def _fail(self, error: OSError) -> None:
        self._failure = error
        log.error(
            "the log in %s cannot be brought to the disk; nothing more is written to it", self.folder, exc_info=error
        )

    def forget(self, positions: Iterable[int]) -> None:
        """Nothing: the frames go with their file."""

    def delete_before(self, position: int) -> None:
        while len(self._segments) > 1 and self._segments[1].start <= position:
            gone = self._segments.pop(0)
            self.start = self._segments[0].start
            self._leaving.append(gone.path)
            os.close(gone.descriptor)
        # In order: a file that is missing between others is damage. What cannot be deleted now is deleted next time.
        try:
            while self._leaving:
                self._leaving[0].unlink(missing_ok=True)
                del self._leaving[0]
            sync_folder(self.folder)
        except OSError as error:
            log.error("delete files of the log in %s exception", self.folder, exc_info=error)

    def close(self) -> None:
        self.sync()
        with self._disk:
            if self._closed:
                return
            self._closed = True
            for segment in self._segments:
                os.close(segment.descriptor)

    def _make(self, start: int) -> _Segment:
        path = self.folder / f"{start:020}"
        # The log ends before it: a file that is there was left by an interrupt, and nothing in it was confirmed.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _BINARY, 0o644)
        try:
            sync_folder(self.folder)
        except BaseException:
            os.close(descriptor)
            path.unlink()
            raise
        return _Segment(start, path, descriptor)


_BINARY = getattr(os, "O_BINARY", 0)

if sys.platform == "win32":

    def _read_at(descriptor: int, size: int, place: int) -> bytes:
        with _seeking:
            os.lseek(descriptor, place, os.SEEK_SET)
            return os.read(descriptor, size)

    def _write_at(descriptor: int, data: bytes, place: int) -> int:
        with _seeking:
            os.lseek(descriptor, place, os.SEEK_SET)
            return os.write(descriptor, data)

    _seeking = threading.Lock()
else:

    def _read_at(descriptor: int, size: int, place: int) -> bytes:
        return os.pread(descriptor, size, place)

    def _write_at(descriptor: int, data: bytes, place: int) -> int:
        return os.pwrite(descriptor, data, place)
