"""The tasks of a stream's micro-batches in this process: however many they are, the answer and the numbers are one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyengine.activemq.tables.dispatch import columns_read
from pyengine.backlog.tables.messages import to_messages
from pyengine.errors import SnapshotError
from pyengine.spark import streaming
from pyengine.spark.observed import figures_of
from pyengine.spark.state_files import Progress, StateFolder
from pyengine.spark.streaming import waiting
from pyengine.topology import Topology
from tests.spark.test_migration import before, behind, traffic

SHARDS = 8  # of which the traffic reaches six, later three
PLAN = "plan"


def start(topology: Topology) -> Progress:
    columns = pa.schema([("queue", pa.string()), ("who", pa.string()), ("n", pa.int32())])
    messages, _ = to_messages(columns.empty_table(), [], topology.source)
    kept = messages.select(columns_read(topology, messages.column_names)).schema
    return Progress(-1, SHARDS, topology.to_text(), (), kept.serialize().to_pybytes(), (-1,) * SHARDS)


def micro_batch(
    place: Path, begin: Progress, batch: int, rows: pa.Table, tasks: int, patched: pytest.MonkeyPatch
) -> tuple[pa.Table, Counter[str], int]:
    """The deliveries of a micro-batch, the numbers of all shards and how many shards were written."""
    folder, writing = StateFolder(str(place / "state")), place / f"batch={batch}"
    writing.mkdir(parents=True)
    (place / "state").mkdir(exist_ok=True)
    was = folder.before(begin, batch, migrates=True)
    assert was is not None
    folder.write_attempt(batch, PLAN, was, str(writing))
    of_row = pa.array([int(name) % SHARDS for name in rows.column("queue").to_pylist()], pa.int32())
    rows = rows.select(["queue", "who", "n", "number"]).rename_columns(["queue", "who", "n", "__row"])
    rows = rows.append_column("__shard", of_row)
    owners = tuple(shard % tasks for shard in range(SHARDS))
    work = streaming._Shards(begin, folder.path, PLAN, owners)
    lines: list[dict[str, Any]] = []
    for task in range(tasks):
        mine = rows.filter(pa.array([owners[shard] == task for shard in of_row.to_pylist()]))
        patched.setattr(streaming, "_task", lambda task=task: (batch, task))
        for answer in work(mine.to_batches() if mine.num_rows else []):
            lines += answer.to_pylist()
    assert sorted(line["shard"] for line in lines) == list(range(SHARDS))
    figures = {line["shard"]: figures_of(line) for line in lines}
    written = [line["shard"] for line in lines if line["written"]]
    now = streaming._now(was, begin)
    folder.prepare_progress(now.with_batch(batch, written, [figures[shard] for shard in range(SHARDS)]))
    folder.write_progress(batch, str(writing))
    numbers: Counter[str] = Counter()
    for line in lines:
        numbers.update({name: count for name, count in line.items() if name not in ("shard", "written")})
    return pa.concat_tables(pq.read_table(path) for path in sorted(writing.glob("*.parquet"))), numbers, len(written)


def stream(place: Path, tasks: int, patched: pytest.MonkeyPatch) -> pa.Table:
    """Three micro-batches, the second under another topology, and what waits in the end."""
    last = traffic(0, 1).slice(0, 3).set_column(0, "number", pa.array([100, 101, 102]))
    lines = []
    for batch, (topology, rows) in enumerate([(before(), traffic(0, 0)), (behind(), traffic(0, 1)), (behind(), last)]):
        answer, numbers, written = micro_batch(place, start(topology), batch, rows, tasks, patched)
        held = pa.concat_tables(waiting(place / "state"))
        reasons = Counter(held.column("reason").to_pylist())
        assert {name: numbers[name] for name in reasons} == reasons
        assert numbers["delivered"] == answer.column("reason").null_count
        assert written == (6, SHARDS, 3)[batch]
        lines.append(answer)
    return pa.concat_tables([*(each.cast(held.schema) for each in lines), held]).sort_by(
        [("destination", "ascending"), ("delivery", "ascending"), ("row", "ascending"), ("attempt", "ascending")]
    )


def test_tasks_without_rows_migrate_their_shards_and_count_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = (stream(tmp_path / f"{tasks}", tasks, monkeypatch) for tasks in (1, 3, 8))
    assert first.num_rows > 80
    assert [each.equals(first) for each in others] == [True, True]


def test_a_task_that_is_late_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The micro-batch is over, or it got rows that another task has."""
    micro_batch(tmp_path, start(before()), 0, traffic(0, 0), 2, monkeypatch)
    files = sorted(tmp_path.rglob("*"))
    work = streaming._Shards(start(before()), str(tmp_path / "state"), PLAN, (0,) * SHARDS)
    with pytest.raises(Exception, match=r"SnapshotError.*a task of micro-batch 0 begins, and the stream went on"):
        list(work([]))
    folder = StateFolder(str(tmp_path / "state"))
    progress = folder.read_progress()
    assert progress is not None
    folder.write_attempt(1, PLAN, progress, str(tmp_path / "writing"))
    rows = pa.RecordBatch.from_pydict({"__shard": pa.array([3], pa.int32())})
    with pytest.raises(SnapshotError, match=r"task 1 of micro-batch 1 got rows of the shards \[3\], and has \[\]"):
        work._run([rows], 1, 1)
    (folder_of_attempts,) = [path for path in sorted(tmp_path.rglob("*")) if path not in files]
    assert folder_of_attempts.name.startswith("attempt-")
