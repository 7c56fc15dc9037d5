"""examples/nightly on Spark: the answer of the other engines."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

from tests.house.examples import ROOT

NIGHTLY = ROOT / "examples/nightly"


def test_spark_gives_the_answer_of_polars(spark: Any, tmp_path: Path) -> None:
    nightly = runpy.run_path(str(NIGHTLY / "nightly.py"))
    teams = tomllib.loads((NIGHTLY / "teams.toml").read_text("utf-8"))
    nightly["make_up"](tmp_path / "day.parquet", 2_000)
    asked = [nightly["ENGINES"][engine](tmp_path / "day.parquet", teams) for engine in ("spark", "polars")]
    assert asked[0] == asked[1]
