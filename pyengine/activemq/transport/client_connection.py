"""One client of a connector: its socket, and the messages and bytes that wait for it. Subclasses know the protocol."""

from __future__ import annotations

import selectors
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.transport.commands import Transport
from pyengine.activemq.transport.connectors import ConnectorURI
from pyengine.errors import PyengineError
from pyengine.visible import logger

if TYPE_CHECKING:
    import ssl

    from pyengine.activemq.transport.connector_tls import ConnectorTLS

LOG = logger("pyengine.activemq")
READ = 64 * 1024  # bytes read from a connection before others have their turn
AHEAD = 128 * 1024  # bytes written ahead of what the socket took; beyond them its client is not read from either
TURN = 500  # messages that one connection is given before others have their turn
BLOCKED_CHECK = 1.0  # seconds between looks at clients that take nothing
WOULD_BLOCK = (BlockingIOError, InterruptedError)


class ListeningBroker(Transport, Protocol):
    """What a connector asks of its broker besides what clients do."""

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


class ConnectionThread(Protocol):
    """The thread of the connections (connector_thread.ConnectorThread), as they use it."""

    broker: ListeningBroker

    def call(self, action: Callable[[], None]) -> None:
        """Do it on the connectors' thread."""

    def plan(self, when: float, connection: ClientConnection) -> None:
        """Look at a connection when the time has come, seconds of time.monotonic()."""

    def block(self, connection: ClientConnection, blocked: bool) -> None:
        """A client's socket takes no more, or again."""

    def register(self, connection: ClientConnection, events: int, before: int) -> None:
        """Wait for what a connection's socket is ready for."""

    def forget(self, connection: ClientConnection) -> None:
        """A connection has ended."""


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


class ClientConnection(ABC):
    """A client: its socket, its session, and what waits for it."""

    session: ClientSession

    def __init__(
        self, thread: ConnectionThread, connector: TransportConnector, client: socket.socket, address: str
    ) -> None:
        self.socket = client
        self.open = True
        self.planned: float | None = None
        self._thread = thread
        self._connector = connector
        self._address = address
        self._out = bytearray()
        self._dispatches: deque[MessageDispatch] = deque()
        self._asked = False
        self._events = 0
        self._tls = None if connector.tls is None else cast("ssl.SSLSocket", client)
        self._handshaking = self._tls is not None
        now = time.monotonic()
        self._created = self._last_read = self._last_write = self._last_taken = now
        self._received = False
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
    def receive(self, data: bytes) -> None:
        """Bytes have come. Raises PyengineError once the broker has stopped."""

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

    # The socket

    def _wait_for(self, events: int) -> None:
        if events != self._events:
            self._thread.register(self, events, self._events)
            self._events = events

    # From any thread

    def _dispatch(self, dispatch: MessageDispatch) -> None:
        self._dispatches.append(dispatch)
        self._ask()

    def _ask(self) -> None:
        """Have ``flush`` called soon."""
        if not self._asked:
            self._asked = True
            self._thread.call(self._flush_dispatches)

    def _fail(self, reason: str) -> None:
        LOG.warning("%s: closed: %s", self._address, reason)
        self._thread.call(self.close)

    # On the connectors' thread

    def ready(self) -> None:
        """The socket has something to read, or takes more. Answers are sent once what they confirm is kept."""
        if self.open and self._handshaking and not self._shake_hands():
            return
        if self.open and self._events & selectors.EVENT_READ:
            self._read()
        if self.open:
            self._ask()

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

    def _flush_dispatches(self) -> None:
        self._asked = False
        if self.open:
            self.flush()

    def _read(self) -> None:
        try:
            data = self.socket.recv(READ)
            if self._tls is not None and data:  # bytes that TLS has decrypted do not make the socket ready
                while self._tls.pending():
                    data += self.socket.recv(READ)
        except self._connector.would_block:
            return
        except OSError:
            self.close()
            return
        if not data:
            self.close()
            return
        self._last_read = time.monotonic()
        self._received = True
        try:
            self.receive(data)
        except PyengineError as error:  # the broker has stopped
            LOG.warning("%s: closed: %s", self._address, error)
            self.close()
        except Exception:
            LOG.exception("%s: closed: what came could not be handled", self._address)
            self.close()

    def flush(self) -> None:
        """Give the socket what it takes, and then look at what is left."""
        if self._handshaking:
            return
        out, dispatches = self._out, self._dispatches
        try:
            turn = TURN
            while True:
                while dispatches and len(out) < AHEAD and not self.session.closing and turn:
                    turn -= 1
                    self.session.deliver(dispatches.popleft())
                if not out:
                    break
                taken = self.socket.send(out)
                del out[:taken]
                self._last_write = self._last_taken = time.monotonic()
        except self._connector.would_block:
            pass
        except OSError:
            self.close()
            return
        except PyengineError as error:
            LOG.warning("%s: closed: %s", self._address, error)
            self.close()
            return
        if not self.open:
            return
        if not out and self.session.closing:
            self.close()
            return
        if not out and dispatches:
            self._ask()
        self._thread.block(self, bool(out))
        reading = not self.session.closing and len(out) < AHEAD
        self._wait_for((selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if out else 0))

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
        with suppress(OSError):  # what a client has sent and nobody read would destroy what it has not read yet
            self.socket.shutdown(socket.SHUT_WR)
            for _ in range(16):
                if not self.socket.recv(READ):
                    break
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
        if self._read_check:
            due.append(self._read_check)
        if self._beat:
            due.append(self._last_write + self._beat)
        when = min(due, default=0.0)
        if when and (self.planned is None or when < self.planned):
            self._thread.plan(when, self)

    def check(self, now: float) -> None:
        """Something of this connection is due."""
        self.planned = None
        uri = self._connector.uri
        late = now >= self._created + uri.connect_attempt_timeout / 1000
        if uri.connect_attempt_timeout and late and not self.session.connected:
            self._cut("the handshake was not complete in time")
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
