"""TLS of a connector. In a module of its own: ssl takes time to import, and few connectors have TLS."""

from __future__ import annotations

import selectors
import socket
import ssl

from pyengine.activemq.transport.connectors import WHERE
from pyengine.activemq.transport.tls_options import TlsOptions, tls_context


class ConnectorTLS:
    """The TLS of a connector. Raises ConfigurationError for files that cannot be used.

    would_block: what its sockets raise where they have nothing, or take nothing, now.
    """

    would_block = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

    def __init__(self, options: TlsOptions) -> None:
        self._context = tls_context(options, WHERE, server=True)

    def wrap(self, client: socket.socket) -> ssl.SSLSocket:
        """The socket of a client that was accepted; its handshake comes later. Raises OSError if it has gone."""
        return self._context.wrap_socket(client, server_side=True, do_handshake_on_connect=False)


def shake_hands(client: ssl.SSLSocket) -> int:
    """Go on with the handshake: what to wait for now, 0 once it is complete. Raises OSError if it has failed."""
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return selectors.EVENT_READ
    except ssl.SSLWantWriteError:
        return selectors.EVENT_READ | selectors.EVENT_WRITE
    return 0
