"""OpenWire in memory under a ManualClock, which a seed disturbs: our own client on our own connector, without sockets.

As tests/rocketmq/faults/memory_network.py, whose links these are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.activemq import Broker
from pyengine.activemq.transport.commands import ConsumerControl
from pyengine.activemq.transport.connectors import connector_uri
from pyengine.activemq.transport.openwire_connector import OpenWireEnd
from pyengine.clock import ManualClock
from pyengine.errors import JMSError
from tests.rocketmq.faults import memory_network as network

URI = connector_uri("tcp://127.0.0.1:61616")


class MemoryNetwork(network.MemoryNetwork):
    """Which broker listens at which address. sent: called with an end before it passes a frame on; it may cut the link.
    dispatched: (consumer id, message id) -> the moment of its last dispatch, counted by ``moment``. serving: the
    brokers' ends that do not know that their link is gone."""

    def __init__(self, clock: ManualClock, chance: Random) -> None:
        super().__init__(clock, chance)
        self.sent: Callable[[network.End], None] = lambda end: None
        self.dispatched: dict[tuple[str, str], int] = {}
        self.moment = 0
        self.serving: list[ServerEnd] = []

    def link(self, address: str) -> ClientLink:
        """A client's way to an address."""
        return ClientLink(self, address)

    def broker_at(self, address: str) -> Broker | None:
        """The broker that listens there."""
        found = self._services.get(address)
        assert found is None or isinstance(found, Broker)
        return found

    def join(self, link: Link) -> None:
        """One more connection."""
        self._links.append(link)


class Link(network.Link):
    """One connection: two ends, and what is between them."""

    def __init__(self, net: MemoryNetwork, broker: Broker, client: ClientLink) -> None:
        self.network = net
        self.service = broker  # type: ignore[assignment]
        self.is_cut = False
        self.slowness = 0 if net.calm else net.chance.choice((0, 0, 0, 0, 1, 5, 20, 200))
        self.client = client  # type: ignore[assignment]
        self.server = ServerEnd(self, broker, client.address)  # type: ignore[assignment]


class ClientLink(network.End):
    """What a client's channel has (openwire_channel.Link)."""

    host = "127.0.0.1"

    def __init__(self, net: MemoryNetwork, address: str) -> None:
        self.address = address
        self._net = net
        self._opened = False

    def __str__(self) -> str:
        return f"tcp://{self.address}"

    @property
    def now(self) -> int:
        return self._net.clock.now()

    def open(self, arrived: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        broker = self._net.broker_at(self.address)
        if broker is None:
            raise JMSError(f"Could not connect to broker URL: {self}. Reason: refused")
        self._arrived, self._lost = arrived, lost
        link = Link.__new__(Link)
        link.network = self._net
        super().__init__(link)
        Link.__init__(link, self._net, broker, self)
        self._opened = True
        self._net.join(link)
        link.server.begin()  # type: ignore[attr-defined]

    def read(self) -> None:
        """Everything arrives by itself."""

    def write(self, data: bytes) -> None:
        self._net.sent(self)
        server: ServerEnd = self._link.server  # type: ignore[assignment]
        self._send(data, server.arrived)

    def close(self) -> None:
        if self._opened:
            self.knows = True
            self._link.cut()

    def join(self) -> None:
        """There is no thread."""

    def arrived(self, piece: bytes) -> None:
        if not self.knows:
            self._arrived(piece)

    def _gone(self) -> None:
        self._lost("was closed by the other end")


class ServerEnd(network.End):
    """What a connector's connection has."""

    def __init__(self, link: Link, broker: Broker, address: str) -> None:
        super().__init__(link)
        self._net: MemoryNetwork = link.network  # type: ignore[assignment]
        self._broker = broker
        self._net.serving.append(self)
        self._dispatches: deque[MessageDispatch] = deque()
        self.end = OpenWireEnd(
            broker,
            URI,
            f"tcp://{address}",
            "127.0.0.1:20000",
            self._write,
            self._dispatch,
            self._control,
            lambda reason: link.cut(),
            lambda first, silence, interval: self._beat(int(interval * 1000)),
            self._displace,
            lambda seconds, reason: link._later(int(seconds * 1000), link.cut),
        )

    def begin(self) -> None:
        self.end.begin()

    def _write(self, data: bytes) -> None:
        if not self.knows:
            client: ClientLink = self._link.client  # type: ignore[assignment]
            self._link.network.sent(self)  # type: ignore[attr-defined]
            self._send(bytes(data), client.arrived)

    def _beat(self, interval: int) -> None:
        def beat() -> None:
            if not self.knows and not self._link.is_cut:
                self._write(self.end.keep_alive())
                self._beat(interval)

        self._link._later(interval, beat)

    def _dispatch(self, dispatch: MessageDispatch) -> None:
        self._dispatches.append(dispatch)
        self._link._later(0, self._flush)

    def _flush(self) -> None:
        while self._dispatches and not self.knows:
            dispatch = self._dispatches.popleft()
            if dispatch.message is not None:
                self._net.moment += 1
                self._net.dispatched[dispatch.consumer_id, str(dispatch.message.message_id)] = self._net.moment
            self.end.session.deliver(dispatch)

    def _control(self, command: ConsumerControl) -> None:
        self._link._later(0, lambda: None if self.knows else self.end.session.controlled(command))

    def _displace(self, connection_id: str) -> None:
        for other in list(self._net.serving):
            same = other._broker is self._broker and other.end.session.connection_id == connection_id
            if other is not self and same:
                other._link.cut()
                other.learn()

    def arrived(self, piece: bytes) -> None:
        if self.knows:
            return
        self.end.receive(piece)
        if self.end.session.closing:
            self._link._later(1, self._link.cut)

    def _gone(self) -> None:
        self._net.serving.remove(self)
        self._dispatches.clear()
        self.end.session.leave()
