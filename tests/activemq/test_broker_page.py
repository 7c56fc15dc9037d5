"""docs/broker.md runs as it stands and says what it says."""

from __future__ import annotations

from typing import Any

from tests.house.test_readme import blocks, run


def test_the_code_runs() -> None:
    namespace: dict[str, Any] = {}
    ran = [run(block, namespace) for block in blocks("docs/broker.md", "python")]
    assert len(ran) == 4
