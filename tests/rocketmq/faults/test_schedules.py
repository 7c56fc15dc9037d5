"""Our consumers and producer on our own brokers through a network that a seed disturbs, all in memory.

Every message that a broker has confirmed is consumed, nothing is committed past an unfinished message, and what comes
again is at most what was pulled and not committed at each cut. ``PYENGINE_FAULTS=2000`` plays so many schedules.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.rocketmq.faults.schedule import Schedule

SCHEDULES = int(os.environ.get("PYENGINE_FAULTS", "24"))
# 419: a message whose ways back both fail stays with the client, which consumes it again at its first place.
MET = (419,)


@pytest.mark.parametrize("seed", sorted({*range(SCHEDULES), *MET}))
def test_what_is_confirmed_is_consumed_and_little_comes_again(seed: int, tmp_path: Path) -> None:
    counted = Schedule(seed, tmp_path if seed % 4 == 0 else None).play()
    assert counted["sent"]
