"""The linters and type checkers, each as a test that prints what it found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.stem for path in (ROOT / "engine").glob("*.pyx"))


def check(tool: str, *arguments: str) -> None:
    """Run a tool of this environment in the checkout and fail with its output if it complains."""
    tools = Path(sys.executable).parent
    command = [str(tools / tool), *arguments]
    # Some of the tools start others of the same environment by name.
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


def test_ruff() -> None:
    check("ruff", "check", ".")


def test_ruff_format() -> None:
    check("ruff", "format", "--check", ".")


def test_cython_lint() -> None:
    check("cython-lint", "--max-line-length", "120", "engine")


def test_mypy_strict() -> None:
    check("mypy")


def test_stubs_match_the_built_modules() -> None:
    check("stubtest", "--ignore-missing-stub", *[f"pyengine._engine.{room}" for room in ROOMS])


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_a_stub(room: str) -> None:
    assert (ROOT / "engine" / f"{room}.pyi").exists()
