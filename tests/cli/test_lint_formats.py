"""lint for code hosts: SARIF, GitHub's annotations, rules by name, the pre-commit hook and the action."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pyengine import __version__
from pyengine.backlog.findings import Finding, Severity
from pyengine.backlog.lint.codes import CODES
from pyengine.cli import annotations
from pyengine.cli.app import app
from pyengine.errors import EXTRAS
from tests.backlog.rule_codes import ROOMS, codes_of
from tests.house.examples import ROOT

FLIGHTS = "examples/flights/flights.toml"
TRAP = (
    '<broker xmlns="http://activemq.apache.org/schema/core">\n<destinationPolicy><policyMap><policyEntries>\n'
    '<policyEntry queue="orders.>" strictOrderDispatch="true"/>\n</policyEntries></policyMap></destinationPolicy>\n'
    "</broker>\n"
)

# SARIF 2.1.0's schema (OASIS), the objects that are written: property -> kind, with ! for those it requires.
SARIF = {
    "log": {"$schema": "uri", "version!": "2.1.0", "runs!": ["run"]},
    "run": {"tool!": "tool", "results": ["result"], "invocations": ["invocation"]},
    "tool": {"driver!": "component"},
    "component": {"name!": "text", "version": "text", "rules": ["rule"]},
    "rule": {"id!": "text", "shortDescription": "message"},
    "result": {
        "ruleId": "text", "ruleIndex": "index", "level": "level", "message!": "message", "locations": ["location"],
    },
    "message": {"text!": "text"},
    "location": {"physicalLocation": "physical", "logicalLocations": ["logical"]},
    "physical": {"artifactLocation!": "artifact", "region": "region"},
    "artifact": {"uri!": "uri"},
    "region": {"startLine!": "line"},
    "logical": {"fullyQualifiedName": "text"},
    "invocation": {"executionSuccessful!": "bool", "toolExecutionNotifications": ["notification"]},
    "notification": {"level": "level", "message!": "message", "locations": ["location"]},
}  # fmt: skip
SCALARS = {
    "text": lambda value: isinstance(value, str) and value,
    "uri": lambda value: re.fullmatch(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+", value),
    "level": lambda value: value in ("none", "note", "warning", "error"),
    "index": lambda value: type(value) is int and value >= -1,
    "line": lambda value: type(value) is int and value >= 1,
    "bool": lambda value: type(value) is bool,
    "2.1.0": lambda value: value == "2.1.0",
}


def check(value: Any, kind: Any, place: str = "$") -> None:
    """Hold a value to its part of the schema."""
    if isinstance(kind, list):
        assert isinstance(value, list), place
        for number, each in enumerate(value):
            check(each, kind[0], f"{place}[{number}]")
    elif kind in SCALARS:
        assert SCALARS[kind](value), (place, value)
    else:
        known = {name.rstrip("!"): inner for name, inner in SARIF[kind].items()}
        assert value.keys() <= known.keys(), place
        assert {name[:-1] for name in SARIF[kind] if name.endswith("!")} <= value.keys(), place
        for name, each in value.items():
            check(each, known[name], f"{place}.{name}")


def lint(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["lint", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_sarif_is_what_the_schema_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    status, printed, _ = lint(FLIGHTS, "README.md", "--format", "sarif")
    log = json.loads(printed)
    assert status == 2
    check(log, "log")
    (run,) = log["runs"]
    assert run["tool"]["driver"]["version"] == __version__
    assert [result["level"] for result in run["results"]][:3] == ["error", "error", "warning"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    first = run["results"][0]["locations"][0]
    assert first["physicalLocation"]["artifactLocation"]["uri"] == FLIGHTS
    lines = (ROOT / FLIGHTS).read_text("utf-8").splitlines()
    assert "flights.LGA" in lines[first["physicalLocation"]["region"]["startLine"] - 1]
    assert first["logicalLocations"] == [{"fullyQualifiedName": "queue flights.LGA"}]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "README.md" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_annotations_are_githubs_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "activemq.xml").write_text('<!-- queue="orders.>" -->\n' + TRAP, "utf-8")
    monkeypatch.chdir(tmp_path)
    _, printed, _ = lint("activemq.xml", "nowhere.xml", "--format", "github")
    commands = printed.splitlines()
    assert all(re.fullmatch(r"::(error|warning|notice) file=[^,:]+,line=\d+,title=\w+::.+", each) for each in commands)
    assert any("line=4,title=" in each for each in commands)
    assert commands[-1].startswith("::error file=nowhere.xml,line=1,title=not_read::")


def test_nothing_in_a_name_begins_another_command() -> None:
    finding = Finding("no_consumer", Severity.ERROR, "queue a,b:c\n::warning::x", ("100% of it\r\x1b[2J",), "mend it")
    (line,) = annotations.github([("a:b,c.xml", finding)], {}, [])
    assert line == (
        "::error file=a%3Ab%2Cc.xml,line=1,title=no_consumer::"
        "queue a,b:c%0A::warning::x%0A100%25 of it\\r\\x1b[2J%0Amend it"
    )


def test_rules_are_selected_and_ignored_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def codes(*options: str) -> set[str]:
        return {each["code"] for each in json.loads(lint(FLIGHTS, "--json", *options)[1])["findings"]}

    every = codes()
    assert codes("--ignore", "not_covered") == every - {"not_covered"}
    assert codes("--select", "not_covered,exclusive_disjoint", "--ignore", "not_covered") == {"exclusive_disjoint"}
    assert lint(FLIGHTS, "--select", "default_prefetch")[0] == 0  # information alone
    status, _, words = lint(FLIGHTS, "--ignore", "not_coverd")
    assert status == 2
    assert "--ignore" in words
    assert "did you mean 'not_covered'?" in words
    assert lint(FLIGHTS, "--json", "--format", "sarif")[0] == 2


def test_the_names_are_those_that_the_rules_give() -> None:
    rooms = sorted(path.relative_to(ROOMS).as_posix() for path in (ROOMS / "lint").rglob("*.py"))
    assert set().union(*map(codes_of, rooms)) == CODES


def test_the_hook_brings_the_extras_and_finds_the_files(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["additional_dependencies"] == [*EXTRAS["cli"], *EXTRAS["lint"]]
    found = [bool(re.search(hook["files"], name)) for name in ("conf/activemq.xml", "activemq-prod.xml", "pom.xml")]
    assert found == [True, True, False]
    (tmp_path / "activemq.xml").write_text(TRAP, "utf-8")
    command = [sys.executable, "-m", *hook["entry"].split(), "activemq.xml"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.startswith("activemq.xml\n")


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_the_action_annotates_or_writes_sarif(tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = action["runs"]["steps"][-1]
    assert {name: text.split()[1] for name, text in step["env"].items()} == {
        name.upper(): f"inputs.{name}" for name in ("files", "select", "ignore", "sarif")
    }
    assert {text.split()[1].removeprefix("inputs.") for text in step["env"].values()} < set(action["inputs"])
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "pyengine").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyengine "$@"\n')
    (tools / "pyengine").chmod(0o755)
    another = '<policyEntry topic="prices" strictOrderDispatch="true"/>\n'
    (tmp_path / "activemq.xml").write_text(TRAP.replace("</policyEntries>", f"{another}</policyEntries>"), "utf-8")

    def run(**inputs: str) -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
        environment |= dict.fromkeys(step["env"], "") | inputs
        return subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    annotated = run(FILES="activemq.xml\n\n")
    assert re.findall(r",title=(\w+)::", annotated.stdout) == [
        "strict_order_fills_one", "wrong_kind", "slow_subscriber_blocks"
    ], annotated.stderr  # fmt: skip
    chosen = {"SELECT": "wrong_kind,strict_order_fills_one", "IGNORE": "wrong_kind"}
    run(FILES="activemq.xml", SARIF="found.sarif", **chosen)
    log = json.loads((tmp_path / "found.sarif").read_text("utf-8"))
    check(log, "log")
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["strict_order_fills_one"]
