"""Room on the disk that a store keeps for the day on which the disk is full: it can be opened then, and drained."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

RESERVE = "broker.reserve"
SIZE = 8 << 20  # bytes: of what the journal and SQLite's own log may hold, once more


def release_if_full(folder: Path) -> bool:
    """Whether the disk is nearly full; the room is the store's then."""
    reserve = folder / RESERVE
    with suppress(OSError):
        size = reserve.stat().st_size if reserve.exists() else SIZE
        if _free(folder) < min(size // 2, SIZE // 4):
            reserve.unlink(missing_ok=True)
            return True
    return False


def keep(folder: Path, *, new: bool) -> None:
    """Take the room, if it is not taken: for a new store up to three quarters of what is free, later only of a disk
    that has plenty. Without it the store works as well, until the disk is full."""
    reserve = folder / RESERVE
    with suppress(OSError):
        if reserve.exists():
            return
        free = _free(folder)
        size = min(SIZE, free * 3 // 4) if new else SIZE if free > 4 * SIZE else 0
        if not size:
            return
        with reserve.open("wb") as file:
            try:
                _allocate(file.fileno(), size)
            except OSError:
                reserve.unlink()
                raise


def _allocate(handle: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        block = bytes(1 << 16)
        for _ in range(size // len(block)):
            os.write(handle, block)


def _free(folder: Path) -> int:
    """Bytes that are free on the folder's disk."""
    from shutil import disk_usage  # it takes time to import

    return disk_usage(folder).free
