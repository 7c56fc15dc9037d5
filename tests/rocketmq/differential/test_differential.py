"""RocketMQ's real client classes and ours get the same traces; ``make differential-rocketmq`` plays more."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.interop import started_or_skipped
from tests.rocketmq.differential.campaign import difference, run
from tests.rocketmq.differential.traces import KINDS

FOUND = Path(__file__).parent / "found.jsonl"
MENDED = [json.loads(line) for line in FOUND.read_text("utf-8").splitlines()]
OPERATIONS = 14_000


@pytest.mark.parametrize("case", MENDED, ids=lambda case: case["id"])
def test_what_was_found_and_mended_stays_mended(case: dict[str, Any]) -> None:
    assert difference(case, case["answers"]) is None


def test_random_traces(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "pyengine.rocketmq")
    campaign = started_or_skipped(lambda: run(operations=OPERATIONS))
    assert not campaign.found, "\n".join(campaign.found)
    assert all(campaign.counts[kind] >= 100 for kind in (*KINDS, "failures")), campaign.counts
