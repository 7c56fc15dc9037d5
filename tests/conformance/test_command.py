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
