"""An embedded cluster that listens: its name server and its brokers on TCP."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, InvalidSourceError
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.transport import parse_address
from pyengine.rocketmq.server.broker_requests import MOST_NEW_QUEUES, BrokerRequests
from pyengine.rocketmq.server.connections import RemotingServer, TlsMode, address_text, listening_socket
from pyengine.rocketmq.server.name_server import NameServer
from pyengine.rocketmq.server.served import EmbeddedCluster, Served
from pyengine.visible import logger

if TYPE_CHECKING:
    import ssl

log = logger("pyengine.rocketmq.remoting")

BROKER_AFTER_NAME_SERVER = 1035  # 9876 -> 10911
NEXT_BROKER = 10


class Listeners:
    """The sockets of a cluster, before there is one. listen: ``host:port`` of the name server, port 0: any free one.

    Each broker listens at the same host: at 1035 above the name server's port, which is 10911 for 9876, and 10 more for
    each further one; at any free port if the name server's is, or if that one is taken.
    Raises ConfigurationError for an address that is none, InvalidSourceError for one that cannot be had.
    """

    def __init__(self, listen: str, brokers: Sequence[str], accounts: object, allow_anonymous: bool) -> None:
        host, port = _address(listen)
        if not _is_loopback(host) and not accounts and not allow_anonymous:
            raise ConfigurationError(
                "listen", repr(listen), "everybody in the network could send and read",
                "give accounts=[rocketmq.SessionCredentials(...)] (--accounts plain_acl.yml), allow_anonymous=True "
                "(--allow-anonymous), or 127.0.0.1",
            )  # fmt: skip
        self.brokers: dict[str, socket.socket] = {}
        self.name_server = listening_socket(host, port)
        try:
            for number, name in enumerate(brokers):
                self.brokers[name] = _broker_socket(host, port, number)
        except BaseException:
            self.close()
            raise

    def address(self, name: str) -> str:
        """``host:port`` of a broker."""
        return address_text(self.brokers[name].getsockname())

    def close(self) -> None:
        """Listen no more."""
        for listener in (self.name_server, *self.brokers.values()):
            listener.close()


class Serving:
    """The name server and the brokers of a cluster at work. accounts, new_queues: see Served.
    ssl_context, tls_mode: see RemotingServer.
    """

    def __init__(
        self,
        broker: EmbeddedCluster,
        listeners: Listeners,
        accounts: Sequence[SessionCredentials],
        new_queues: int,
        ssl_context: ssl.SSLContext | None = None,
        tls_mode: TlsMode = "permissive",
    ) -> None:
        self.name_server_address = address_text(listeners.name_server.getsockname())
        ports = {name: each.getsockname()[1] for name, each in listeners.brokers.items()}
        self._served = Served(broker, ports, accounts, new_queues)
        self.server = RemotingServer(
            broker.clock, after=broker.settle if broker.clock.settles else None, ssl_context=ssl_context,
            tls_mode=tls_mode,
        )  # fmt: skip
        self.server.listen(listeners.name_server, NameServer(self._served))
        for name, listener in listeners.brokers.items():
            self.server.listen(listener, BrokerRequests(self._served, broker.nodes[name]))
        self._thread: threading.Thread | None = None
        self._manual = isinstance(broker.clock, ManualClock)

    @property
    def broker_addresses(self) -> list[str]:
        """``host:port`` of each broker."""
        host = parse_address("listen", self.name_server_address)[0]
        return [self._served.address(name, host) for name in self._served.nodes]

    def start(self) -> None:
        """Serve in a thread of its own. Under a ManualClock the clock's thread serves: :meth:`run`."""
        if not self._manual:
            self._thread = threading.Thread(target=self.server.run, name="RemotingServer", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Serve in this thread until :meth:`close`."""
        self.server.run()

    def close(self) -> None:
        """End every connection and listen no more."""
        self.server.stop()
        if self._thread is None:
            self.server.close()
        elif self._thread is not threading.current_thread():
            self._thread.join()


def new_queues(auto_create: bool, default_queues: int) -> int:
    """Queues of TBW102, of which a new topic gets as many as its producer wants, at most. A Broker's own default of 4
    is what the 8 of a real one and the 4 of a real producer come to.
    """
    if not auto_create:
        return 0
    return MOST_NEW_QUEUES if default_queues == 4 else default_queues


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.strip().rpartition(":") if isinstance(listen, str) else ("", "", "")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError("listen", repr(listen), "not an address", "give host:port, as '127.0.0.1:9876'")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _broker_socket(host: str, port: int, number: int) -> socket.socket:
    wanted = port + BROKER_AFTER_NAME_SERVER + NEXT_BROKER * number
    if port and wanted < 65536:
        try:
            return listening_socket(host, wanted)
        except InvalidSourceError as error:
            log.info("another port than that: %s", error)
    return listening_socket(host, 0)
