"""What reaches the disk, where the system has a call of its own for that (macOS)."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pyengine import disk_sync

fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """A system with F_FULLFSYNC, 51 as on macOS."""
    made: list[tuple[str, int]] = []

    def noting(name: str) -> Any:
        return lambda descriptor: made.append((name, descriptor))

    monkeypatch.setattr(disk_sync, "FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, command: made.append((f"fcntl {command}", descriptor)))
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, noting(name), raising=False)
    return made


def test_a_full_sync_takes_the_place_of_fsync(calls: list[tuple[str, int]]) -> None:
    disk_sync.sync_file(7)
    assert calls == [("fcntl 51", 7)]


@pytest.mark.parametrize("unknown", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_that_has_none_is_asked_for_what_it_has(
    unknown: int, calls: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(descriptor: int, command: int) -> None:
        raise OSError(unknown, os.strerror(unknown))

    monkeypatch.setattr(fcntl, "fcntl", fails)
    disk_sync.sync_file(7)
    assert calls == [("fdatasync", 7)]


def test_a_disk_that_fails_is_told(calls: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(descriptor: int, command: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "fcntl", fails)
    with pytest.raises(OSError, match="Input/output error"):
        disk_sync.sync_file(7)
    assert calls == []


def test_elsewhere_the_bytes_are_synced_and_a_closed_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(b"here")
        file.flush()
        disk_sync.sync_file(file.fileno())
        descriptor = file.fileno()
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk_sync.sync_file(descriptor)
