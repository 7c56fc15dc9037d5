"""stomp.py without a socket: its programs talk to a broker of this process, on the calling thread where time is moved
by hand.

``memory_transport(broker)`` is a class to put in the place of ``stomp.transport.Transport``; ``connection(broker)`` a
connection that has it. Under a ManualClock a frame's answers, and the messages it causes, have reached the listeners
when the call that sent it returns; messages that time causes, when ``clock.advance`` returns. Heart-beats are off.
"""

from __future__ import annotations

import os
from collections import deque
from itertools import count
from typing import Any

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.activemq.transport.commands import Transport
from pyengine.activemq.transport.stomp_frames import BrokenFrameError
from pyengine.activemq.transport.stomp_session import StompSession
from pyengine.clock import Worker
from pyengine.errors import MissingExtraError, ProtocolError

_NUMBERS = count(1)


def memory_transport(broker: Transport) -> Any:
    """A class like ``stomp.transport.Transport`` whose every connection is to ``broker``, regardless of the hosts that
    it is given.

    Raises MissingExtraError without stomp.py.
    """
    try:
        from stomp import exception, transport, utils
    except ImportError as error:
        raise MissingExtraError("stomp", "stomp.py") from error

    class MemoryTransport(transport.BaseTransport):  # type: ignore[misc]
        """A transport of stomp.py that leads to a broker in this process."""

        def __init__(
            self,
            host_and_ports: object = None,
            *unused: object,
            auto_decode: bool = True,
            encoding: str = "utf-8",
            vhost: str | None = None,
            **also_unused: object,
        ) -> None:
            super().__init__(auto_decode, encoding)
            self.vhost = vhost
            self._decodes = auto_decode
            self.current_host_and_port: tuple[str, int] | None = None
            self._session: StompSession | None = None
            self._reader = StompReader()
            self._frames: deque[bytes] = deque()
            self._dispatches: deque[MessageDispatch] = deque()
            self._worker: Worker | None = None
            self._asked = False

        def start(self) -> None:
            """Connect; nothing runs by itself."""
            self.running = True
            self.attempt_connection()
            self.notify("connecting")

        def attempt_connection(self) -> None:
            """A new session at the broker."""
            self.connection_error = False
            self.current_host_and_port = ("memory", 0)
            connection_id = f"ID:memory-{os.getpid()}-{next(_NUMBERS)}:1"
            self._reader = StompReader()
            self._worker = broker.clock.worker(f"stomp.py {connection_id}")
            self._session = StompSession(broker, connection_id, self._write, self._dispatch, self._fail)

        def send(self, encoded_frame: bytes) -> None:
            """A frame of the program's."""
            session = self._session
            if session is None or not self.running:
                raise exception.NotConnectedException
            try:
                self._reader.feed(encoded_frame)
                for frame in self._reader:
                    session.receive(frame)
                    if session.closing:
                        break
                    self._reader.use(session.wire_version)
            except ProtocolError as error:
                session.refuse(error)
            except BrokenFrameError:
                session.closing = True
            self._ask()
            broker.clock.settle()

        def _write(self, frame: StompFrame, version: str) -> None:
            if frame.action == "CONNECTED":
                frame = StompFrame("CONNECTED", {**frame.headers, "heart-beat": "0,0"})
            self._frames.append(write_frame(frame, version))

        def _dispatch(self, dispatch: MessageDispatch) -> None:
            self._dispatches.append(dispatch)
            self._ask()

        def _fail(self, reason: str) -> None:
            if self._session is not None:
                self._session.closing = True
            self._ask()

        def _ask(self) -> None:
            worker = self._worker
            if not self._asked and worker is not None:
                self._asked = True
                worker.submit(self._deliver)

        def _deliver(self) -> None:
            """Give the listeners what has come."""
            self._asked = False
            session = self._session
            if session is None:
                return
            while True:
                while self._frames:
                    data = self._frames.popleft().rstrip(b"\n").removesuffix(b"\0")
                    frame = utils.parse_frame(data)
                    if self._decodes:
                        frame.body = utils.decode(frame.body)
                    self.process_frame(frame, data)
                if not self._dispatches or session.closing or not self.running:
                    break
                session.deliver(self._dispatches.popleft())
            if session.closing:
                self.disconnect_socket()

        def disconnect_socket(self) -> None:
            """End the session."""
            self.running = False
            session, self._session = self._session, None
            worker, self._worker = self._worker, None
            if session is not None:
                session.leave()
            if worker is not None:
                worker.close()
            self.current_host_and_port = None
            if not self.notified_on_disconnect:
                self.notify("disconnected")

        def set_ssl(self, *unused: object, **also_unused: object) -> None:
            """Nothing leaves the process."""

        def get_ssl(self, host_and_port: object = None) -> None:
            """See ``set_ssl``."""

    return MemoryTransport


def connection(broker: Transport, version: str = "1.2") -> Any:
    """A stomp.py connection to a broker in this process. version: "1.0", "1.1" or "1.2".

    Raises MissingExtraError without stomp.py.
    """
    transport = memory_transport(broker)()
    from stomp import connect

    found = getattr(connect, f"StompConnection{version.replace('.', '')}")()
    found.transport = transport
    transport.set_listener("protocol-listener", found)
    return found
