"""The journal of a store: which records count, and files of other kinds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pyengine import Message
from pyengine.activemq.journal import HEAD, JOURNAL, MARK, Journal, read, records
from pyengine.activemq.store import SqliteStore
from pyengine.activemq.store_reader import StoreReader
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
    assert (written.newest, records(read(tmp_path / JOURNAL), 1)) == (2, [b"2"])
    written.close()


def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    (tmp_path / JOURNAL).write_text("dear diary")
    with pytest.raises(StoreError, match="is no journal of a broker"):
        SqliteStore(tmp_path)
    with pytest.raises(StoreError, match="is no journal of a broker"):
        StoreReader(tmp_path).newest()
    assert (tmp_path / JOURNAL).read_text() == "dear diary"


@pytest.mark.parametrize("left", [None, b"", HEAD[:5], HEAD])
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
