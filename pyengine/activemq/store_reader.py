"""A durable broker's store, read while the broker may be running: nothing is locked and nothing is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pyengine.activemq.store_file import (
    FILE,
    MESSAGES,
    Stored,
    check_format,
    destination_numbers,
    newest_sequence,
    reading,
    stored_messages,
)
from pyengine.errors import InvalidSourceError


class StoreReader:
    """directory: what the Broker was given. Raises InvalidSourceError where there is no store, StoreError for one that
    cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory.absolute() / FILE
        if not self.path.is_file():
            raise InvalidSourceError(str(self.path), "there is no store of a broker", "give the Broker's directory")
        with self._opened() as db:
            check_format(db, self.path)

    def destinations(self) -> dict[str, int]:
        """Qualified name -> number of the destinations that were ever written to."""
        with self._opened() as db:
            return destination_numbers(db)

    def newest(self) -> int:
        """The largest sequence number of a message, 0 if there is none."""
        with self._opened() as db:
            return newest_sequence(db)

    def messages(self, destination: int, after: int, upto: int) -> Iterator[Stored]:
        """The messages of a destination whose sequence numbers are larger than ``after`` and at most ``upto``."""
        query = f"{MESSAGES} WHERE m.destination = ? AND m.sequence > ? AND m.sequence <= ? ORDER BY m.sequence"
        with self._opened() as db:
            yield from stored_messages(db, query, (destination, after, upto))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with reading(self.path), closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as db:
            yield db
