"""The bytes of a connection to a broker, over TCP and with TLS, read by a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from pyengine.activemq.transport.tcp_options import TcpOptions
from pyengine.activemq.transport.tls_options import tls_context
from pyengine.errors import JMSError
from pyengine.tls_layer import TlsLayer, shake_hands

READ = 64 * 1024


class SocketLink:
    """A connection to ``host:port`` (openwire_channel.Link)."""

    def __init__(self, host: str, port: int, options: TcpOptions) -> None:
        self.host = host
        self._port = port
        self._options = options
        self._scheme = "tcp" if options.tls is None else "ssl"
        self._tls: TlsLayer | None = None
        self._socket: socket.socket | None = None
        self._closed = False
        # See Link.
        self.write: Callable[[bytes], None] = self._not_open
        self._thread: threading.Thread | None = None

    def __str__(self) -> str:
        return f"{self._scheme}://{self.host}:{self._port}"

    def open(self, arrived: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        """See Link."""
        timeout = self._options.connection_timeout
        try:
            found = socket.create_connection((self.host, self._port), timeout / 1000 if timeout else None)
            if self._options.tls is not None:
                self._tls = shake_hands(found, tls_context(self._options.tls, "", server=False), self.host)
        except OSError as error:
            raise JMSError(f"Could not connect to broker URL: {self}. Reason: {error}") from error
        found.settimeout(self._options.so_timeout / 1000 if self._options.so_timeout else None)
        if self._options.tcp_no_delay:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._options.keep_alive:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = found
        self.write = found.sendall if self._tls is None else self._write_encrypted
        if self._closed:
            self.close()
        self._thread = threading.Thread(
            target=self._run, args=(found, arrived, lost), name=f"ActiveMQ Transport: {self}", daemon=True
        )

    def read(self) -> None:
        """See Link."""
        assert self._thread is not None
        self._thread.start()

    def _run(self, connected: socket.socket, arrived: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        try:
            tls = self._tls
            data = b"" if tls is None else tls.receive(b"")  # what came with the end of the handshake
            while not self._closed:
                arrived(data)
                data = connected.recv(READ)
                if not data:
                    lost("the broker has closed the connection")
                    return
                if tls is not None:
                    data = tls.receive(data)
        except OSError as error:
            lost(str(error))

    def _not_open(self, data: bytes) -> None:
        raise OSError(f"{self} is not open")

    def _write_encrypted(self, data: bytes) -> None:
        assert self._socket is not None
        assert self._tls is not None
        self._socket.sendall(self._tls.wrap(data))

    def close(self) -> None:
        """See Link."""
        self._closed = True
        if self._socket is not None:
            with suppress(OSError):  # wakes the thread that reads, which closing alone does not
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()

    def join(self) -> None:
        """See Link."""
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join(5)
