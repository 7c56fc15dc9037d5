"""A network in memory under a ManualClock, which a seed disturbs: clients and servers of any protocol, without sockets.

Bytes arrive late and in pieces, in order within a connection and in any order between connections. A connection ends
between frames or within one; the bytes that were under way are lost, and each end learns of it after a while, or when
it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Generic, TypeVar

from pyengine.clock import ManualClock

S = TypeVar("S")  # the class of what listens at an address

HALF_OPEN = 120_000  # ms after which an end that hears nothing gives up (serverChannelMaxIdleTimeSeconds)


class DisturbedNetwork(Generic[S]):
    """The service at each address, and the links between clients and services. chance: decides all delays and cuts.

    calm: from then on nothing is cut, and everything arrives soon. disturbed: called before each cut.
    """

    slowness = (0, 0, 0, 0, 1, 5, 20, 200, 2500)  # ms that a peer may take for everything

    def __init__(self, clock: ManualClock, chance: Random) -> None:
        self.clock = clock
        self.chance = chance
        self.calm = False
        self.cuts = 0
        self.disturbed: Callable[[], None] = lambda: None
        self._services: dict[str, S] = {}
        self._links: list[Link[S]] = []

    def listen(self, address: str, service: S) -> None:
        """Let clients connect to an address."""
        self._services[address] = service

    def stop(self, address: str) -> None:
        """The process there ends: its connections break, new ones are refused."""
        service = self._services.pop(address)
        for link in self.links:
            if link.service is service:
                link.cut()

    @property
    def links(self) -> list[Link[S]]:
        """The connections that are not cut."""
        self._links = [each for each in self._links if not each.is_cut]
        return self._links

    def link_to(self, address: str) -> Link[S] | None:
        """A new connection, still without ends; None if no service listens there."""
        service = self._services.get(address)
        if service is None:
            return None
        self._links.append(link := Link(self, service, address))
        return link

    def later(self, delay: int, action: Callable[[], object]) -> None:
        """Call ``action`` after so many ms."""
        self.clock.call_at(self.clock.now() + delay, action)


class Link(Generic[S]):
    """One connection. ends: the client's, then the server's."""

    def __init__(self, network: DisturbedNetwork[S], service: S, address: str) -> None:
        self.network = network
        self.service = service
        self.address = address
        self.ends: list[End] = []
        self.is_cut = False
        self.slowness = 0 if network.calm else network.chance.choice(network.slowness)

    def cut(self) -> None:
        """Nothing passes any more."""
        if self.is_cut:
            return
        self.network.disturbed()
        self.is_cut = True
        self.network.cuts += 1
        for end in self.ends:
            self.network.later(self.network.chance.choice((0, 0, 0, 1, 30, HALF_OPEN)), end.learn)


class End:
    """One end of a link. ``_before``: when the last byte that it sent arrives."""

    def __init__(self, link: Link[Any]) -> None:
        self.link = link
        self.knows = False  # that the link is gone
        self._before = 0
        self._left = link.network.chance.randrange(200, 8000)  # bytes until the link is cut while this end sends
        link.ends.append(self)

    def send(self, data: bytes) -> None:
        """Have the other end get these bytes, or some of them. Raises BrokenPipeError if this end knows of a cut."""
        link, network = self.link, self.link.network
        if self.knows:
            raise BrokenPipeError(32, "Broken pipe")
        if link.is_cut:
            network.later(1, self.learn)  # the system answers that the other end is gone
            return
        ends = not network.calm and len(data) > self._left
        passing = data[: self._left] if ends else data
        self._left -= len(passing)
        at = 0
        while at < len(passing):
            size = len(passing) if network.chance.random() < 0.7 else network.chance.randrange(1, 400)
            self._pass(passing[at : at + size])
            at += size
        if ends:
            network.clock.call_at(self._before or network.clock.now(), link.cut)

    def _pass(self, piece: bytes) -> None:
        link, network = self.link, self.link.network
        delay = 1 if network.calm else network.chance.choice((0, 0, 0, 0, 1, 2, 3, 10, 50)) + link.slowness
        self._before = max(self._before, network.clock.now() + delay)
        (other,) = (end for end in link.ends if end is not self)
        network.clock.call_at(self._before, lambda: None if link.is_cut or other.knows else other.arrived(piece))

    def learn(self) -> None:
        """This end notices that the link is gone."""
        if not self.knows:
            self.knows = True
            self.gone()

    def arrived(self, piece: bytes) -> None:
        """Bytes of the other end are here."""
        raise NotImplementedError

    def gone(self) -> None:
        """The link is gone."""
        raise NotImplementedError
