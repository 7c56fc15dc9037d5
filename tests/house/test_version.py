"""The version stands in one place, pyengine/__init__.py; what is installed has it, and so has the command line."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pyengine


def test_what_is_installed_has_the_version_of_the_sources() -> None:
    assert version("pyengine-dispatch") == pyengine.__version__


def test_the_command_line_prints_it() -> None:
    done = subprocess.run([sys.executable, "-m", "pyengine", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"pyengine {pyengine.__version__}\n"


def test_every_error_can_be_imported_from_the_top() -> None:
    from pyengine import errors

    classes = {name for name, value in vars(errors).items() if isinstance(value, type) and not name.startswith("_")}
    own = {name for name in classes if getattr(errors, name).__module__ == "pyengine.errors"}
    assert own - {*pyengine.__all__} == set()
