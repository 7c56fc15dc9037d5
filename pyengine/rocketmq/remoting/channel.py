"""Connections of a client: requests and their answers over TCP (NettyRemotingClient)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from itertools import count

from pyengine._engine.rocketmq.commands.requests import REQUEST_CODE_NOT_SUPPORTED
from pyengine._engine.wire.remoting import ONE_WAY, RESPONSE, RemotingCommand, RemotingReader, write_command
from pyengine.clock import Action, Clock, Timer, Worker
from pyengine.errors import IllegalStateError, ProtocolError, RemotingError, RemotingTimeoutError
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.transport import Connect, Promise, SocketTransport

log = logging.getLogger("pyengine.rocketmq.remoting")

VERSION = 479  # MQVersion.V5_3_3: what the brokers take this client for
FIRST_BACK_OFF = 100  # ms until a failed connection is tried again; doubled each time, up to the last
LAST_BACK_OFF = 5000
MAX_IDLE = 120_000  # ms without a byte in either direction (clientChannelMaxIdleTimeSeconds)
MIN_CLOSE_TIMEOUT = 100  # ms: a request that had less, and less than a quarter of its time, ends no connection

_ids = count(1)

Answered = Callable[[RemotingCommand | RemotingError], None]
Requested = Callable[["Channel", RemotingCommand], RemotingCommand | None]


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
    """One connection. The sending thread writes, one at a time.

    connect: makes the transport; see :mod:`.transport`. requested: called with each request of the other end; returns
    the answer, None if there is no such request. later: runs it on another thread, as it may ask the other end for
    something. closed: called once, when the connection is gone. Raises RemotingError if the other end cannot be
    reached.
    """

    def __init__(
        self,
        address: str,
        clock: Clock,
        requested: Requested,
        later: Callable[[Action], object],
        closed: Callable[[Channel], None],
        connect: Connect = SocketTransport,
    ) -> None:
        self._later = later
        self.address = address
        self._clock = clock
        self._requested = requested
        self._closed = closed
        self._lock = threading.Lock()
        self._waiting: dict[int, _Waiting | Promise] = {}
        self._reader = RemotingReader()
        self._open = True
        self.id = f"{next(_ids):08x}"  # in the log
        self._last_used = clock.now()
        self._has_received = False  # since it was last looked at; a transport's thread does not ask a manual clock
        self._idle: Timer | None = None
        try:
            self._transport = connect(address, self)
        except OSError as error:
            raise RemotingError(address, f"connect to {address} failed: {error}") from error
        if not self._open:  # lost before the transport was set
            self._transport.close()
            raise RemotingError(address, f"connect to {address} failed: the other end has closed it")
        self._look_at_idle()

    @property
    def is_open(self) -> bool:
        """False once the connection is gone."""
        return self._open

    @property
    def expects(self) -> bool:
        """Whether an answer is waited for."""
        return bool(self._waiting)

    def local_address(self) -> str:
        """The address of this end, without a port."""
        return self._transport.local_host

    def send(self, command: RemotingCommand) -> None:
        """Write a command. Raises RemotingError if the connection is gone, ProtocolError if it cannot be written."""
        frame = write_command(command)
        self._last_used = self._clock.now()
        try:
            self._transport.write(frame)
        except OSError as error:
            log.warning("send a request command to channel <%s>, channelId=%s, failed.", self.address, self.id)
            self.close(f"send a request to {self.address} failed: {error}")
            raise RemotingError(self.address, f"send a request to {self.address} failed: {error}") from error

    def ask(self, command: RemotingCommand, timeout: int) -> RemotingCommand:
        """The answer to a request. Raises RemotingError, RemotingTimeoutError after ``timeout`` ms, and as
        :meth:`send` does.
        """
        promise = Promise()
        self._expect(command.opaque, promise)
        try:
            self.send(command)
            self._transport.wait(promise, timeout)
        finally:
            if promise.value is None:
                self._take(command.opaque)
        if promise.value is None:
            raise self._timeout(timeout)
        if isinstance(promise.value, RemotingError):
            raise promise.value
        return promise.value

    def _expect(self, opaque: int, waiting: _Waiting | Promise) -> None:
        with self._lock:
            if not self._open:
                raise RemotingError(self.address, f"the connection to {self.address} is closed")
            self._waiting[opaque] = waiting

    def _timeout(self, timeout: int) -> RemotingTimeoutError:
        problem = f"wait response on the channel <{self.address}> timeout, {timeout}ms"
        return RemotingTimeoutError(self.address, problem)

    def request(self, command: RemotingCommand, timeout: int, answered: Answered) -> None:
        """Write a request; ``answered`` is called once, on another thread: with the answer, or with why there is none.

        timeout: ms to wait for it. Raises as :meth:`send` does; then ``answered`` is not called.
        """
        waiting = _Waiting(answered)
        self._expect(command.opaque, waiting)
        try:
            waiting.timer = self._clock.call_at(self._clock.now() + timeout, lambda: self._expired(command, timeout))
            self.send(command)
            self._transport.expect()
        except (RemotingError, ProtocolError, IllegalStateError) as error:
            if self._take(command.opaque) is not None:
                if isinstance(error, IllegalStateError):
                    raise RemotingError(self.address, "the client is closed") from error
                raise
            # else: the thread that closed the connection has answered already

    def close(self, why: str = "") -> None:
        """End the connection; what waits for an answer gets a RemotingError. Harmless the second time."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            left = list(self._waiting.values())
            self._waiting.clear()
        if self._idle is not None:
            self._idle.cancel()
        log.info("NETTY CLIENT PIPELINE: CLOSE channel[addr=%s, id=%s]", self.address, self.id)
        transport = getattr(self, "_transport", None)  # its thread may report the end before it is set
        if transport is not None:
            transport.close()
        self._closed(self)
        failure = RemotingError(self.address, why or f"the connection to {self.address} was closed")
        for waiting in left:
            self._answer(waiting, failure)

    def _look_at_idle(self) -> None:
        """End the connection once nothing was sent or received for MAX_IDLE."""
        if self._has_received:
            self._has_received, self._last_used = False, self._clock.now()
        left = self._last_used + MAX_IDLE - self._clock.now()
        if left <= 0:
            log.warning("NETTY CLIENT PIPELINE: IDLE exception channel[addr=%s, id=%s]", self.address, self.id)
            self.close(f"the connection to {self.address} was idle for {MAX_IDLE // 1000} s")
        elif self._open:
            try:
                self._idle = self._clock.call_at(self._clock.now() + left, self._look_at_idle)
            except IllegalStateError:
                log.debug("the clock is closed: %s is not watched", self.address)

    def _take(self, opaque: int) -> _Waiting | Promise | None:
        with self._lock:
            waiting = self._waiting.pop(opaque, None)
        if isinstance(waiting, _Waiting) and waiting.timer is not None:
            waiting.timer.cancel()
        return waiting

    def _expired(self, command: RemotingCommand, timeout: int) -> None:
        waiting = self._take(command.opaque)
        if waiting is not None:
            log.warning("remove timeout request, %r", command)
            self._answer(waiting, self._timeout(timeout))

    def _answer(self, waiting: _Waiting | Promise, answer: RemotingCommand | RemotingError) -> None:
        if isinstance(waiting, Promise):
            waiting.give(answer)
            return
        try:
            waiting.answered(answer)
        except Exception:
            log.exception("an answer of %s could not be taken", self.address)

    # What the transport tells (transport.Receiver)

    def received(self, data: bytes) -> None:
        """Take bytes of the other end; what is not the protocol ends the connection."""
        self._has_received = True
        self._reader.feed(data)
        try:
            for command in self._reader:
                self._arrived(command)
        except ProtocolError as error:
            why = f"what {self.address} sends is not the remoting protocol: {error}"
            log.warning("%s", why)
            self.close(why)

    def lost(self, why: str) -> None:
        """The connection is gone."""
        log.info("NETTY CLIENT PIPELINE: channelInactive, the channel[addr=%s, id=%s]", self.address, self.id)
        self.close(f"the connection to {self.address} {why}")

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
    request. connect: makes the transports. ext_fields: of every request, beside its own.
    """

    def __init__(
        self,
        clock: Clock,
        requested: Requested,
        connected: Callable[[Channel], None],
        credentials: SessionCredentials | None = None,
        connect: Connect = SocketTransport,
        ext_fields: Mapping[str, str] | None = None,
    ) -> None:
        self._ext_fields = dict(ext_fields or {})
        self._clock = clock
        self._connect_to = connect
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
        if self._ext_fields:
            ext_fields = {**(ext_fields or {}), **self._ext_fields}
        command = RemotingCommand(
            code, language="PYTHON", version=VERSION, opaque=next(self._opaque), ext_fields=ext_fields, body=body
        )
        if self._credentials is not None:
            self._credentials.sign(command)
        return command

    def channel(self, address: str) -> Channel:
        """The connection to an address. Raises RemotingError if there is none and none can be made: at once, without
        another try, for a while after one failed.
        """
        found = self._channels.get(address)
        if found is not None and found.is_open:
            return found
        with self._lock:
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
        log.info("createChannel: begin to connect remote host[%s] asynchronously", address)
        try:
            channel = Channel(address, self._clock, self._requested, self._process_later, self._gone, self._connect_to)
        except RemotingError as error:
            log.warning("createChannel: connect remote host[%s] failed, %s", address, error)
            back_off = min(2 * back_off or FIRST_BACK_OFF, LAST_BACK_OFF)
            with self._lock:
                self._failures[address] = self._clock.now() + back_off, back_off
            raise
        log.info("createChannel: connect remote host[%s] success", address)
        log.info("NETTY CLIENT PIPELINE: CONNECT  %s => %s", channel.local_address(), address)
        log.info("NETTY CLIENT PIPELINE: ACTIVE, %s, channelId=%s", address, channel.id)
        self._connected(channel)
        with self._lock:
            self._failures.pop(address, None)
            closed = self._closed
            if not closed:
                self._channels[address] = channel
        if closed:
            channel.close()
            raise RemotingError(address, "the client is closed")
        return channel

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
        log.info(
            "closeChannel: the channel[addr=%s, id=%s] was removed from channel table", channel.address, channel.id
        )

    def invoke(self, address: str, command: RemotingCommand, timeout: int) -> RemotingCommand:
        """The answer to a request. Raises RemotingError, RemotingTimeoutError after ``timeout`` ms: then the connection
        is ended too, as its other end may be gone.
        """
        begun = self._clock.now()
        channel = self.channel(address)
        left = timeout - (self._clock.now() - begun)
        try:
            return channel.ask(command, timeout)
        except RemotingTimeoutError:
            if left > MIN_CLOSE_TIMEOUT or left > timeout / 4:
                channel.close(f"the connection to {address} is closed because of a timeout")
                log.warning(
                    "invokeSync: close socket because of timeout, %dms, channel[addr=%s, id=%s]",
                    timeout,
                    address,
                    channel.id,
                )
            log.warning("invokeSync: wait response timeout exception, the channel[addr=%s, id=%s]", address, channel.id)
            raise

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
