"""The recorded answers of RocketMQ's consumer that are kept with the tests: all agree."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import replay_file

DATA = Path(__file__).parent / "data" / "rocketmq"
KINDS = {
    "check_config": 33,
    "consume_concurrently": 92,
    "consume_orderly": 81,
    "defaults": 67,
    "flow_control": 136,
    "misc": 39,
    "pull_from_where": 92,
    "rebalance": 22,
    "remote_offset_store": 56,
}


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_answers(kind: str) -> None:
    file = next(DATA.glob(f"{kind}.json*"))
    counts = replay_file(f"rocketmq/{kind}", file, show=5)
    assert counts == {"agree": KINDS[kind]}
