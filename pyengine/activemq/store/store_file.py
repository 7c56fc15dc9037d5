"""The file of a durable broker's store: its name, its tables, and what its rows say."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyengine._engine.message.message import Message
from pyengine.activemq.store.record import decode_message
from pyengine.errors import StoreError

FILE = "broker.db"
FORMAT = 2  # 1 had no journal
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS destination (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS message (
    destination INTEGER NOT NULL, sequence INTEGER NOT NULL, priority INTEGER NOT NULL, redeliveries INTEGER NOT NULL,
    headers TEXT NOT NULL, body, PRIMARY KEY (destination, sequence)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscription (
    id INTEGER PRIMARY KEY, client_id TEXT NOT NULL, name TEXT NOT NULL, destination TEXT NOT NULL, selector TEXT,
    no_local INTEGER NOT NULL, UNIQUE (client_id, name)
);
CREATE TABLE IF NOT EXISTS reference (
    subscription INTEGER NOT NULL, sequence INTEGER NOT NULL, destination INTEGER NOT NULL,
    PRIMARY KEY (subscription, sequence)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS referenced ON reference (sequence);
CREATE TABLE IF NOT EXISTS mark (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {FORMAT};
"""
FIELDS = "SELECT m.sequence, m.priority, m.redeliveries, m.headers, m.body"  # of what stored_messages reads
MESSAGES = f"{FIELDS} FROM message m"


class Stored(NamedTuple):
    """A message as it lies in the store. redeliveries: its counter."""

    sequence: int
    priority: int
    redeliveries: int
    message: Message


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises StoreError where SQLite cannot read the file, or a damaged row makes no message."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite may quote the damage, which sqlite3 then cannot show
        raise StoreError(str(path), f"cannot be read: {error}") from error


def check_format(db: sqlite3.Connection, path: Path, *others: int) -> None:
    """Raises StoreError for a file of another format than FORMAT and ``others``."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in (1, FORMAT, *others):
        raise StoreError(str(path), f"has format {version}, this release reads {FORMAT}")


def destination_numbers(db: sqlite3.Connection) -> dict[str, int]:
    """Qualified name -> number of the destinations that were ever written to."""
    return dict(db.execute("SELECT name, id FROM destination"))


def newest_sequence(db: sqlite3.Connection, gone: Container[int] = ()) -> int:
    """The largest sequence number of a message that is not ``gone``, 0 if there is none."""
    query = "SELECT sequence FROM message WHERE destination = ? ORDER BY sequence DESC"
    return max(
        (
            next((sequence for (sequence,) in db.execute(query, (number,)) if sequence not in gone), 0)
            for number in destination_numbers(db).values()
        ),
        default=0,
    )


def stored_messages(db: sqlite3.Connection, query: str, arguments: tuple[int, ...]) -> Iterator[Stored]:
    """The messages that a query finds, which begins with FIELDS."""
    for sequence, priority, redeliveries, headers, body in db.execute(query, arguments):
        try:
            message = decode_message(headers, body)
        except Exception as error:  # damaged bytes can raise anything
            raise sqlite3.DatabaseError(f"message {sequence} is damaged: {error}") from error
        yield Stored(sequence, priority, redeliveries, message)
