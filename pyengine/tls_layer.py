"""TLS apart from the socket that carries it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    import ssl

PIECE = 256 * 1024


class TlsLayer:
    """The TLS of one connection, without its socket. Safe from any thread.

    server_hostname: of the server, at the client's end; None at the server's. Its methods raise ssl.SSLError.
    """

    def __init__(self, context: ssl.SSLContext, server_hostname: str | None = None) -> None:
        import ssl  # it takes time to import, and few have TLS

        self._lock = threading.Lock()
        self._more_is_wanted = ssl.SSLWantReadError
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
        )
        self.ready = False

    def start(self) -> bytes:
        """The bytes that begin the handshake, of the end that connects."""
        return self.handshake(b"")

    def handshake(self, data: bytes) -> bytes:
        """Take bytes of the other end until :attr:`ready`; returns those to send."""
        with self._lock:
            self._incoming.write(data)
            try:
                self._tls.do_handshake()
                self.ready = True
            except self._more_is_wanted:
                pass
            return self._outgoing.read()

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the other end; returns what they say. What TLS wants to answer goes with the next
        :meth:`wrap`. Empty also at the end of what the other end says.
        """
        found = []
        with self._lock:
            self._incoming.write(data)
            try:
                while piece := self._tls.read(PIECE):
                    found.append(piece)
            except self._more_is_wanted:
                pass
        return b"".join(found)

    def wrap(self, data: bytes) -> bytes:
        """The bytes to send for these. Those of two calls are sent in the order of the calls."""
        with self._lock:
            self._tls.write(data)
            return self._outgoing.read()


def shake_hands(connection: socket.socket, context: ssl.SSLContext, host: str) -> TlsLayer:
    """Agree on TLS with the server at the other end, whose certificate must be of ``host``.

    Raises OSError, with the reason. What the server has said meanwhile comes with ``receive(b"")``.
    """
    try:
        layer = TlsLayer(context, host)
        connection.sendall(layer.start())
        while not layer.ready:
            data = connection.recv(65536)
            if not data:
                raise OSError("the other end has closed it, perhaps because it does not speak TLS")
            connection.sendall(layer.handshake(data))
    except (OSError, ValueError) as error:
        connection.close()
        raise OSError(f"TLS: {getattr(error, 'verify_message', '') or error}") from error
    return layer
