"""The recorded answers of RocketMQ's consumer that are kept with the tests: all agree."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import replay_file

DATA = Path(__file__).parent / "data" / "rocketmq"
KINDS = {"misc": 39}


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_answers(kind: str) -> None:
    counts = replay_file(f"rocketmq/{kind}", DATA / f"{kind}.jsonl", show=5)
    assert counts == {"agree": KINDS[kind]}
