"""The connection factory: where programs begin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine.activemq.broker.broker import Broker, running_broker
from pyengine.activemq.client.connection import Connection
from pyengine.activemq.options import (
    OF_OPTIONS,
    BrokerURL,
    ConnectionOptions,
    UnknownOptions,
    broker_url,
    connection_options,
    whole_number,
)
from pyengine.activemq.transport.commands import Transport
from pyengine.attributes import Declared, letters, named_arguments
from pyengine.clock import Clock, SystemClock
from pyengine.destinations import Destination, destination_of
from pyengine.errors import ConfigurationError, JMSError
from pyengine.topology.checked import check, check_arguments

if TYPE_CHECKING:
    from pyengine.activemq.transport.openwire_channel import Channel
    from pyengine.activemq.transport.tcp_options import TcpOptions


@named_arguments
class ConnectionFactory(Declared):
    """Makes connections to a broker in this process, or to an ActiveMQ broker of the network.

    url: ``vm://NAME?jms.prefetchPolicy.queuePrefetch=10&broker.persistent=false``, ``tcp://HOST:61616?jms...``,
    ``ssl://HOST:61617?trusted=authority.pem`` or ``failover:(tcp://A:61616,ssl://B:61617)?randomize=false``; see
    ConnectionOptions for the ``jms.*`` names, and docs/activemq-interop.md for ``wireFormat.*`` and the rest of a
    network. broker: the one to connect to; None: the running broker of that name, and if there is none, one that
    lives as long as its connections (``create=false`` forbids it, ``waitForStart=MS`` waits for one first).
    options: defaults below the URL's. redelivery_policies: by destination or pattern (``"orders.>"``), before the
    connection's own; several names (``"a,b"``) are one pattern. user_name, password: for a broker of the network,
    in place of ``jms.userName`` and ``jms.password``. Raises ConfigurationError for an option that does not exist
    (see UnknownOptions) or has no such value, InvalidDestinationError for a pattern without a name.
    """

    url: str
    unknown_options: UnknownOptions
    redelivery_policies: dict[Destination, RedeliveryPolicy]
    _elsewhere: ClassVar[Mapping[str, str]] = {
        **OF_OPTIONS,
        letters("client_id"): "create_connection(client_id=...) says it, or ConnectionOptions(client_id=...)",
    }

    def __init__(
        self,
        url: str = "vm://localhost",
        *,
        broker: Transport | None = None,
        options: ConnectionOptions | None = None,
        redelivery_policies: Mapping[str | Destination, RedeliveryPolicy] | None = None,
        unknown_options: UnknownOptions = UnknownOptions.REFUSE,
        user_name: str | None = None,
        password: str | None = None,
    ) -> None:
        check_arguments("ConnectionFactory", ConnectionFactory.__init__, locals())
        self.url = url
        self._parts: BrokerURL = broker_url(url, unknown_options)
        self._options = connection_options(self._parts.jms, options, unknown_options)
        self.unknown_options = unknown_options
        self.redelivery_policies = {
            destination_of(pattern, "queue"): policy for pattern, policy in (redelivery_policies or {}).items()
        }
        self._wait = whole_number("waitForStart", self._parts.transport.get("waitForStart", "0"))
        if self.over_network:
            self._network(self._options)  # what cannot be is refused here
            if broker is not None:
                raise ConfigurationError("ConnectionFactory.broker", broker, f"the URL names another one: {url}")
        self._user_name, self._password = user_name, password
        self._broker = broker
        self._lock = threading.Lock()
        self._own: Broker | None = None
        self._connections = 0
        self._instrument: Callable[[Connection], None] | None = None  # what is done to each connection; see telemetry

    @property
    def options(self) -> ConnectionOptions:
        """The options of its connections; setting others counts for those that are made later."""
        return self._options

    @options.setter
    def options(self, options: ConnectionOptions) -> None:
        check("ConnectionFactory.options", options, ConnectionOptions)
        self._options = options

    @property
    def over_network(self) -> bool:
        """Whether the broker is one of the network, as the URL says."""
        return self._parts.scheme != "vm"

    def create_connection(self, client_id: str | None = None) -> Connection:
        """A connection; it delivers nothing before it is started (``with`` starts it).

        client_id: needed for durable subscribers. Raises InvalidClientIDError if another connection has it, JMSError if
        there is no broker, AuthenticationError if the broker does not let the user in.
        """
        options = self.options if client_id is None else replace(self.options, client_id=client_id)
        connection = self._connect(options) if self.over_network else self._join(options)
        if self._instrument is not None:
            self._instrument(connection)
        return connection

    def _join(self, options: ConnectionOptions) -> Connection:
        """A connection to a broker of this process."""
        transport, clock = self._reach()
        try:
            return Connection(
                transport,
                clock,
                options,
                redelivery_policies=self.redelivery_policies,
                unknown_options=self.unknown_options,
                closed=self._left,
            )
        except BaseException:
            self._left()
            raise

    def _network(self, options: ConnectionOptions, parts: BrokerURL | None = None) -> TcpOptions:
        """The options of the network; parts: of one address of several."""
        from pyengine.activemq.transport.tcp_options import tcp_options

        if parts is None:
            parts = self._parts
        if parts.scheme == "failover":
            from pyengine.activemq.transport.failover_options import address_of, failover_options

            nested = failover_options(parts.transport, self.unknown_options).nested
            first, *_ = [
                self._network(options, address_of(each, nested, self.unknown_options)) for each in parts.components
            ]
            return first
        secure = parts.scheme == "ssl"
        return tcp_options(parts.transport, self._parts.jms, options, self.unknown_options, secure=secure)

    def _channel(self, options: ConnectionOptions, clock: Clock) -> Channel:
        from pyengine.activemq.transport.openwire_channel import OpenWireChannel
        from pyengine.activemq.transport.socket_link import SocketLink

        def connect(parts: BrokerURL) -> OpenWireChannel:
            network = self._network(options, parts)
            return OpenWireChannel(SocketLink(parts.name, parts.port, network), network, clock)

        parts = self._parts
        if parts.scheme != "failover":
            return connect(parts)
        from pyengine.activemq.transport.failover_channel import FailoverChannel
        from pyengine.activemq.transport.failover_options import failover_options

        return FailoverChannel(
            parts.components, failover_options(parts.transport, self.unknown_options), connect, clock
        )

    def _connect(self, options: ConnectionOptions) -> Connection:
        """A connection over the network: it has a transport of its own, and few programs need it."""
        from pyengine.activemq.transport.openwire_transport import OpenWireTransport

        network = self._network(options)
        network = replace(
            network,
            user_name=network.user_name if self._user_name is None else self._user_name,
            password=network.password if self._password is None else self._password,
        )
        from socket import gethostname

        clock = SystemClock(f"ActiveMQ Connection {self.url.partition('?')[0]} Timer")
        channel = self._channel(options, clock)
        transport = OpenWireTransport(channel, network, clock, fault_tolerant=self._parts.scheme == "failover")

        def close() -> None:
            transport.close()
            clock.close()

        try:
            return Connection(
                transport,
                clock,
                options,
                redelivery_policies=self.redelivery_policies,
                unknown_options=self.unknown_options,
                closed=close,
                place=gethostname(),  # the ids of connections differ between machines
            )
        except BaseException:
            close()
            raise

    def _reach(self) -> tuple[Transport, Clock]:
        with self._lock:
            self._connections += 1
            if self._broker is not None:
                return self._broker, self._broker.clock
            found = running_broker(self._parts.name, self._wait)
            if found is None:
                if self._parts.transport.get("create", "true").lower() == "false":
                    self._connections -= 1
                    raise JMSError(f"no broker named {self._parts.name!r} runs in this process")
                found = self._own = self._start()
            return found, found.clock

    def _start(self) -> Broker:
        if self._parts.broker.get("persistent", "false").lower() == "true":
            raise ConfigurationError("broker.persistent", "true", "a broker made by a URL keeps messages in memory")
        return Broker(name=self._parts.name)

    def _left(self) -> None:
        with self._lock:
            self._connections -= 1
            broker = None
            if not self._connections:
                broker, self._own = self._own, None
        if broker is not None:
            broker.close()
