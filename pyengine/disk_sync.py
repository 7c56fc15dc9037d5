"""Writing to the disk so that a power failure loses nothing."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

if sys.platform == "win32":
    FULL_SYNC = None
else:
    import fcntl

    FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)

# Of file systems that know nothing of F_FULLFSYNC, as those of a network.
_UNKNOWN = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY}


def sync_file(descriptor: int) -> None:
    """Return when a file's bytes are on the disk. Raises OSError.

    macOS has fsync leave them in the memory of the drive; there F_FULLFSYNC does what it does elsewhere.
    """
    if sys.platform != "win32" and FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, FULL_SYNC)
        except OSError as error:
            if error.errno not in _UNKNOWN:
                raise
        else:
            return
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure, if the system can. Raises OSError."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
