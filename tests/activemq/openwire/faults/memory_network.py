"""OpenWire in memory: our own client on our own connector, without sockets, through a network that a seed disturbs."""

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
from tests.disturbed_network import DisturbedNetwork, End, Link

URI = connector_uri("tcp://127.0.0.1:61616")


class MemoryNetwork(DisturbedNetwork[Broker]):
    """Brokers, and the connections of clients to them.

    sent: called with an end before it passes a frame on; it may cut the link. dispatched: (consumer id, message id) ->
    the moment of its last dispatch, counted by ``moment``. serving: the brokers' ends that do not know that their link
    is gone.
    """

    slowness = (0, 0, 0, 0, 1, 5, 20, 200)

    def __init__(self, clock: ManualClock, chance: Random) -> None:
        super().__init__(clock, chance)
        self.sent: Callable[[End], None] = lambda end: None
        self.dispatched: dict[tuple[str, str], int] = {}
        self.moment = 0
        self.serving: list[ServerEnd] = []

    def link(self, address: str) -> ClientLink:
        """A client's way to an address."""
        return ClientLink(self, address)


class ClientLink:
    """What a client's channel has (openwire_channel.Link)."""

    host = "127.0.0.1"

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self._address = address
        self._network = network
        self._end: ClientEnd | None = None

    def __str__(self) -> str:
        return f"tcp://{self._address}"

    @property
    def now(self) -> int:
        return self._network.clock.now()

    def open(self, arrived: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        link = self._network.link_to(self._address)
        if link is None:
            raise JMSError(f"Could not connect to broker URL: {self}. Reason: refused")
        self._end = ClientEnd(link, arrived, lost)
        ServerEnd(link, self._network).begin()

    def read(self) -> None:
        """Everything arrives by itself."""

    def write(self, data: bytes) -> None:
        assert self._end is not None
        self._network.sent(self._end)
        self._end.send(data)

    def close(self) -> None:
        if self._end is not None:
            self._end.knows = True
            self._end.link.cut()

    def join(self) -> None:
        """There is no thread."""


class ClientEnd(End):
    """The client's end of an open link."""

    def __init__(self, link: Link[Broker], arrived: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        super().__init__(link)
        self._arrived, self._lost = arrived, lost

    def arrived(self, piece: bytes) -> None:
        self._arrived(piece)

    def gone(self) -> None:
        self._lost("was closed by the other end")


class ServerEnd(End):
    """What a connector's connection has."""

    def __init__(self, link: Link[Broker], network: MemoryNetwork) -> None:
        super().__init__(link)
        self._network = network
        self._broker = link.service
        network.serving.append(self)
        self._dispatches: deque[MessageDispatch] = deque()
        self.end = OpenWireEnd(
            link.service,
            URI,
            f"tcp://{link.address}",
            "127.0.0.1:20000",
            self._write,
            self._dispatch,
            self._control,
            lambda reason: link.cut(),
            lambda first, silence, interval: self._beat(int(interval * 1000)),
            self._displace,
            lambda seconds, reason: network.later(int(seconds * 1000), link.cut),
        )

    def begin(self) -> None:
        self.end.begin()

    def _write(self, data: bytes) -> None:
        if not self.knows:
            self._network.sent(self)
            self.send(bytes(data))

    def _beat(self, interval: int) -> None:
        def beat() -> None:
            if not self.knows and not self.link.is_cut:
                self._write(self.end.keep_alive())
                self._beat(interval)

        self._network.later(interval, beat)

    def _dispatch(self, dispatch: MessageDispatch) -> None:
        self._dispatches.append(dispatch)
        self._network.later(0, self._flush)

    def _flush(self) -> None:
        while self._dispatches and not self.knows:
            dispatch = self._dispatches.popleft()
            if dispatch.message is not None:
                self._network.moment += 1
                message_id = str(dispatch.message.message_id)
                self._network.dispatched[dispatch.consumer_id, message_id] = self._network.moment
            self.end.session.deliver(dispatch)

    def _control(self, command: ConsumerControl) -> None:
        self._network.later(0, lambda: None if self.knows else self.end.session.controlled(command))

    def _displace(self, connection_id: str) -> None:
        for other in list(self._network.serving):
            same = other._broker is self._broker and other.end.session.connection_id == connection_id
            if other is not self and same:
                other.link.cut()
                other.learn()

    def arrived(self, piece: bytes) -> None:
        self.end.receive(piece)
        if self.end.session.closing:
            self._network.later(1, self.link.cut)

    def gone(self) -> None:
        self._network.serving.remove(self)
        self._dispatches.clear()
        self.end.session.leave()
