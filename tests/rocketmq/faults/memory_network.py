"""Our own client on our own server, without sockets, through a network that a seed disturbs."""

from __future__ import annotations

import threading
from random import Random

from pyengine.clock import ManualClock
from pyengine.rocketmq.remoting.transport import Promise, Receiver
from pyengine.rocketmq.server.connections import Connection, Service
from tests.disturbed_network import DisturbedNetwork, End, Link


class MemoryNetwork(DisturbedNetwork[Service]):
    """Brokers and name servers, and the connections of clients to them."""

    def __init__(self, clock: ManualClock, chance: Random) -> None:
        super().__init__(clock, chance)
        self._ports = 0

    def connect(self, address: str, receiver: Receiver) -> ClientEnd:
        """A new connection (transport.Connect)."""
        link = self.link_to(address)
        if link is None:
            raise ConnectionRefusedError(111, "Connection refused")
        self._ports += 1
        client = ClientEnd(link, receiver)
        ServerEnd(link, f"127.0.0.1:{20_000 + self._ports}")
        return client


class ClientEnd(End):
    """What a client's Channel has (transport.Transport)."""

    local_host = "127.0.0.1"

    def __init__(self, link: Link[Service], receiver: Receiver) -> None:
        super().__init__(link)
        self.receiver = receiver

    def write(self, data: bytes) -> None:
        self.send(data)

    def expect(self) -> None:
        """Everything arrives by itself."""

    def wait(self, promise: Promise, milliseconds: int) -> None:
        self.link.network.clock.wait(threading.Condition(), promise.is_given, milliseconds)

    def close(self) -> None:
        self.knows = True
        self.link.cut()

    def arrived(self, piece: bytes) -> None:
        self.receiver.received(piece)

    def gone(self) -> None:
        self.receiver.lost("was closed by the other end")


class ServerEnd(End):
    """What a server's Connection has (connections.Transport)."""

    def __init__(self, link: Link[Service], remote: str) -> None:
        super().__init__(link)
        self.remote_address = remote
        self.local_host = link.address.rpartition(":")[0]
        self.connection = Connection(self, link.service, link.network.clock)

    def write(self, frame: bytes) -> None:
        if not self.knows:
            self.send(frame)

    def drop_later(self, why: str) -> None:
        self.link.network.later(0, self.link.cut)

    def arrived(self, piece: bytes) -> None:
        self.connection.received(piece)

    def gone(self) -> None:
        self.connection.lost("was closed by the client")
