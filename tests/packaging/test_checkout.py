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


def test_a_python_that_keeps_the_gil_off_is_refused() -> None:
    """As PYTHON_GIL=0 has a free-threaded one; wheels/README.md lists which of those ran."""
    code = "import sys; sys._is_gil_enabled = lambda: False; import pyengine"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: pyengine's core needs the GIL, and this Python keeps it off: ")
