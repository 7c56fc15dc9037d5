"""A STOMP client of a few lines: frames as they are on the wire, for what no client library shows."""

from __future__ import annotations

import socket
from typing import NamedTuple

from pyengine.activemq import Broker


class Frame(NamedTuple):
    """A frame that came; an action of "" is a connection that was closed."""

    action: str
    headers: dict[str, str]
    body: str


class RawClient:
    """A connection to a broker, connected. headers: of its CONNECT."""

    def __init__(self, broker: Broker, **headers: str) -> None:
        connector = broker.transport_connectors[0]
        self._socket = socket.create_connection(("127.0.0.1", connector.port), timeout=5)
        self._rest = b""
        self.connected = self.ask("CONNECT", accept_version="1.2", **headers)

    def send(self, action: str, body: str = "", **headers: str) -> None:
        """Send a frame; underscores of a header's name are hyphens, two of them a full stop."""
        lines = "".join(
            f"{name.replace('__', '.') if '__' in name else name.replace('_', '-')}:{value}\n"
            for name, value in headers.items()
        )
        self._socket.sendall(f"{action}\n{lines}\n{body}\0\n".encode())

    def ask(self, action: str, body: str = "", **headers: str) -> Frame:
        """Send a frame, and read the next that comes."""
        self.send(action, body, **headers)
        return self.read()

    def read(self, timeout: float = 5) -> Frame:
        """The next frame. Raises TimeoutError."""
        self._socket.settimeout(timeout)
        while b"\0" not in (rest := self._rest.lstrip(b"\n")):
            try:
                data = self._socket.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                return Frame("", {}, "")
            self._rest += data
        frame, _, self._rest = rest.partition(b"\0")
        head, _, body = frame.decode().partition("\n\n")
        action, *lines = head.split("\n")
        return Frame(action, dict(line.replace("\\c", ":").split(":", 1) for line in lines), body)

    def close(self) -> None:
        """Leave without a word."""
        self._socket.close()
