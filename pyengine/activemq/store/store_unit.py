"""What a durable broker changes in its store together: one command, or several that are written at once."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from pyengine._engine.message.message import Message
from pyengine.activemq.store.record import encode_message

GONE = -1  # of a mark: it is not kept any more
Row = tuple[int, int, int, int, str, str | bytes | None]  # destination, sequence, priority, redeliveries, headers, body
_ALIKE = ("destinations", "counters", "released", "loose", "marks", "subscriptions")  # in JSON as in Python
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Encoded(NamedTuple):
    """A message as the row of a store says it."""

    priority: int
    headers: str
    body: str | bytes | None


class Unit:
    """Changes to be written together.

    referred: the subscriptions that wait for a message (destination, sequence) from now on; released: those that no
    longer do; loose: other messages that perhaps no subscription waits for. subscriptions: those made, as rows, and the
    numbers of those forgotten, in order.
    """

    __slots__ = (
        "added",
        "counters",
        "destinations",
        "loose",
        "marks",
        "referred",
        "released",
        "removed",
        "subscriptions",
    )

    def __init__(self) -> None:
        self.destinations: list[tuple[int, str]] = []
        self.added: dict[int, tuple[int, Message | Encoded, int]] = {}
        self.removed: list[tuple[int, int]] = []
        self.counters: list[tuple[int, int, int]] = []
        self.referred: dict[tuple[int, int], list[int]] = {}
        self.released: list[tuple[int, tuple[int, int]]] = []
        self.loose: list[tuple[int, int]] = []
        self.marks: dict[str, int] = {}
        self.subscriptions: list[int | tuple[int, str, str, str, str | None, bool]] = []

    def __bool__(self) -> bool:
        return bool(
            self.added
            or self.removed
            or self.released
            or self.referred
            or self.counters
            or self.loose
            or self.marks
            or self.destinations
            or self.subscriptions
        )

    def release(self, subscription: int, place: tuple[int, int]) -> None:
        """A subscription does not wait for a message any more."""
        waiting = self.referred.get(place, [])
        if subscription not in waiting:
            self.released.append((subscription, place))
            return
        waiting.remove(subscription)
        if not waiting:
            del self.referred[place]
            if self.added.pop(place[1], None) is None:
                self.loose.append(place)

    def forget(self, subscription: int) -> None:
        """A subscription is no more."""
        for place in [place for place, waiting in self.referred.items() if subscription in waiting]:
            self.release(subscription, place)
        self.subscriptions.append(subscription)

    def merge(self, later: Unit) -> None:
        """These changes, then those of a later unit. A message that comes and goes within them is never written."""
        self.destinations += later.destinations
        self.added.update(later.added)
        for destination, sequence in later.removed:
            if self.added.pop(sequence, None) is None:
                self.removed.append((destination, sequence))
        for redeliveries, destination, sequence in later.counters:
            added = self.added.get(sequence)
            if added is not None:
                self.added[sequence] = (destination, added[1], redeliveries)
            else:
                self.counters.append((redeliveries, destination, sequence))
        for subscription, place in later.released:
            self.release(subscription, place)
        self.loose += later.loose
        self.marks.update(later.marks)
        for each in later.subscriptions:
            if isinstance(each, int):
                self.forget(each)
            else:
                self.subscriptions.append(each)
        for place, waiting in later.referred.items():
            self.referred.setdefault(place, []).extend(waiting)

    def write(self, db: sqlite3.Connection) -> None:
        """Write the changes, with those that were applied before, and end the transaction."""
        self.apply(db)
        db.execute("COMMIT")

    def apply(self, db: sqlite3.Connection) -> None:
        """Write the changes into the transaction of the connection, which is begun if there is none."""
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        if self.destinations:
            db.executemany("INSERT INTO destination VALUES (?, ?, 0)", self.destinations)
        if self.added:
            db.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?)", self.rows())
        if self.counters:
            db.executemany("UPDATE message SET redeliveries = ? WHERE destination = ? AND sequence = ?", self.counters)
        if self.removed:
            db.executemany("DELETE FROM message WHERE destination = ? AND sequence = ?", self.removed)
        if self.marks:
            db.executemany("INSERT OR REPLACE INTO mark VALUES (?, ?)", self.marks.items())
            forgotten = [(name,) for name, number in self.marks.items() if number == GONE]
            if forgotten:
                db.executemany("DELETE FROM mark WHERE name = ?", forgotten)
        change: defaultdict[int, int] = defaultdict(int)
        for destination, _, _ in self.added.values():
            change[destination] += 1
        for destination, _ in self.removed:
            change[destination] -= 1
        if self.referred:
            db.executemany(
                "INSERT INTO reference VALUES (?, ?, ?)",
                [(each, sequence, where) for (where, sequence), waiting in self.referred.items() for each in waiting],
            )
        if self.released:
            db.executemany(
                "DELETE FROM reference WHERE subscription = ? AND sequence = ?",
                [(subscription, sequence) for subscription, (_, sequence) in self.released],
            )
        loose = {*self.loose, *(place for _, place in self.released)}
        for destination in {destination for destination, _ in loose}:
            gone = db.executemany(
                "DELETE FROM message WHERE destination = ? AND sequence = ? "
                "AND NOT EXISTS (SELECT 1 FROM reference r WHERE r.sequence = message.sequence)",
                [place for place in loose if place[0] == destination],
            )
            change[destination] -= gone.rowcount
        for each in self.subscriptions:
            if isinstance(each, int):
                _forget_subscription(db, each)
            else:
                db.execute("INSERT INTO subscription VALUES (?, ?, ?, ?, ?, ?)", each)
        sizes = [(number, destination) for destination, number in change.items() if number]
        if sizes:
            db.executemany("UPDATE destination SET size = size + ? WHERE id = ?", sizes)

    def to_text(self) -> bytes:
        """The changes as JSON."""
        fields = []
        if self.added:
            rows = [
                f"[{where},{number},{priority},{count},{headers},{_body(body)}]"
                for where, number, priority, count, headers, body in self.rows()
            ]
            fields.append(f'"added":[{",".join(rows)}]')
        if self.removed:
            places = [f"[{destination},{sequence}]" for destination, sequence in self.removed]
            fields.append(f'"removed":[{",".join(places)}]')
        for name in _ALIKE:
            value = getattr(self, name)
            if value:
                fields.append(f'"{name}":{_encode(value)}')
        if self.referred:
            fields.append(f'"referred":{_encode([*self.referred.items()])}')
        return f"{{{','.join(fields)}}}".encode("ascii")

    @classmethod
    def from_text(cls, text: bytes) -> Unit:
        """The changes that ``to_text`` wrote."""
        fields = json.loads(text)
        unit = cls()
        unit.destinations = [(number, name) for number, name in fields.get("destinations", ())]
        for destination, sequence, priority, redeliveries, headers, body in fields.get("added", ()):
            held = b64decode(body["base64"]) if isinstance(body, dict) else body
            unit.added[sequence] = (destination, Encoded(priority, _encode(headers), held), redeliveries)
        unit.removed = [(destination, sequence) for destination, sequence in fields.get("removed", ())]
        unit.counters = [(count, destination, sequence) for count, destination, sequence in fields.get("counters", ())]
        unit.referred = {(where, sequence): waiting for (where, sequence), waiting in fields.get("referred", ())}
        unit.released = [(number, (where, sequence)) for number, (where, sequence) in fields.get("released", ())]
        unit.loose = [(destination, sequence) for destination, sequence in fields.get("loose", ())]
        unit.marks = fields.get("marks", {})
        unit.subscriptions = [
            each if isinstance(each, int) else tuple(each) for each in fields.get("subscriptions", ())
        ]
        return unit

    def rows(self) -> list[Row]:
        """The messages added, as rows of their table. They stay as they are now: once the command that brought them has
        returned, their owner may change them.
        """
        rows: list[Row] = []
        for sequence, (where, held, count) in self.added.items():
            if isinstance(held, Message):
                held = Encoded(held.priority, *encode_message(held))
                self.added[sequence] = where, held, count
            rows.append((where, sequence, held.priority, count, held.headers, held.body))
        return rows


def _body(body: str | bytes | None) -> str:
    """A body as JSON."""
    if body is None:
        return "null"
    return f'{{"base64":"{b64encode(body).decode()}"}}' if isinstance(body, bytes) else _encode(body)


def joined(units: Sequence[Unit]) -> Unit:
    """Units that follow each other as one; they stay as they are."""
    if len(units) == 1:
        return units[0]
    whole = Unit()
    for unit in units:
        whole.merge(unit)
    return whole


def _forget_subscription(db: sqlite3.Connection, number: int) -> None:
    alone = (
        "FROM reference r WHERE r.subscription = ? AND NOT EXISTS "
        "(SELECT 1 FROM reference o WHERE o.sequence = r.sequence AND o.subscription <> r.subscription)"
    )
    sizes = db.execute(f"SELECT count(*), r.destination {alone} GROUP BY r.destination", (number,)).fetchall()
    db.executemany("UPDATE destination SET size = size - ? WHERE id = ?", sizes)
    places = f"SELECT r.destination, r.sequence {alone}"
    db.execute(f"DELETE FROM message WHERE (destination, sequence) IN ({places})", (number,))
    db.execute("DELETE FROM reference WHERE subscription = ?", (number,))
    db.execute("DELETE FROM subscription WHERE id = ?", (number,))
