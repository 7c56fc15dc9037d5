"""The linters and type checkers, each as a test that prints what it found."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cython_lint.cython_lint import PYCODESTYLE_CODES

ROOT = Path(__file__).parents[2]
CORE, RUNTIME = ROOT / "engine", ROOT / "pyengine/activemq/_runtime"
ROOMS = {  # source -> qualified name
    room: ".".join((package, *room.relative_to(folder).with_suffix("").parts))
    for folder, package in ((CORE, "pyengine._engine"), (RUNTIME, "pyengine.activemq._runtime"))
    for room in sorted(folder.rglob("*.pyx"))
}


COMMANDS = {
    "ruff": "ruff check .",
    "format": "ruff format --check .",
    # cython-lint starts pycodestyle for each file; it gets them all at once, with the codes that suit Cython.
    "cython-lint": "cython-lint --no-pycodestyle engine pyengine/activemq/_runtime",
    "pycodestyle": f"pycodestyle --filename=*.pyx,*.pxd --ignore={','.join(sorted(PYCODESTYLE_CODES))} "
    "--max-line-length=120 engine pyengine/activemq/_runtime",
    "mypy": "mypy",
    "stubtest": "stubtest --ignore-missing-stub " + " ".join(ROOMS.values()),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_complaint(name: str) -> None:
    tools = Path(sys.executable).parent
    # Some of the tools start others of the same environment by name.
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    tool, *arguments = COMMANDS[name].split()
    command = [str(tools / tool), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{name}: {done.args}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: ROOMS[room])
def test_every_room_has_a_stub(room: Path) -> None:
    assert room.with_suffix(".pyi").exists()


def test_no_test_lies_in_another() -> None:
    # pytest does not see it there.
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for outer in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [
                    each.name for each in ast.walk(outer) if isinstance(each, ast.FunctionDef) and each is not outer
                ]
                assert [name for name in inner if name.startswith("test_")] == [], f"{path}: in {outer.name}"
