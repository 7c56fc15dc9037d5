"""Clients with ``failover:`` over sockets that are cut by a seed: ours on our broker and on the real one, and the real
one on ours.

Every message that was confirmed is delivered, and one that comes again is marked. ``PYENGINE_SOCKET_FAULTS=100`` plays
so many schedules, half of them on the real broker.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from bench.jvm import harness
from pyengine import JMSError, Message
from pyengine.activemq import SESSION_TRANSACTED, Broker, ConnectionFactory
from tests.activemq.openwire.real import Player, RealBroker
from tests.activemq.openwire.relay import Relay
from tests.activemq.openwire.third_parties.test_third_parties import BUILD, SOURCES
from tests.interop import INTEROP_ASKED, started_or_skipped
from tests.rocketmq.faults.proxy import Proxy

ASKED = int(os.environ.get("PYENGINE_SOCKET_FAULTS", "0"))
MESSAGES, PATIENCE = 80, 60
OPTIONS = "maxReconnectDelay=20&nested.wireFormat.maxInactivityDuration=3000&jms.prefetchPolicy.queuePrefetch=4"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    if not ASKED:
        pytest.skip("run by make faults")
    home = tmp_path_factory.mktemp("faults")
    started = started_or_skipped(lambda: RealBroker("5.18.6", home / "broker.log", home / "store"))
    yield started
    started.close()


def play(port: int, seed: int, queue: str) -> None:
    """Send, consume in transactions, and be cut."""
    cuts: list[None] = []
    proxy = Proxy(seed, f"127.0.0.1:{port}", lambda: cuts.append(None))
    factory = ConnectionFactory(f"failover:(tcp://{proxy.address})?{OPTIONS}")
    confirmed: set[str] = set()
    delivered: set[str] = set()

    def send() -> None:
        with factory.create_connection() as connection:
            producer = connection.create_session().create_producer(queue)
            for number in range(MESSAGES):
                producer.send(Message(body=f"m{number}"))
                confirmed.add(f"m{number}")

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with factory.create_connection() as connection:
            session = connection.create_session(SESSION_TRANSACTED)
            consumer = session.create_consumer(queue)
            end = time.monotonic() + PATIENCE
            while sender.is_alive() or not confirmed <= delivered:
                assert time.monotonic() < end, f"not delivered: {sorted(confirmed - delivered)}"
                proxy.calm = not sender.is_alive()
                message = consumer.receive(0.2)
                if message is not None:
                    body = str(message.body)
                    assert body not in delivered or message.redelivered, f"{body} came again without a mark"
                    delivered.add(body)
                try:
                    session.commit()
                except JMSError:
                    continue  # it comes again
        assert len(confirmed) == MESSAGES
        assert cuts
    finally:
        sender.join(PATIENCE)
        proxy.close()


@pytest.mark.parametrize("seed", range(ASKED // 2 if ASKED else 2))
def test_everything_confirmed_is_delivered(seed: int, tmp_path: Path) -> None:
    with Broker(tmp_path, transport_connectors=["tcp://127.0.0.1:0"]) as broker:
        play(broker.transport_connectors[0].port, seed, "cut")


@pytest.mark.parametrize("seed", range(ASKED // 2 or 1))
def test_everything_a_real_broker_confirms_is_delivered(seed: int, real: RealBroker) -> None:
    play(real.port, seed, f"cut-{seed}")


@pytest.mark.parametrize("seed", range(3))
def test_the_real_client_fails_over_on_our_broker(seed: int, tmp_path: Path) -> None:
    if not ASKED and not INTEROP_ASKED:
        pytest.skip("run by make faults and make interop")
    path = started_or_skipped(lambda: harness(SOURCES, BUILD / "jars", BUILD / "classes", "joram-jms-tests"))
    player = started_or_skipped(lambda: Player("PlayThirdParties", f"{path}:{SOURCES}", tmp_path / "jvm.log"))
    done, chance = threading.Event(), Random(seed)
    with Broker(tmp_path / "store", transport_connectors=["tcp://127.0.0.1:0"]) as broker:
        relay = Relay(broker.transport_connectors[0].port)

        def disturb() -> None:
            for _ in range(12):
                if done.wait(chance.uniform(0.05, 0.4)):
                    return
                relay.cut()

        threading.Thread(target=disturb, daemon=True).start()
        try:
            said = player.play(f"failover:(tcp://127.0.0.1:{relay.port})?maxReconnectDelay=20", "failover")
        finally:
            done.set()
            player.close()
            relay.close()
        sent, *missing, unmarked = said
        assert (sent, unmarked) == ("sent 150", "unmarked 0")
        # The client takes some for duplicates that no listener got, on the real broker too: they are dead letters then.
        assert set(missing) <= {f"missing {each.body}" for each in broker.browse("ActiveMQ.DLQ")}
        assert not broker.browse("cut")
