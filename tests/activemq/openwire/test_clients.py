"""The real client on our broker sees what it sees of the real one: recorded, and asked again by ``make interop``.

activemq-client 5.18 plays the quick scenarios here (Java, Maven). With PYENGINE_INTEROP clients 5.15, 5.18 and 6.3 play
all of them on ours and, in the same run, on the real brokers 5.18 and 6.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyengine.activemq import Broker
from tests.activemq.openwire.real import CLIENTS, RELEASES, SCENARIOS, RealBroker, RealClient
from tests.interop import INTEROP, started_or_skipped

RECORDED = Path(__file__).with_name("recorded.json")  # of client and broker 5.18.6: python -m ...openwire.test_clients
SLOW = ("topics", "listeners", "wires", "many", "scheduled", "expiry", "groups", "producerWindow", "prefetch")
# A client of JMS 2 cannot make the exceptions of Jakarta's package, with which a broker of release 6 answers it.
OF_ANOTHER_JMS = ("durables",)


def play_on_ours(client: RealClient, name: str) -> list[str]:
    """A scenario's transcript on a broker of its own."""
    with Broker(transport_connectors=["tcp://127.0.0.1:0"], scheduler_support=True) as broker:
        return client.play(broker.transport_connectors[0].url, name)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealClient]:
    started = started_or_skipped(lambda: RealClient("5.18.6", tmp_path_factory.mktemp("client") / "jvm.log"))
    yield started
    started.close()


@pytest.mark.parametrize("name", [each for each in SCENARIOS if each not in SLOW])
def test_the_real_client_sees_what_it_sees_of_the_real_broker(client: RealClient, name: str) -> None:
    assert play_on_ours(client, name) == json.loads(RECORDED.read_text("utf-8"))[name]


@INTEROP
@pytest.mark.parametrize("release", CLIENTS)
@pytest.mark.parametrize("broker_release", RELEASES)
def test_clients_see_the_same_of_both(release: str, broker_release: str, tmp_path: Path) -> None:
    real = started_or_skipped(lambda: RealBroker(broker_release, tmp_path / "broker.log"))
    client = started_or_skipped(lambda: RealClient(release, tmp_path / "client.log"))
    differing = {}
    try:
        for name in SCENARIOS:
            if name in OF_ANOTHER_JMS and release[0] != broker_release[0] == "6":
                continue
            expected, got = client.play(real.url, name), play_on_ours(client, name)
            if got != expected:
                differing[name] = {"real": expected, "ours": got}
            real.renew()
    finally:
        client.close()
        real.close()
    assert differing == {}


def record() -> None:
    """Write what the client sees of the real broker."""
    real = RealBroker("5.18.6", Path("/dev/null"))
    client = RealClient("5.18.6", Path("/dev/null"))
    answers = {}
    for name in SCENARIOS:
        answers[name] = client.play(real.url, name)
        real.renew()
    client.close()
    real.close()
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    record()
