"""A broker under a manual clock."""

from __future__ import annotations

import pytest

from pyengine.activemq import Broker
from pyengine.clock import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def make(clock, tmp_path):
    """Brokers with settings, closed at the end: before the folder goes in which one may keep its store."""
    made = []

    def broker(**settings):
        made.append(Broker(clock=clock, **settings))
        return made[-1]

    yield broker
    for each in made:
        each.close()


@pytest.fixture
def broker(make):
    return make()
