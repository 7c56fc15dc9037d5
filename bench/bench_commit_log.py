"""commit_log: keep messages so that a killed process loses none, in the log's files or in SQLite."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.contest import Contest, Side, speed_test
from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine.rocketmq.broker.commit_log import FileLog

MESSAGES = 2_000
HOST = bytes(8)
ORIGIN = Origin(0, HOST)


def frame(position: int, offset: int) -> bytes:
    """A message of 100 bytes with a key and a tag."""
    properties = {"TAGS": "TagA", "KEYS": "k"}
    return record.encode_message("orders", b"x" * 100, properties, (position, 0, offset), ORIGIN, (0, HOST))


def files() -> Side:
    """Frames with a checksum, appended to the log's file."""
    folder = tempfile.TemporaryDirectory()
    log = FileLog(Path(folder.name))

    def append() -> None:
        for offset in range(MESSAGES):
            log.append(frame(log.end, offset))

    def answer(keep: object = folder) -> int:
        start = log.end
        append()
        return len(record.scan(Path(folder.name, f"{0:020}").read_bytes()[start:])[0])

    return Side(call=append, answer=answer, units=MESSAGES)


def database() -> Side:
    """The same bytes in SQLite: write-ahead log, synchronous=NORMAL, a transaction a message."""
    folder = tempfile.TemporaryDirectory()
    connection = sqlite3.connect(os.path.join(folder.name, "log"), isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute("create table log (position integer primary key, frame blob)")

    def insert() -> None:
        for offset in range(MESSAGES):
            connection.execute("insert into log (frame) values (?)", (frame(offset, offset),))

    def answer(keep: object = folder) -> int:
        (before,) = connection.execute("select count(*) from log").fetchone()
        insert()
        return int(connection.execute("select count(*) from log").fetchone()[0] - before)

    return Side(call=insert, answer=answer, units=MESSAGES)


def contests() -> Iterator[Contest]:
    yield Contest(
        question="store a message so that a killed process loses nothing",
        unit="message",
        sides={"pyengine": files, "SQLite, a transaction each": database},
        goals={"SQLite, a transaction each": 3.0},
    )


test_speed = speed_test(contests)
