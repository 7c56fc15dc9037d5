"""The broker's side of STOMP over TCP: one thread serves every connection of every connector of a broker.

The thread reads, lets each connection's StompSession act, and writes. What the broker dispatches is kept, as it is,
until its client's socket takes more: a client that reads slowly has messages in flight, not bytes in memory, and an
automatic acknowledgement follows the message into the socket.
"""

from __future__ import annotations

import heapq
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import count
from typing import Protocol

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.activemq.transport.commands import Transport
from pyengine.activemq.transport.connectors import ConnectorURI
from pyengine.activemq.transport.stomp_frames import BrokenFrameError
from pyengine.activemq.transport.stomp_session import StompSession
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, ProtocolError, PyengineError
from pyengine.processes import belong
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
READ = 64 * 1024  # bytes read from a connection before others have their turn
AHEAD = 128 * 1024  # bytes written ahead of what the socket took; beyond them its client is not read from either
TURN = 500  # messages that one connection is given before others have their turn
PATIENCE = 5  # seconds
BLOCKED_CHECK = 1.0  # seconds between looks at clients that take nothing
_NUMBERS = count(1)


class ListeningBroker(Transport, Protocol):
    """What a connector asks of its broker besides what clients do."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def started(self) -> int:
        """When it was started, ms."""

    def authenticate(self, user: str | None, password: str | None) -> None:
        """Raises AuthenticationError for a client that may not come in."""


class TransportConnector:
    """An address on which a broker listens. url: what a client connects to, with the port that was bound."""

    def __init__(self, uri: ConnectorURI, listener: socket.socket) -> None:
        self.uri = uri
        self.name = uri.scheme
        self.port: int = listener.getsockname()[1]
        self.host = uri.host
        self.url = uri.url(self.port)
        self.listener = listener
        self.connections = 0

    def __repr__(self) -> str:
        return f"<TransportConnector {self.url}>"

    def __str__(self) -> str:
        return self.url


class ConnectorThread:
    """The thread of a broker's connectors. Raises ConfigurationError where an address cannot be bound."""

    def __init__(self, broker: ListeningBroker, uris: tuple[ConnectorURI, ...]) -> None:
        self.broker = broker
        self._turn: AbstractContextManager[object] = nullcontext()
        if isinstance(broker.clock, ManualClock):
            self._turn = broker.clock.share()
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._asked: deque[Callable[[], None]] = deque()
        self._woken = False
        self._closed = False
        self._connections: set[_Connection] = set()
        self._checks: list[tuple[float, int, _Connection]] = []
        self._blocked: set[_Connection] = set()
        self._blocked_check = 0.0
        self._numbers = count()
        self._bell, self._pulled = socket.socketpair()
        self._bell.setblocking(False)
        self._pulled.setblocking(False)
        self._selector.register(self._pulled, selectors.EVENT_READ, self._answer)
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
        connector = TransportConnector(uri, listener)
        self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(connector))
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

    def call(self, action: Callable[[], None]) -> None:
        """Do it on the connectors' thread."""
        self._asked.append(action)
        if not self._woken and threading.get_ident() != self._thread.ident:
            self._wake()

    def _wake(self) -> None:
        self._woken = True
        with suppress(OSError):  # it is full, and so is heard, or closed
            self._bell.send(b"\0")

    # The thread

    def _run(self) -> None:
        try:
            while not self._closed:
                events = self._selector.select(self._patience())
                with self._turn:
                    self._work([key.data for key, _ in events])
        except Exception:
            LOG.exception("the connectors of broker %r have failed", self.broker.name)
        finally:
            with self._turn:
                for connection in list(self._connections):
                    connection.close()
                self._release()

    def _release(self) -> None:
        for key in list(self._selector.get_map().values()):
            if key.fileobj not in (self._bell, self._pulled):
                key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        self._bell.close()
        self._pulled.close()

    def _work(self, ready: list[Callable[[], None]]) -> None:
        for action in ready:
            action()
        self._run_checks()
        self.broker.clock.settle()
        for _ in range(len(self._asked)):
            self._asked.popleft()()
        self.broker.clock.settle()

    def _answer(self) -> None:
        self._woken = False
        with suppress(BlockingIOError):
            while len(self._pulled.recv(4096)) == 4096:
                pass

    def _patience(self) -> float | None:
        if self._asked:
            return 0
        due = self._checks[0][0] if self._checks else None
        if self._blocked:
            due = self._blocked_check if due is None else min(due, self._blocked_check)
        return None if due is None else max(0.0, due - time.monotonic())

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

    def plan(self, when: float, connection: _Connection) -> None:
        """Look at a connection when the time has come, seconds of time.monotonic()."""
        connection.planned = when
        heapq.heappush(self._checks, (when, next(self._numbers), connection))

    def block(self, connection: _Connection, blocked: bool) -> None:
        """A client's socket takes no more, or again."""
        if not blocked:
            self._blocked.discard(connection)
        elif connection not in self._blocked:
            if not self._blocked:
                self._blocked_check = time.monotonic() + BLOCKED_CHECK
            self._blocked.add(connection)

    def _accept(self, connector: TransportConnector) -> None:
        for _ in range(100):
            try:
                client, address = connector.listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # the process may have too many open files: those that are open go on
                LOG.warning("%s: a connection could not be accepted: %s", connector, error)
                time.sleep(0.01)
                return
            if connector.connections >= connector.uri.maximum_connections:
                LOG.warning("%s: %s is refused: %d connections are open", connector, address, connector.connections)
                client.close()
                continue
            client.setblocking(False)
            with suppress(OSError):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connector.connections += 1
            self._connections.add(_Connection(self, connector, client, f"{address[0]}:{address[1]}"))

    def register(self, connection: _Connection, events: int, before: int) -> None:
        """Wait for what a connection's socket is ready for."""
        if not before:
            self._selector.register(connection.socket, events, connection.ready)
        elif events:
            self._selector.modify(connection.socket, events, connection.ready)
        else:
            self._selector.unregister(connection.socket)

    def forget(self, connection: _Connection) -> None:
        """A connection has ended."""
        self._connections.discard(connection)
        self._blocked.discard(connection)


class _Connection:
    """A client: its socket, its session, and what waits for it."""

    def __init__(
        self, thread: ConnectorThread, connector: TransportConnector, client: socket.socket, address: str
    ) -> None:
        uri = connector.uri
        self.socket = client
        self.open = True
        self._thread = thread
        self._connector = connector
        self._address = address
        self._reader = StompReader(
            max_data_length=uri.max_data_length, max_frame_size=uri.max_frame_size, nio=uri.scheme == "stomp+nio"
        )
        connection_id = f"ID:stomp-{os.getpid()}-{thread.broker.started}-{next(_NUMBERS)}:1"
        self.session = StompSession(
            thread.broker,
            connection_id,
            self._write,
            self._dispatch,
            self._fail,
            default_heart_beat=uri.default_heart_beat,
            authenticate=thread.broker.authenticate,
        )
        self._out = bytearray()
        self._dispatches: deque[MessageDispatch] = deque()
        self._asked = False
        self._events = 0
        now = time.monotonic()
        self._created = self._last_read = self._last_write = self._last_taken = now
        self._received = False
        self._read_check = 0.0  # when silence is looked at next, 0: never
        self._beat = 0.0  # seconds after the last byte written, 0: none
        self.planned: float | None = None
        self._wait_for(selectors.EVENT_READ)
        self._plan()

    def _wait_for(self, events: int) -> None:
        if events != self._events:
            self._thread.register(self, events, self._events)
            self._events = events

    # From any thread

    def _dispatch(self, dispatch: MessageDispatch) -> None:
        self._dispatches.append(dispatch)
        if not self._asked:
            self._asked = True
            self._thread.call(self._flush_dispatches)

    def _fail(self, reason: str) -> None:
        LOG.warning("%s: closed: %s", self._address, reason)
        self._thread.call(self.close)

    # On the connectors' thread

    def ready(self) -> None:
        """The socket has something to read, or takes more."""
        if self.open and self._events & selectors.EVENT_READ:
            self._read()
        if self.open:
            self.flush()

    def _flush_dispatches(self) -> None:
        self._asked = False
        if self.open:
            self.flush()

    def _read(self) -> None:
        try:
            data = self.socket.recv(READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if not data:
            self.close()
            return
        self._last_read = time.monotonic()
        self._received = True
        session, reader = self.session, self._reader
        try:
            reader.feed(data)
            for frame in reader:
                session.receive(frame)
                if session.closing:
                    return
                if session.wire_version != reader.version:
                    reader.use(session.wire_version)
                    self._begin_heart_beats()
        except ProtocolError as error:
            session.refuse(error)
        except (BrokenFrameError, EOFError) as error:
            LOG.warning("%s: closed: %s", self._address, error)
            session.closing = True
        except PyengineError as error:  # the broker has stopped
            LOG.warning("%s: closed: %s", self._address, error)
            self.close()
        except Exception:
            LOG.exception("%s: closed: a frame could not be handled", self._address)
            self.close()

    def _write(self, frame: StompFrame, version: str) -> None:
        self._out += write_frame(frame, version)

    def flush(self) -> None:
        """Give the socket what it takes, and then look at what is left."""
        out, dispatches, session = self._out, self._dispatches, self.session
        try:
            turn = TURN
            while True:
                while dispatches and len(out) < AHEAD and not session.closing and turn:
                    turn -= 1
                    session.deliver(dispatches.popleft())
                if not out:
                    break
                taken = self.socket.send(out)
                del out[:taken]
                self._last_write = self._last_taken = time.monotonic()
        except (BlockingIOError, InterruptedError):
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
        if not out and session.closing:
            self.close()
            return
        if not out and dispatches and not self._asked:
            self._asked = True
            self._thread.call(self._flush_dispatches)
        self._thread.block(self, bool(out))
        reading = not session.closing and len(out) < AHEAD
        self._wait_for((selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if out else 0))

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

    def _begin_heart_beats(self) -> None:
        read, write = self.session.read_interval, self.session.write_interval
        if min(read, write) < 0:
            return
        if read:
            self._read_check = time.monotonic() + (min(read, write) or read) / 1000
        self._beat = write / 1000
        self._plan()

    def check(self, now: float) -> None:
        """Something of this connection is due."""
        self.planned = None
        session, uri = self.session, self._connector.uri
        late = now >= self._created + uri.connect_attempt_timeout / 1000
        if uri.connect_attempt_timeout and late and not session.connected:
            self._cut("no CONNECT frame came in time")
            return
        if uri.so_timeout and now >= self._last_read + uri.so_timeout / 1000:
            self._cut(f"nothing came for {uri.so_timeout} ms")
            return
        if self._read_check and now >= self._read_check:
            if not self._received:
                self._cut(f"no heart-beat came within {session.read_interval} ms")
                return
            self._received = False
            self._read_check = now + session.read_interval * uri.hb_grace_period_multiplier / 1000
        if self._beat and now >= self._last_write + self._beat:
            if not self._out:
                self._out += b"\n"
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
