"""The recorded queue scenarios, group buckets and redelivery delays."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.__main__ import replay_file

DATA = Path(__file__).parent / "data" / "activemq"


def test_scenarios_agree() -> None:
    counts = replay_file("activemq/scenarios", DATA / "scenarios.jsonl", show=5)
    assert counts["differ"] == counts["unsupported"] == 0
    assert counts["agree"] >= 68


def test_misc_agrees() -> None:
    counts = replay_file("activemq/misc", DATA / "misc.jsonl", show=5)
    assert counts["differ"] == counts["unsupported"] == 0
