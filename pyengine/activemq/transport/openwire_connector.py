"""A client that speaks OpenWire over TCP, of a connector of the broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import lru_cache

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.wire.data_structure import DataStructure
from pyengine._engine.wire.openwire import OpenWireReader, OpenWireWriter
from pyengine._engine.wire.openwire_types import NO_COMMAND, TYPES
from pyengine.activemq.transport.client_connection import ClientConnection, ListeningBroker
from pyengine.activemq.transport.commands import ConsumerControl
from pyengine.activemq.transport.connectors import ConnectorURI
from pyengine.activemq.transport.openwire_format import HANDSHAKE_SIZE, KEEP_ALIVE, WireFormat
from pyengine.activemq.transport.openwire_session import OpenWireSession
from pyengine.errors import ProtocolError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")


@lru_cache(maxsize=64)
def broker_identity(name: str, started: int) -> DataStructure:
    """The id of a broker, the same for all its connections."""
    return TYPES["BrokerId"](value=f"ID:{name}-{started}-{uuid.uuid4().hex[:8]}-0:1")


class OpenWireEnd:
    """The broker's end of one connection: bytes to commands for its OpenWireSession, and back.

    write: takes bytes for the client. dispatch, control, failed: see OpenWireSession. monitor: called with three
    times in seconds, when silence is looked at first, how long it may last, and how often something must be
    written. displace: the connection of that id is here now. end_later: the connection ends in so many seconds,
    with the reason.
    """

    def __init__(
        self,
        broker: ListeningBroker,
        uri: ConnectorURI,
        url: str,
        address: str,
        write: Callable[[bytes], object],
        dispatch: Callable[[MessageDispatch], None],
        control: Callable[[ConsumerControl], None],
        failed: Callable[[str], None],
        monitor: Callable[[float, float, float], None],
        displace: Callable[[str], None],
        end_later: Callable[[float, str], None],
    ) -> None:
        self._broker = broker
        self._url, self._address = url, address
        self._send = write
        self._monitor = monitor
        self._format = WireFormat(
            cache_enabled=uri.cache_enabled,
            cache_size=uri.cache_size,
            tight_encoding_enabled=uri.tight_encoding_enabled,
            stack_trace_enabled=uri.stack_trace_enabled,
            max_frame_size=uri.max_frame_size,
            max_inactivity_duration=uri.max_inactivity_duration,
            max_inactivity_duration_initial_delay=uri.max_inactivity_duration_initial_delay,
        )
        self._agreed = False
        self._reader = OpenWireReader(max_frame_size=HANDSHAKE_SIZE)
        self._writer = OpenWireWriter()
        self.session = OpenWireSession(
            broker,
            self.write,
            dispatch,
            control,
            failed,
            displace=displace,
            end_later=end_later,
            authenticate=broker.authenticate,
            client_address=address,
        )

    def begin(self) -> None:
        """Say at once what this end can do; the client does so too, and neither waits."""
        self.write(self._format.command())

    def receive(self, data: bytes | memoryview) -> None:
        """Commands, whole or in part."""
        session, reader = self.session, self._reader
        try:
            reader.feed(data)
            for command in reader:
                if command.kind.name == "WireFormatInfo":
                    self._negotiate(command)
                elif not self._agreed:
                    raise ProtocolError(f"a {command.kind.name} before the WireFormatInfo")
                elif command.kind.name == "KeepAliveInfo":
                    if command.response_required:
                        self.write(KEEP_ALIVE)
                elif command is not NO_COMMAND:
                    session.receive(command)
                if session.closing:
                    return
        except ProtocolError as error:
            LOG.warning("%s: closed: %s", self._address, error)
            session.closing = True

    def _negotiate(self, command: DataStructure) -> None:
        if self._agreed:
            raise ProtocolError("a second WireFormatInfo")
        agreed = self._format.agree(command)
        self._agreed = True
        settings = agreed.settings()
        self._reader.use(max_frame_size=self._format.max_frame_size, **settings)
        self._writer.use(**settings)
        broker = self._broker
        self.write(
            TYPES["BrokerInfo"](
                broker_id=broker_identity(broker.name, broker.started),
                broker_url=self._url,
                broker_name=broker.name,
            )
        )
        silence = agreed.max_inactivity_duration / 1000
        if silence > 0:
            first = agreed.max_inactivity_duration_initial_delay / 1000 + silence
            self._monitor(first, silence, silence / 3)

    def write(self, command: DataStructure) -> None:
        """A command for the client."""
        self._send(self._writer.write(command))

    def keep_alive(self) -> bytes:
        """A KeepAliveInfo."""
        return self._writer.write(KEEP_ALIVE)


class OpenWireConnection(ClientConnection):
    """A client: its socket, its OpenWireEnd."""

    session: OpenWireSession

    def begin(self) -> None:
        """See OpenWireEnd."""
        self._end = OpenWireEnd(
            self._thread.broker,
            self._connector.uri,
            self._connector.url,
            self._address,
            self._out.extend,
            self._dispatch,
            lambda command: self._thread.call(lambda: self._control(command)),
            self._fail,
            self.monitor,
            self._displace,
            self.end_later,
        )
        self.session = self._end.session
        self._end.begin()

    def receive(self, data: bytes | memoryview) -> None:
        """See OpenWireEnd."""
        self._end.receive(data)

    def _displace(self, connection_id: str) -> None:
        """The client has connected again before its former connection was known to be gone."""
        for other in self._thread.others(self):
            if isinstance(other, OpenWireConnection) and other.session.connection_id == connection_id:
                LOG.warning("%s: closed: %s takes connection %s over", other._address, self._address, connection_id)
                other.close()

    def _control(self, command: ConsumerControl) -> None:
        if self.open:
            self.session.controlled(command)
            self.flush()

    def keep_alive(self) -> bytes:
        """A KeepAliveInfo."""
        return self._end.keep_alive()
