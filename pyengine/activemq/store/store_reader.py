"""A durable broker's store, read while the broker may be running: nothing is locked and nothing is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from heapq import merge
from operator import attrgetter
from pathlib import Path

from pyengine.activemq.store.journal import JOURNAL, MARK, read, records
from pyengine.activemq.store.record import decode_message
from pyengine.activemq.store.store_file import (
    FILE,
    MESSAGES,
    Stored,
    check_format,
    destination_numbers,
    newest_sequence,
    reading,
    stored_messages,
)
from pyengine.activemq.store.store_unit import Unit, joined
from pyengine.errors import InvalidSourceError


class StoreReader:
    """directory: what the Broker was given. Raises InvalidSourceError if there is no store, StoreError for one that
    cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory.absolute() / FILE
        if not self.path.is_file():
            raise InvalidSourceError(str(self.path), "there is no store of a broker", "give the Broker's directory")
        with self._database() as db:
            check_format(db, self.path)

    def destinations(self) -> dict[str, int]:
        """Qualified name -> number of the destinations that were ever written to."""
        with self._opened() as (db, left):
            return destination_numbers(db) | {name: number for number, name in left.destinations}

    def newest(self) -> int:
        """The largest sequence number of a message, 0 if there is none."""
        with self._opened() as (db, left):
            return max(newest_sequence(db, _gone(db, left)), max(left.added, default=0))

    def messages(self, destination: int, after: int, upto: int) -> Iterator[Stored]:
        """The messages of a destination whose sequence numbers are larger than ``after`` and at most ``upto``."""
        query = f"{MESSAGES} WHERE m.destination = ? AND m.sequence > ? AND m.sequence <= ? ORDER BY m.sequence"
        with self._opened() as (db, left):
            gone = _gone(db, left)
            counts = {sequence: count for count, _, sequence in left.counters}
            new = [
                Stored(sequence, priority, count, decode_message(headers, body))
                for where, sequence, priority, count, headers, body in sorted(left.rows())
                if where == destination and after < sequence <= upto
            ]
            kept = stored_messages(db, query, (destination, after, upto))
            for stored in merge(kept, new, key=attrgetter("sequence")):
                if stored.sequence not in gone:
                    yield stored._replace(redeliveries=counts.get(stored.sequence, stored.redeliveries))

    @contextmanager
    def _opened(self) -> Iterator[tuple[sqlite3.Connection, Unit]]:
        """The database at one moment, and the records that only the journal has, which is read before."""
        journal = read(self.path.with_name(JOURNAL))
        with self._database() as db:
            db.execute("BEGIN")
            found = db.execute("SELECT number FROM mark WHERE name = ?", (MARK,)).fetchone()
            yield db, joined([Unit.from_text(text) for text in records(journal, found[0] if found else 0)])

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with reading(self.path), closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as db:
            yield db


def _gone(db: sqlite3.Connection, left: Unit) -> set[int]:
    """The messages of the database that went since: removed, or no durable subscription waits for them any more."""
    gone = {sequence for _, sequence in left.removed}
    ended = {each for each in left.subscriptions if isinstance(each, int)}
    loose = {sequence for _, sequence in left.loose} | {sequence for _, (_, sequence) in left.released}
    for subscription in ended:
        query = "SELECT sequence FROM reference WHERE subscription = ?"
        loose |= {sequence for (sequence,) in db.execute(query, (subscription,))}
    ends = {(subscription, sequence) for subscription, (_, sequence) in left.released}
    for sequence in loose - {sequence for _, sequence in left.referred}:
        query = "SELECT subscription FROM reference WHERE sequence = ?"
        waiting = {number for (number,) in db.execute(query, (sequence,))} - ended
        if all((subscription, sequence) in ends for subscription in waiting):
            gone.add(sequence)
    return gone
