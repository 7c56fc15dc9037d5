"""What lies between a client and a broker: it passes bytes on late, or no more."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress


class Relay:
    """Passes the bytes of connections on in both directions, each after ``delay`` seconds.

    passing: cleared, nothing is passed on until it is set again.
    """

    def __init__(self, port: int, delay: float = 0) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._to, self._delay = port, delay
        self.port: int = self._server.getsockname()[1]
        self.passing = threading.Event()
        self.passing.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
                broker = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            self._open += [client, broker]
            for here, there in ((client, broker), (broker, client)):
                threading.Thread(target=self._pass, args=(here, there), daemon=True).start()

    def cut(self) -> None:
        """End the connections that are there."""
        cut, self._open = self._open, []
        for each in cut:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _pass(self, here: socket.socket, there: socket.socket) -> None:
        with here, there, suppress(OSError):
            while data := here.recv(65536):
                time.sleep(self._delay)
                self.passing.wait()
                there.sendall(data)
            for each in (here, there):  # wakes the other direction
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more; what waits to be passed on is."""
        with suppress(OSError):  # close() alone leaves it listening while another thread accepts
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.passing.set()
