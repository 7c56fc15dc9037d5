"""The compiled rooms of the core and their compiler flags; everything else is in pyproject.toml."""

import os
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ENGINE = Path("engine")  # installed as pyengine._engine.<wing>.<room>
RUNTIME = Path("pyengine/activemq/_runtime")


def mirror(pattern: str, target: Path) -> None:
    """Make ``target`` hold the wings' files of one pattern, touching only what changed."""
    sources = {source.relative_to(ENGINE): source for source in ENGINE.rglob(pattern)}
    for stale in target.rglob(pattern):
        if stale.relative_to(target) not in sources and stale.parent != PACKAGE:  # what lies there is no wing's
            stale.unlink()
    for name, source in sources.items():
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copy2(source, copy)


# Cython finds a .pxd by its qualified name, pyengine/_engine/java/value.pxd; type checkers find a .pyi, and Python what
# is not compiled, in the package.
CIMPORT = Path("build/cimport")
PACKAGE = Path("pyengine/_engine")
mirror("*.pxd", CIMPORT / PACKAGE)
mirror("*.pyi", PACKAGE)
mirror("*.py", PACKAGE)
wings = [PACKAGE / found.parent.relative_to(ENGINE) for found in ENGINE.rglob("__init__.py")]
for package in (PACKAGE.parent, PACKAGE, *wings):
    if not (CIMPORT / package / "__init__.pxd").exists():  # a newer one would have a room compiled again
        (CIMPORT / package / "__init__.pxd").touch()

ROOMS = {  # qualified name -> source
    ".".join((package / room.relative_to(folder)).with_suffix("").parts): room
    for folder, package in ((ENGINE, PACKAGE), (RUNTIME, RUNTIME))
    for room in sorted(folder.rglob("*.pyx"))
}
for built in [*PACKAGE.rglob("*.so"), *RUNTIME.glob("*.so")]:  # a room that was moved would still be imported
    if ".".join((built.parent / built.name.partition(".")[0]).parts) not in ROOMS:
        built.unlink()

if sys.platform == "win32":
    flags, links = ["/O2"], []
else:
    # -O3: the typed column loops vectorise only there; -ffp-contract=off: answers must not depend on fused operations.
    flags, links = ["-O3", "-g0", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unreachable-code"], ["-Wl,-s"]
    if sys.platform == "darwin":
        links = []
if os.environ.get("PYENGINE_DEBUG"):
    flags, links = ["-O1", "-g", "-ffp-contract=off"], []

# What Cython 3.3 makes of a list comprehension gives an item away twice where the list cannot grow for lack of memory.
FAULTY = "int result = PyList_Append(list, x);\n    Py_DECREF(x);\n"
MENDED = "int result = PyList_Append(list, x);\n    if (likely(result == 0)) Py_DECREF(x);\n"


def mended(extensions: list[Extension]) -> list[Extension]:
    """The same extensions, with what Cython has made of them."""
    for path in {Path(source) for extension in extensions for source in extension.sources}:
        if FAULTY in (text := path.read_text("utf-8")):
            path.write_text(text.replace(FAULTY, MENDED), "utf-8")
    return extensions


debug = bool(os.environ.get("PYENGINE_DEBUG"))
jobs = int(os.environ.get("PYENGINE_BUILD_JOBS", "2"))
options = {"build_ext": {"parallel": jobs}}
if os.environ.get("PYENGINE_UNCOMPILED"):  # an editable install whose core `build_ext --inplace` compiles, once
    setup(options=options)
else:
    setup(
        options=options,
        ext_modules=mended(
            cythonize(
                [
                    Extension(
                        name,
                        [str(room)],
                        include_dirs=[str(ENGINE)],
                        extra_compile_args=flags,
                        extra_link_args=links,
                    )
                    for name, room in ROOMS.items()
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
            )
        ),
    )
