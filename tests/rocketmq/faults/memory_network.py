"""A network in memory under a ManualClock, which a seed disturbs: our own client on our own server, without sockets.

Bytes arrive late and in pieces, in order within a connection and in any order between connections. A connection ends
between frames or within one; what was under way is lost, and each end learns of it when it likes, or when it writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

from pyengine.clock import ManualClock
from pyengine.rocketmq.remoting.transport import Promise, Receiver
from pyengine.rocketmq.server.connections import Connection, Service

HALF_OPEN = 120_000  # ms after which an end that hears nothing gives up (serverChannelMaxIdleTimeSeconds)


class MemoryNetwork:
    """Who listens at which address, and the links between them. chance: decides all delays and cuts.

    calm: from then on nothing is cut, and everything arrives soon.
    """

    def __init__(self, clock: ManualClock, chance: Random) -> None:
        self.clock = clock
        self.chance = chance
        self.calm = False
        self.cuts = 0
        self.disturbed: Callable[[], None] = lambda: None
        self._services: dict[str, Service] = {}
        self._links: list[Link] = []
        self._ports = 0

    def listen(self, address: str, service: Service) -> None:
        """Let clients connect to an address."""
        self._services[address] = service

    def stop(self, address: str) -> None:
        """The process there ends: its connections break, new ones are refused."""
        service = self._services.pop(address)
        for link in self.links:
            if link.service is service:
                link.cut()

    @property
    def links(self) -> list[Link]:
        """The connections that are not cut."""
        self._links = [each for each in self._links if not each.is_cut]
        return self._links

    def connect(self, address: str, receiver: Receiver) -> ClientEnd:
        """A new connection (transport.Connect)."""
        service = self._services.get(address)
        if service is None:
            raise ConnectionRefusedError(111, "Connection refused")
        self._ports += 1
        link = Link(self, service, address, f"127.0.0.1:{20_000 + self._ports}", receiver)
        self._links.append(link)
        return link.client


class Link:
    """One connection: two ends, and what is between them."""

    def __init__(self, network: MemoryNetwork, service: Service, address: str, remote: str, receiver: Receiver) -> None:
        self.network = network
        self.service = service
        self.is_cut = False
        self.client = ClientEnd(self, receiver)
        self.server = ServerEnd(self, address, remote)
        # A slow peer takes its time with everything.
        self.slowness = network.chance.choice((0, 0, 0, 0, 1, 5, 20, 200, 2500))

    def cut(self) -> None:
        """Nothing passes any more."""
        if self.is_cut:
            return
        self.network.disturbed()
        self.is_cut = True
        self.network.cuts += 1
        for end in (self.client, self.server):
            late = self.network.chance.choice((0, 0, 0, 1, 30, HALF_OPEN))
            self._later(late, end.learn)

    def _later(self, delay: int, action: Callable[[], None]) -> None:
        clock = self.network.clock
        clock.call_at(clock.now() + delay, action)


class End:
    """One end of a link. ``_before``: when the last byte that it sent arrives."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._before = 0
        self._left = link.network.chance.randrange(200, 8000)  # bytes until the link is cut while this end sends
        self.knows = False  # that the link is gone

    def _send(self, data: bytes, arrive: Callable[[bytes], None]) -> None:
        link, network = self._link, self._link.network
        if self.knows:
            raise BrokenPipeError(32, "Broken pipe")
        if link.is_cut:
            network.clock.call_at(network.clock.now() + 1, self.learn)  # the system answers that there is nobody
            return
        ends = not network.calm and len(data) > self._left
        passing = data[: self._left] if ends else data
        self._left -= len(passing)
        at = 0
        while at < len(passing):
            size = len(passing) if network.chance.random() < 0.7 else network.chance.randrange(1, 400)
            self._pass(passing[at : at + size], arrive)
            at += size
        if ends:
            network.clock.call_at(self._before or network.clock.now(), link.cut)

    def _pass(self, piece: bytes, arrive: Callable[[bytes], None]) -> None:
        link, network = self._link, self._link.network
        delay = 1 if network.calm else network.chance.choice((0, 0, 0, 0, 1, 2, 3, 10, 50)) + link.slowness
        self._before = max(self._before, network.clock.now() + delay)
        network.clock.call_at(self._before, lambda: None if link.is_cut else arrive(piece))

    def learn(self) -> None:
        """This end notices that the link is gone."""
        if not self.knows:
            self.knows = True
            self._gone()

    def _gone(self) -> None:
        raise NotImplementedError


class ClientEnd(End):
    """What a client's Channel has (transport.Transport)."""

    local_host = "127.0.0.1"

    def __init__(self, link: Link, receiver: Receiver) -> None:
        super().__init__(link)
        self.receiver = receiver

    def write(self, data: bytes) -> None:
        self._send(data, lambda piece: self._link.server.arrived(piece))

    def expect(self) -> None:
        """Everything arrives by itself."""

    def wait(self, promise: Promise, milliseconds: int) -> None:
        self._link.network.clock.wait(threading.Condition(), promise.is_given, milliseconds)

    def close(self) -> None:
        self.knows = True
        self._link.cut()

    def arrived(self, piece: bytes) -> None:
        if not self.knows:
            self.receiver.received(piece)

    def _gone(self) -> None:
        self.receiver.lost("was closed by the other end")


class ServerEnd(End):
    """What a server's Connection has (connections.Transport)."""

    def __init__(self, link: Link, address: str, remote: str) -> None:
        super().__init__(link)
        self.remote_address = remote
        self.local_host = address.rpartition(":")[0]
        self.connection = Connection(self, link.service, link.network.clock)

    def write(self, frame: bytes) -> None:
        if not self.knows:
            self._send(frame, lambda piece: self._link.client.arrived(piece))

    def drop_later(self, why: str) -> None:
        self._link.network.clock.call_at(self._link.network.clock.now(), self._link.cut)

    def arrived(self, piece: bytes) -> None:
        if not self.knows:
            self.connection.received(piece)

    def _gone(self) -> None:
        self.connection.lost("was closed by the client")
