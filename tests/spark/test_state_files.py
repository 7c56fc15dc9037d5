"""What is on the disk when a stream's folder loses its power."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from pyengine.errors import OutputError, SnapshotError
from pyengine.spark.state_files import Progress, StateFolder


def start() -> Progress:
    return Progress(-1, 1, "topology", (), b"columns", (-1,))


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_names_are_on_the_disk_before_what_they_replace_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be synced keeps the older files: one of the two is there, whatever a power cut leaves."""
    folder = StateFolder(str(tmp_path))
    for batch in range(2):
        folder.write_shard(0, batch, batch - 1, b"state")
        folder.prepare_progress(start().with_batch(batch, [0]))
        folder.write_progress(batch, "deliveries")
    synced = os.fsync

    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        synced(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutputError, match="Input/output error"):
        folder.write_shard(0, 2, 1, b"state")
    assert {f"{batch:020d}.state" for batch in range(2)} <= names(tmp_path / "shard-00000")
    with pytest.raises(OutputError, match="Input/output error"):
        folder.prepare_progress(start().with_batch(2, [0]))
    with pytest.raises(OutputError, match="Input/output error"):
        folder.write_progress(2, "deliveries")
    assert f"progress-{1:020d}" in names(tmp_path)
    monkeypatch.undo()
    folder.write_shard(0, 2, 1, b"state")
    folder.prepare_progress(start().with_batch(2, [0]))
    folder.write_progress(2, "deliveries")
    assert names(tmp_path) == {"shard-00000", f"progress-{2:020d}"}
    assert names(tmp_path / "shard-00000") == {f"{batch:020d}.state" for batch in (1, 2)}
    found = folder.read_progress()
    assert found is not None
    assert (found.batch, found.generations) == (2, (2,))


def test_what_killed_writers_left_goes_with_what_they_wrote(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path))
    left = []
    for batch in range(4):
        # Hidden, as a kill before the rename leaves them.
        left += [tmp_path / "shard-00000" / f".{batch:020d}.state.x", tmp_path / f".coming-{batch:020d}.x"]
        folder.write_shard(0, batch, batch - 1, b"state")
        for path in left[-2:]:
            path.write_bytes(b"st")
        folder.prepare_progress(start().with_batch(batch, [0]))
        folder.write_progress(batch, "deliveries")
    assert [path.name for path in left if path.exists()] == [
        f".{2:020d}.state.x", f".{3:020d}.state.x", f".coming-{3:020d}.x"
    ]  # fmt: skip
    assert names(tmp_path / "shard-00000") == {f"{each:020d}.state" for each in (2, 3)} | {
        path.name for path in left if path.parent != tmp_path and path.exists()
    }
    assert names(tmp_path) == {"shard-00000", f"progress-{3:020d}", f".coming-{3:020d}.x"}


def test_a_micro_batch_begins_where_the_state_stands(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path))
    assert folder.before(start(), 0) == start()
    for batch in range(2):
        folder.write_shard(0, batch, batch - 1, b"state")
        folder.prepare_progress(start().with_batch(batch, [0]))
        folder.write_progress(batch, "deliveries")
    assert folder.before(start(), 1) is None
    assert folder.before(start(), 2) == start().with_batch(1, [0])
    for batch in (0, 3):
        with pytest.raises(SnapshotError, match=f"stands behind micro-batch 1, and the stream begins {batch};"):
            folder.before(start(), batch)
    # An attempt that was overtaken says its end once more, or leaves what it would have said.
    folder.write_progress(1, "deliveries")
    first = start().with_batch(1, [0])
    folder.prepare_progress(first)
    folder.prepare_progress(first.with_batch(2, []))
    folder.write_progress(2, "deliveries")
    assert names(tmp_path) == {"shard-00000", f"progress-{2:020d}"}
    assert folder.before(start(), 3) == Progress(2, 1, "topology", (), b"columns", (1,))
