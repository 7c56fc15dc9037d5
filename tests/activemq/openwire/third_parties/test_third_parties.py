"""Programs of others over the real client, on our broker and on the real one: the JORAM JMS conformance suite, Spring's
DefaultMessageListenerContainer, and pooled-jms, with their usual settings.

The pool is played by ``make test``, all of it by ``make interop``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.jvm import harness
from pyengine.activemq import Broker
from tests.activemq.openwire.real import Player, RealBroker
from tests.interop import INTEROP_ASKED, started_or_skipped

SOURCES = Path(__file__).parent / "java"
BUILD = Path(__file__).parents[4] / "build" / "openwire" / "third-parties"
# It fails on the real broker too: the client does not deserialize the object by its default settings.
OF_THE_CLIENT = ["failed MessageTypeTest.testObjectMessage_2"]


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    path = started_or_skipped(lambda: harness(SOURCES, BUILD / "jars", BUILD / "classes", "joram-jms-tests"))
    started = started_or_skipped(
        lambda: Player("PlayThirdParties", f"{path}:{SOURCES}", tmp_path_factory.mktemp("joram") / "jvm.log")
    )
    yield started
    started.close()


@pytest.fixture
def campaign() -> None:
    if not INTEROP_ASKED:
        pytest.skip("run by make interop")


@pytest.fixture
def real(campaign: None, tmp_path: Path) -> Iterator[RealBroker]:
    started = started_or_skipped(lambda: RealBroker("5.18.6", tmp_path / "broker.log"))
    yield started
    started.close()


def on_ours(player: Player, name: str) -> list[str]:
    with Broker(transport_connectors=["tcp://127.0.0.1:0"]) as broker:
        return player.play(broker.transport_connectors[0].url, name)


def test_a_pool_of_connections_sends_and_receives(player: Player) -> None:
    assert on_ours(player, "pool") == ["sent 100 over 2", "received 100"]


def test_the_jms_conformance_suite_passes_as_on_the_real_broker(campaign: None, player: Player) -> None:
    total, *failed = on_ours(player, "joram")
    assert total == "tests 196"
    assert failed == OF_THE_CLIENT


@pytest.mark.parametrize("name", ["joram", "container", "pool"])
def test_programs_see_what_they_see_of_the_real_broker(player: Player, real: RealBroker, name: str) -> None:
    assert on_ours(player, name) == player.play(real.url, name)
