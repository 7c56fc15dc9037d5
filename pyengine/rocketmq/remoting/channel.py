"""Connections of a client: requests and their answers over TCP (NettyRemotingClient)."""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable
from itertools import count

from pyengine._engine.wire.remoting import ONE_WAY, RESPONSE, RemotingCommand, RemotingReader, write_command
from pyengine.clock import Action, Clock, Timer, Worker
from pyengine.errors import ConfigurationError, IllegalStateError, ProtocolError, RemotingError, RemotingTimeoutError
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.tls import TlsLayer

log = logging.getLogger("pyengine.rocketmq.remoting")

VERSION = 479  # MQVersion.V5_3_3: what the brokers take this client for
CONNECT_TIMEOUT = 3000  # ms
WRITE_TIMEOUT = 10_000  # ms that a peer may take nothing
FIRST_BACK_OFF = 100  # ms until a failed connection is tried again; doubled each time, up to the last
LAST_BACK_OFF = 5000
REQUEST_CODE_NOT_SUPPORTED = 3

Answered = Callable[[RemotingCommand | RemotingError], None]
Requested = Callable[["Channel", RemotingCommand], RemotingCommand | None]


def parse_address(name: str, text: str) -> tuple[str, int]:
    """``host:port`` taken apart; IPv6 as ``[::1]:9876``. Raises ConfigurationError, which names what it is."""
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
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


def response(
    request: RemotingCommand, code: int = 0, remark: str | None = None, body: bytes | None = None
) -> RemotingCommand:
    """What a client answers to a request of a broker."""
    return RemotingCommand(
        code, language="PYTHON", version=VERSION, opaque=request.opaque, flag=RESPONSE, remark=remark, body=body
    )


class _Waiting:
    """A request without its answer yet."""

    __slots__ = ("answered", "timer")

    def __init__(self, answered: Answered) -> None:
        self.answered = answered
        self.timer: Timer | None = None


class Channel:
    """One connection. A thread reads it; whoever sends writes, one at a time.

    requested: called with each request of the other end; returns the answer, None where there is no such request.
    later: runs it on another thread, as it may ask the other end for something. closed: called once, when the
    connection is gone. tls: of the connection, None for a plain one. Raises RemotingError if the other end cannot be
    reached, or its certificate is not trusted.
    """

    def __init__(
        self,
        address: str,
        clock: Clock,
        requested: Requested,
        later: Callable[[Action], object],
        closed: Callable[[Channel], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._later = later
        self.address = address
        self._clock = clock
        self._requested = requested
        self._closed = closed
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        self._open = True
        try:
            self._socket = socket.create_connection(parse_address("address", address), CONNECT_TIMEOUT / 1000)
        except OSError as error:
            raise RemotingError(address, f"connect to {address} failed: {error}") from error
        self._tls = None if tls is None else self._handshake(tls)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        limit = (
            struct.pack("L", WRITE_TIMEOUT) if sys.platform == "win32" else struct.pack("ll", WRITE_TIMEOUT // 1000, 0)
        )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        threading.Thread(target=self._read, name=f"RemotingClient {address}", daemon=True).start()

    def _handshake(self, context: ssl.SSLContext) -> TlsLayer:
        """Agree on TLS, within the time for connecting."""
        try:
            made = TlsLayer(context, parse_address("address", self.address)[0])
            self._socket.sendall(made.start())
            while not made.ready:
                data = self._socket.recv(65536)
                if not data:
                    raise OSError("the other end has closed it, perhaps because it does not speak TLS")
                self._socket.sendall(made.handshake(data))
        except (OSError, ValueError) as error:
            self._socket.close()
            why = getattr(error, "verify_message", "") or error
            raise RemotingError(self.address, f"connect to {self.address} failed: TLS: {why}") from error
        return made

    @property
    def is_open(self) -> bool:
        """False once the connection is gone."""
        return self._open

    def local_address(self) -> str:
        """The address of this end, without a port."""
        host: str = self._socket.getsockname()[0]
        return host

    def send(self, command: RemotingCommand) -> None:
        """Write a command. Raises RemotingError if the connection is gone, ProtocolError if it cannot be written."""
        frame = write_command(command)
        try:
            with self._write_lock:
                self._socket.sendall(frame if self._tls is None else self._tls.wrap(frame))
        except OSError as error:
            self.close(f"send a request to {self.address} failed: {error}")
            raise RemotingError(self.address, f"send a request to {self.address} failed: {error}") from error

    def request(self, command: RemotingCommand, timeout: int, answered: Answered) -> None:
        """Write a request; ``answered`` is called once, on another thread: with the answer, or with why there is none.

        timeout: ms to wait for it. Raises as :meth:`send` does; then ``answered`` is not called.
        """
        waiting = _Waiting(answered)
        with self._lock:
            if not self._open:
                raise RemotingError(self.address, f"the connection to {self.address} is closed")
            self._waiting[command.opaque] = waiting
        try:
            waiting.timer = self._clock.call_at(self._clock.now() + timeout, lambda: self._expired(command, timeout))
            self.send(command)
        except (RemotingError, ProtocolError, IllegalStateError) as error:
            if self._take(command.opaque) is not None:
                if isinstance(error, IllegalStateError):
                    raise RemotingError(self.address, "the client is closed") from error
                raise
            # else: whoever closed the connection has answered already

    def close(self, why: str = "") -> None:
        """End the connection; what waits for an answer gets a RemotingError. Harmless the second time."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            left = list(self._waiting.values())
            self._waiting.clear()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # which wakes the thread that reads
        except OSError as error:
            log.debug("closing the connection to %s: %s", self.address, error)
        self._socket.close()
        self._closed(self)
        failure = RemotingError(self.address, why or f"the connection to {self.address} was closed")
        for waiting in left:
            self._answer(waiting, failure)

    def _take(self, opaque: int) -> _Waiting | None:
        with self._lock:
            waiting = self._waiting.pop(opaque, None)
        if waiting is not None and waiting.timer is not None:
            waiting.timer.cancel()
        return waiting

    def _expired(self, command: RemotingCommand, timeout: int) -> None:
        waiting = self._take(command.opaque)
        if waiting is not None:
            problem = f"wait response on the channel <{self.address}> timeout, {timeout}ms"
            self._answer(waiting, RemotingTimeoutError(self.address, problem))

    def _answer(self, waiting: _Waiting, answer: RemotingCommand | RemotingError) -> None:
        try:
            waiting.answered(answer)
        except Exception:
            log.exception("an answer of %s could not be taken", self.address)

    def _read(self) -> None:
        reader, why = RemotingReader(), f"the connection to {self.address} was closed by the other end"
        try:
            while data := self._socket.recv(65536):
                reader.feed(data if self._tls is None else self._tls.receive(data))
                for command in reader:
                    self._arrived(command)
        except ProtocolError as error:
            why = f"what {self.address} sends is not the remoting protocol: {error}"
            log.warning("%s", why)
        except OSError as error:
            why = f"the connection to {self.address} broke: {error}"
        self.close(why)

    def _arrived(self, command: RemotingCommand) -> None:
        if command.is_response:
            waiting = self._take(command.opaque)
            if waiting is None:
                log.warning("receive response, but not matched any request, %s, %r", self.address, command)
            else:
                self._answer(waiting, command)
            return
        self._later(lambda: self._process(command))

    def _process(self, command: RemotingCommand) -> None:
        answer = None
        try:
            answer = self._requested(self, command)
        except Exception:
            log.exception("process request exception, %s, %r", self.address, command)
        if not command.is_one_way:
            unknown = f" request type {command.code} not supported"
            try:
                self.send(answer or response(command, REQUEST_CODE_NOT_SUPPORTED, unknown))
            except RemotingError as error:
                log.info("%s", error)


class RemotingClient:
    """The connections of one client, one to each address, made when they are first used and again after they broke.

    requested: function(channel, command) that is called with each request of the other ends; see Channel. connected:
    function(channel) that is called with each new connection before anything else is sent. credentials: signs every
    request. tls: of every connection.
    """

    def __init__(
        self,
        clock: Clock,
        requested: Requested,
        connected: Callable[[Channel], None],
        credentials: SessionCredentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._clock = clock
        self._requested = requested
        self._connected = connected
        self._credentials = credentials
        self._opaque = count(1)
        self._lock = threading.Lock()
        self._channels: dict[str, Channel] = {}
        self._connecting: dict[str, threading.Lock] = {}
        self._failures: dict[str, tuple[int, int]] = {}  # address -> when it may be tried again, the back-off (ms)
        self._closed = False
        self._worker: Worker | None = None

    def command(
        self, code: int, ext_fields: dict[str, str] | None = None, body: bytes | None = None
    ) -> RemotingCommand:
        """A request of this client, signed."""
        made = RemotingCommand(
            code, language="PYTHON", version=VERSION, opaque=next(self._opaque), ext_fields=ext_fields, body=body
        )
        if self._credentials is not None:
            self._credentials.sign(made)
        return made

    def channel(self, address: str) -> Channel:
        """The connection to an address. Raises RemotingError if there is none and none can be made: at once, without
        another try, for a while after one failed.
        """
        with self._lock:
            found = self._channels.get(address)
            if found is not None and found.is_open:
                return found
            alone = self._connecting.setdefault(address, threading.Lock())
        with alone:
            with self._lock:
                found = self._channels.get(address)
                when, back_off = self._failures.get(address, (0, 0))
                if self._closed:
                    raise RemotingError(address, "the client is closed")
            if found is not None and found.is_open:
                return found
            if self._clock.now() < when <= self._clock.now() + LAST_BACK_OFF:
                raise RemotingError(address, f"connect to {address} failed, and is tried again in {back_off} ms")
            return self._connect(address, back_off)

    def _connect(self, address: str, back_off: int) -> Channel:
        try:
            made = Channel(address, self._clock, self._requested, self._process_later, self._gone, self._tls)
        except RemotingError:
            back_off = min(2 * back_off or FIRST_BACK_OFF, LAST_BACK_OFF)
            with self._lock:
                self._failures[address] = self._clock.now() + back_off, back_off
            raise
        log.info("createChannel: connect remote host[%s] success", address)
        self._connected(made)
        with self._lock:
            self._failures.pop(address, None)
            closed = self._closed
            if not closed:
                self._channels[address] = made
        if closed:
            made.close()
            raise RemotingError(address, "the client is closed")
        return made

    def _process_later(self, action: Action) -> None:
        """Run what the other end has asked for on a thread of its own, which starts with the first."""
        with self._lock:
            if self._closed:
                return
            if self._worker is None:
                self._worker = self._clock.worker("ClientRemotingProcessor")
            self._worker.submit(action)

    def _gone(self, channel: Channel) -> None:
        with self._lock:
            if self._channels.get(channel.address) is channel:
                del self._channels[channel.address]
        log.info("closeChannel: the channel[%s] was removed from channel table", channel.address)

    def invoke(self, address: str, command: RemotingCommand, timeout: int) -> RemotingCommand:
        """The answer to a request. Raises RemotingError, RemotingTimeoutError after ``timeout`` ms."""
        return wait_for_answer(self.channel(address), command, timeout)

    def invoke_async(self, address: str, command: RemotingCommand, timeout: int, answered: Answered) -> None:
        """Send a request; ``answered`` is called as :meth:`Channel.request` says."""
        self.channel(address).request(command, timeout, answered)

    def invoke_one_way(self, address: str, command: RemotingCommand) -> None:
        """Send a request that gets no answer."""
        command.flag |= ONE_WAY
        self.channel(address).send(command)

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._closed = True
            channels = list(self._channels.values())
        for channel in channels:
            channel.close("the client is closed")
        if self._worker is not None:
            self._worker.close()


def wait_for_answer(channel: Channel, command: RemotingCommand, timeout: int) -> RemotingCommand:
    """Send a request and wait for its answer. Raises RemotingError."""
    done = threading.Event()
    answers: list[RemotingCommand | RemotingError] = []

    def answered(answer: RemotingCommand | RemotingError) -> None:
        answers.append(answer)
        done.set()

    channel.request(command, timeout, answered)
    done.wait()
    (answer,) = answers
    if isinstance(answer, RemotingError):
        raise answer
    return answer
