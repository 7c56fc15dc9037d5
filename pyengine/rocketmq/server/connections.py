"""The connections that clients make: one thread reads them all (NettyRemotingServer)."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Literal, Protocol

from pyengine._engine.wire.remoting import (
    MAX_FRAME_SIZE,
    ONE_WAY,
    RESPONSE,
    RemotingCommand,
    RemotingReader,
    write_command,
)
from pyengine.clock import Clock, Timer
from pyengine.errors import (
    InvalidSourceError,
    MQBrokerError,
    MQClientError,
    ProtocolError,
    PyengineError,
    RemotingError,
    RemotingTimeoutError,
)
from pyengine.rocketmq.remoting.channel import VERSION
from pyengine.rocketmq.remoting.mq_client_api import SYSTEM_ERROR
from pyengine.rocketmq.remoting.tls import HANDSHAKE
from pyengine.tls_layer import TlsLayer
from pyengine.visible import logger

if TYPE_CHECKING:
    import ssl

log = logger("pyengine.rocketmq.remoting")

IDLE_TIMEOUT = 120  # seconds without a byte after which a connection is closed (serverChannelMaxIdleTimeSeconds)
TLS_RECORD = bytes((HANDSHAKE, 3))  # the length of a frame of 352 MiB otherwise
HANDSHAKE_TIMEOUT = 10  # seconds that a client may take to agree on TLS
MAX_CONNECTIONS = 50_000
MAX_UNSENT = 64 * 1024 * 1024  # bytes that a connection may have waiting for its reader
MAX_HELD = 512 * 1024 * 1024  # bytes that all connections may have waiting for readers, or for the rest of a frame
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RECEIVED_AT_ONCE = 256 * 1024
BACKLOG = 1024
TICK = 1.0  # seconds between looks at idle connections

TlsMode = Literal["permissive", "enforcing"]
Action = Callable[[], None]
Answered = Callable[[RemotingCommand | RemotingError], None]


def answer(
    request: RemotingCommand,
    code: int = 0,
    remark: str | None = None,
    fields: dict[str, str] | None = None,
    body: bytes | None = None,
) -> RemotingCommand:
    """The answer to a request. fields: None if the real one makes no header."""
    return RemotingCommand(
        code, language="PYTHON", version=VERSION, opaque=request.opaque, flag=RESPONSE, remark=remark,
        ext_fields=fields, body=body,
    )  # fmt: skip


def refusal(request: RemotingCommand, error: PyengineError, fields: dict[str, str] | None = None) -> RemotingCommand:
    """The answer that says why a request was not done."""
    if isinstance(error, MQBrokerError):
        return answer(request, error.code, error.problem, fields)
    code = error.code if isinstance(error, MQClientError) and error.code > 0 else SYSTEM_ERROR
    return answer(request, code, str(error), fields)


class Service(Protocol):
    """What the connections of one listening address talk to."""

    def requested(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """The answer; None if it comes later, or never. A PyengineError that it raises is answered as a refusal."""

    def closed(self, connection: Connection) -> None:
        """The connection is gone."""


class Transport(Protocol):
    """What carries a connection's bytes. Every method is safe from any thread.

    remote_address: ``ip:port`` of the client. local_host: the address of this end that the client has connected to.
    """

    remote_address: str
    local_host: str

    def write(self, frame: bytes) -> None:
        """Send bytes: now as much as the client takes, the rest when it takes more. Nothing once it is gone."""

    def drop_later(self, why: str) -> None:
        """End the connection, soon; :meth:`Connection.lost` follows."""


class Connection:
    """A client's connection. Every method is safe from any thread, but those that the transport calls.

    remote_address, local_host: see Transport. clock: of the time that the client has for an answer.
    """

    def __init__(
        self, transport: Transport, service: Service, clock: Clock, max_frame_size: int = MAX_FRAME_SIZE
    ) -> None:
        self.service = service
        self.remote_address = transport.remote_address
        self.local_host = transport.local_host
        self.is_open = True
        self._transport = transport
        self._clock = clock
        self._reader = RemotingReader(max_frame_size)
        self._lock = threading.Lock()
        self._opaque = count(1)
        self._waiting: dict[int, tuple[Answered, Timer]] = {}

    @property
    def unread(self) -> int:
        """Bytes of a frame whose rest has not come."""
        return self._reader.waiting

    def send(self, command: RemotingCommand) -> None:
        """Write a command. Nothing once the connection is gone."""
        frame = write_command(command)
        if self.is_open:
            self._transport.write(frame)

    def request(
        self,
        code: int,
        fields: dict[str, str] | None,
        body: bytes | None = None,
        timeout: int = 10_000,
        answered: Answered | None = None,
    ) -> None:
        """Ask the client for something; one way without ``answered``, which is called once, on any thread, with the
        answer or why there is none. timeout: ms.
        """
        command = RemotingCommand(
            code, language="PYTHON", version=VERSION, opaque=next(self._opaque), flag=0 if answered else ONE_WAY,
            ext_fields=fields, body=body,
        )  # fmt: skip
        if answered is not None:
            clock = self._clock
            timer = clock.call_at(clock.now() + timeout, lambda: self._expired(command.opaque, timeout))
            with self._lock:
                if self.is_open:
                    self._waiting[command.opaque] = answered, timer
                    answered = None
            if answered is not None:
                timer.cancel()
                answered(RemotingError(self.remote_address, f"the connection to {self.remote_address} is closed"))
                return
        self.send(command)

    def _answered(self, command: RemotingCommand) -> None:
        """An answer of the client has arrived."""
        with self._lock:
            found = self._waiting.pop(command.opaque, None)
        if found is None:
            log.warning("receive response, but not matched any request, %s, %r", self.remote_address, command)
            return
        found[1].cancel()
        found[0](command)

    def _expired(self, opaque: int, timeout: int) -> None:
        with self._lock:
            found = self._waiting.pop(opaque, None)
        if found is not None:
            problem = f"wait response on the channel <{self.remote_address}> timeout, {timeout}ms"
            found[0](RemotingTimeoutError(self.remote_address, problem))

    def close(self) -> None:
        """End it, soon."""
        self._transport.drop_later("is closed")

    # What the transport calls, one call at a time

    def received(self, data: bytes) -> None:
        """Process what the client has sent. Bytes that are not the protocol end the connection."""
        self._reader.feed(data)
        try:
            for command in self._reader:
                if command.is_response:
                    self._answered(command)
                else:
                    self._process(command)
                if not self.is_open:
                    return
        except ProtocolError as error:
            words = "it speaks TLS, which needs a certificate here" if data[:2] == TLS_RECORD else error
            log.warning("what %s sends is not the remoting protocol: %s", self.remote_address, words)
            self._transport.drop_later("does not speak the protocol")

    def _process(self, request: RemotingCommand) -> None:
        found: RemotingCommand | None
        try:
            found = self.service.requested(self, request)
        except PyengineError as error:
            found = refusal(request, error)
        except Exception as error:
            log.exception("process request exception, %s, %r", self.remote_address, request)
            found = answer(request, SYSTEM_ERROR, f"{type(error).__name__}: {error}")
        if found is not None:
            reply(self, request, found)

    def lost(self, why: str) -> None:
        """The connection is gone: requests to the client fail, and the service learns of it."""
        with self._lock:
            self.is_open = False
            left = list(self._waiting.values())
            self._waiting.clear()
        log.info("closeChannel: the channel[%s] %s", self.remote_address, why)
        try:
            self.service.closed(self)
        except PyengineError as error:
            log.info("channel[%s]: %s", self.remote_address, error)
        for answered, timer in left:
            timer.cancel()
            answered(RemotingError(self.remote_address, f"the channel[{self.remote_address}] {why}"))


class _SocketTransport:
    """An accepted socket. accepted, last_read: when it was, and when the last byte came, seconds of the monotonic
    clock. tls: its TLS, None for a plain one; is_new: no byte has come yet that decides it.
    """

    def __init__(self, server: RemotingServer, accepted: socket.socket) -> None:
        self.socket = accepted
        self.remote_address = address_text(accepted.getpeername())
        self.local_host: str = accepted.getsockname()[0]
        self.accepted = self.last_read = time.monotonic()
        self.tls: TlsLayer | None = None
        self.is_new = True
        self.is_open = True
        self._server = server
        self._lock = threading.Lock()
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._unread_bytes = 0

    @property
    def held(self) -> int:
        """Bytes that wait for the client to read, or to send the rest of a frame."""
        return self._unsent_bytes + self._unread_bytes

    def unread(self, size: int) -> None:
        """So many bytes of an incomplete frame wait now."""
        if size != self._unread_bytes:
            self._server.hold(size - self._unread_bytes)
            self._unread_bytes = size

    def write(self, frame: bytes) -> None:
        self._write(frame, plain=False)

    def decrypted(self, data: bytes, context: ssl.SSLContext, *, enforced: bool) -> bytes:
        """What a client says, by TLS or not, as its first byte decides. Raises ssl.SSLError."""
        if self.is_new:
            self.is_new = False
            if data[0] == HANDSHAKE:
                self.tls = TlsLayer(context)
            elif enforced:
                from ssl import SSLError

                raise SSLError("a plain connection, and TLS is enforced")
        if self.tls is None:
            return data
        if self.tls.ready:
            return self.tls.receive(data)
        answered = self.tls.handshake(data)
        if answered:
            self._write(answered, plain=True)
        return self.tls.receive(b"") if self.tls.ready else b""

    def _write(self, frame: bytes, *, plain: bool) -> None:
        with self._lock:
            if not self.is_open:
                return
            if self.tls is not None and not plain:
                frame = self.tls.wrap(frame)
            sent = 0
            if not self._unsent:
                try:
                    sent = self.socket.send(frame)
                except BlockingIOError:
                    pass
                except OSError as error:
                    self.drop_later(f"broke: {error}")
                    return
                if sent == len(frame):
                    return
            self._unsent.append(memoryview(frame)[sent:])
            self._unsent_bytes += len(frame) - sent
            self._server.hold(len(frame) - sent)
            too_much = self._unsent_bytes > MAX_UNSENT
        if too_much:
            self.drop_later(f"reads too slowly: {MAX_UNSENT} bytes wait for it")
        else:
            self._server.write_later(self)

    def flush(self) -> bool:
        """Write what waits; True when nothing does any more. OSError if the connection broke."""
        with self._lock:
            while self._unsent:
                piece = self._unsent[0]
                try:
                    sent = self.socket.send(piece)
                except BlockingIOError:
                    return False
                self._unsent_bytes -= sent
                self._server.hold(-sent)
                if sent < len(piece):
                    self._unsent[0] = piece[sent:]
                    return False
                self._unsent.popleft()
            return True

    def drop_later(self, why: str) -> None:
        self._server.drop_later(self, why)

    def close(self) -> None:
        """Take nothing more."""
        with self._lock:
            self.is_open = False
            self._server.hold(-self.held)
            self._unsent.clear()
            self._unsent_bytes = self._unread_bytes = 0
        self.socket.close()


class RemotingServer:
    """Listening addresses and the connections to them. :meth:`run` serves until :meth:`stop`, in the thread that calls
    it: requests are processed there, one after the other; what takes longer is answered later.

    clock: of the time that a client has for an answer. after: called there when requests were processed.
    max_frame_size, max_connections, idle_timeout (seconds): limits; a peer beyond them is disconnected. ssl_context:
    clients may speak TLS, and with tls_mode ``enforcing`` must; on the same ports, as their first byte decides.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        after: Action | None = None,
        max_frame_size: int = MAX_FRAME_SIZE,
        max_connections: int = MAX_CONNECTIONS,
        idle_timeout: float = IDLE_TIMEOUT,
        ssl_context: ssl.SSLContext | None = None,
        tls_mode: TlsMode = "permissive",
    ) -> None:
        self._ssl_context = ssl_context
        self._tls_enforced = tls_mode == "enforcing"
        self.clock = clock
        self.max_frame_size = max_frame_size
        self._after = after
        self._max_connections = max_connections
        self._idle_timeout = idle_timeout
        self._selector = selectors.DefaultSelector()
        self._connections: dict[_SocketTransport, Connection] = {}
        self._listeners: list[socket.socket] = []
        self._paused: list[tuple[socket.socket, Service]] = []  # listeners, until the next tick
        self._asked: deque[Action] = deque()
        self._held = 0
        self._held_lock = threading.Lock()
        self._stopped = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._received = memoryview(bytearray(RECEIVED_AT_ONCE))  # what a client has sent, for a moment
        self._wake_writer.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._connections)

    def listen(self, listener: socket.socket, service: Service) -> None:
        """Serve what connects to a listening socket; before :meth:`run`."""
        listener.setblocking(False)
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ, service)

    def run(self) -> None:
        """Serve until :meth:`stop`; then every connection and listening socket is closed."""
        idle_at = time.monotonic() + TICK
        try:
            while not self._stopped:
                for key, events in self._selector.select(max(0.0, idle_at - time.monotonic())):
                    self._ready(key, events)
                while self._asked:
                    self._asked.popleft()()
                if self._after is not None:
                    self._after()
                if time.monotonic() >= idle_at:
                    idle_at = time.monotonic() + TICK
                    self._drop_idle()
                    self._accept_again()
        finally:
            self.close()

    def stop(self) -> None:
        """End :meth:`run`, from any thread or a signal handler."""
        self._stopped = True
        self._wake()

    def close(self) -> None:
        """Close everything; harmless the second time."""
        self._stopped = True
        for transport in list(self._connections):
            self._drop(transport, "the server stops")
        for listener in self._listeners:
            listener.close()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def call(self, action: Action) -> None:
        """Run something on the server's thread."""
        self._asked.append(action)
        self._wake()

    def hold(self, size: int) -> None:
        """So many bytes more wait, or fewer. Beyond MAX_HELD the connection for which most wait ends."""
        with self._held_lock:
            self._held += size
            too_much = size > 0 and self._held > MAX_HELD
        if too_much:
            self.call(self._drop_greatest)

    def _drop_greatest(self) -> None:
        if self._held > MAX_HELD:
            greatest = max(self._connections, key=lambda each: each.held)
            self._drop(greatest, f"has {greatest.held} of the {self._held} bytes that wait")

    def write_later(self, transport: _SocketTransport) -> None:
        """What waits is written when the client takes it."""
        self.call(lambda: self._want_write(transport))

    def drop_later(self, transport: _SocketTransport, why: str) -> None:
        """End a connection."""
        self.call(lambda: self._drop(transport, why))

    def _wake(self) -> None:
        try:
            self._wake_writer.send(b"\0")
        except BlockingIOError:
            pass  # it is awake
        except OSError:
            log.debug("the server has stopped")

    def _ready(self, key: selectors.SelectorKey, events: int) -> None:
        if key.data is None:
            while True:
                try:
                    if not self._wake_reader.recv(4096):
                        return
                except BlockingIOError:
                    return
        if type(key.data) is _SocketTransport:
            if not key.data.is_open:
                return
            if events & selectors.EVENT_WRITE:
                self._write(key.data)
            if events & selectors.EVENT_READ and key.data.is_open:
                self._read(key.data)
        else:
            assert isinstance(key.fileobj, socket.socket)
            self._accept(key.fileobj, key.data)

    def _accept(self, listener: socket.socket, service: Service) -> None:
        try:
            accepted, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            log.warning("a connection cannot be accepted: %s", error)
            if error.errno in OUT_OF_DESCRIPTORS:  # it would be ready again at once, for nothing
                self._selector.unregister(listener)
                self._paused.append((listener, service))
            return
        try:
            if len(self._connections) >= self._max_connections:
                log.warning("a connection too many is closed: there are %d", len(self._connections))
                accepted.close()
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport = _SocketTransport(self, accepted)
        except OSError as error:
            log.info("a client went while it was accepted: %s", error)
            accepted.close()
            return
        self._connections[transport] = Connection(transport, service, self.clock, self.max_frame_size)
        self._selector.register(accepted, selectors.EVENT_READ, transport)
        log.debug("NETTY SERVER PIPELINE: channelActive, the channel[%s]", transport.remote_address)

    def _read(self, transport: _SocketTransport) -> None:
        try:
            data = bytes(self._received[: transport.socket.recv_into(self._received)])
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(transport, f"broke: {error}")
            return
        if not data:
            self._drop(transport, "was closed by the client")
            return
        transport.last_read = time.monotonic()
        if self._ssl_context is not None:
            import ssl  # it takes time to import, and few have TLS

            try:
                data = transport.decrypted(data, self._ssl_context, enforced=self._tls_enforced)
            except ssl.SSLError as error:
                log.warning("TLS with %s failed: %s", transport.remote_address, error)
                self._drop(transport, "does not agree on TLS")
                return
            if not data:
                return
        connection = self._connections[transport]
        connection.received(data)
        if (connection.unread or transport.held) and transport.is_open:
            transport.unread(connection.unread)

    def _want_write(self, transport: _SocketTransport) -> None:
        if transport.is_open:
            self._selector.modify(transport.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, transport)

    def _write(self, transport: _SocketTransport) -> None:
        try:
            done = transport.flush()
        except OSError as error:
            self._drop(transport, f"broke: {error}")
            return
        if done:
            self._selector.modify(transport.socket, selectors.EVENT_READ, transport)

    def _drop(self, transport: _SocketTransport, why: str) -> None:
        connection = self._connections.pop(transport, None)
        if connection is not None:
            self._selector.unregister(transport.socket)
            transport.close()
            connection.lost(why)

    def _accept_again(self) -> None:
        """Listen again at the sockets that were left alone."""
        for listener, service in self._paused:
            self._selector.register(listener, selectors.EVENT_READ, service)
        self._paused.clear()

    def _drop_idle(self) -> None:
        oldest = time.monotonic() - self._idle_timeout
        for transport in [each for each in self._connections if each.last_read < oldest]:
            self._drop(transport, f"was idle for {self._idle_timeout} s")
        late = time.monotonic() - HANDSHAKE_TIMEOUT
        slow = [each for each in self._connections if each.tls and not each.tls.ready and each.accepted < late]
        for transport in slow:
            self._drop(transport, f"did not agree on TLS within {HANDSHAKE_TIMEOUT} s")


def reply(connection: Connection, request: RemotingCommand, found: RemotingCommand) -> None:
    """Send an answer, unless its request wants none."""
    if request.is_one_way:
        return
    found.opaque = request.opaque
    try:
        connection.send(found)
    except ProtocolError as error:
        log.error("an answer to %s cannot be written: %s", connection.remote_address, error)
        connection.send(answer(request, SYSTEM_ERROR, str(error)))


def address_text(place: Sequence[object]) -> str:
    """A socket's address as Java prints it."""
    host, port = str(place[0]), place[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: any free one. Raises InvalidSourceError if it cannot be had."""
    listening = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        if os.name == "posix":  # elsewhere it lets two programs have one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(BACKLOG)
    except OSError as error:
        if listening is not None:
            listening.close()
        hint = "another program has it: give another port" if error.errno == errno.EADDRINUSE else ""
        problem = f"cannot be listened at: {error.strerror or error}"
        raise InvalidSourceError(f"{host}:{port}", problem, hint) from error
    return listening
