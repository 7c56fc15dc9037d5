"""A service that sees new names all day does not grow: every public class, by what it leaves allocated."""

import os
import subprocess
import sys

import pytest

from tests.memory.bytes_in_use import can_count
from tests.memory.cases import CASES, public_classes


def test_every_public_class_has_a_case() -> None:
    """One that is new needs one in tests/memory/cases.py."""
    assert [name for name in public_classes() if name not in CASES] == []


@pytest.mark.skipif(not can_count(), reason="counts with glibc's mallinfo2")
def test_names_that_are_gone_leave_nothing() -> None:
    """``make memory`` does it with a million names."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.memory", "--quick"],
        env=os.environ | {"PYTHONMALLOC": "malloc"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
