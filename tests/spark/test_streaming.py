"""A stream on Spark answers as a single process does over the whole, however it is cut, and once, however it dies."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA
from pyengine.activemq.tables.dispatch import columns_read, dispatch_table
from pyengine.activemq.tables.stream_state import STREAM_SCHEMA, Carry
from pyengine.backlog.tables import output
from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.sources import read_source
from pyengine.errors import (
    ConfigurationError,
    InvalidTopologyError,
    OutputError,
    SnapshotError,
    UnsupportedColumnError,
)
from pyengine.spark import dispatch_stream, held, state_files, streaming
from pyengine.spark.functions import map_in_arrow
from pyengine.spark.observed import shard_schema
from pyengine.spark.state_files import MAGIC, VERSION, Progress, StateFolder, seal, unseal
from pyengine.spark.transforms import UNNUMBERED, source_read
from pyengine.topology import Consumer, Policy, Source, TimeColumn, Topology
from tests.house.examples import blocks
from tests.house.examples import run as run_block
from tests.spark.deaths import Death, DiedError, Disk, DyingWork, raise_died
from tests.spark.test_dispatch import assert_same

OPTIONS: dict[str, Any] = {"event": "event", "late": ["late"]}


def write_files(table: pa.Table, folder: Path, files: int, first: int = 0) -> None:
    """A table as Parquet files whose times tell Spark their order."""
    folder.mkdir(exist_ok=True)
    size = -(-table.num_rows // files)
    for index in range(files):
        path = folder / f"{first + index:04d}.parquet"
        pq.write_table(table.slice(index * size, size), path)
        os.utime(path, (1_700_000_000 + first + index,) * 2)


def run(spark: Any, folder: Path, files_a_batch: int, topology: Topology, place: Path, **options: Any) -> None:
    """The stream over all files of a folder, until nothing is left."""
    schema = spark.read.parquet(str(folder)).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", files_a_batch).parquet(str(folder))
    options = {"row": "number", "sink": place / "sink", "shards": 4, "partitions": 2, **options}
    writer = dispatch_stream(frame, topology, state=place / "state", **options)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def told(spark: Any, place: Path) -> pa.Table:
    """Deliveries of the sink and what is held."""
    sink = spark.read.parquet(str(place / "sink")).drop("batch").toArrow()
    return pa.concat_tables([sink, held(spark, place / "state").toArrow().cast(sink.schema)])


@pytest.fixture(scope="module")
def some_flights(flights: Topology) -> tuple[pa.Table, pa.Table]:
    """Six thousand departures in the order of the schedule, and the answer of a single process."""
    rows = read_source(flights.source)
    messages, _ = to_messages(rows.table, rows.numbers, flights.source)
    first = messages.sort_by([("JMSTimestamp", "ascending"), ("__row", "ascending")]).slice(0, 6_000)
    chosen = rows.table.take(first.column("__row")).append_column("number", first.column("__row"))
    return chosen, dispatch_table(flights, first)


def test_flights_as_a_stream_are_flights_as_a_batch(
    spark: Any, flights: Topology, some_flights: tuple[pa.Table, pa.Table], tmp_path: Path
) -> None:
    rows, expected = some_flights
    write_files(rows, tmp_path / "in", 3)
    run(spark, tmp_path / "in", 2, flights, tmp_path)
    # A stream reads the columns that selectors read, so "bytes" counts those only.
    compared = [name for name in ASSIGNMENT_SCHEMA.names if name != "bytes"]
    assert_same(told(spark, tmp_path).select(compared), expected.select(compared).sort_by("row"))


def test_the_page_says_what_happens(spark: Any) -> None:
    namespace: dict[str, Any] = {}
    for block in blocks("docs/streaming.md", "python"):
        run_block(block, namespace)


def numbered(queues: list[str], events: dict[int, str] | None = None) -> pa.Table:
    """A row for each queue name, numbered; those in ``events`` are events."""
    return pa.table(
        {
            "number": pa.array(range(len(queues)), pa.int64()),
            "queue": pa.array(queues, pa.string()),
            "who": pa.array([f"g{index % 7}" for index in range(len(queues))]),
            "n": pa.array([index % 10 for index in range(len(queues))], pa.int32()),
            "event": pa.array([(events or {}).get(index) for index in range(len(queues))], pa.string()),
        }
    )


def test_rows_of_one_number_keep_their_queues(spark: Any, tmp_path: Path) -> None:
    """Offsets of several partitions, one of them a row that is no message, and a row without a number."""
    topology = Topology(Source("q.{queue}", path="unused", priority="n"), (Consumer("c", "q.>"),), ())
    rows = numbered(list("abcdefgghg")).drop_columns(["number"])
    rows = rows.set_column(rows.column_names.index("n"), "n", pa.array([4, 12, 4, 4, 4, 4, 4, 4, 4, 4], pa.int32()))
    numbers = pa.array([1, 1, 1, 0, None, 1, 7, 7, 7, 8], pa.int64())
    write_files(rows.append_column("number", numbers), tmp_path / "in", 1)
    run(spark, tmp_path / "in", 1, topology, tmp_path)
    lines = told(spark, tmp_path).to_pylist()
    assert sorted((str(line["row"]), line["destination"], line["reason"]) for line in lines if line["destination"]) == [
        ("0", "q.d", None), ("1", "q.a", None), ("1", "q.c", None), ("1", "q.f", None),
        ("7", "q.h", None), ("8", "q.g", None),
    ]  # fmt: skip
    rejected = sorted((str(line["row"]), line["blocked_by"]) for line in lines if not line["destination"])
    assert rejected == [
        ("1", "n = '12': a priority is 0 to 9"),
        *[("7", "row = '7': the number comes more than once among the rows of its queue")] * 2,
        ("None", "the number of the row is missing or beyond long"),
    ]


@pytest.mark.parametrize("order", ["rows", "timestamp"])
def test_an_event_without_a_readable_moment_is_rejected(spark: Any, tmp_path: Path, order: Any) -> None:
    """It would happen in 1970, before every message; a row that is a message with such a moment is rejected too."""
    topology = Topology(
        Source("q.{queue}", path="unused", timestamp=TimeColumn("at"), order=order), (Consumer("c", "q.>"),), ()
    )
    moments = ["2026-01-01T00:00:00Z", "soon", "2026-01-01T00:00:01Z", "now", "2026-01-01T00:00:02Z"]
    rows = numbered(list("abcde"), {1: "leave c", 2: "leave c", 4: "join c"})
    write_files(rows.append_column("at", pa.array(moments)), tmp_path / "in", 1)
    run(spark, tmp_path / "in", 1, topology, tmp_path, event="event")
    lines = sorted((line["row"], line["consumer"], line["blocked_by"]) for line in told(spark, tmp_path).to_pylist())
    assert lines == [
        (0, "c", None),
        (1, None, "at = 'soon': is no ISO 8601 time of the years 1 to 9999"),
        (3, None, "at = 'now': is no ISO 8601 time of the years 1 to 9999"),
    ]


def carried(topology: Topology, micro_batches: Iterable[pa.Table]) -> pa.Table:
    """What a task of the shards 0 and 1 tells of these rows, and what is held in the end, without Spark."""
    columns = pa.schema([("queue", pa.string()), ("n", pa.int32()), ("who", pa.string()), ("at", pa.string())])
    made, _ = to_messages(columns.empty_table(), [], topology.source)
    carry = Carry(topology, made.select(columns_read(topology, made.column_names)).schema, ["late"])
    work = streaming._Shards(Progress(-1, 2, "", ("late",), b"", (-1, -1)), "", "", (0, 0))
    for shard in range(2):
        carry.load(shard, None)
    told = [work._through(carry, rows).cast(STREAM_SCHEMA) for rows in micro_batches]
    kept = [carry.held([shard]) for shard in range(2)]
    for shard in range(2):
        assert {int(name[2:]) % 2 for name in kept[shard].column("destination").to_pylist()} == {shard}
    return pa.concat_tables([*told, *kept])


@pytest.mark.parametrize("order", ["rows", "timestamp"])
@pytest.mark.parametrize("seed", range(8))
def test_rows_and_events_go_in_the_order_of_sending_however_they_come(order: Any, seed: int) -> None:
    """All at once in any order as one after another; numbers and moments go different ways, some rows are no message.

    A row without a number is told once, an event too, of which every shard has a line.
    """
    source = Source("q.{queue}", path="unused", group="who", priority="n", timestamp=TimeColumn("at"), order=order)
    keeps = Consumer("keeps", "q.>", selector="n < 8", prefetch=2, acknowledges=False)
    topology = Topology(source, (keeps, *come_and_go().consumers), (Policy("q.>"),))
    draw = random.Random(seed)
    verbs = [f"{verb} {name}" for verb in ("join", "leave", "lose") for name in ("first", "second", "late")]
    lines, lost = [], []
    for number in draw.sample(range(400), 120):
        queue, at = draw.randrange(6), draw.choice([f"2026-01-{day:02}T00:00:00Z" for day in range(1, 13)] + ["soon"])
        line = {"__row": number, "queue": f"{queue}", "n": number % 11, "who": f"g{number % 3}", "at": at}
        event = draw.choice(verbs) if draw.random() < 0.1 else None
        lines += [{**line, "__event": event, "__shard": shard} for shard in ((0, 1) if event else (queue % 2,))]
    if seed % 2:
        lines.sort(key=lambda line: -line["__row"])
    for event in (None, "join late"):
        lost += [{**lines[0], "__row": None, "__event": event, "__shard": shard} for shard in range(2)]
    schema = pa.schema(
        [("__row", pa.int64()), ("queue", pa.string()), ("n", pa.int32()), ("who", pa.string()), ("at", pa.string()),
         ("__event", pa.string()), ("__shard", pa.int32())]
    )  # fmt: skip
    key = {"rows": lambda line: line["__row"], "timestamp": lambda line: (line["at"], line["__row"])}[order]
    sent = [pa.Table.from_pylist(list(each), schema) for _, each in groupby(sorted(lines, key=key), key)]
    found = carried(topology, [pa.Table.from_pylist([*lost, *lines], schema)])
    rejects = [line["blocked_by"] for line in found.to_pylist() if line["reason"] == "rejected"]
    assert rejects.count(UNNUMBERED) == 3
    assert any("a priority is 0 to 9" in reason for reason in rejects)
    assert_same_lines(found.filter(pc.is_valid(found["row"])), carried(topology, sent))


def test_what_has_no_moment_in_a_stream_ordered_by_them_is_rejected(spark: Any, tmp_path: Path) -> None:
    topology = Topology(
        Source("q.{queue}", path="unused", timestamp=TimeColumn("at"), order="timestamp"), (Consumer("c", "q.>"),), ()
    )
    rows = numbered(list("abc"), {1: "leave c"})
    write_files(rows.append_column("at", pa.array(["2026-01-01T00:00:00Z", None, None])), tmp_path / "in", 1)
    run(spark, tmp_path / "in", 1, topology, tmp_path, event="event")
    lines = sorted((line["row"], line["consumer"], line["blocked_by"]) for line in told(spark, tmp_path).to_pylist())
    problem = "at = '': the timestamp that orders the rows is missing"
    assert lines == [(0, "c", None), (1, None, problem), (2, None, problem)]


def test_columns_of_a_stream_may_have_dots(spark: Any, tmp_path: Path) -> None:
    topology = Topology(Source("q.{queue.name}", path="unused"), (Consumer("c", "q.>"),), ())
    rows = pa.table({"number": [0, 1], "queue.name": ["a", "b"], "event": pa.array([None, None], pa.string())})
    write_files(rows, tmp_path / "in", 1)
    run(spark, tmp_path / "in", 1, topology, tmp_path)
    assert sorted(told(spark, tmp_path).column("destination").to_pylist()) == ["q.a", "q.b"]


def small_topology(*consumers: Consumer) -> Topology:
    return Topology(Source("q.{queue}", path="unused", group="who"), consumers, (Policy("q.>"),))


def test_consumers_join_and_leave_between_messages(spark: Any, tmp_path: Path) -> None:
    """What waits for a late consumer's selector goes to it, what a consumer leaves behind goes to the next."""
    topology = small_topology(
        Consumer("hoards", "q.>", prefetch=3, acknowledges=False), Consumer("late", "q.a", selector="n < 4")
    )
    events = {8: "join late", 12: "lose hoards", 14: "leave nobody", 15: "join hoards"}
    write_files(
        numbered(["a"] * 8 + ["event"] + ["a"] * 3 + ["event", "a", "event", "event", "a"], events), tmp_path / "in", 2
    )
    run(spark, tmp_path / "in", 1, topology, tmp_path, event="event", late=["late"])
    sink = spark.read.parquet(str(tmp_path / "sink")).orderBy("delivery").toArrow()
    lines = {}
    for line in sink.to_pylist():
        if line["reason"] is None:
            lines.setdefault(line["row"], []).append((line["consumer"], line["attempt"]))
    assert lines[0] == [("hoards", 1), ("late", 2)]
    assert lines[3] == [("late", 1)]
    rejected = [line for line in sink.to_pylist() if line["reason"] == "rejected"]
    assert [(line["row"], line["blocked_by"][:12]) for line in rejected] == [(14, "leave nobody")]
    waits = held(spark, tmp_path / "state").orderBy("row").toArrow().to_pylist()
    assert {line["row"] for line in waits}.isdisjoint(lines)
    assert {*lines, *(line["row"] for line in waits)} == set(range(17)) - set(events)


def test_rows_of_a_new_checkpoint_are_not_taken_for_those_of_the_micro_batch_that_is_done(
    spark: Any, tmp_path: Path
) -> None:
    """Both are the first, and what has come since then would be nowhere."""
    topology = small_topology(Consumer("one", "q.>"))
    write_files(numbered(["a", "b"]), tmp_path / "in", 1)
    run(spark, tmp_path / "in", 9, topology, tmp_path)
    shutil.copytree(tmp_path / "state", tmp_path / "kept")
    shutil.rmtree(tmp_path / "state" / "checkpoint")
    write_files(numbered(["a"] * 7), tmp_path / "in", 1, first=1)
    with pytest.raises(Exception, match=r"SnapshotError.*its checkpoint was deleted or replaced"):
        run(spark, tmp_path / "in", 9, topology, tmp_path)
    shutil.rmtree(tmp_path / "state")
    shutil.move(tmp_path / "kept", tmp_path / "state")
    run(spark, tmp_path / "in", 9, topology, tmp_path)
    assert told(spark, tmp_path).num_rows == 9


def test_a_function_gets_each_micro_batch_and_state_and_checkpoint_belong_together(spark: Any, tmp_path: Path) -> None:
    topology = small_topology(Consumer("one", "q.>", prefetch=2, acknowledges=False))
    write_files(numbered(["a", "b"] * 20), tmp_path / "in", 2)
    place = tmp_path / "a{b}[1] *?%20#"  # a pattern that this name does not fit
    seen: list[tuple[int, int]] = []

    def sink(df: Any, batch: int) -> None:
        seen.append((batch, df.count()))
        if len(seen) == 1:
            raise_died()

    with pytest.raises(Exception, match="died at the step"):
        run(spark, tmp_path / "in", 1, topology, place, sink=sink)
    run(spark, tmp_path / "in", 1, topology, place, sink=sink)
    assert seen == [(0, 4), (0, 4), (1, 0)]
    assert [path.name for path in (place / "state" / "deliveries").iterdir()] == ["batch=1"]
    assert held(spark, place / "state").count() == 36
    with pytest.raises(SnapshotError):
        held(spark, place)
    next((place / "state").glob("progress-*")).unlink()
    write_files(numbered(["a"]), tmp_path / "in", 1, first=2)
    with pytest.raises(Exception, match="the folder holds no state of it"):
        run(spark, tmp_path / "in", 1, topology, place, sink=lambda df, batch: None)


def test_several_columns_number_the_rows_of_a_stream(spark: Any, tmp_path: Path) -> None:
    """Offsets of two partitions: the answer of a single number that stands for both, and whole rows in what is told."""
    topology = small_topology(Consumer("hoards", "q.>", prefetch=3, acknowledges=False), Consumer("late", "q.a"))
    rows = numbered(["a"] * 9 + ["event"] + ["a", "b", "a"], {9: "join late"})
    both = {
        "partition": pa.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 4], pa.int32()),
        "offset": pa.array([5, 6, -7, 0, 1, 1, 0, 1, None, 0, 2, 1, 0], pa.int64()),
    }
    for name, column in both.items():
        rows = rows.append_column(name, column)
    write_files(rows.drop_columns(["number"]), tmp_path / "several", 2)
    pairs = zip(*(each.to_pylist() for each in both.values()), strict=True)
    plain = pa.array([None if offset is None else 1000 * partition + offset for partition, offset in pairs])
    write_files(rows.drop_columns([*both, "number"]).append_column("number", plain), tmp_path / "one", 2)
    found = {}
    for name, row in (("several", ("partition", "offset")), ("one", "number")):
        place = tmp_path / f"of-{name}"
        run(spark, tmp_path / name, 1, topology, place, event="event", late=["late"], row=row)
        lines = []
        for line in told(spark, place).to_pylist():
            if isinstance(line["row"], dict):
                assert list(line["row"]) == list(both)
                line["row"] = 1000 * line["row"]["partition"] + line["row"]["offset"]
            line["blocked_by"] = (line["blocked_by"] or "").partition("=")[2].partition(":")[2]
            lines.append(tuple(line.values()))
        found[name] = sorted(lines, key=str)
    assert found["several"] == found["one"]
    repeated = [line for line in found["one"] if "more than once" in str(line)]
    assert len(repeated) == 2


def test_decimals_go_through_a_stream(spark: Any, tmp_path: Path) -> None:
    topology = Topology(Source("q", path="unused"), (Consumer("a", "q", "price = 0.1"),))
    rows = pa.table(
        {
            "number": [0, 1, 2],
            "price": [Decimal("0.10"), Decimal("0.11"), None],
        }
    )
    write_files(rows, tmp_path / "in", 1)
    run(spark, tmp_path / "in", 1, topology, tmp_path)
    lines = {line["row"]: (line["consumer"], line["reason"]) for line in told(spark, tmp_path).to_pylist()}
    assert lines == {0: ("a", None), 1: (None, "selector"), 2: (None, "selector")}


def test_what_cannot_be_a_stream_is_told_at_once(spark: Any, tmp_path: Path) -> None:
    write_files(numbered(["a"]).append_column("when", pa.array([1.5])), tmp_path / "in", 1)
    frame = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
    where: dict[str, Any] = {"row": "number", "state": tmp_path / "s", "sink": tmp_path / "o"}
    with pytest.raises(InvalidTopologyError, match="queues"):
        dispatch_stream(frame, small_topology(Consumer("a", "topic://t")), **where)
    with pytest.raises(InvalidTopologyError, match="late"):
        dispatch_stream(frame, small_topology(Consumer("a", "q.>")), late=["b"], **where)
    with pytest.raises(ConfigurationError, match=r"row=number, number: names a column twice"):
        dispatch_stream(frame, small_topology(Consumer("a", "q.>")), **where | {"row": ("number", "number")})
    with pytest.raises(UnsupportedColumnError, match="when"):
        dispatch_stream(frame, small_topology(Consumer("a", "q.>")), **where | {"row": ("number", "when")})
    by_double = Topology(Source("q.{when}", path="unused"), (Consumer("a", "q.>"),))
    with pytest.raises(UnsupportedColumnError, match="when"):
        dispatch_stream(frame, by_double, **where)
    retyped = Topology(Source("q.{number}", path="unused", types=(("number", "int"),)), (Consumer("a", "q.>"),))
    with pytest.raises(UnsupportedColumnError, match="number"):
        dispatch_stream(frame, retyped, **where)


def come_and_go() -> Topology:
    """Some consumers keep what they get, so that a micro-batch depends on the ones before it."""
    return small_topology(
        Consumer("first", "q.>", selector="n < 8", prefetch=5, acknowledges=False),
        Consumer("second", "q.>"),
        Consumer("late", "q.>", selector="n = 9", prefetch=3, acknowledges=False),
    )


def traffic(index: int, size: int = 60) -> pa.Table:
    """The rows of a micro-batch: messages for thirty queues, and a consumer that comes or goes in the middle."""
    draw = random.Random(index)
    event = ("join late", "lose first", "join first", "leave late")[index % 4]
    rows = numbered([f"{draw.randrange(30)}" for _ in range(size)], {size // 2: event})
    return rows.set_column(0, "number", pa.array(range(index * size, (index + 1) * size), pa.int64()))


# Where micro-batch N can die: between the steps that change what the next process finds, in their order.
IN_A_WORKER = (
    Death("before", "/part-00000.parquet"),
    Death("before", "shard-00000/{0:020d}.state"),
    Death("before", "shard-00001/{0:020d}.state"),
)
ON_THE_DRIVER = (
    Death("before", "state/coming-{0:020d}"),
    Death("before", "sink/batch={0}"),
    Death("after", "sink/batch={0}"),
    Death("before", "state/progress-{0:020d}"),
    Death("after", "state/progress-{0:020d}"),
)


def test_whatever_step_a_stream_dies_at_nothing_is_lost_or_doubled(spark: Any, tmp_path: Path) -> None:
    """With half of the shards written, a worker by SIGKILL, and with the deliveries told and no progress written;
    ``make stream-kills`` walks through every step."""
    walk(spark, tmp_path, [IN_A_WORKER[2], ON_THE_DRIVER[2]])


class Begun:
    """A stream of a table's rows whose micro-batches the test does."""

    def __init__(self, spark: Any, place: Path, partitions: int) -> None:
        write_files(traffic(0), place / "in", 1)
        rows = spark.read.parquet(str(place / "in"))
        works: list[Any] = []
        with pytest.MonkeyPatch.context() as here:
            for kind in ("_Work", "_Shards"):
                make = getattr(streaming, kind)
                here.setattr(streaming, kind, lambda *about, make=make: works.append(make(*about)) or works[-1])
            frame = spark.readStream.schema(rows.schema).parquet(str(place / "in"))
            where = {"state": place / "state", "sink": place / "sink", "partitions": partitions}
            dispatch_stream(frame, come_and_go(), row="number", shards=4, **where, **OPTIONS)
        self.in_a_worker, self.on_the_driver = works
        by_shard = streaming._by_shard(rows, source_read(rows, come_and_go()), "number", "event", 4)
        self.split, _ = streaming._split(by_shard, 4, partitions)
        self.lines = map_in_arrow(self.split, self.in_a_worker, shard_schema())
        spark.sparkContext.setLocalProperty("streaming.sql.batchId", "0")  # as Spark does for a micro-batch


def test_two_drivers_of_one_stream_take_nothing_from_each_other(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was given up for dead names its folder while its successor is at work on the same micro-batch."""
    stream = Begun(spark, tmp_path, 2)
    dispatched = streaming._Work._dispatched

    def begin(meanwhile: Callable[[], None]) -> None:
        """meanwhile: what happens when the workers are done."""

        def lines(work: Any, frame: Any) -> Any:
            found = dispatched(work, frame)
            meanwhile()
            return found

        monkeypatch.setattr(streaming._Work, "_dispatched", lines)
        stream.on_the_driver(stream.lines, 0)

    def overtaken() -> None:
        with pytest.raises(DiedError):
            begin(raise_died)

    with pytest.raises(OutputError):
        begin(overtaken)
    assert not (tmp_path / "sink" / "batch=0").exists()
    begin(lambda: begin(lambda: None))  # the successor is faster, and both end well
    monkeypatch.undo()
    found = told(spark, tmp_path)
    run(spark, tmp_path / "in", 1, come_and_go(), tmp_path / "calm", **OPTIONS)
    assert_same_lines(found, told(spark, tmp_path / "calm"))
    assert [path.name for path in (tmp_path / "sink").iterdir()] == ["batch=0"]


def test_deliveries_and_state_are_on_the_disk_before_the_progress(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch, streaming, state_files, output)
    stream, write_progress = Begun(spark, tmp_path, 1), StateFolder.write_progress
    sink, state = tmp_path / "sink", tmp_path / "state"

    class Here:
        """A task in this process."""

        def collect(self) -> list[Any]:
            done = stream.in_a_worker(stream.split.toArrow().to_batches())
            return [line for batch in done for line in batch.to_pylist()]

    def checked(folder: StateFolder, batch: int, deliveries: str) -> None:
        files = [path for path in (*sink.rglob("*"), *state.rglob("[!a]*")) if path.is_file()]  # no attempt
        assert len(files) == 1 + 4 + 1
        assert [path for path in (*files, sink / "batch=0") if not disk.keeps(path)] == []
        write_progress(folder, batch, deliveries)
        assert disk.keeps(state / f"progress-{0:020d}")

    monkeypatch.setattr(streaming, "_task", lambda: (0, 0))
    monkeypatch.setattr(StateFolder, "write_progress", checked)
    stream.on_the_driver(Here(), 0)


@pytest.fixture(scope="module")
def ran(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of three micro-batches, which a fourth can follow."""
    place = tmp_path_factory.mktemp("ran")
    for index in range(3):
        write_files(traffic(index), place / "in", 1, first=index)
    run(spark, place / "in", 1, come_and_go(), place, **OPTIONS)
    write_files(traffic(3), place / "in", 1, first=3)
    return place


def copied(ran: Path, into: Path) -> Path:
    """Spark's checkpoint says nothing of the folder it is in."""
    for name in ("state", "sink"):
        shutil.copytree(ran / name, into / name)
    return into


@pytest.mark.parametrize("older", [False, True])
def test_a_shard_without_its_newest_state_ends_the_query(spark: Any, ran: Path, tmp_path: Path, older: bool) -> None:
    place = copied(ran, tmp_path)
    folder = place / "state" / "shard-00002"
    *before, newest = sorted(folder.iterdir())
    assert before
    for file in (newest,) if older else (newest, *before):
        file.unlink()
    with pytest.raises(Exception, match=r"SnapshotError.*state of shard 2 as micro-batch 2 left it was deleted"):
        run(spark, ran / "in", 1, come_and_go(), place, **OPTIONS)
    with pytest.raises(Exception, match=r"SnapshotError.*state of shard 2"):
        held(spark, place / "state").count()
    assert not (place / "sink" / "batch=3").exists()


def _with(**changes: Any) -> Topology:
    first, *others = come_and_go().consumers
    return small_topology(replace(first, **changes), *others)


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (_with(selector="n < 9"), """one with .selector = "n < 8".*, without .selector = "n < 9"."""),
        (small_topology(*come_and_go().consumers[:2]), """one with 'name = "late"'"""),
        (small_topology(*come_and_go().consumers, Consumer("new", ">")), """one without 'name = "new"'"""),
        (
            replace(come_and_go(), policies=(Policy("q.>", max_page_size=9),)),
            "one without 'max_page_size = 9'[.] Go on",
        ),
    ],
)
def test_a_stream_of_another_topology_says_what_differs(ran: Path, topology: Topology, words: str) -> None:
    folder = StateFolder(str(ran / "state"))
    found = folder.read_progress()
    assert found is not None
    text = replace(topology, source=Topology.from_text(found.topology).source).to_text()
    with pytest.raises(SnapshotError, match=f"its topology is {words}"):
        folder.before(replace(found, topology=text), found.batch + 1)


def test_a_stream_with_other_columns_shards_or_late_consumers_says_so(ran: Path) -> None:
    folder = StateFolder(str(ran / "state"))
    found = folder.read_progress()
    assert found is not None
    columns = pa.ipc.read_schema(pa.py_buffer(found.columns))
    texts = columns.set(columns.names.index("n"), pa.field("n", pa.string())).serialize().to_pybytes()
    for change, words in (
        ({"shards": 9}, "it has 4 shards, not 9"),
        ({"late": ()}, r"late consumers are \['late'\], not \[\]"),
        ({"columns": texts}, "its columns are .*n int32.*, not .*n string"),
    ):
        with pytest.raises(SnapshotError, match=words):
            folder.before(replace(found, **change), found.batch + 1)


def test_a_late_consumer_named_twice_is_one(spark: Any, ran: Path, tmp_path: Path) -> None:
    place = copied(ran, tmp_path)
    run(spark, ran / "in", 99, come_and_go(), place, event="event", late=["late", "late"])
    run(spark, ran / "in", 99, come_and_go(), tmp_path / "calm", **OPTIONS)
    assert_same_lines(told(spark, place), told(spark, tmp_path / "calm"))


def test_a_state_of_an_earlier_version_goes_on(spark: Any, ran: Path, tmp_path: Path) -> None:
    """It has one file ``progress``, which names no generations."""
    place = copied(ran, tmp_path)
    (newest,) = (place / "state").glob("progress-*")
    start, end = unseal(MAGIC, VERSION, newest.read_bytes())
    said = json.loads(newest.read_bytes()[start:end])
    del said["generations"]
    (place / "state" / "progress").write_bytes(seal(MAGIC, VERSION, json.dumps(said).encode()))
    newest.unlink()
    run(spark, ran / "in", 1, come_and_go(), place, **OPTIONS)
    run(spark, ran / "in", 99, come_and_go(), tmp_path / "calm", **OPTIONS)
    assert_same_lines(told(spark, place), told(spark, tmp_path / "calm"))
    assert len(list((place / "state").glob("progress*"))) == 1


def test_deliveries_of_another_stream_are_not_taken_for_done(spark: Any, ran: Path, tmp_path: Path) -> None:
    place = copied(ran, tmp_path)
    shutil.rmtree(place / "state")
    with pytest.raises(Exception, match=r"SnapshotError.*state and sink belong together"):
        run(spark, ran / "in", 1, come_and_go(), place, **OPTIONS)


def test_a_driver_that_is_late_does_not_take_the_stream_back(ran: Path, tmp_path: Path) -> None:
    """It tells the end of a micro-batch when its successor is done with the next ones."""
    place = copied(ran, tmp_path)
    folder = StateFolder(str(place / "state"))
    found = folder.read_progress()
    assert found is not None
    folder.write_progress(1, "batch=1")
    assert folder.read_progress() == found
    folder.prepare_progress(found.with_batch(1, [0]))
    folder.write_progress(1, "batch=1")
    assert folder.read_progress() == found
    with pytest.raises(SnapshotError, match="belong together"):
        folder.write_progress(3, "batch=3")


@dataclass(frozen=True)
class SmallFiles:
    """The work of a Spark task, in a worker that may write files of so many bytes only."""

    work: Callable[[Iterable[Any]], Iterator[Any]]
    size: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        given = list(batches)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, hard))
        try:
            found = list(self.work(given))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        yield from found


def test_a_full_disk_ends_the_query_and_loses_nothing(
    spark: Any, ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = copied(ran, tmp_path)
    state = max((place / "state" / "shard-00000").iterdir())
    deliveries = max(file.stat().st_size for file in place.glob("sink/*/*.parquet"))
    work = streaming._Shards
    options = {**OPTIONS, "partitions": 1}  # a second task would still be writing when the query ends
    for size in (100, min(state.stat().st_size - 100, deliveries + 2000)):
        monkeypatch.setattr(streaming, "_Shards", lambda *about, size=size: SmallFiles(work(*about), size))
        with pytest.raises(Exception, match=r"OutputError.*File too large"):
            run(spark, ran / "in", 1, come_and_go(), place, **options)
        assert not list(place.glob("state/shard-*/.*"))
        monkeypatch.undo()
    run(spark, ran / "in", 1, come_and_go(), place, **OPTIONS)
    run(spark, ran / "in", 99, come_and_go(), tmp_path / "calm", **OPTIONS)
    assert_same_lines(told(spark, place), told(spark, tmp_path / "calm"))


def walk(spark: Any, folder: Path, deaths: list[Death]) -> None:
    """One micro-batch after another dies, each at another step; the sink is that of a stream that never died."""
    topology, place = come_and_go(), folder / "dying"
    options = {**OPTIONS, "shards": 2, "partitions": 1}
    for index, step in enumerate(deaths):
        write_files(traffic(index), folder / "in", 1, first=index)
        death = step.in_batch(index)
        with pytest.MonkeyPatch.context() as patched:
            if step in IN_A_WORKER:
                work = streaming._Shards
                patched.setattr(streaming, "_Shards", lambda *about, work=work, at=death: DyingWork(work(*about), at))
                with pytest.raises(Exception, match=r"worker exited unexpectedly \(crashed\)"):
                    run(spark, folder / "in", 1, topology, place, **options)
            else:
                with death.awaited(raise_died), pytest.raises(Exception, match="died at the step"):
                    run(spark, folder / "in", 1, topology, place, **options)
        told_already = step in ON_THE_DRIVER[2:]
        assert (place / "sink" / f"batch={index}").exists() == told_already, death
    run(spark, folder / "in", 1, topology, place, **options)
    run(spark, folder / "in", 99, topology, folder / "calm", **options)
    assert_same_lines(told(spark, place), told(spark, folder / "calm"))


def assert_same_lines(found: pa.Table, expected: pa.Table) -> None:
    """No line lost, none twice, each the same."""
    assert expected.num_rows
    assert found.num_rows == expected.num_rows
    order = [("destination", "ascending"), ("delivery", "ascending"), ("row", "ascending")]
    found, expected = found.sort_by(order), expected.sort_by(order)
    for name in expected.column_names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name
