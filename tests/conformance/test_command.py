"""``python -m tests.conformance`` says what is wrong with what it was given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = "tests/conformance/data/activemq/selector.jsonl"


@pytest.mark.parametrize(
    ("kind", "file", "last"),
    [
        ("activemq/selector", "FILE", "no file FILE: recorded answers lie in tests/conformance/data"),
        ("activemq/selector", "tests", "no file tests: recorded answers lie in tests/conformance/data"),
        (
            "activemq/selector",
            "README.md",
            "README.md, line 1: no recorded case, a JSON object: Expecting value: line 1",
        ),
        ("activemq/nothing", RECORDED, "no runner for 'activemq/nothing': kinds are named as the files in tests"),
        ("activemq.selector", RECORDED, "no runner for 'activemq.selector': kinds are named as the files in tests"),
    ],
)
def test_a_wrong_argument_is_named(kind: str, file: str, last: str) -> None:
    command = [sys.executable, "-m", "tests.conformance", kind, file]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode
    assert last in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_case_that_ends_in_an_error_differs_and_those_behind_it_count(tmp_path: Path) -> None:
    cases = (ROOT / "tests/conformance/data/rocketmq/allocate.jsonl").read_text("utf-8").splitlines()
    file = tmp_path / "cases.jsonl"
    file.write_text('{"id": 1, "strategy": "NONE", "config": {}}\n' + cases[0], "utf-8")
    command = [sys.executable, "-m", "tests.conformance", "rocketmq/allocate", str(file), "--show", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "rocketmq/allocate: 1 agree, 1 differ, 0 unsupported"
    assert "KeyError: 'currentCID'" in done.stdout
