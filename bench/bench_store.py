"""store: keeping and forgetting messages, in units of one and of a hundred, against the same with lmdb."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyengine
from bench.contest import Contest, RivalMissingError, Side, speed_test
from pyengine.activemq.store.record import encode_message
from pyengine.activemq.store.store import SqliteStore

MESSAGES = 1_000
MAP_SIZE = 1 << 28


@functools.cache
def messages() -> tuple[pyengine.Message, ...]:
    return tuple(
        pyengine.Message({"n": n, "region": "EU"}, body="x" * 200, message_id=f"ID:bench:{n}", timestamp=n)
        for n in range(MESSAGES)
    )


def ours(store: SqliteStore, unit: int) -> int:
    """Every message is added and, in later units, removed; returns how many the store then has."""
    number = store.destination("queue://bench")
    for start in range(0, MESSAGES, unit):
        added = [store.add(number, message) for message in messages()[start : start + unit]]
        store.wait(store.seal())
        for sequence in added[1:]:
            store.remove(number, sequence)
        store.wait(store.seal())
    return len(store.load(number, (0, added[0] - MESSAGES), -1))


class Lmdb:
    """The same records in lmdb, keys by destination and sequence."""

    def __init__(self, folder: str) -> None:
        try:
            import lmdb
        except ImportError as error:
            raise RivalMissingError("lmdb is not installed") from error
        self.environment = lmdb.open(folder, map_size=MAP_SIZE, sync=False)
        self.sequence = 0

    def run(self, unit: int) -> int:
        first = self.sequence
        for start in range(0, MESSAGES, unit):
            keys = []
            with self.environment.begin(write=True) as transaction:
                for message in messages()[start : start + unit]:
                    self.sequence += 1
                    keys.append(b"\0\0\0\1" + self.sequence.to_bytes(8, "big"))
                    headers, body = encode_message(message)
                    assert isinstance(body, str)
                    transaction.put(keys[-1], headers.encode() + b"\0" + body.encode())
            with self.environment.begin(write=True) as transaction:
                for key in keys[1:]:
                    transaction.delete(key)
        with self.environment.begin() as transaction:
            found = 0
            cursor = transaction.cursor()
            cursor.set_range(b"\0\0\0\1" + (first + 1).to_bytes(8, "big"))
            for _ in cursor:
                found += 1
        return found


def our_side(unit: int) -> Side:
    folder = tempfile.TemporaryDirectory()
    store = SqliteStore(Path(folder.name), "never")
    return Side(lambda: (ours(store, unit), folder), lambda: kept(unit), MESSAGES)


def kept(unit: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder), "never")
        found = ours(store, unit)
        store.close()
    return found


def lmdb_side(unit: int) -> Side:
    folder = tempfile.TemporaryDirectory()
    store = Lmdb(folder.name)

    def answer() -> int:
        with tempfile.TemporaryDirectory() as fresh:
            return Lmdb(fresh).run(unit)

    return Side(lambda: (store.run(unit), folder), answer, MESSAGES)


def contests() -> Iterator[Contest]:
    for unit in (1, 100):
        yield Contest(
            question=f"{MESSAGES} messages kept and forgotten, in units of {unit}, without waiting for the disk",
            unit="message",
            sides={
                "pyengine": functools.partial(our_side, unit),
                "lmdb": functools.partial(lmdb_side, unit),
            },
            goals={},
        )


test_speed = speed_test(contests)
