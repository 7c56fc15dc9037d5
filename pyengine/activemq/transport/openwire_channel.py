"""One connection on which OpenWire's commands pass: what both ends agree on, and that silence ends it.

A channel moves bytes by its link: a socket (socket_link), or a network in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from pyengine._engine.wire.data_structure import DataStructure
from pyengine._engine.wire.openwire import MAX_FRAME_SIZE, OpenWireReader, OpenWireWriter
from pyengine.activemq._runtime.openwire_client import CommandChannel
from pyengine.activemq.transport.openwire_format import HANDSHAKE_SIZE, KEEP_ALIVE, WireFormat
from pyengine.activemq.transport.tcp_options import TcpOptions
from pyengine.clock import Clock
from pyengine.errors import IllegalStateError, JMSError, PyengineError


class ChannelFailedError(JMSError):
    """The connection broke, or was closed."""


class Link(Protocol):
    """The way of a channel's bytes."""

    @property
    def host(self) -> str:
        """The host that is at its other end."""

    def open(self, arrived: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        """Connect. Nothing is read before ``read``. Raises JMSError."""

    def read(self) -> None:
        """Begin to call ``arrived`` with what comes, and ``lost`` once when nothing will come any more."""

    def write(self, data: bytes) -> None:
        """Send; raises OSError."""

    def close(self) -> None:
        """End it; a thread that reads or writes is woken. Closing twice is harmless."""

    def join(self) -> None:
        """Wait for its thread, unless this is it."""


@dataclass(slots=True)
class ChannelListener:
    """The owner of a channel. received: a command came. lost: it failed, once, with the reason. interrupted, resumed:
    of a channel that fails over (failover_channel)."""

    received: Callable[[DataStructure], None]
    lost: Callable[[str], None]
    interrupted: Callable[[], None] = field(default=lambda: None)
    resumed: Callable[[], None] = field(default=lambda: None)


class Channel(Protocol):
    """Where a client's commands go out."""

    def start(self, listener: ChannelListener) -> None:
        """Connect. Raises JMSError."""

    def oneway(self, command: DataStructure) -> None:
        """Send a command. Raises ChannelFailedError."""

    def close(self) -> None:
        """End it without a word. Closing twice is harmless."""

    def join(self) -> None:
        """Wait for its threads."""


class OpenWireChannel(CommandChannel):
    """The connection to one broker. Raises JMSError from ``start`` if the broker cannot be reached."""

    def __init__(self, link: Link, options: TcpOptions, clock: Clock) -> None:
        super().__init__(link, OpenWireReader(max_frame_size=HANDSHAKE_SIZE), OpenWireWriter())
        self.wire_format: WireFormat = options.format
        self._link: Link
        self._options = options
        self._clock = clock
        self._state = threading.Condition()
        self._agreed = False
        self.listener: ChannelListener = ChannelListener(lambda command: None, lambda reason: None)

    def __str__(self) -> str:
        return str(self._link)

    def start(self, listener: ChannelListener) -> None:
        """See Channel."""
        self.listener = listener
        self._link.open(self._arrived, self._fail)
        try:
            self.oneway(replace(self._options.format, host=self._link.host).command())
            self._link.read()
            patience = self._options.connection_timeout or None
            with self._state:
                self._clock.wait(self._state, lambda: self._agreed or self.failure is not None, patience)
            self._check()
            if not self._agreed:
                raise ChannelFailedError(
                    f"Wire format negotiation timeout: peer did not send his wire format: {self._link}"
                )
        except BaseException:
            self.close()
            raise
        self._monitor()

    def _check(self) -> None:
        if self.failure is not None:
            raise ChannelFailedError(f"the connection failed: {self.failure}")
        if self._closed:
            raise IllegalStateError("The connection is closed")

    def _broken(self, reason: str) -> NoReturn:
        self._fail(reason)
        raise ChannelFailedError(f"the connection failed: {reason}")

    def _fail(self, reason: str) -> None:
        with self._state:
            if self.failure is not None or self._closed:
                return
            self.failure = reason
            self._state.notify_all()
        self._link.close()
        self.listener.lost(reason)

    def close(self) -> None:
        """See Channel."""
        with self._state:
            self._closed = True
            self._state.notify_all()
        self._link.close()

    def join(self) -> None:
        """See Channel."""
        self._link.join()

    # Commands in

    def _answer_keep_alive(self) -> None:
        self.oneway(KEEP_ALIVE)

    def _negotiate(self, command: DataStructure) -> None:
        self.wire_format = agreed = self._options.format.agree(command)
        self._reader.use(max_frame_size=min(agreed.max_frame_size, MAX_FRAME_SIZE), **agreed.settings())
        with self._writing:
            self._writer.use(**agreed.settings())
        with self._state:
            self._agreed = True
            self._state.notify_all()

    # Silence

    def _monitor(self) -> None:
        silence = self.wire_format.max_inactivity_duration
        if silence > 0 and self._options.use_inactivity_monitor:
            first = self.wire_format.max_inactivity_duration_initial_delay
            self._later(max(1, silence // 3), lambda: self._keep_alive(max(1, silence // 3)))
            self._later(first + silence, lambda: self._look_for_silence(silence))

    def _later(self, delay: int, action: Callable[[], None]) -> None:
        with suppress(IllegalStateError):  # the clock is closed
            self._clock.call_at(self._clock.now() + delay, action)

    def _keep_alive(self, interval: int) -> None:
        if self._closed or self.failure is not None:
            return
        if not self._written:
            with suppress(PyengineError):
                self.oneway(KEEP_ALIVE)
        self._written = False
        self._later(interval, lambda: self._keep_alive(interval))

    def _look_for_silence(self, interval: int) -> None:
        if self._closed or self.failure is not None:
            return
        if not self._received:
            self._fail(f"Channel was inactive for too (>{interval}) long: {self._link}")
            return
        self._received = False
        self._later(interval, lambda: self._look_for_silence(interval))
