"""Random scripts for the real broker and ours: those that differed stay mended; ``make interop`` plays some hundred."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.activemq.stomp.random_scripts import played_here, run
from tests.activemq.stomp.real import RELEASES, RealBroker
from tests.interop import INTEROP, started_or_skipped

# What 5.18.6 showed of scripts that our broker answered differently.
FOUND = [json.loads(line) for line in (Path(__file__).parent / "random_found.jsonl").read_text("utf-8").splitlines()]
SCRIPTS = int(os.environ.get("PYENGINE_RANDOM_SCRIPTS", "100"))


@pytest.mark.parametrize("found", FOUND, ids=lambda found: found["id"])
def test_what_was_found_and_mended_stays_mended(found: dict[str, Any]) -> None:
    assert played_here(found["case"]) == found["real"]


@INTEROP
@pytest.mark.parametrize("release", RELEASES)
def test_random_scripts_show_the_same_of_both(release: str, tmp_path: Path) -> None:
    real = started_or_skipped(lambda: RealBroker(release, tmp_path / "jvm.log"))
    try:
        counts, found = run(real, SCRIPTS, int(time.time()))
    finally:
        real.close()
    assert not found
    assert counts["unstable"] <= SCRIPTS // 10
