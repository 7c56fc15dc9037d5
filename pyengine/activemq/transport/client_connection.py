"""One client of a connector: its socket, and the messages and bytes that wait for it. Subclasses know the protocol."""

from __future__ import annotations

import selectors
import socket
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.activemq._runtime.connector_round import ClientSocket, ConnectorRound
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.transport.commands import Transport
from pyengine.activemq.transport.connectors import ConnectorURI
from pyengine.errors import PyengineError
from pyengine.visible import logger

if TYPE_CHECKING:
    import ssl

    from pyengine.activemq.transport.connector_tls import ConnectorTLS

LOG = logger("pyengine.activemq")
DRAINED = 16 * 64 * 1024  # bytes of a client that is closed that are read and forgotten
BLOCKED_CHECK = 1.0  # seconds between looks at clients that take nothing
WOULD_BLOCK = (BlockingIOError, InterruptedError)


class ListeningBroker(Transport, Protocol):
    """What a connector asks of its broker in addition to what clients do."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def started(self) -> int:
        """When it was started, ms."""

    @property
    def outbox(self) -> Outbox:
        """Where its changes are made."""

    def authenticate(self, user: str | None, password: str | None) -> tuple[str, ...]:
        """The groups of a client's user. Raises AuthenticationError for one that may not come in."""

    def set_prefetch(self, consumer_id: str, prefetch: int) -> None:
        """A consumer may hold so many messages from now on."""

    def last_produced(self, producer_id: str) -> int:
        """The number of the last message of a producer that ``produced`` was given and the store has; -1: none."""

    def produced(self, producer_id: str, number: int) -> None:
        """The store keeps the number of a producer's message with the present change."""


class TransportConnector:
    """An address on which a broker listens. url: what a client connects to, with the port that was bound."""

    def __init__(
        self, uri: ConnectorURI, listener: socket.socket, kind: type[ClientConnection], tls: ConnectorTLS | None = None
    ) -> None:
        self.uri = uri
        self.name = uri.scheme
        self.port: int = listener.getsockname()[1]
        self.host = uri.host
        self.url = uri.url(self.port)
        self.listener = listener
        self.kind = kind
        self.tls = tls
        self.would_block: tuple[type[OSError], ...] = WOULD_BLOCK if tls is None else tls.would_block
        self.connections = 0

    def __repr__(self) -> str:
        return f"<TransportConnector {self.url}>"

    def __str__(self) -> str:
        return self.url


class ConnectionThread(ConnectorRound):
    """The thread of the connections (connector_thread.ConnectorThread), as they use it."""

    broker: ListeningBroker

    def plan(self, when: float, connection: ClientConnection) -> None:
        """Look at a connection when the time has come, seconds of time.monotonic()."""
        raise NotImplementedError

    def forget(self, connection: ClientConnection) -> None:
        """A connection has ended."""
        raise NotImplementedError

    def others(self, connection: ClientConnection) -> list[ClientConnection]:
        """The connections but this one."""
        raise NotImplementedError


class ClientSession(Protocol):
    """What the broker makes of a client's commands (StompSession, OpenWireSession)."""

    @property
    def connected(self) -> bool:
        """Whether the handshake is complete."""

    @property
    def closing(self) -> bool:
        """Whether the connection ends once what was written is sent."""

    def deliver(self, dispatch: MessageDispatch) -> None:
        """Write a message, or the end of a browse or pull."""

    def leave(self) -> None:
        """The connection has ended: what it holds goes back to the broker."""


class ClientConnection(ClientSocket, ABC):
    """A client: its socket, its session, and what waits for it (see connector_round)."""

    session: ClientSession
    _thread: ConnectionThread

    def __init__(
        self, thread: ConnectionThread, connector: TransportConnector, client: socket.socket, address: str
    ) -> None:
        self.planned: float | None = None
        self._tls = None if connector.tls is None else cast("ssl.SSLSocket", client)
        self._handshaking = self._tls is not None
        self._created = self._last_read
        self._ends = 0.0  # when it is closed, 0: it is not
        self._ending = ""
        self._read_check = 0.0  # when silence is looked at next, 0: never
        self._read_interval = 0.0  # seconds within which something must have come
        self._beat = 0.0  # seconds after the last byte written, 0: none
        self._wait_for(selectors.EVENT_READ)
        self.begin()
        self._plan()
        if self._out:
            self._ask()

    # The protocol

    @abstractmethod
    def begin(self) -> None:
        """The connection is there: it gets its session."""

    @abstractmethod
    def receive(self, data: bytes | memoryview) -> None:
        """Bytes have come, which are gone when it returns. Raises PyengineError once the broker has stopped."""

    @abstractmethod
    def keep_alive(self) -> bytes:
        """The bytes to write after a while without others."""

    def monitor(self, first: float, read: float, write: float) -> None:
        """Look for silence: the first time after ``first`` seconds, then every ``read``; write something after
        ``write`` seconds without. 0: not so."""
        self._read_interval = read
        self._read_check = time.monotonic() + first if read else 0.0
        self._beat = write
        self._plan()

    # On the connectors' thread

    def _fail(self, reason: str) -> None:
        LOG.warning("%s: closed: %s", self._address, reason)
        self._thread.call(self.close)

    def _shake_hands(self) -> bool:
        """Go on with the TLS handshake; whether it is complete."""
        from pyengine.activemq.transport.connector_tls import shake_hands

        assert self._tls is not None
        try:
            wanted = shake_hands(self._tls)
        except OSError as error:
            self._cut(f"the TLS handshake has failed: {error}")
        else:
            self._handshaking = bool(wanted)
            self._wait_for(wanted or selectors.EVENT_READ)
        return not self._handshaking

    def _stopped(self, error: PyengineError) -> None:
        LOG.warning("%s: closed: %s", self._address, error)
        self.close()

    def refute(self, error: PyengineError) -> None:
        """What its answers confirm could not be kept: it ends without them, as where ActiveMQ's store fails."""
        if self._out:
            self._cut(str(error))

    def close(self) -> None:
        """End the connection; what it holds goes back to the broker."""
        if not self.open:
            return
        self.open = False
        self._wait_for(0)
        self._thread.forget(self)
        self._connector.connections -= 1
        with suppress(OSError):  # unread bytes of a client would destroy what it has not read yet
            self.socket.shutdown(socket.SHUT_WR)
            left = DRAINED
            while left > 0 and (size := self.socket.recv_into(self._thread.buffer)):
                left -= size
        self.socket.close()
        self._dispatches.clear()
        self._out.clear()
        try:
            self.session.leave()
        except PyengineError as error:
            LOG.warning("%s: %s", self._address, error)

    # Time

    def _plan(self) -> None:
        """Be looked at when the next thing is due."""
        uri, due = self._connector.uri, []
        if uri.connect_attempt_timeout and not self.session.connected:
            due.append(self._created + uri.connect_attempt_timeout / 1000)
        if uri.so_timeout:
            due.append(self._last_read + uri.so_timeout / 1000)
        if self._ends:
            due.append(self._ends)
        if self._read_check:
            due.append(self._read_check)
        if self._beat:
            due.append(self._last_write + self._beat)
        when = min(due, default=0.0)
        if when and (self.planned is None or when < self.planned):
            self._thread.plan(when, self)

    def end_later(self, seconds: float, reason: str) -> None:
        """Close it when a time is over, if the client has not done so by then."""
        self._ends, self._ending = time.monotonic() + seconds, reason
        self._plan()

    def check(self, now: float) -> None:
        """Something of this connection is due."""
        self.planned = None
        uri = self._connector.uri
        late = now >= self._created + uri.connect_attempt_timeout / 1000
        if uri.connect_attempt_timeout and late and not self.session.connected:
            self._cut("the handshake was not complete in time")
            return
        if self._ends and now >= self._ends:
            self._cut(self._ending)
            return
        if uri.so_timeout and now >= self._last_read + uri.so_timeout / 1000:
            self._cut(f"nothing came for {uri.so_timeout} ms")
            return
        if self._read_check and now >= self._read_check:
            if not self._received:
                self._cut(f"nothing came within {self._read_interval * 1000:.0f} ms")
                return
            self._received = False
            self._read_check = now + self._read_interval
        if self._beat and now >= self._last_write + self._beat:
            if not self._out:
                self._out += self.keep_alive()
            self._last_write = now
            self.flush()
            if not self.open:
                return
        self._plan()

    def check_blocked(self, now: float) -> None:
        """Whether a client that takes nothing has to go."""
        uri, idle = self._connector.uri, now - self._last_taken
        if idle < BLOCKED_CHECK:
            return
        waiting = len(self._out) + sum(each.message.size for each in self._dispatches if each.message is not None)
        if waiting > uri.maximum_pending_size:
            self._cut(f"it takes nothing, and {waiting} bytes wait for it")
        elif uri.so_write_timeout and idle >= uri.so_write_timeout / 1000:
            self._cut(f"it has taken nothing for {uri.so_write_timeout} ms")

    def _cut(self, reason: str) -> None:
        LOG.warning("%s: closed: %s", self._address, reason)
        self.close()
