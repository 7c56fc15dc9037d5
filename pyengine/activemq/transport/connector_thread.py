"""The broker's side of a network: one thread serves every connection of every connector of a broker.

The thread reads, lets each connection's session act, and writes. What the broker dispatches is kept, as it is, until
its client's socket takes more: a client that reads slowly has messages in flight, not bytes in memory. What the
clients that are ready have sent is acted upon first, then written to the store together, and then answered.
"""

from __future__ import annotations

import errno
import heapq
import os
import selectors
import socket
import threading
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import count

from pyengine.activemq.transport.client_connection import (
    BLOCKED_CHECK,
    ClientConnection,
    ConnectionThread,
    ListeningBroker,
    TransportConnector,
)
from pyengine.activemq.transport.connectors import OPENWIRE_SCHEMES, ConnectorURI
from pyengine.activemq.transport.readiness import readiness
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, PyengineError
from pyengine.processes import belong
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
PATIENCE = 5  # seconds
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
ACCEPTED = 8  # clients that a listener takes before others have their turn; the system keeps those that wait
PAUSE = 0.5  # seconds in which no listener is looked at that finds no descriptor for a client


def connection_class(scheme: str) -> type[ClientConnection]:
    """The connections of a connector; another protocol's code would take time to import."""
    if scheme in OPENWIRE_SCHEMES:
        from pyengine.activemq.transport.openwire_connector import OpenWireConnection

        return OpenWireConnection
    from pyengine.activemq.transport.stomp_connector import StompConnection

    return StompConnection


class ConnectorThread(ConnectionThread):
    """The thread of a broker's connectors. Raises ConfigurationError if an address cannot be bound."""

    def __init__(self, broker: ListeningBroker, uris: tuple[ConnectorURI, ...]) -> None:
        self.broker = broker
        self._turn: AbstractContextManager[object] | None = None
        if isinstance(broker.clock, ManualClock):
            self._turn = broker.clock.share()
        self._readiness = readiness()
        self._lock = threading.Lock()
        self._closed = False
        self._connections: set[ClientConnection] = set()
        self._checks: list[tuple[float, int, ClientConnection]] = []
        self._blocked: set[ClientConnection] = set()
        self._blocked_check = 0.0
        self._paused: list[TransportConnector] = []
        self._pause_ends = 0.0
        self._numbers = count()
        self._bell, self._pulled = socket.socketpair()
        self._bell.setblocking(False)
        self._pulled.setblocking(False)
        self._readiness.register(self._pulled, selectors.EVENT_READ, self._answer)
        self.connectors: tuple[TransportConnector, ...] = ()
        try:
            for uri in uris:
                self.listen(uri)
        except BaseException:
            self._release()
            raise
        self._thread = threading.Thread(
            target=self._run, name=f"ActiveMQ Transport Connectors[{broker.name}]", daemon=True
        )
        belong(self)
        self._thread.start()

    def listen(self, uri: ConnectorURI) -> None:
        """Listen on one more address."""
        tls = None
        if uri.tls is not None:
            from pyengine.activemq.transport.connector_tls import ConnectorTLS

            tls = ConnectorTLS(uri.tls)
        family = socket.AF_INET6 if ":" in uri.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((uri.host, uri.port))
            listener.listen(5000)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            problem = f"cannot be listened on: {error.strerror or error}"
            hint = "another program has the port, or this machine does not have the address; port 0 is any free one"
            raise ConfigurationError("transport connector", uri.uri, problem, hint) from error
        connector = TransportConnector(uri, listener, connection_class(uri.scheme), tls)
        self._wait_for_clients(connector)
        self.connectors += (connector,)

    def close(self) -> None:
        """Close the listeners and every connection; returns when the thread has ended, or after 5 s where the caller
        keeps it from that, as an action of a manual clock does."""
        with self._lock:
            self._closed = True
        self._wake()
        if self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)

    # For other threads

    def _wake(self) -> None:
        self.woken = True
        with suppress(OSError):  # it is full, and so is heard, or closed
            self._bell.send(b"\0")

    # The thread

    def _run(self) -> None:
        self.thread_id = threading.get_ident()
        try:
            while not self._closed:
                ready = self._readiness.poll(self.patience())
                if self._turn is None:
                    self.round(ready, self.broker)
                else:
                    with self._turn:
                        self.round(ready, self.broker)
        except Exception:
            LOG.exception("the connectors of broker %r have failed", self.broker.name)
        finally:
            with self._turn or nullcontext():
                for connection in list(self._connections):
                    connection.close()
                self._release()

    def _release(self) -> None:
        for connector in self.connectors:
            connector.listener.close()
        self._readiness.close()
        self._bell.close()
        self._pulled.close()

    def _refute(self, error: PyengineError) -> None:
        for connection in list(self._connections):
            connection.refute(error)

    def _answer(self) -> None:
        self.woken = False
        with suppress(BlockingIOError):
            while len(self._pulled.recv(4096)) == 4096:
                pass

    def _run_checks(self) -> None:
        now = time.monotonic()
        while self._checks and self._checks[0][0] <= now:
            when, _, connection = heapq.heappop(self._checks)
            if connection.open and connection.planned == when:
                connection.check(now)
        if self._blocked and self._blocked_check <= now:
            self._blocked_check = now + BLOCKED_CHECK
            for connection in list(self._blocked):
                connection.check_blocked(now)
        if self._paused and self._pause_ends <= now:
            for connector in self._paused:
                self._wait_for_clients(connector)
            self._paused.clear()
        self.due = 0.0
        if self._checks:
            self.look_at(self._checks[0][0])
        if self._blocked:
            self.look_at(self._blocked_check)
        if self._paused:
            self.look_at(self._pause_ends)

    def plan(self, when: float, connection: ClientConnection) -> None:
        """Look at a connection when the time has come, seconds of time.monotonic()."""
        connection.planned = when
        heapq.heappush(self._checks, (when, next(self._numbers), connection))
        self.look_at(when)

    def block(self, connection: ClientConnection, blocked: bool) -> None:
        """A client's socket takes no more, or again."""
        if not blocked:
            self._blocked.discard(connection)
        elif connection not in self._blocked:
            if not self._blocked:
                self._blocked_check = time.monotonic() + BLOCKED_CHECK
                self.look_at(self._blocked_check)
            self._blocked.add(connection)

    def _wait_for_clients(self, connector: TransportConnector) -> None:
        self._readiness.register(connector.listener, selectors.EVENT_READ, lambda: self._accept(connector))

    def _accept(self, connector: TransportConnector) -> None:
        if self.departed:  # who has gone is closed first: a client that comes again has the same client id
            return
        for _ in range(ACCEPTED):
            try:
                client, address = connector.listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # also where it has gone meanwhile
                LOG.warning("%s: a connection could not be accepted: %s", connector, error)
                if error.errno in OUT_OF_DESCRIPTORS:  # it would fail again at once, and hold up the others
                    self._readiness.unregister(connector.listener)
                    self._paused.append(connector)
                    self._pause_ends = time.monotonic() + PAUSE
                    self.look_at(self._pause_ends)
                return
            if connector.connections >= connector.uri.maximum_connections:
                LOG.warning("%s: %s is refused: %d connections are open", connector, address, connector.connections)
                client.close()
                continue
            client.setblocking(False)
            with suppress(OSError):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if connector.tls is not None:
                try:
                    client = connector.tls.wrap(client)
                except OSError as error:  # it has gone
                    LOG.warning("%s: %s: closed: %s", connector, address, error)
                    client.close()
                    continue
            connector.connections += 1
            self._connections.add(connector.kind(self, connector, client, f"{address[0]}:{address[1]}"))

    def register(self, connection: ClientConnection, events: int, before: int) -> None:
        """Wait for what a connection's socket is ready for."""
        if not before:
            self._readiness.register(connection.socket, events, connection)
        elif events:
            self._readiness.modify(connection.socket, events, connection)
        else:
            self._readiness.unregister(connection.socket)

    def others(self, connection: ClientConnection) -> list[ClientConnection]:
        """The connections but this one."""
        return [each for each in self._connections if each is not connection]

    def forget(self, connection: ClientConnection) -> None:
        """A connection has ended."""
        self._connections.discard(connection)
        self._blocked.discard(connection)
