"""A few random scripts with our client in every corner; ``python -m tests.differential.square`` plays more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.contest import RivalMissingError
from pyengine.activemq import Broker
from tests.activemq.openwire.real import RELEASES, RealBroker
from tests.differential.square import KINDS, play


@pytest.mark.parametrize("kind", KINDS)
def test_where_our_broker_is_makes_no_difference(kind: str) -> None:
    with Broker(name="square", transport_connectors=["tcp://127.0.0.1:0"]) as broker:
        counts = play(kind, 2, 5, {"ours over TCP": broker.transport_connectors[0].url})
    assert counts == {"agree": 2}


@pytest.mark.parametrize("release", RELEASES)
def test_the_real_broker_makes_no_difference(release: str, tmp_path: Path) -> None:
    if "PYENGINE_INTEROP" not in os.environ:
        pytest.skip("run by make interop")
    try:
        real = RealBroker(release, tmp_path / "broker.log")
    except RivalMissingError as reason:
        pytest.skip(str(reason))
    try:
        for kind in KINDS:
            assert play(kind, 10, 6, {"the real one over TCP": real.url})["differ"] == 0
    finally:
        real.close()
