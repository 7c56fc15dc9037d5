"""Producers on connections of their own share the disk's writes where every message must reach it."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyengine.activemq import Broker
from pyengine.activemq.store import journal
from pyengine.errors import StoreError
from tests.activemq.test_stomp import KILLS, Client, served, until

SEND = "SEND\ndestination:/queue/{queue}\npersistent:true\nreceipt:{receipt}\n\n"
CONFIGURATION = """
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="synced">
  <persistenceAdapter><kahaDB directory="{folder}" journalDiskSyncStrategy="always"/></persistenceAdapter>
</broker>
"""


class Disk:
    """The disk under the journal, the real one, with a count, a gate and a failure."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.seconds = 0.0
        self.error: OSError | None = None
        self.open = threading.Event()
        self.open.set()
        self._sync = journal.sync_file
        monkeypatch.setattr(journal, "sync_file", self._synced)

    def _synced(self, descriptor: int) -> None:
        self.syncs += 1
        self.open.wait(10)
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        self._sync(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def port(tmp_path: Path, disk: Disk) -> Iterator[int]:
    made = Broker(tmp_path / "store", journal_disk_sync_strategy="always", transport_connectors=["stomp://127.0.0.1:0"])
    with contextlib.suppress(StoreError), made as broker:
        yield broker.transport_connectors[0].port


def connected(port: int) -> Client:
    client = Client(port)
    assert client.frame().startswith("CONNECTED")
    return client


def produce(client: Client, queue: str, messages: int) -> None:
    for number in range(messages):
        client.send(SEND.format(queue=queue, receipt=number))
        assert client.frame() == f"RECEIPT\nreceipt-id:{number}"


def test_producers_on_connections_of_their_own_share_a_sync(port: int, disk: Disk) -> None:
    producers, messages = 10, 20
    clients = [connected(port) for _ in range(producers)]
    produce(clients[0], "a", 1)
    disk.seconds = 0.003
    before = disk.syncs
    threads = [threading.Thread(target=produce, args=(client, "a", messages)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert messages <= disk.syncs - before <= producers * messages // 3
    for client in clients:
        client.socket.close()


def test_one_producer_waits_for_one_sync_a_message(port: int, disk: Disk) -> None:
    with connected(port) as client:
        produce(client, "a", 1)
        before = disk.syncs
        produce(client, "a", 20)
        assert disk.syncs - before == 20


def test_frames_that_came_together_are_synced_together(port: int, disk: Disk) -> None:
    with connected(port) as client:
        produce(client, "a", 1)
        before = disk.syncs
        client.socket.sendall(b"".join(SEND.format(queue="a", receipt=each).encode() + b"\0" for each in range(50)))
        assert [client.frame() for _ in range(50)] == [f"RECEIPT\nreceipt-id:{each}" for each in range(50)]
        assert disk.syncs - before == 1


def test_no_receipt_comes_before_the_disk_has_the_message(port: int, disk: Disk) -> None:
    with connected(port) as first, connected(port) as second:
        produce(first, "a", 1)
        before = disk.syncs
        disk.open.clear()
        first.send(SEND.format(queue="a", receipt="one"))
        until(lambda: disk.syncs > before)
        second.send(SEND.format(queue="b", receipt="two"))
        for client in (first, second):
            client.socket.settimeout(0.05)
            with pytest.raises(TimeoutError):
                client.frame()
            client.socket.settimeout(5)
        disk.open.set()
        assert first.frame() == "RECEIPT\nreceipt-id:one"
        assert second.frame() == "RECEIPT\nreceipt-id:two"


def test_no_receipt_comes_for_a_message_that_the_disk_refuses(port: int, disk: Disk) -> None:
    with connected(port) as first, connected(port) as other:
        produce(first, "a", 1)
        disk.error = OSError(5, "Input/output error")
        first.send(SEND.format(queue="a", receipt="one"))
        assert first.frame() == ""
        other.send(SEND.format(queue="a", receipt="two"))  # the store is known to have failed
        assert "cannot be written" in other.frame()


def test_a_kill_loses_nothing_confirmed_to_any_of_them(tmp_path: Path) -> None:
    chance = random.Random(5)
    configuration = tmp_path / "activemq.xml"
    configuration.write_text(CONFIGURATION.format(folder=tmp_path / "store"))
    confirmed: dict[str, list[str]] = {f"q{each}": [] for each in range(6)}

    def produce_until_killed(client: Client, queue: str, round_: int) -> None:
        with contextlib.suppress(ConnectionError):
            for each in range(100_000):
                body = f"{round_}.{each}"
                client.send(SEND.format(queue=queue, receipt=body), body.encode())
                if client.frame() != f"RECEIPT\nreceipt-id:{body}":
                    return
                confirmed[queue].append(body)

    kills = max(1, KILLS // 10)
    for number in range(kills):
        with served(str(configuration)) as (process, port):
            clients = {queue: connected(port) for queue in confirmed}
            threads = [
                threading.Thread(target=produce_until_killed, args=(client, queue, number))
                for queue, client in clients.items()
            ]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.1, 0.4))
            process.kill()
            for thread in threads:
                thread.join()
            for client in clients.values():
                client.socket.close()
    assert all(confirmed.values())
    with Broker(tmp_path / "store") as broker:
        for queue, bodies in confirmed.items():
            kept = [str(message.body) for message in broker.browse(queue)]
            assert [body for body in kept if body in set(bodies)] == bodies
            assert len(kept) <= len(bodies) + kills
