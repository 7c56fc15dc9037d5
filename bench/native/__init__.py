"""native: loops.pyx, compiled on first use into build/native, for what only C can measure."""

from __future__ import annotations

import functools
import importlib.util
import sysconfig
from pathlib import Path
from types import ModuleType

from bench.contest import RivalMissingError

SOURCE = Path(__file__).with_name("loops.pyx")
ROOT = SOURCE.parents[2]
BUILD = ROOT / "build" / "native"
CONTRACTS = ROOT / "build" / "cimport"  # where setup.py lays the rooms' .pxd files
ENGINE = ROOT / "engine"  # where their headers are


@functools.cache
def loops() -> ModuleType:
    """The compiled module. Raises RivalMissingError where there is no Cython, no compiler or no build of pyengine."""
    target = BUILD / f"loops{sysconfig.get_config_var('EXT_SUFFIX')}"
    newest = max(path.stat().st_mtime for path in (SOURCE, *CONTRACTS.rglob("*.pxd")))
    if not target.exists() or target.stat().st_mtime < newest:
        _compile(target)
    spec = importlib.util.spec_from_file_location("loops", target)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(target: Path) -> None:
    try:
        from Cython.Build import cythonize
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext
    except ImportError as missing:
        raise RivalMissingError(f"bench/native is not compiled: {missing}") from missing
    options = ["-O3", "-g0", "-fno-strict-aliasing"]
    extension = Extension("loops", [str(SOURCE)], include_dirs=[str(ENGINE)], extra_compile_args=options)
    try:
        made = cythonize(
            [extension],
            include_path=[str(CONTRACTS)],
            build_dir=str(BUILD / "c"),
            quiet=True,
            force=True,
            compiler_directives={"language_level": 3},
        )
        command = build_ext(Distribution({"ext_modules": made}))
        command.build_lib, command.build_temp = str(target.parent), str(BUILD / "o")
        command.ensure_finalized()
        command.run()
    except Exception as failure:
        raise RivalMissingError(f"compiling bench/native failed: {failure}") from failure
