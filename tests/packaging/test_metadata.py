"""What the distribution promises: its names, its one core dependency, its extras."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_core_needs_numpy_only() -> None:
    assert [need.partition(">")[0] for need in PROJECT["dependencies"]] == ["numpy"]


def test_every_promised_extra_exists() -> None:
    assert {"spark", "cli", "report", "test", "bench", "all"} <= set(PROJECT["optional-dependencies"])


def test_the_distribution_does_not_take_a_name_of_others() -> None:
    assert PROJECT["name"] == "pyengine-dispatch"
