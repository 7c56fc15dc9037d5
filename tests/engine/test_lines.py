"""lines.h, whatever the compiler is told to make of it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from bisect import bisect_right
from pathlib import Path
from random import Random

import pytest

ENGINE = Path(__file__).parents[2] / "engine"
SOURCE = """
#include "lines.h"
int rank_of(const int64_t *bounds, int64_t key) {
    int rank;
    pyengine_rank_all(1, &bounds, &key, &rank);
    return rank;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O3"])
def test_a_rank_is_the_same_however_little_is_inlined(tmp_path: Path, compiler: str, level: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    (tmp_path / "rank.c").write_text(SOURCE)
    command = [compiler, level, "-w", "-shared", "-fPIC", f"-I{ENGINE}", "rank.c", "-o", "rank.so"]
    subprocess.run(command, check=True, cwd=tmp_path)
    rank_of = ctypes.CDLL(str(tmp_path / "rank.so")).rank_of
    draw = Random(3)
    bounds = [*sorted(draw.randrange(-500, 500) for _ in range(127)), 2**63 - 1]
    table = (ctypes.c_int64 * 144)(*bounds, *bounds[7::8])
    for key in (-(2**63), *range(-502, 502), 2**63 - 2):
        assert rank_of(table, ctypes.c_int64(key)) == bisect_right(bounds, key)
