"""What the C headers of the core ask of compilers and C libraries that are not here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "engine"


@pytest.mark.parametrize("name", ["index/bit_blocks.h", "lowlevel/md5.h"])
def test_functions_have_copies_only_where_the_loader_picks_one(name: str, tmp_path: Path) -> None:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    for header in ("stdint.h", "string.h"):  # as those of musl, they do not say __GLIBC__
        (tmp_path / header).touch()
    command = [gcc, "-E", "-nostdinc", "-isystem", str(tmp_path), f"-I{ENGINE}", str(ENGINE / name)]
    assert "target_clones" not in subprocess.run(command, capture_output=True, text=True, check=True).stdout
