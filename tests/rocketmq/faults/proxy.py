"""A proxy that cuts, delays and truncates what passes through it, by a seed."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable

from pyengine.rocketmq.remoting.transport import Receiver, SocketTransport


class Proxy:
    """Passes bytes on to ``target``, and now and then cuts a connection: between frames, or within one.

    cut: called before each cut. port: where it listens, 0: any free one. calm: nothing is cut.
    """

    def __init__(self, seed: int, target: str, cut: Callable[[], None], *, port: int = 0, calm: bool = False) -> None:
        self._random = random.Random(seed)
        self._target = target
        self._cut = cut
        self._listener = socket.create_server(("127.0.0.1", port))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.calm = calm
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._end(self._listener)  # close() alone leaves it listening while another thread accepts
        for each in list(self._open):
            self._end(each)

    def _end(self, each: socket.socket) -> None:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
        self._open.discard(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                host, _, port = self._target.rpartition(":")
                server = socket.create_connection((host, int(port)))
            except OSError:
                return
            self._open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        left = self._random.randrange(300, 5000)  # bytes until it is cut
        with contextlib.suppress(OSError):
            while data := one.recv(4096):
                if not self.calm and len(data) >= left:
                    self._cut()
                    other.sendall(data[:left])
                    break
                left -= len(data)
                if self._random.random() < 0.05:
                    time.sleep(self._random.random() * 0.02)
                other.sendall(data)
        self._end(one)
        self._end(other)


class Detour:
    """A Connect that reaches every address through a proxy of its own. calm: nothing is cut."""

    def __init__(self, seed: int, cut: Callable[[], None]) -> None:
        self._seed = seed
        self._cut = cut
        self._lock = threading.Lock()
        self._calm = True
        self.proxies: dict[str, Proxy] = {}

    def __call__(self, address: str, receiver: Receiver) -> SocketTransport:
        with self._lock:
            if address not in self.proxies:
                self.proxies[address] = Proxy(self._seed + len(self.proxies), address, self._cut, calm=self._calm)
        return SocketTransport(self.proxies[address].address, receiver)

    @property
    def calm(self) -> bool:
        return self._calm

    @calm.setter
    def calm(self, calm: bool) -> None:
        with self._lock:
            self._calm = calm
            for each in self.proxies.values():
                each.calm = calm

    def close(self) -> None:
        """End all of them."""
        for each in self.proxies.values():
            each.close()
