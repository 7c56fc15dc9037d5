"""A client that speaks STOMP over TCP, of a connector of the broker."""

from __future__ import annotations

import os
from itertools import count

from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.activemq.transport.client_connection import ClientConnection
from pyengine.activemq.transport.stomp_frames import BrokenFrameError
from pyengine.activemq.transport.stomp_session import StompSession
from pyengine.errors import ProtocolError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
_NUMBERS = count(1)


class StompConnection(ClientConnection):
    """A client: its socket, its StompSession. An automatic acknowledgement follows its message into the socket."""

    session: StompSession

    def begin(self) -> None:
        """Wait for its CONNECT."""
        uri, broker = self._connector.uri, self._thread.broker
        self._reader = StompReader(
            max_data_length=uri.max_data_length, max_frame_size=uri.max_frame_size, nio=uri.scheme == "stomp+nio"
        )
        connection_id = f"ID:stomp-{os.getpid()}-{broker.started}-{next(_NUMBERS)}:1"
        self.session = StompSession(
            broker,
            connection_id,
            self._write,
            self._dispatch,
            self._fail,
            default_heart_beat=uri.default_heart_beat,
            authenticate=broker.authenticate,
        )

    def receive(self, data: bytes | memoryview) -> None:
        """Frames, whole or in part."""
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

    def _write(self, frame: StompFrame, version: str) -> None:
        self._out += write_frame(frame, version)

    def keep_alive(self) -> bytes:
        """A heart-beat."""
        return b"\n"

    def _begin_heart_beats(self) -> None:
        read, write = self.session.read_interval, self.session.write_interval
        if min(read, write) < 0:
            return
        grace = self._connector.uri.hb_grace_period_multiplier
        self.monitor((min(read, write) or read) / 1000, read * grace / 1000, write / 1000)
