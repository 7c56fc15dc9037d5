"""What carries the bytes of a client's connection: a socket, or what a test puts in its place."""

from __future__ import annotations

import logging
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.errors import ConfigurationError, RemotingError
from pyengine.tls_layer import shake_hands

if TYPE_CHECKING:
    import ssl

log = logging.getLogger("pyengine.rocketmq.remoting")

CONNECT_TIMEOUT = 3000  # ms
WRITE_TIMEOUT = 10_000  # ms that a peer may take nothing
RECEIVED_AT_ONCE = 64 * 1024
LULL = 0.005  # seconds after a waiting thread has read its own answer for which the connection's thread does not read


def parse_address(name: str, text: str) -> tuple[str, int]:
    """``host:port`` taken apart; IPv6 as ``[::1]:9876``. Raises ConfigurationError, which names it."""
    host, _, port = text.strip().rpartition(":")
    is_port = port.isascii() and port.isdecimal() and len(port) < 6 and 0 < int(port) < 65536
    if not host or any(each in ",;/ \t" for each in host) or not is_port:
        raise ConfigurationError(name, repr(text), "not an address", "give host:port, several separated by ';'")
    return host.removeprefix("[").removesuffix("]"), int(port)


def local_address(address: str) -> str:
    """The address that this machine has in the network of ``host:port``; nothing is sent. Raises RemotingError."""
    host, port = parse_address("address", address)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            found: str = probe.getsockname()[0]
    except OSError as error:
        raise RemotingError(address, f"{address} cannot be reached: {error}") from error
    return found


class Promise:
    """An answer that one thread waits for and another one gives, once."""

    __slots__ = ("_given", "value")

    def __init__(self) -> None:
        self.value: RemotingCommand | RemotingError | None = None
        self._given = threading.Lock()
        self._given.acquire()

    def give(self, value: RemotingCommand | RemotingError) -> None:
        """Let the thread that waits go on."""
        self.value = value
        self._given.release()

    def wait(self, seconds: float) -> None:
        """Return when it is given, or after so long."""
        self._given.acquire(timeout=max(0.0, seconds))

    def is_given(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


class Receiver(Protocol):
    """What a transport reports of its connection. No two calls overlap; the thread is any."""

    def received(self, data: bytes) -> None:
        """Bytes of the other end have arrived."""

    def lost(self, why: str) -> None:
        """The connection is gone; no further call."""

    @property
    def expects(self) -> bool:
        """Whether an answer is waited for."""


class Transport(Protocol):
    """A connection. Every method is safe from any thread. local_host: the address of this end, without a port."""

    local_host: str

    def write(self, data: bytes) -> None:
        """Send bytes, in the order of the calls. Raises OSError if the connection is gone, or takes nothing."""

    def expect(self) -> None:
        """An answer will come that no thread waits for."""

    def wait(self, promise: Promise, milliseconds: int) -> None:
        """Return when the promise is given, which something that is received does, or after so many ms."""

    def close(self) -> None:
        """End it. Receiver.lost may follow; harmless the second time."""


Connect = Callable[[str, Receiver], Transport]  # (address, receiver); raises OSError if it cannot be reached


class SocketTransport:
    """A TCP connection to ``host:port``. A thread of its own reads it, except while threads wait for answers often:
    then the thread that waits reads, which saves two changes of threads for each answer.

    tls: of the connection, None for a plain one. Raises OSError if the other end cannot be reached, or its certificate
    is not trusted.
    """

    def __init__(self, address: str, receiver: Receiver, tls: ssl.SSLContext | None = None) -> None:
        self._receiver = receiver
        self._write_lock = threading.Lock()
        self._reading = threading.Lock()  # held by the thread that reads
        self._waited = False  # whether a thread has waited since the connection's thread last looked
        self._parked = False  # whether the connection's thread leaves reading to others
        self._wake = threading.Event()
        self._open = True
        self._socket = socket.create_connection(parse_address("address", address), CONNECT_TIMEOUT / 1000)
        self._tls = None if tls is None else shake_hands(self._socket, tls, parse_address("address", address)[0])
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        limit = (
            struct.pack("L", WRITE_TIMEOUT) if sys.platform == "win32" else struct.pack("ll", WRITE_TIMEOUT // 1000, 0)
        )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.local_host: str = self._socket.getsockname()[0]
        self._readable = _readable(self._socket)
        self._received = memoryview(bytearray(RECEIVED_AT_ONCE))
        threading.Thread(target=self._run, name=f"RemotingClient {address}", daemon=True).start()

    def write(self, data: bytes) -> None:
        with self._write_lock:
            self._socket.sendall(data if self._tls is None else self._tls.wrap(data))

    def expect(self) -> None:
        if self._parked:
            self._wake.set()

    def wait(self, promise: Promise, milliseconds: int) -> None:
        deadline = monotonic() + milliseconds / 1000
        while promise.value is None and self._open and (left := deadline - monotonic()) > 0:
            self._waited = True
            if not self._reading.acquire(blocking=False):
                promise.wait(left)
                return
            try:
                if self._readable(left):
                    self._read()
            finally:
                self._reading.release()
            if self._receiver.expects:
                self._wake.set()
        if promise.value is None and not self._open:
            promise.wait(deadline - monotonic())  # the thread that found it closed gives it

    def close(self) -> None:
        self._open = False
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # which wakes the thread that reads
        except OSError as error:
            log.debug("closing a connection: %s", error)
        self._wake.set()

    def _run(self) -> None:
        while self._open:
            self._parked = True
            if self._waited and (self._reading.locked() or not self._receiver.expects):
                self._waited = False
                self._wake.wait(LULL)
                self._wake.clear()
                continue
            self._parked = False
            with self._reading:
                if self._open:
                    self._read()
        with self._reading:
            self._socket.close()

    def _read(self) -> None:
        """Receive once; ``_reading`` is held."""
        try:
            # A fresh buffer of this size for each answer would be asked of the system, page by page.
            data = bytes(self._received[: self._socket.recv_into(self._received)])
            if not data:
                self._lose("was closed by the other end")
                return
            if self._tls is not None:
                data = self._tls.receive(data)
        except OSError as error:
            self._lose(f"broke: {error}")
            return
        try:
            self._receiver.received(data)
        except BaseException:  # Ctrl-C: what was received may be lost
            self._lose("was interrupted")
            raise

    def _lose(self, why: str) -> None:
        if self._open:
            self.close()
            self._receiver.lost(why)


def _readable(connection: socket.socket) -> Callable[[float], bool]:
    """A function that waits so many seconds for bytes; True if there are any."""
    if not hasattr(select, "poll"):
        return lambda seconds: bool(select.select([connection], (), (), seconds)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return lambda seconds: bool(poll.poll(seconds * 1000))
