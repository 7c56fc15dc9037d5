"""Files of tasks that wait for the commit of a write: whose they are, and how long."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyengine.clock import ManualClock
from pyengine.errors import InvalidMessageError
from pyengine.rocketmq import Broker
from pyengine.spark import activemq_store, rocketmq_log, staging
from pyengine.spark.log_source import TableWriter

ROWS = pa.record_batch({"topic": ["orders"], "body": [b"x"]})
OLD = staging.LEFT + 60


def age(path: Path, seconds: float) -> None:
    for each in [*path.rglob("*"), path]:
        os.utime(each, (time.time() - seconds,) * 2)


def rocketmq_target(directory: Path) -> rocketmq_log._Target:
    return rocketmq_log._Target(str(directory), staging.new_folder(str(directory)), ("broker-a",), "group")


def test_a_task_that_fails_leaves_the_folder_to_those_that_begin(tmp_path: Path) -> None:
    """They have it made, perhaps, and not yet a file in it."""
    folder = staging.new_folder(str(tmp_path))

    def failing() -> Iterator[pa.RecordBatch]:
        yield ROWS
        raise InvalidMessageError("body", b"", "is none")

    with pytest.raises(InvalidMessageError):
        staging.stage(folder, failing())
    assert [*Path(folder).iterdir()] == []
    staging.forget([], folder)
    assert not Path(folder).exists()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("source", ["rocketmq_log", "activemq_store"])
def test_a_write_takes_away_what_killed_drivers_left(tmp_path: Path, source: str, stream: bool) -> None:
    target: Any = rocketmq_target(tmp_path)
    rows = ROWS
    if source == "activemq_store":
        target = activemq_store._Target(str(tmp_path), staging.new_folder(str(tmp_path)))
        rows = pa.record_batch({"destination": ["orders"], "text": ["x"]})
    left, alive, still, named = (Path(staging.new_folder(str(tmp_path))) for _ in range(4))
    for folder in (left, alive, still, named):
        staging.stage(str(folder), [ROWS])
        age(folder, OLD)
    os.utime(next(alive.iterdir()))  # a task goes on with its file
    age(still, staging.LEFT - 60)
    note = tmp_path / ".spark" / "other.json"
    note.write_text(json.dumps({"files": [str(path) for path in named.iterdir()]}))
    age(note, OLD)
    half, new = (tmp_path / ".spark" / f".other.json.{name}.partial" for name in ("a", "b"))
    for path in (half, new):
        path.write_text("{")
    age(half, OLD)
    if stream:
        kind = activemq_store if source == "activemq_store" else rocketmq_log
        writer: Any = kind._StreamWriter(target, "copy", "state")
        writer.commit([writer.write(iter([rows]))], 0)
    else:
        table = TableWriter(target)
        table.commit([table.write(iter([rows]))])
    notes = {tmp_path / ".spark" / "copy.json"} if stream and source == "rocketmq_log" else set()
    assert {*(tmp_path / ".spark").iterdir()} == {alive, still, named, note, new} | notes


def test_a_note_that_nobody_can_read_fails_no_write(tmp_path: Path) -> None:
    """The messages are sent: whoever heard of an error would send them again."""
    target = rocketmq_target(tmp_path)
    staged = target.stage([ROWS])
    left = Path(staging.new_folder(str(tmp_path)))
    staging.stage(str(left), [ROWS])
    age(left, OLD)
    (tmp_path / ".spark" / "other.json").write_text("{")
    TableWriter(target).commit([staged])
    assert left.exists()
    with Broker(tmp_path, clock=ManualClock()) as broker:
        assert [message.body for message in broker.messages("orders")] == [b"x"]
