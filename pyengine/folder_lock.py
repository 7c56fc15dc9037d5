"""A folder for one user at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LOCK = "lock"

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from error

    def _release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FolderLock:
    """Holds a folder by its file ``lock``, against other processes and this one, until ``release`` or the process ends.

    Raises BlockingIOError while another holds it, and for a folder that its last holder has just removed; OSError for a
    folder that cannot be written or locked.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        self._process = os.getpid()
        # A file, which releases the lock when it is collected, also if Ctrl-C comes before the caller has it.
        self._file = path.open("ab", buffering=0)
        try:
            _take(self._file.fileno())
            if not path.exists() or not os.path.samestat(os.fstat(self._file.fileno()), path.stat()):
                raise BlockingIOError(f"{path} was removed")
        except BaseException:
            self._file.close()
            raise

    @property
    def is_ours(self) -> bool:
        """False in a process that was forked from the one that took the folder."""
        return os.getpid() == self._process

    def release(self) -> None:
        """Let go of the folder, also where a process that was just forked has not closed its copy yet. Harmless the
        second time.
        """
        if not self._file.closed:
            _release(self._file.fileno())
            self._file.close()
