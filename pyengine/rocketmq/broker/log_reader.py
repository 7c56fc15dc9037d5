"""The log of a named broker, read while the broker may be running: nothing is locked and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine.errors import InvalidSourceError
from pyengine.rocketmq.broker.commit_log import Frame, damaged, scanned, segment_files
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.stored_message import message_of


class LogReader:
    """directory: what the Broker was given; name: the broker whose log is read.

    Positions are bytes of the log and always begin a frame. Raises InvalidSourceError if there is no log.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.folder = directory / name / "log"
        if not self.folder.is_dir():
            raise InvalidSourceError(str(self.folder), "there is no log of a broker", "give the Broker's directory")

    def start(self) -> int:
        """The first position that is left."""
        files = segment_files(self.folder)
        return files[0][0] if files else 0

    def end(self, after: int = 0) -> int:
        """Behind the last whole frame. after: a position that is known to begin a frame, or the end."""
        files = segment_files(self.folder)
        if not files:
            return after
        _, _, end = self._read(files[-1], max(after, files[-1][0]), None)
        return end

    def parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """``start`` to ``end``, cut where the log's files are. Raises InvalidSourceError if ``start`` is gone."""
        return [(low, high) for low, high, _ in self._pieces(start, end)]

    def frames(self, start: int, end: int) -> Iterator[tuple[Frame, bytes]]:
        """Every frame from ``start`` to ``end`` and its bytes, file by file."""
        for low, high, file in self._pieces(start, end):
            data, found, reached = self._read(file, low, high)
            if reached < high:
                raise damaged(file[1], reached)
            for frame in found:
                place = frame[1] - low
                yield frame, data[place : place + frame[2]]

    def messages(self, start: int, end: int) -> Iterator[MessageExt]:
        """The messages that were stored from ``start`` to ``end``, those that wait for their delay too."""
        for frame, data in self.frames(start, end):
            if frame[0] != record.RecordKind.DELETED:
                yield message_of(data, self.name)

    def smallest_offsets(self, start: int, end: int) -> dict[tuple[str, int], int]:
        """(topic, queue id) -> the smallest offset that is left, for queues of which messages were deleted."""
        found: dict[tuple[str, int], int] = {}
        for frame, _ in self.frames(start, end):
            if frame[0] == record.RecordKind.DELETED:
                found[frame[3], frame[4]] = max(frame[5], found.get((frame[3], frame[4]), 0))
        return found

    def _pieces(self, start: int, end: int) -> list[tuple[int, int, tuple[int, Path]]]:
        """From, to, and the file with its first position."""
        if start >= end:
            return []
        files = segment_files(self.folder)
        if not files or start < files[0][0]:
            raise InvalidSourceError(
                str(self.folder), f"position {start} was deleted, the log begins at {files[0][0] if files else 0}"
            )
        ends = [*(begin for begin, _ in files[1:]), end]
        return [
            (max(file[0], start), min(upto, end), file)
            for file, upto in zip(files, ends, strict=True)
            if upto > start and file[0] < end
        ]

    def _read(self, file: tuple[int, Path], start: int, end: int | None) -> tuple[bytes, list[Frame], int]:
        """A piece of a file, its frames, and where the last whole one ends."""
        begin, path = file
        with path.open("rb") as log:
            log.seek(start - begin)
            data = log.read(-1 if end is None else end - start)
        frames, reached = scanned(path, data, start)
        return data, frames, reached


def brokers_of(directory: Path) -> list[str]:
    """The named brokers that have a log in a Broker's directory. Raises InvalidSourceError if there is none."""
    found = sorted(path.parent.name for path in directory.glob("*/log") if path.is_dir())
    if not found:
        raise InvalidSourceError(str(directory), "no broker has a log here", "give the Broker's directory")
    return found
