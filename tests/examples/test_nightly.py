"""examples/nightly: four engines, one answer; the notebooks show what they compute."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.examples.processor_time import at_most
from tests.house.examples import ROOT, blocks

NIGHTLY = ROOT / "examples/nightly"
nightly: dict[str, Any] = runpy.run_path(str(NIGHTLY / "nightly.py"))
TEAMS = tomllib.loads((NIGHTLY / "teams.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("day") / "day.parquet"
    nightly["make_up"](path, 20_000)
    return path


def test_three_engines_give_one_answer(day: Path) -> None:
    """What Spark says is asked in tests/spark/test_nightly.py, in the session of those tests."""
    with at_most(10):
        answers = [nightly["ENGINES"][engine](day, TEAMS) for engine in ("pandas", "polars", "duckdb")]
    assert answers[0] == answers[1] == answers[2]
    assert list(answers[0]) == [*TEAMS, "(no team)"]
    assert answers[0]["billing"] == (4705, 2351651)


def test_the_page_shows_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = blocks("docs/analysis.md", "console")[0].splitlines()
    assert shown[0].startswith("$ python examples/nightly/nightly.py ")
    monkeypatch.setattr("sys.argv", shown[0].split()[2:])
    monkeypatch.chdir(tmp_path)
    assert nightly["main"]() == 1
    assert capsys.readouterr().out.splitlines() == shown[1:]


@pytest.mark.parametrize("name", ["flights", "kafka_log"])
def test_a_notebook_shows_what_it_computes(name: str) -> None:
    kept = nbformat.read(NIGHTLY / f"{name}.ipynb", as_version=4)
    run = nbformat.read(NIGHTLY / f"{name}.ipynb", as_version=4)
    with at_most(25):
        NotebookClient(run, timeout=120, resources={"metadata": {"path": str(NIGHTLY)}}).execute()

    def shown(cell: Any) -> list[str]:
        return [output.get("text") or output["data"]["text/plain"] for output in cell.get("outputs", [])]

    for was, now in zip(kept.cells, run.cells, strict=True):
        assert shown(now) == shown(was)
