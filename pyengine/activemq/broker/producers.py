"""The producers of a broker's connections, and where each sends."""

from __future__ import annotations

from collections import Counter

from pyengine.destinations import Destination


class Producers:
    """Producers by their ids; those of one connection leave with it."""

    def __init__(self) -> None:
        self._connection_of: dict[str, str] = {}
        self._of_connection: dict[str, dict[str, Destination | None]] = {}
        self._sending: Counter[Destination | None] = Counter()

    def add(self, connection_id: str, producer_id: str, destination: Destination | None) -> None:
        """A producer of one destination, or of any: None. It replaces the one of that id."""
        self.remove(producer_id)
        self._connection_of[producer_id] = connection_id
        self._of_connection.setdefault(connection_id, {})[producer_id] = destination
        self._sending[destination] += 1

    def remove(self, producer_id: str) -> None:
        """Forget one, if it is known."""
        connection_id = self._connection_of.pop(producer_id, None)
        if connection_id is None:
            return
        of_connection = self._of_connection[connection_id]
        destination = of_connection.pop(producer_id)
        if not of_connection:
            del self._of_connection[connection_id]
        self._sending[destination] -= 1
        if not self._sending[destination]:
            del self._sending[destination]

    def remove_of(self, connection_id: str) -> list[str]:
        """Forget those of a connection; returns their ids."""
        gone = list(self._of_connection.get(connection_id, ()))
        for producer_id in gone:
            self.remove(producer_id)
        return gone

    def count(self, destination: Destination) -> int:
        """How many send to a destination; those of no destination of their own do not count."""
        return self._sending[destination]
