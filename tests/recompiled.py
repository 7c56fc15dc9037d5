"""A copy of the package, some of whose rooms are compiled with other flags."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import numpy

ROOT = Path(__file__).parents[1]


def recompile(copy: Path, rooms: Iterable[str], flags: Iterable[str]) -> None:
    """Make ``copy`` hold the package and its tests, with these rooms (``wire/stomp``) of the core compiled by gcc."""
    shutil.rmtree(copy, ignore_errors=True)
    for package in ("pyengine", "tests"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("data", "__pycache__"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    includes = [sysconfig.get_path("include"), numpy.get_include(), str(ROOT / "engine"), str(ROOT)]
    for room in rooms:
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-w", *flags, *(f"-I{path}" for path in includes),
             "-o", copy / f"pyengine/_engine/{room}{suffix}", ROOT / f"build/translated/engine/{room}.c"],
            check=True,
        )  # fmt: skip
