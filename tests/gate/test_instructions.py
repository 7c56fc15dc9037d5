"""The gate: what a message costs in instructions, which no busy machine disturbs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIMITS: dict[str, dict[str, float]] = tomllib.loads((HERE / "limits.toml").read_text(encoding="utf-8"))


def totals(folder: Path) -> list[int]:
    """Instructions of each dump, in order."""
    dumps = sorted(folder.glob("out.*"), key=lambda path: int(path.suffix[1:]))
    found = [re.search(r"^totals: (\d+)", dump.read_text(encoding="utf-8"), re.MULTILINE) for dump in dumps]
    return [int(match.group(1)) for match in found if match]


@pytest.fixture(scope="module")
def measured() -> Mapping[str, float]:
    """Instructions a message by path. The difference of 2N and N messages, so that nothing fixed counts."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("valgrind is not installed (Debian: apt-get install valgrind): instructions are not counted")
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV"))}
        environment |= {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--dump-before=getpgid"]
        done = subprocess.run(
            [*command, sys.executable, "-m", "tests.gate.workload"],
            cwd=HERE.parents[1],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        plan, dumps = json.loads(done.stdout), totals(Path(folder))
    count = plan["messages"]
    assert len(dumps) == 3 * len(plan["paths"]), f"{len(dumps)} dumps for {len(plan['paths'])} paths"
    each = {path: (dumps[3 * index + 2] - dumps[3 * index + 1]) / count for index, path in enumerate(plan["paths"])}
    for path in each:
        if path.endswith("_call"):
            each[path] -= each["loop"]
    return each


@pytest.mark.parametrize("path", LIMITS)
def test_instructions_a_message(path: str, measured: Mapping[str, float]) -> None:
    cost = measured[path]
    print(f"{path}: {cost:.2f} instructions a message")
    assert cost <= LIMITS[path]["limit"], (
        f"{path} costs {cost:.1f} instructions a message, the limit is {LIMITS[path]['limit']} and it was "
        f"{LIMITS[path]['measured']} when that was set (tests/gate/limits.toml)"
    )


def test_every_path_has_a_limit(measured: Mapping[str, float]) -> None:
    assert set(measured) - {"loop"} == set(LIMITS)
