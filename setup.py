"""The compiled rooms of the core and their compiler flags; everything else is in pyproject.toml."""

import os
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

FOLDERS = ("engine", "runtime")


def mirror(folder: str, pattern: str, target: Path) -> None:
    """Make ``target`` hold a folder's files of one pattern, touching only what changed."""
    target.mkdir(parents=True, exist_ok=True)
    for stale in target.glob(pattern):
        if stale.stem != "__init__" and not (Path(folder) / stale.name).exists():
            stale.unlink()
    for source in Path(folder).glob(pattern):
        copy = target / source.name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copy2(source, copy)


# Cython finds a .pxd by its qualified name, pyengine/_engine/queue.pxd, type checkers a .pyi; both lie in engine/.
CIMPORT = Path("build/cimport")
for folder in FOLDERS:
    mirror(folder, "*.pxd", CIMPORT / "pyengine" / f"_{folder}")
    mirror(folder, "*.pyi", Path(f"pyengine/_{folder}"))
for package in ("pyengine", *(f"pyengine/_{folder}" for folder in FOLDERS)):
    if not (CIMPORT / package / "__init__.pxd").exists():  # a newer one would have a room compiled again
        (CIMPORT / package / "__init__.pxd").touch()

if sys.platform == "win32":
    flags, links = ["/O2"], []
else:
    # -O3: the typed column loops vectorise only there; -ffp-contract=off: answers must not depend on fused operations.
    flags, links = ["-O3", "-g0", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unreachable-code"], ["-Wl,-s"]
    if sys.platform == "darwin":
        links = []
if os.environ.get("PYENGINE_DEBUG"):
    flags, links = ["-O1", "-g", "-ffp-contract=off"], []

debug = bool(os.environ.get("PYENGINE_DEBUG"))
jobs = int(os.environ.get("PYENGINE_BUILD_JOBS", "2"))
options = {"build_ext": {"parallel": jobs}}
if os.environ.get("PYENGINE_UNCOMPILED"):  # an editable install whose core `build_ext --inplace` compiles, once
    setup(options=options)
else:
    setup(
        options=options,
        ext_modules=cythonize(
            [
                Extension(
                    f"pyengine._{room.parent.name}.{room.stem}",
                    [str(room)],
                    include_dirs=["engine"],
                    extra_compile_args=flags,
                    extra_link_args=links,
                )
                for folder in FOLDERS
                for room in sorted(Path(folder).glob("*.pyx"))
            ],
            include_path=[str(CIMPORT)],
            build_dir="build/c",
            nthreads=jobs,
            quiet=True,
            compiler_directives={
                "language_level": 3,
                "auto_pickle": False,  # what is made for it looks at its state without bounds, and saves pointers
                "boundscheck": debug,
                "wraparound": debug,
                "embedsignature": True,
                "embedsignature.format": "python",
            },
        ),
    )
