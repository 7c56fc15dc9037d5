"""The journal of a store: which records count, and files of other kinds."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pyengine import Message
from pyengine.activemq.store.journal import HEAD, JOURNAL, MARK, MOST, Journal, read, records
from pyengine.activemq.store.store import SqliteStore, SyncStrategy
from pyengine.activemq.store.store_reader import StoreReader
from pyengine.activemq.store.store_unit import Unit
from pyengine.errors import StoreError

TEXTS = [b"{}", b"", b'{"removed":[[1,5]]}']


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a journal with TEXTS behind record 7."""
    written = Journal(tmp_path / JOURNAL, 7, synced=True)
    for text in TEXTS:
        written.append(text)
    written.sync()
    written.close()
    return tmp_path / JOURNAL


def test_records_count_up_to_the_first_that_is_not_whole(path: Path) -> None:
    data = read(path)
    ends = [len(HEAD)]
    for text in TEXTS:
        ends.append(ends[-1] + 16 + len(text))
    assert ends[-1] == len(data)
    for size in range(len(data) + 1):
        whole = sum(end <= size for end in ends[1:])
        assert records(data[:size], 7) == TEXTS[:whole]
        if len(HEAD) <= size < len(data):
            damaged = data[:size] + bytes([data[size] ^ 0x10]) + data[size + 1 :]
            assert records(damaged, 7) == TEXTS[:whole]
        if size in ends:  # and the file system made it longer
            assert records(data[:size] + bytes(64), 7) == TEXTS[:whole]


def test_records_that_the_database_has_are_passed_over_and_none_counts_behind_a_gap(path: Path) -> None:
    data = read(path)
    assert [records(data, after) for after in (6, 7, 8, 9, 10, 11)] == [[], TEXTS, TEXTS[1:], TEXTS[2:], [], []]


def test_an_emptied_journal_goes_on_counting(tmp_path: Path) -> None:
    written = Journal(tmp_path / JOURNAL, 0, synced=False)
    written.append(b"1")
    written.empty()
    written.append(b"2")
    assert (written.file.newest, records(read(tmp_path / JOURNAL), 1)) == (2, [b"2"])
    written.close()


def test_a_closed_journal_writes_into_no_file_that_was_opened_since(tmp_path: Path) -> None:
    written = Journal(tmp_path / JOURNAL, 0, synced=False)
    written.close()
    with (tmp_path / "other").open("wb", buffering=0) as other, pytest.raises(OSError, match="the file is closed"):
        written.append(b"1")
    assert (written.file.newest, (tmp_path / other.name).read_bytes()) == (0, b"")


def hand_over_a_large_unit(store: SqliteStore, number: int) -> None:
    store.add(number, Message(None, body="2" * MOST))


def hand_over_a_unit_that_is_looked_at(store: SqliteStore, number: int) -> None:
    store.add(number, Message(None, body="2"))
    store.load(number, (0, -1), 10)


@pytest.mark.parametrize("unit", [hand_over_a_large_unit, hand_over_a_unit_that_is_looked_at])
def test_a_unit_of_the_database_alone_is_not_missed_by_later_ones(
    tmp_path: Path, unit: Callable[[SqliteStore, int], None]
) -> None:
    """The power fails when the journal is on the disk and the database is as it was before the unit."""
    store = SqliteStore(tmp_path / "now")
    number = store.destination("queue://q")
    store.add(number, Message(None, body="1"))
    store.wait(store.seal())
    store.size("queue://q")
    left = shutil.copytree(tmp_path / "now", tmp_path / "left")
    unit(store, number)
    store.wait(store.seal())
    store.add(number, Message(None, body="3"))
    store.wait(store.seal())
    shutil.copy(tmp_path / "now" / JOURNAL, left)
    store.close()
    assert [stored.message.body for stored in StoreReader(left).messages(number, 0, 99)] == ["1"]
    store = SqliteStore(left)
    assert [stored.message.body for stored in store.load(number, (0, -1), 99)] == ["1"]
    store.close()


@pytest.mark.parametrize("strategy", ["always", "periodic", "never"])
def test_what_a_killed_broker_kept_is_on_the_disk_before_its_journal_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: SyncStrategy
) -> None:
    """Whatever the next one asks for: the last one may have been sure of it."""
    with closing(SqliteStore(tmp_path / "now", "always")) as store:
        store.add(store.destination("queue://q"), Message(None, body="1"))
        store.wait(store.seal())
        left = shutil.copytree(tmp_path / "now", tmp_path / "left")
    write, synchronous = Unit.write, []

    def watch(unit: Unit, database: sqlite3.Connection) -> None:
        synchronous.append(database.execute("PRAGMA synchronous").fetchone()[0])
        write(unit, database)

    monkeypatch.setattr(Unit, "write", watch)
    with closing(SqliteStore(left, strategy)) as store:
        assert synchronous == [2]  # FULL
        assert store.size("queue://q") == 1


def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    (tmp_path / JOURNAL).write_text("dear diary")
    with pytest.raises(StoreError, match="is not a journal of a broker"):
        SqliteStore(tmp_path)
    with pytest.raises(StoreError, match="is not a journal of a broker"):
        StoreReader(tmp_path).newest()
    assert (tmp_path / JOURNAL).read_text() == "dear diary"


@pytest.mark.parametrize("left", [None, b"", HEAD[:5], HEAD, bytes(len(HEAD)), bytes(4096)])
def test_a_journal_without_a_record_says_nothing(tmp_path: Path, left: bytes | None) -> None:
    SqliteStore(tmp_path).close()
    (tmp_path / JOURNAL).unlink()
    if left is not None:
        (tmp_path / JOURNAL).write_bytes(left)
    assert StoreReader(tmp_path).newest() == 0
    SqliteStore(tmp_path).close()
    assert read(tmp_path / JOURNAL) == HEAD


def test_a_store_from_before_there_was_a_journal_is_taken_over(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    number = store.destination("queue://q")
    store.add(number, Message(None, body="old"))
    store.seal()
    store.close()
    (tmp_path / JOURNAL).unlink()
    with closing(sqlite3.connect(tmp_path / "broker.db")) as db:
        db.execute("DELETE FROM mark WHERE name = ?", (MARK,))
        db.execute("PRAGMA user_version = 1")
        db.commit()
    for body in ("new", "newer"):
        store = SqliteStore(tmp_path)
        store.add(number, Message(None, body=body))
        store.wait(store.seal())
        assert [stored.message.body for stored in StoreReader(tmp_path).messages(number, 0, 99)][-1] == body
        store.close()
    with closing(sqlite3.connect(tmp_path / "broker.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
