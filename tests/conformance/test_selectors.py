"""The recorded selector answers that are kept with the tests: all agree or are listed."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import replay_file

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("kind", ["activemq/selector", "activemq/selector_random", "rocketmq/sql"])
def test_recorded_answers(kind: str) -> None:
    counts = replay_file(kind, DATA / f"{kind}.jsonl", show=5)
    assert counts["agree"] > 700
    assert not counts["differ"]
    assert not counts["unsupported"]
