"""The pages about the client: their code runs and says what it says."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from tests.house.test_readme import blocks, run

PLUGIN = "pyengine.activemq.pytest_plugin"
pytest_plugins = ["pytester"]


def test_the_client_page_runs() -> None:
    found = blocks("docs/client.md", "python")
    assert len(found) == 3
    namespace: dict[str, object] = {}
    for block in found:
        run(block, namespace)
    assert namespace["message"].body == "a chair"  # type: ignore[attr-defined]


def test_the_page_on_testing_is_a_test_that_passes(pytester: pytest.Pytester) -> None:
    (block,) = blocks("docs/testing.md", "python")
    pytester.makepyfile(block)
    installed = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    pytester.runpytest(*(() if installed else ("-p", PLUGIN))).assert_outcomes(passed=2)
