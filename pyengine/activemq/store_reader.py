"""A durable broker's store, read while the broker may be running: nothing is locked and nothing is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pyengine.activemq.record import decode_message
from pyengine.activemq.store import FORMAT, Stored
from pyengine.errors import InvalidSourceError, StoreError


class StoreReader:
    """directory: what the Broker was given. Raises InvalidSourceError where there is no store, StoreError for one that
    cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory.absolute() / "broker.db"
        if not self.path.is_file():
            raise InvalidSourceError(str(self.path), "there is no store of a broker", "give the Broker's directory")
        with self._reading() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != FORMAT:
            raise StoreError(str(self.path), f"has format {version}, this release reads {FORMAT}")

    def destinations(self) -> dict[str, int]:
        """Qualified name -> number of the destinations that were ever written to."""
        with self._reading() as db:
            return dict(db.execute("SELECT name, id FROM destination"))

    def newest(self) -> int:
        """The largest sequence number of a message, 0 if there is none."""
        with self._reading() as db:
            query = "SELECT max(sequence) FROM message WHERE destination = ?"
            numbers = [number for (number,) in db.execute("SELECT id FROM destination")]
            return max((db.execute(query, (number,)).fetchone()[0] or 0 for number in numbers), default=0)

    def messages(self, destination: int, after: int, upto: int) -> Iterator[Stored]:
        """The messages of a destination whose sequence numbers are larger than ``after`` and at most ``upto``."""
        query = (
            "SELECT sequence, priority, redeliveries, headers, body FROM message "
            "WHERE destination = ? AND sequence > ? AND sequence <= ? ORDER BY sequence"
        )
        with self._reading() as db:
            for sequence, priority, redeliveries, headers, body in db.execute(query, (destination, after, upto)):
                yield Stored(sequence, priority, redeliveries, decode_message(headers, body))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as db:
                yield db
        except sqlite3.Error as error:
            raise StoreError(str(self.path), f"cannot be read: {error}") from error
