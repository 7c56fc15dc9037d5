"""What make asks of a machine before it brings anything, and what it brings."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = ROOT / "Makefile"


def imported_by(files: list[Path]) -> set[str]:
    """Modules of others that test modules import at their top, and the test modules that these import."""
    found: set[str] = set()
    seen: set[Path] = set()
    while files:
        file = files.pop()
        if file in seen or not file.exists():
            continue
        seen.add(file)
        for node in ast.parse(file.read_text("utf-8")).body:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}", *(f"{node.module}.{each.name}" for each in node.names)]
            for name in names:
                files.append(ROOT / f"{name.replace('.', '/')}.py")
                found.add(name.partition(".")[0])
    return found - {"tests", "bench", "pyengine"} - set(sys.stdlib_module_names)


def test_oldest_brings_what_its_tests_import() -> None:
    recipe = re.search(r"^oldest:.*\n((?:\t.*\n)+)", MAKEFILE.read_text("utf-8"), re.MULTILINE)
    assert recipe
    command = re.search(r"install -q ([\w ]+)\\\n\t+\$\$\(\$\(BIN\)/python (.+?)\)", recipe[1])
    rooms = re.search(r"-m pytest ((?:tests/\w+ )+)", recipe[1])
    assert command
    assert rooms
    oldest = subprocess.run([sys.executable, *command[2].split()], capture_output=True, text=True, cwd=ROOT, check=True)
    brought = {*command[1].split(), *(each.partition("==")[0] for each in oldest.stdout.split())}
    imported = imported_by([file for room in rooms[1].split() for file in (ROOT / room).rglob("*.py")])
    imported = {{"yaml": "pyyaml"}.get(name, name) for name in imported}
    assert "pytest" in imported
    assert imported - brought == set()


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
