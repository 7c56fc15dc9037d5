"""The pages of docs/ about RocketMQ run as they stand and say what they say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.house.test_readme import blocks, run


@pytest.mark.parametrize(("page", "count"), [("rocketmq-consumer.md", 6), ("rocketmq-broker.md", 5)])
def test_the_page_runs(page: str, count: int) -> None:
    namespace: dict[str, Any] = {}
    ran = [run(block, namespace) for block in blocks(f"docs/{page}", "python")]
    assert len(ran) == count
