"""What make asks of a machine before it brings anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("make") is None, reason="needs make")
def test_a_python_without_headers_is_refused_before_anything_is_brought(tmp_path: Path) -> None:
    # The same interpreter from a home that has its library and no include.
    (tmp_path / "lib").symlink_to(Path(sys.base_prefix) / "lib")
    shutil.copy(MAKEFILE, tmp_path)
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    done = subprocess.run(
        ["make", "venv", f"PYTHON={python}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert f"{python} has no headers for that: install its dev package" in done.stderr, done.stderr
    assert not (tmp_path / ".venv").exists()
