"""The same program on the embedded broker, on it over OpenWire, and on the real one: only the URL differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyengine.activemq import Broker
from tests.activemq.openwire.programs import PROGRAMS, play
from tests.activemq.openwire.real import RELEASES, RealBroker
from tests.interop import INTEROP, started_or_skipped


def embedded(name: str) -> list[str]:
    """A program's transcript on a broker of its own, in this process."""
    with Broker(name="square"):
        return play("vm://square", name)


def over_tcp(name: str) -> list[str]:
    """The same over the network."""
    with Broker(transport_connectors=["tcp://127.0.0.1:0"]) as broker:
        return play(broker.transport_connectors[0].url, name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_sees_the_same_over_the_network(name: str) -> None:
    assert over_tcp(name) == embedded(name)


@INTEROP
@pytest.mark.parametrize("release", RELEASES)
def test_programs_see_the_same_of_the_real_broker(release: str, tmp_path: Path) -> None:
    real = started_or_skipped(lambda: RealBroker(release, tmp_path / "broker.log"))
    differing = {}
    try:
        for name in PROGRAMS:
            expected, got = play(f"tcp://127.0.0.1:{real.port}", name), embedded(name)
            if got != expected:
                differing[name] = {"real": expected, "embedded": got}
            real.renew()
    finally:
        real.close()
    assert differing == {}
