"""floor: bench/c/floor.c, built with the compiler that Python names: what a call costs at least, and C by hand."""

from __future__ import annotations

import functools
import importlib.util
import shlex
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

from bench.contest import RivalMissingError

SOURCE = Path(__file__).parent / "c" / "floor.c"
BUILD = SOURCE.parents[2] / "build" / "bench"


@functools.cache
def floor() -> ModuleType:
    """nothing(m), s1(m), s2(m), s1_of_all(list), s2_of_all(list); RivalMissingError where there is no C compiler."""
    target = BUILD / f"floor{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not target.exists() or target.stat().st_mtime < SOURCE.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
        shared = ["-dynamiclib", "-undefined", "dynamic_lookup"] if sysconfig.get_platform().startswith("macos") else []
        command = [*compiler, "-O3", "-fPIC", *(shared or ["-shared"]), f"-I{sysconfig.get_path('include')}"]
        try:
            subprocess.run([*command, str(SOURCE), "-o", str(target)], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as failure:
            raise RivalMissingError(f"compiling {SOURCE.name} failed: {failure}") from failure
    spec = importlib.util.spec_from_file_location("floor", target)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
