"""examples/router: 50,000 rules, and rules that change while events come."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import pyengine
from tests.examples.processor_time import at_most
from tests.house.examples import ROOT

router: dict[str, Any] = runpy.run_path(str(ROOT / "examples/router/router.py"))


def test_50_000_rules_are_faster_than_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    with at_most(15):
        router["measure"](50_000)
    times = re.search(r"a loop over the selectors: .* us, ([\d,]+) times as long", capsys.readouterr().out)
    assert times is not None
    assert int(times[1].replace(",", "")) > 50


def test_a_change_of_the_file_is_made_whole_or_not_at_all() -> None:
    rules = {"alice": "price > 100", "bob": "region = 'EU'"}
    asked = router["Router"](rules)
    with pytest.raises(pyengine.InvalidSelectorError, match="eve"):
        asked.change({"alice": "price > 500", "eve": "price >> 1"})
    assert asked.wants({"price": 200, "region": "EU"}) == ["alice", "bob"]
    assert asked.change({"alice": "price > 500", "eve": "price > 1"}) == 3
    assert asked.wants({"price": 200, "region": "EU"}) == ["eve"]


def test_the_file_is_read_again_when_it_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("alice = 'price > 100'\n", "utf-8")

    def lines() -> Any:
        for text in ("alice = 'price >> 100'\n", "eve = 'price > 100'\n", None):
            yield '{"price": 200}\n'
            if text:
                before = file.stat().st_mtime_ns
                while file.stat().st_mtime_ns == before:  # a file system's clock is coarse
                    file.write_text(text, "utf-8")

    router["serve"](file, lines())
    printed = capsys.readouterr()
    assert printed.out == "alice\nalice\neve\n"
    assert "is not used: invalid selector of 'alice' at position 7" in printed.err
