"""The compiled rooms of the core, their compiler flags, and the README as an index shows it; everything else is in
pyproject.toml."""

import ast
import contextlib
import functools
import gc
import glob
import inspect
import io
import itertools
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import Cython.Utils
from Cython.Build import cythonize
from Cython.Compiler import AutoDocTransforms
from Cython.Compiler.AutoDocTransforms import EmbedSignature
from Cython.Compiler.Nodes import CClassDefNode
from Cython.Compiler.StringEncoding import EncodedString
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ENGINE = Path("engine")  # installed as pyengine._engine.<wing>.<room>
RUNTIME = Path("pyengine/activemq/_runtime")

# A source distribution is what git keeps, and metadata needs no core: nothing is mirrored or translated for them.
COMPILES = not {"sdist", "egg_info", "dist_info"} & {*sys.argv[1:]}


def description() -> str:
    """The README with links that lead into the sources of this version, as an index has none of its files."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    (version,) = re.findall(r'^__version__ = "(.+)"$', Path("pyengine/__init__.py").read_text("utf-8"), re.MULTILINE)

    def absolute(found: re.Match[str]) -> str:
        mark, text, to = found.groups()
        to = to if not to.startswith("#") else f"README.md{to}"
        return f"{mark}[{text}]({project['urls']['Source']}/{'raw' if mark else 'blob'}/v{version}/{to})"

    return re.sub(r"(!?)\[([^]]*)\]\((?![a-z]+:)([^)]+)\)", absolute, Path("README.md").read_text("utf-8"))


def mirror(pattern: str, target: Path) -> None:
    """Make ``target`` hold the wings' files of one pattern, touching only what changed."""
    sources = {source.relative_to(ENGINE): source for source in ENGINE.rglob(pattern)}
    for stale in target.rglob(pattern):
        if stale.relative_to(target) not in sources and stale.parent != PACKAGE:  # its own files lie in no wing
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
if COMPILES:
    mirror("*.pxd", CIMPORT / PACKAGE)
    mirror("*.pyi", PACKAGE)
    mirror("*.py", PACKAGE)  # wings, and rooms that are not compiled
    wings = [PACKAGE / found.parent.relative_to(ENGINE) for found in ENGINE.rglob("__init__.py")]
    for package in (PACKAGE.parent, PACKAGE, *wings):
        if not (CIMPORT / package / "__init__.pxd").exists():  # a newer one would have a room compiled again
            (CIMPORT / package / "__init__.pxd").touch()

ROOMS = {  # qualified name -> source
    ".".join((package / room.relative_to(folder)).with_suffix("").parts): room
    for folder, package in ((ENGINE, PACKAGE), (RUNTIME, RUNTIME))
    for room in sorted(folder.rglob("*.pyx"))
}
# What Cython's memory views and functions need of it, compiled once instead of into every room.
SHARED = "pyengine._engine.cython_utilities"
for built in [*PACKAGE.rglob("*.so"), *RUNTIME.glob("*.so")]:  # a room that was moved would still be imported
    if ".".join((built.parent / built.name.partition(".")[0]).parts) not in {*ROOMS, SHARED}:
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

# Rooms that read configuration, parse, take snapshots or run once for a connection, a file or a batch. The C compiler
# takes less time for them at -O1; how they were found is in docs/internals.md ("What a fresh build costs").
SELDOM = """
activemq.client redelivery_policy session_commands
activemq.queue hold_reasons inspection snapshot
activemq.region dead_letter_rules virtual_destinations
activemq.topic abort_strategies durable_subscription eviction_strategies message_audit recovery_policies
columns arrow batch column_views key_range numpy_arrays plan planner test_planner
index access_predicates growing leaf_truths partitions pattern_automaton requirements
java regex regex_translation
message body
rocketmq.broker consumer_offsets long_polling queue_locks
rocketmq.client consume_concurrently consume_orderly consume_rates offset_table pull_gate rebalance
selector ast constant_bounds functions literal pitfalls
serialization codec renumbering
"""
seldom = {SHARED} | {
    f"pyengine._engine.{wing}.{room}" for wing, *rooms in map(str.split, SELDOM.strip().splitlines()) for room in rooms
}
if gone := seldom - {*ROOMS, SHARED}:
    raise SystemExit(f"setup.py: SELDOM names what is not a room: {', '.join(sorted(gone))}")


def flags_of(room: str) -> list[str]:
    """-O1 for rooms that are seldom run; the last level counts."""
    return [*flags, "-O1"] if room in seldom and sys.platform != "win32" else flags


# What Cython 3.3 makes of a list comprehension gives an item away twice where the list cannot grow for lack of memory.
FAULTY = "int result = PyList_Append(list, x);\n    Py_DECREF(x);\n"
MENDED = "int result = PyList_Append(list, x);\n    if (likely(result == 0)) Py_DECREF(x);\n"


def mended(extensions: list[Extension]) -> list[Extension]:
    """The same extensions, with what Cython has made of them."""
    for path in {Path(source) for extension in extensions for source in extension.sources}:
        if FAULTY in (text := path.read_text("utf-8")):
            path.write_text(text.replace(FAULTY, MENDED), "utf-8")
    return extensions


class Signatures(EmbedSignature):
    """Signatures that ``inspect.signature``, ``help`` and editors read: of functions as Cython writes them; of classes
    at the head of their docstring, where Python looks for them, unless one is there already."""

    def _embed_signature(self, signature: str, node_doc: str | None) -> str:
        name = signature.partition("(")[0]
        if node_doc and node_doc.startswith(f"{name}("):
            return inspect.cleandoc(node_doc)
        text: str = super()._embed_signature(signature, node_doc)
        return text

    def _fmt_expr(self, node: Any) -> str:
        """A default: a literal or an enum's number. What cannot be read without running code is ``...``."""
        text: str = super()._fmt_expr(node)
        compiled = isinstance(self.class_node, CClassDefNode)
        named = self.class_node.entry.type.scope.lookup(text) if compiled else None
        if named is not None and named.enum_int_value is not None:
            return str(named.enum_int_value)
        try:
            ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return "..."
        return text

    def visit_DefNode(self, node: Any) -> Any:  # noqa: N802
        if node.name not in ("__cinit__", "__init__") or not isinstance(self.class_node, CClassDefNode):
            return super().visit_DefNode(node)
        made, scope = self.class_node.entry.type, self.class_node.entry.type.scope
        takes_nothing = len(node.args) == 1 and not node.star_arg and not node.starstar_arg
        # A __cinit__ that takes nothing lets pass what others of the class and its base take.
        passes = node.name == "__cinit__" and takes_nothing and (made.base_type or scope.lookup_here("__init__"))
        if scope.doc is not None and not passes:
            head = "" if scope.doc.startswith(f"{self.class_name}(") else f"{self.constructor(node)}\n--\n\n"
            scope.doc = EncodedString(head + inspect.cleandoc(scope.doc))
        return node

    def constructor(self, node: Any) -> str:
        """The call of a class whose ``__cinit__`` or ``__init__`` this is; an unknown keyword, which is refused, is not
        shown."""
        self._setup_format()
        keywords, positional, rest = node.num_kwonly_args, node.num_posonly_args, node.starstar_arg
        shown: str = self._fmt_signature(
            None, self.class_name, node.args[1:], positional, len(node.args) - 1 - keywords - positional, node.star_arg,
            keywords, None if rest and rest.name == "unknown" else rest,
        )  # fmt: skip
        return shown


AutoDocTransforms.EmbedSignature = Signatures


find_versioned_file = Cython.Utils.find_versioned_file


@functools.cache
def has_versions(directory: str) -> bool:
    return bool(glob.glob(f"{glob.escape(directory)}/*.cython-*"))


def find_file(directory: str, filename: str, suffix: str) -> str | None:
    """Cython looks in each directory of sys.path for each import of a room, with a pattern for the versions of a file;
    a directory without any is not searched again."""
    if has_versions(directory):
        versioned: str | None = find_versioned_file(directory, filename, suffix)
        return versioned
    path = os.path.join(directory, filename + suffix)
    return path if os.path.exists(path) else None


Cython.Utils.find_versioned_file = find_file


@contextlib.contextmanager
def rare_collection() -> Iterator[None]:
    """Syntax trees live until their room is written: the collector finds nothing in them, and took a third of the time
    of Cython."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class Progress(io.TextIOBase):
    """Lets of Cython's lines pass those that say how far it is."""

    def write(self, text: str) -> int:
        if text.startswith("["):
            sys.__stdout__.write(f"{text.rstrip()}\n")
            sys.__stdout__.flush()
        return len(text)


class Build(build_ext):
    """Says how far it is: a line for each room that is compiled."""

    def build_extensions(self) -> None:
        self.numbers = itertools.count(1)
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        number = next(self.numbers)
        if self.force or newer_group([*ext.sources, *ext.depends], self.get_ext_fullpath(ext.name), "newer"):
            print(f"[{number:3}/{len(self.extensions)}] Compiling {ext.name}", flush=True)
        super().build_extension(ext)


debug = bool(os.environ.get("PYENGINE_DEBUG"))
jobs = int(os.environ.get("PYENGINE_BUILD_JOBS", "2"))
common = {
    "options": {"build_ext": {"parallel": jobs}},
    "long_description": description(),
    "long_description_content_type": "text/markdown",
}
# The other is an editable install whose core `build_ext --inplace` compiles, once.
if not COMPILES or os.environ.get("PYENGINE_UNCOMPILED"):
    setup(**common)
else:
    # The file of SHARED is made by cythonize.
    extensions = [
        Extension(
            name, [str(room)], include_dirs=[str(ENGINE)], extra_compile_args=flags_of(name), extra_link_args=links
        )
        for name, room in (ROOMS | {SHARED: Path("cython_utilities.c")}).items()
    ]
    with contextlib.redirect_stdout(Progress()), rare_collection():
        translated = cythonize(
            extensions,
            include_path=[str(CIMPORT)],
            build_dir="build/translated",
            nthreads=jobs,
            shared_utility_qualified_name=SHARED,
            compiler_directives={
                "language_level": 3,
                "auto_pickle": False,  # what is made for it looks at its state without bounds, and saves pointers
                "boundscheck": debug,
                "wraparound": debug,
                "embedsignature": True,
                "embedsignature.format": "clinic",
            },
        )
    setup(**common, cmdclass={"build_ext": Build}, ext_modules=mended(translated))
