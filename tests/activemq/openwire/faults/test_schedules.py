"""Clients with ``failover:`` on our own brokers, which lose connections and are killed with their stores, in memory.

A confirmed message is consumed, or lies in a queue, or is a dead letter; one that comes again is marked redelivered.
``PYENGINE_FAULTS=2000`` plays so many schedules.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.activemq.openwire.faults.schedule import Schedule

SCHEDULES = int(os.environ.get("PYENGINE_FAULTS", "24"))


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_nothing_confirmed_is_lost_and_what_comes_again_is_marked(seed: int, tmp_path: Path) -> None:
    Schedule(seed, tmp_path).play()
