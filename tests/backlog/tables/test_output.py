"""Results on the disk: whole, whoever else writes the same, and nothing of those who were killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyengine.backlog.tables import output
from pyengine.backlog.tables.output import remove_partials, replace_file

ROOT = Path(__file__).parents[3]


def test_two_attempts_of_one_task_write_no_file_together(tmp_path: Path) -> None:
    """As speculative execution has them, also in containers that give their processes the same numbers."""
    path = tmp_path / "part"

    def slow(partial: Path) -> None:
        with partial.open("w") as file:
            file.write("half, ")
        replace_file(path, lambda other: other.write_text("half, whole"))
        with partial.open("a") as file:
            file.write("whole")

    replace_file(path, slow)
    assert path.read_text() == "half, whole"
    assert [each.name for each in tmp_path.iterdir()] == ["part"]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds it after a power cut, as a run that goes on, takes it for done."""
    path = tmp_path / "part"
    seen: list[tuple[str, bool]] = []

    def file_synced(descriptor: int) -> None:
        seen.append((os.pread(descriptor, 9, 0).decode(), path.exists()))

    monkeypatch.setattr(output, "sync_file", file_synced)
    monkeypatch.setattr(output, "sync_folder", lambda folder: seen.append((folder.name, path.exists())))
    replace_file(path, lambda partial: partial.write_text("whole"))
    assert seen == [("whole", False), (tmp_path.name, True)]


def test_what_a_killed_process_left_is_taken_away(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom pyengine.backlog.tables.output import replace_file\n"
        "def write(path):\n    path.touch()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "replace_file(Path(sys.argv[1]), write)\n"
    )
    (tmp_path / "held").mkdir()
    for name in ("a", "held/b"):
        subprocess.run([sys.executable, "-c", code, tmp_path / name], cwd=ROOT, check=False)
    (tmp_path / "held" / "part").touch()
    assert len([each for each in tmp_path.rglob("*") if each.is_file()]) == 3
    remove_partials(tmp_path)
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["held", "part"]
