"""The clients that are connected to a broker (ConsumerManager's and ProducerManager's channels)."""

from __future__ import annotations

import threading
from dataclasses import field

from pyengine.dataclass import dataclass
from pyengine.rocketmq.server.connections import Connection


@dataclass(slots=True, eq=False)
class RemoteClient:
    """One client id on one connection. language, version: as it said. last_heartbeat: ms."""

    connection: Connection
    client_id: str
    language: str | None = None
    version: int = 0
    last_heartbeat: int = 0
    groups: set[str] = field(default_factory=set)
    producer_groups: set[str] = field(default_factory=set)


class ClientTable:
    """The clients that are connected to one broker. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[tuple[Connection, str], RemoteClient] = {}
        self._by_id: dict[str, RemoteClient] = {}  # the connection that was heard last

    def heard(
        self, connection: Connection, client_id: str, language: str | None, version: int, now: int
    ) -> RemoteClient:
        """A client has sent a heartbeat."""
        with self._lock:
            found = self._clients.get((connection, client_id))
            if found is None:
                found = self._clients[connection, client_id] = RemoteClient(connection, client_id)
            found.language, found.version, found.last_heartbeat = language, version, now
            self._by_id[client_id] = found
            return found

    def gone(self, connection: Connection) -> list[RemoteClient]:
        """Forget the clients of a connection that is closed. Those that have another one by now are not among them."""
        with self._lock:
            left = [found for (where, _), found in self._clients.items() if where is connection]
            for found in left:
                del self._clients[connection, found.client_id]
            ended = [found for found in left if self._by_id.get(found.client_id) is found]
            for found in ended:
                del self._by_id[found.client_id]
        return ended

    def left(self, client: RemoteClient) -> None:
        """Forget a client that is in no group any more."""
        with self._lock:
            if not client.groups and not client.producer_groups:
                self._clients.pop((client.connection, client.client_id), None)
                if self._by_id.get(client.client_id) is client:
                    del self._by_id[client.client_id]

    def of(self, client_id: str) -> RemoteClient | None:
        """The client, with the connection of its last heartbeat; None if it is not connected."""
        with self._lock:
            return self._by_id.get(client_id)

    def producers(self, group: str) -> list[RemoteClient]:
        """The clients of a producer group, in the order of joining."""
        with self._lock:
            return [found for found in self._clients.values() if group in found.producer_groups]

    def all_producers(self) -> dict[str, list[RemoteClient]]:
        """Producer group -> its clients."""
        found: dict[str, list[RemoteClient]] = {}
        with self._lock:
            for client in self._clients.values():
                for group in sorted(client.producer_groups):
                    found.setdefault(group, []).append(client)
        return found
