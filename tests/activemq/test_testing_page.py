"""docs/testing.md is test modules that pass."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.house.examples import blocks

PLUGIN = "pyengine_pytest"
FORMER = "pyengine.activemq.pytest_plugin"
ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]


def test_the_page_is_a_test_that_passes(pytester: pytest.Pytester) -> None:
    pages = blocks("docs/testing.md", "python")
    pytester.makepyfile(**{f"test_{number}": block for number, block in enumerate(pages)})
    installed = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    pytester.runpytest(*(() if installed else ("-p", PLUGIN))).assert_outcomes(passed=5)


def test_the_former_name_of_the_plugin_has_the_same_fixtures() -> None:
    former, plugin = import_module(FORMER), import_module(PLUGIN)
    assert former.__all__ == sorted(name for name in vars(plugin) if name.startswith("activemq_"))
    assert all(getattr(former, name) is getattr(plugin, name) for name in former.__all__)


def test_a_test_run_that_uses_no_fixture_imports_nothing_of_the_package(tmp_path: Path) -> None:
    test = tmp_path / "test_other.py"
    test.write_text("import sys\ndef test_other(): assert not {'pyengine', 'numpy'} & set(sys.modules)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", str(test)]
    # As installed the environment's other plugins are none of ours.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
