"""Python that starts in a checkout imports the checkout, installed or not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pyengine"


@pytest.mark.parametrize("module", ["pyengine", "pyengine.activemq", "pyengine.errors", "pyengine.__main__"])
def test_a_checkout_that_is_not_compiled_says_so(tmp_path: Path, module: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "pyengine", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    command = [sys.executable, "-c", f"import {module}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: pyengine's core is not compiled for this Python in {tmp_path / 'pyengine'}, ")
    assert "make build" in last
