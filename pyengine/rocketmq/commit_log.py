"""A broker's log: every stored message, one frame behind the other (engine room ``record``)."""

from __future__ import annotations

from typing import Protocol

from pyengine.errors import IllegalStateError


class CommitLog(Protocol):
    """Frames by position. ``append`` and ``delete_before`` are called under the broker's lock, ``flush`` without it."""

    start: int  # position of the first byte that is left
    end: int  # position of the next frame

    def append(self, frame: bytes) -> None:
        """Put a frame at :attr:`end`; it survives the end of the process."""

    def read(self, position: int) -> bytes:
        """The frame at a position."""

    def flush(self, position: int) -> None:
        """Return when everything before ``position`` is as safe as the log was asked to keep it."""

    def delete_before(self, position: int) -> None:
        """Let go of what lies before ``position``, as far as files allow."""

    def close(self) -> None:
        """Make everything safe and let go of the files."""


class MemoryLog:
    """A log that ends with its process."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self._frames: dict[int, bytes] = {}

    def append(self, frame: bytes) -> None:
        self._frames[self.end] = frame
        self.end += len(frame)

    def read(self, position: int) -> bytes:
        try:
            return self._frames[position]
        except KeyError:
            raise IllegalStateError(f"no frame at position {position} of the log") from None

    def flush(self, position: int) -> None:
        """Nothing to do."""

    def delete_before(self, position: int) -> None:
        for place in [place for place in self._frames if place < position]:
            del self._frames[place]
        self.start = position

    def close(self) -> None:
        """Nothing to do."""
