"""A script whose clients are at the broker over OpenWire: every command and every message becomes bytes and back.

Bytes arrive as they are written, on the same thread: what a script shows keeps its order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyengine.activemq.transport.commands import MessageDispatch
from pyengine.activemq.transport.connectors import connector_uri
from pyengine.activemq.transport.openwire_channel import OpenWireChannel
from pyengine.activemq.transport.openwire_connector import OpenWireEnd
from pyengine.activemq.transport.openwire_transport import OpenWireTransport
from pyengine.activemq.transport.tcp_options import TcpOptions
from tests.conformance.activemq_scenarios import Replay, Watched

URI = connector_uri("tcp://127.0.0.1:61616")
OPTIONS = TcpOptions(use_inactivity_monitor=False, watch_advisories=False)


class Wire:
    """One connection, both ends of it (openwire_channel.Link)."""

    host = "127.0.0.1"

    def __init__(self, broker: Watched) -> None:
        self._closed = False
        self._lost: Callable[[str], None] = lambda reason: None
        self._arrived: Callable[[bytes], None] = lambda data: None
        self._early = bytearray()
        self._reading = False
        self.end = OpenWireEnd(
            broker,  # type: ignore[arg-type]
            URI,
            "tcp://127.0.0.1:61616",
            "127.0.0.1:20000",
            self._send,
            self._dispatch,
            lambda command: self.end.session.controlled(command),
            self._fail,
            lambda first, silence, interval: None,
            lambda connection_id: None,
            lambda seconds, reason: None,
        )

    def __str__(self) -> str:
        return "tcp://127.0.0.1:61616"

    # The broker's end

    def _send(self, data: bytes) -> None:
        if not self._reading:
            self._early += data
        elif not self._closed:
            self._arrived(bytes(data))

    def _dispatch(self, dispatch: MessageDispatch) -> None:
        self.end.session.deliver(dispatch)

    def _fail(self, reason: str) -> None:
        self.close()
        self._lost(reason)

    # The client's end

    def open(self, arrived: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        self._arrived, self._lost = arrived, lost
        self.end.begin()

    def read(self) -> None:
        self._reading = True
        self._arrived(bytes(self._early))

    def write(self, data: bytes) -> None:
        if self._closed:
            raise OSError("it is closed")
        self.end.receive(data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.end.session.leave()

    def join(self) -> None:
        """There is no thread."""


class WireReplay(Replay):
    """A scenario whose clients are at the broker over OpenWire."""

    def reach(self) -> Any:
        return OpenWireTransport(OpenWireChannel(Wire(self.watched), OPTIONS, self.clock), OPTIONS, self.clock)
