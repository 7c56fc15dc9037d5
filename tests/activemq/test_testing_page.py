"""docs/testing.md is test modules that pass."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from tests.house.examples import blocks

PLUGIN = "pyengine.activemq.pytest_plugin"
pytest_plugins = ["pytester"]


def test_the_page_is_a_test_that_passes(pytester: pytest.Pytester) -> None:
    pages = blocks("docs/testing.md", "python")
    pytester.makepyfile(**{f"test_{number}": block for number, block in enumerate(pages)})
    installed = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    pytester.runpytest(*(() if installed else ("-p", PLUGIN))).assert_outcomes(passed=4)
