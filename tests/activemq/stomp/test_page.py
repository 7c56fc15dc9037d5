"""docs/stomp.md: its Python is a test module that passes; so are its JavaScript and Go, which ``make interop`` runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.activemq.stomp.real import BUILD
from tests.house.examples import ROOT, blocks
from tests.interop import INTEROP

HERE = Path(__file__).parent
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    "PYTHONPATH": str(ROOT),
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


def test_the_python_of_the_page_is_tests_that_pass(tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text("\n".join(blocks("docs/stomp.md", "python")), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pyengine_pytest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=ENVIRONMENT)
    assert "3 passed" in done.stdout, done.stdout


@INTEROP
@pytest.mark.skipif(shutil.which("npm") is None, reason="no npm on PATH")
def test_the_javascript_of_the_page_is_a_test_that_passes() -> None:
    folder = BUILD / "js"
    shutil.copytree(HERE / "js", folder, dirs_exist_ok=True)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=600)
    (folder / "page.test.mjs").write_text(blocks("docs/stomp.md", "js")[0], "utf-8")
    done = subprocess.run(
        ["node", "--test", "page.test.mjs"], cwd=folder, capture_output=True, text=True, check=False, env=ENVIRONMENT,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@INTEROP
@pytest.mark.skipif(shutil.which("go") is None, reason="no go on PATH")
def test_the_go_of_the_page_is_a_test_that_passes() -> None:
    folder = BUILD / "page"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copy(HERE / "go" / name, folder)
    (folder / "page_test.go").write_text(blocks("docs/stomp.md", "go")[0], "utf-8")
    done = subprocess.run(
        ["go", "test", "./..."], cwd=folder, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
