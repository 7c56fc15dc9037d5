"""Dispatch of a stream: queues that persist from one micro-batch to the next, with exactly-once deliveries."""

from __future__ import annotations

import gc
import os
import re
import shutil
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyengine.activemq.tables.typed_names import TYPED
from pyengine.backlog.tables.output import replace_file, written
from pyengine.dataclass import dataclass
from pyengine.disk_sync import sync_folder
from pyengine.errors import (
    ConfigurationError,
    InvalidTopologyError,
    MissingColumnError,
    OutputError,
    SnapshotError,
    UnsupportedColumnError,
)
from pyengine.spark.failure import problem_of, raised_on_driver, reason_first, sent_to_driver
from pyengine.spark.functions import arrow_schema, has_column, map_in_arrow, quoted, refuse_ambiguous
from pyengine.spark.observed import OBSERVED, figures_of, shard_lines, shard_schema, stream_numbers
from pyengine.spark.properties import PROBLEM, Picked
from pyengine.spark.row_numbers import PART, UNNUMBERED, numbers_of, numbers_schema, repeated_problems
from pyengine.spark.session import require_count, require_path, require_spark
from pyengine.spark.state_files import CHECKPOINT, Figures, Progress, StateFolder
from pyengine.spark.transforms import source_read
from pyengine.topology import Source, Topology
from pyengine.topology.checked import check

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

OnChange = Literal["raise", "migrate"]
_EVENT, _SHARD = "__event", "__shard"


def dispatch_stream(
    df: DataFrame,
    topology: Topology,
    *,
    row: str | Sequence[str],
    state: str | Path,
    sink: str | Path | Callable[[DataFrame, int], None],
    event: str | None = None,
    late: Collection[str] = (),
    shards: int = 64,
    partitions: int | None = None,
    columns: Mapping[str, str] | None = None,
    properties_from: str | None = None,
    on_change: OnChange = "raise",
    absent: Collection[str] = (),
) -> DataStreamWriter:
    """Dispatch a stream of messages; say ``.trigger(...).start()`` on what is returned.

    df: a streaming DataFrame of rows as the topology's source describes them, queues only. row: a column of whole
    numbers, each once in the stream, or several that are compared one after another (``("partition", "offset")``);
    within a micro-batch it gives the order in which rows were sent (after the timestamp, if the source says ``order =
    "timestamp"``), and rows of a queue that have it in common are rejected. What came in an earlier micro-batch is not
    remembered: Spark's ``dropDuplicatesWithinWatermark`` in front does that, for as long as its watermark says. event:
    a column of texts, null for a message: "join NAME" (a consumer of the topology comes), "leave NAME" (it goes; what
    it holds goes to the others), "lose NAME" (its connection broke). An event happens between the messages before and
    behind it. late: consumers that are not there until they join. shards: how many files the state is; it cannot change
    later. partitions: tasks of a micro-batch, by default Spark's shuffle partitions. columns, properties_from: where
    the properties are, as in ``match``, by names; they count before those of the source.

    state: a folder that the driver and all workers see; it holds the state of each shard and Spark's checkpoint, which
    belong together. sink: a folder that gets one subfolder ``batch=N`` of Parquet files a micro-batch, or a function of
    a DataFrame and the number of the micro-batch; it may be called again for a number after a failure, with the same
    rows, and has to make that one effect. Rows are deliveries (columns of ``dispatch``, and ``attempt``: 1 for the
    first consumer that got a message, more when that one left), messages that expired, and rejected rows; what waits
    is in ``held``. Each delivery comes once, also when the query was killed and started again.

    Raises InvalidTopologyError, MissingColumnError, UnsupportedColumnError, ConfigurationError now; the query fails
    with SnapshotError when the state is damaged, incomplete or belongs to another stream, with OutputError when the
    disk is full.
    """
    require_spark()
    require_count("shards", shards)
    require_count("partitions", partitions)
    import pyarrow as pa

    from pyengine.activemq.tables.dispatch import columns_read
    from pyengine.backlog.tables.declared_types import arrow_type
    from pyengine.backlog.tables.messages import DESTINATION, ROW, message_schema

    check("topology", topology, Topology)
    check("row", row, str | Sequence[str])
    check("state", state, str | os.PathLike)
    check("sink", sink, str | os.PathLike | Callable[..., None])
    check("event", event, str | None)
    check("late", late, Collection[str])
    check("columns", columns, Mapping[str, str] | None)
    check("properties_from", properties_from, str | None)
    check("on_change", on_change, OnChange)
    check("absent", absent, Collection[str])
    for name, folder in (("state", state), ("sink", sink)):
        if folder == "":
            raise ConfigurationError(name, "''", "names no folder", "'.' is here")
        if not callable(folder):
            require_path(name, folder)
    if topology.has_topics:
        raise InvalidTopologyError("a stream carries queues; a topic of the topology needs a job of its own")
    unknown = set(late) - {consumer.name for consumer in topology.consumers}
    if unknown:
        raise InvalidTopologyError("no consumer of the topology", key="late", value=sorted(unknown)[0])
    picked = source_read(df, topology, columns, properties_from)
    source = picked.source
    row_names, _ = numbers_of(df, row if isinstance(row, str) else list(row))
    if event is not None and not has_column(df, event):
        raise MissingColumnError(event, df.columns, "the DataFrame")
    refuse_ambiguous(df, [event] if event is not None else [])
    arrow = arrow_schema(df.select(*(column.alias(name) for name, column in picked.columns.items())).schema.fields)
    declared = dict(source.types)
    for name in source.destination_columns:
        if name not in arrow.names:
            continue
        kind = str(arrow.field(name).type)
        same = declared.get(name) in (None, "string") or arrow_type(declared[name]) == arrow.field(name).type
        if not same or not kind.startswith(("string", "large_string", "int", "bool")):
            raise UnsupportedColumnError(name, kind, "cast a column that names the queue to string first")
    messages = message_schema(arrow, source, "the DataFrame")
    names = columns_read(topology, list(dict.fromkeys((*messages.names, *picked.offered))))
    kept = messages.empty_table().select([name for name in messages.names if name in names]).schema
    number = numbers_schema(pa.schema([("row", pa.int64())]), row_names).field(0).with_name(ROW)
    kept = kept.set(kept.get_field_index(ROW), number)
    assert DESTINATION in kept.names
    # Where the topology was read from, and its words, do not belong to the identity of the state.
    plain = replace(source, path="stream", package="", table="", format="")
    narrowed = replace(topology, source=plain, title="", description="", destinations=(), file="")
    late_names, shown = tuple(sorted(set(late))), kept.serialize().to_pybytes()
    progress = Progress(-1, shards, narrowed.to_text(), late_names, shown, (-1,) * shards)
    state = Path(state).absolute()
    where = sink if callable(sink) else str(Path(sink).absolute())
    migrates = tuple(absent) if on_change == "migrate" else None
    plan = uuid.uuid4().hex
    rows = _by_shard(df, picked, row if isinstance(row, str) else list(row), event, shards)
    split, owners = _split(rows, shards, partitions)
    lines = map_in_arrow(split, _Shards(progress, str(state), plan, owners), shard_schema())
    work = _Work(progress, str(state), where, plan, migrates)
    stream = lines.observe(OBSERVED, *stream_numbers()).writeStream
    return stream.foreachBatch(work).option("checkpointLocation", str(state / CHECKPOINT))


def _by_shard(df: DataFrame, picked: Picked, row: str | list[str], event: str | None, shards: int) -> DataFrame:
    """What a stream reads of its rows, with their shards; an event comes to each shard."""
    from pyspark.sql import functions as F  # noqa: N812

    from pyengine.backlog.tables.messages import ROW

    names, numbers = numbers_of(df, row)
    parts = [f"{PART}{place}" for place in range(len(names))] if len(names) > 1 else [ROW]
    given = [number.alias(part) for number, part in zip(numbers, parts, strict=True)]
    shard = F.pmod(F.xxhash64(_queue_name(picked)), F.lit(shards)).cast("int")
    columns = [*(column.alias(name) for name, column in picked.columns.items()), *given]
    if picked.problem is not None:
        columns.append(picked.problem.alias(PROBLEM))
    if event is None:
        return df.select(*columns, shard.alias(_SHARD))
    happened = F.col(quoted(event))
    every = F.sequence(F.lit(0), F.lit(shards - 1))
    return df.select(
        *columns,
        happened.cast("string").alias(_EVENT),
        F.explode(F.when(happened.isNull(), F.array(shard)).otherwise(every)).alias(_SHARD),
    )


def _split(rows: DataFrame, shards: int, partitions: int | None) -> tuple[DataFrame, tuple[int, ...]]:
    """The rows in as many parts as there are tasks, and which of them has each shard."""
    from pyspark.sql import functions as F  # noqa: N812

    if partitions is None:
        asked = str(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        partitions = int(asked) if asked.isdecimal() else shards  # Databricks has "auto"
    partitions = min(partitions, shards)
    # By number, so that one task gets as many shards as another: a hash of so few numbers would not do that.
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, _SHARD), tuple(shard % partitions for shard in range(shards))
    owner = F.pmod(F.hash(F.col("id").cast("int")), F.lit(partitions))  # pyspark 3.5 and 4.0
    numbered = rows.sparkSession.range(shards).select("id", owner.alias("owner")).collect()
    return rows.repartition(partitions, _SHARD), tuple(each["owner"] for each in sorted(numbered))


def held(spark: SparkSession, state: str | Path) -> DataFrame:
    """What waits in a stream after its last complete micro-batch, and why: the columns of the stream's deliveries.

    Raises SnapshotError for a folder that holds no state, MissingExtraError.
    """
    require_spark()
    check("state", state, str | os.PathLike)
    require_path("state", state)
    from pyspark.sql.pandas.types import from_arrow_schema

    progress = progress_of(state)
    return spark.range(progress.shards).mapInArrow(
        _Held(progress, str(Path(state).absolute())), from_arrow_schema(_carry(progress).output_schema)
    )


def progress_of(state: str | Path) -> Progress:
    """How far a stream has come. Raises SnapshotError for a folder that holds no state."""
    progress = StateFolder(str(state)).read_progress()
    if progress is None:
        raise SnapshotError(f"{state}: no micro-batch of a stream was completed here")
    return progress


def held_schema(state: str | Path) -> Any:
    """The Arrow schema of what waits in a stream. Raises SnapshotError."""
    return _carry(progress_of(state)).held(()).schema


def waiting(state: str | Path) -> Iterator[Any]:
    """What waits in each shard of a stream, as tables. Raises SnapshotError."""
    folder, progress = StateFolder(str(state)), progress_of(state)
    for shard, generation in enumerate(progress.generations):
        carry = _carry(progress)
        carry.load(shard, folder.read_shard(shard, generation))
        yield carry.held([shard])


@dataclass(frozen=True)
class _Work:
    """What a micro-batch does on the driver. plan: names the plan whose workers do the rest.

    migrates: None: another topology's state is refused; the properties that its messages lack.
    """

    start: Progress
    state: str
    sink: str | Callable[[Any, int], None]
    plan: str
    migrates: tuple[str, ...] | None = None

    def __call__(self, df: DataFrame, batch: int) -> None:
        with reason_first(batch):
            self._do(df, batch)

    def _do(self, df: DataFrame, batch: int) -> None:
        folder = StateFolder(self.state)
        before = folder.before(self.start, batch, self.migrates is not None)
        if before is None:
            return
        now = _now(before, self.start)
        if now != before:
            self._refuse_losses(df, before, now)
        out = Path(self.state) / "deliveries" if callable(self.sink) else Path(self.sink)
        done, writing = out / f"batch={batch}", out / f"_batch={batch}.{uuid.uuid4().hex}"
        # The folder gets its name when everything of the micro-batch is written, the state of its shards too.
        # Until then it is of this attempt alone: an earlier one may still have a driver or workers that live.
        if not done.exists():
            _take_away(out.glob("_batch=*"))
            with written(writing):
                writing.mkdir(parents=True)
            folder.write_attempt(batch, self.plan, before, str(writing))
            with raised_on_driver():
                lines = self._dispatched(df)
            figures = {line["shard"]: figures_of(line) for line in lines}
            shards = [line["shard"] for line in lines if line["written"]]
            folder.prepare_progress(now.with_batch(batch, shards, [figures[each] for each in range(now.shards)]))
            try:
                with written(done):
                    writing.rename(done)
            except OutputError:
                if not done.exists():
                    raise
                _take_away([writing])  # another attempt was faster, with the same deliveries
        with written(done):
            sync_folder(out)  # deliveries are not behind the state after a power failure
        if callable(self.sink):
            self.sink(self._told(df, done), batch)
            for old in out.glob("batch=*"):
                if int(old.name[6:]) < batch:
                    shutil.rmtree(old)
        folder.write_progress(batch, str(done))

    def _told(self, df: DataFrame, done: Path) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        # What would make Spark look for other folders is a part of this one's name.
        path = re.sub(r"([*?{}\[\]])", r"\\\1", str(done))
        return df.sparkSession.read.schema(from_arrow_schema(_carry(self.start).output_schema)).parquet(path)

    def _refuse_losses(self, df: DataFrame, before: Progress, now: Progress) -> None:
        """Raise SnapshotError if something of the state cannot be kept under the topology of now."""
        rows = df.sparkSession.range(before.shards).mapInArrow(
            _Losses(before, now, self.state, self.migrates or ()), "loss string"
        )
        with raised_on_driver():
            lost = list(dict.fromkeys(loss for (loss,) in rows.collect()))
        if lost:
            more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
            hint = "deliver what waits first, name new properties in absent, or begin a state and a sink of its own"
            raise SnapshotError(f"{self.state}: the topology cannot be changed: {'; '.join(lost[:5])}{more}. {hint}")

    def _dispatched(self, df: DataFrame) -> list[Any]:
        """The lines of all shards, when the workers are done."""
        return df.collect()


def _now(before: Progress, start: Progress) -> Progress:
    """How far a stream is, which goes on as this one starts."""
    return replace(before, topology=start.topology, late=start.late, columns=start.columns)


def _task() -> tuple[int, int]:
    """The numbers of the micro-batch and of the task in which a worker is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.getLocalProperty("streaming.sql.batchId") or 0), context.partitionId()


def _queue_name(picked: Picked) -> Column:
    """The queue of a row, or null: only for telling queues apart, the name itself is made where messages are."""
    from pyspark.sql import functions as F  # noqa: N812

    parts: list[Column] = []
    for position, part in enumerate(picked.source.destination_parts):
        name = part.strip()
        if position % 2 == 0:
            parts.append(F.lit(part))
        elif name in picked.columns:
            parts.append(picked.columns[name].cast("string"))
        else:  # JSON: the rows of a queue have one spelling of the name
            parts.append(F.regexp_replace(picked.columns[TYPED + name], '^"|"$', ""))
    return F.concat(*parts)


def _carry(progress: Progress) -> Any:
    import pyarrow as pa

    from pyengine.activemq.tables.stream_state import Carry

    columns = pa.ipc.read_schema(pa.py_buffer(progress.columns))
    return Carry(Topology.from_text(progress.topology), columns, progress.late)


def _counted(carry: Any, shard: int, data: bytes | None) -> Figures:
    """The figures of a shard whose progress has none, which an earlier version wrote."""
    from pyengine.activemq.tables.stream_state import reasons_of

    carry.load(shard, data)
    return len(data or b""), reasons_of(carry.waits(shard))


def _take_away(folders: Iterable[Path]) -> None:
    """Remove folders, so that a late attempt to rename one of them finds none rather than a part of it."""
    for folder in folders:
        gone = folder.with_name(f"_gone.{uuid.uuid4().hex}")
        with suppress(FileNotFoundError):
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


@dataclass(frozen=True)
class _Held:
    """What a worker runs for ``held``."""

    progress: Progress
    state: str

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        with sent_to_driver():
            folder = StateFolder(self.state)
            for batch in batches:
                for shard in batch.column(0).to_pylist():
                    carry = _carry(self.progress)
                    carry.load(shard, folder.read_shard(shard, self.progress.generations[shard]))
                    yield from carry.held([shard]).combine_chunks().to_batches()


@dataclass(frozen=True)
class _Losses:
    """What a worker runs to find what another topology cannot keep of the shards. absent: as in dispatch_stream."""

    progress: Progress
    now: Progress
    state: str
    absent: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        with sent_to_driver():
            folder, generations = StateFolder(self.state), self.progress.generations
            for batch in batches:
                lost: list[str] = []
                for shard in batch.column(0).to_pylist():
                    carry = _carry(self.progress)
                    carry.load(shard, folder.read_shard(shard, generations[shard]))
                    lost += carry.lost_in(_carry(self.now), self.absent)
                yield pa.RecordBatch.from_pydict({"loss": pa.array(lost, pa.string())})


@dataclass(frozen=True)
class _Shards:
    """What a worker runs for the shards of one task: state in, messages through, deliveries and state out.

    start: of the stream as it is asked for. owners: the task of each shard. It yields lines about its shards.
    """

    start: Progress
    state: str
    plan: str
    owners: tuple[int, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        # Thousands of live queues are made and none is garbage before the end: looking for cycles finds nothing.
        looking = gc.isenabled()
        gc.disable()
        try:
            with sent_to_driver():
                yield self._run(list(batches), *_task())
        finally:
            if looking:
                gc.enable()

    def _run(self, batches: list[Any], batch: int, task: int) -> Any:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        from pyengine.activemq.tables.stream_state import reasons_of

        folder = StateFolder(self.state)
        before, writing = folder.read_attempt(batch, self.plan)
        now, generations = _now(before, self.start), before.generations
        mine = [shard for shard, owner in enumerate(self.owners) if owner == task]
        rows = pa.Table.from_batches(batches) if batches else None
        shards = [] if rows is None else np.unique(rows.column(_SHARD).to_numpy()).tolist()
        if not set(shards) <= set(mine):
            raise SnapshotError(f"task {task} of micro-batch {batch} got rows of the shards {shards}, and has {mine}")
        if now != before:
            shards = mine  # every shard migrates, also one that no row of the micro-batch is for
        figures = {
            shard: before.figures_of(shard)
            or _counted(_carry(before), shard, folder.read_shard(shard, generations[shard]))
            for shard in mine
            if shard not in shards
        }
        carry = _carry(before)
        for shard in shards:
            carry.load(shard, folder.read_shard(shard, generations[shard]))
        if not shards:
            return shard_lines(figures, [], 0, 0, 0)
        if now != before:
            former, carry = carry, _carry(now)
            former.migrate(carry)
        deliveries = carry.take(codes=True) if rows is None else self._through(carry, rows)
        path = Path(writing) / f"part-{shards[0]:05d}.parquet"
        texts = [field.name for field in deliveries.schema if pa.types.is_dictionary(field.type)]
        write = partial(pq.write_table, deliveries, use_dictionary=texts, store_schema=False)
        with ThreadPoolExecutor() as disk:  # one shard's bytes are made while others' come to the disk
            kept = [disk.submit(replace_file, path, write)]
            for shard in shards:
                waits = carry.waits(shard)
                data = carry.save(shard, waits)
                figures[shard] = len(data), reasons_of(waits)
                kept.append(disk.submit(folder.write_shard, shard, batch, generations[shard], data))
        for each in kept:
            each.result()
        reasons = deliveries.column("reason").combine_chunks().cast(pa.string())
        ended = {name: pc.sum(pc.equal(reasons, name)).as_py() or 0 for name in ("expired", "rejected")}
        return shard_lines(figures, shards, reasons.null_count, **ended)

    def _through(self, carry: Any, rows: Any) -> Any:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from pyengine.activemq.tables.stream_state import encoded
        from pyengine.backlog.tables.messages import DESTINATION, ROW, to_messages

        source = carry.topology.source
        kind = carry.columns.field(ROW).type
        ranks = _Ranks(rows, kind) if pa.types.is_struct(kind) else None
        rows = rows if ranks is None else ranks.ranked
        events: list[tuple[int, int, str]] = []
        timeless: list[tuple[int, str]] = []
        bare = [name for name in (_SHARD, _EVENT, ROW, PROBLEM) if name in rows.column_names]
        there = pc.is_valid(rows.column(ROW))
        unnumbered, rows = rows.filter(pc.invert(there)), rows.filter(there)
        if _EVENT in rows.column_names:
            happened = pc.is_valid(rows.column(_EVENT))
            events, timeless = _events(rows.filter(happened), source)
            rows = rows.filter(pc.invert(happened))
        unread = _unread(rows)
        if unread:
            rows = rows.filter(pc.is_null(rows.column(PROBLEM)))
        numbers = rows.column(ROW).to_numpy()
        shards = rows.column(_SHARD).to_numpy()
        # By their places: a number that a row has in common with a rejected one must not take its shard away.
        messages, rejects = to_messages(rows.drop_columns(bare), np.arange(len(numbers)), source)
        wrong: list[tuple[int | None, str]] = [(int(numbers[reject.row]), problem_of(reject)) for reject in rejects]
        wrong += [*timeless, *unread]
        kept = messages.column(ROW).to_numpy()
        numbers, shards = numbers[kept], shards[kept]
        shown = pa.array(numbers) if ranks is None else ranks.given(numbers)
        messages = messages.set_column(messages.column_names.index(ROW), ROW, shown)
        messages = encoded(messages.select(carry.columns.names).combine_chunks())
        moments = np.zeros(messages.num_rows, np.int64)
        if source.order == "timestamp" and "JMSTimestamp" in messages.column_names:
            moments = messages.column("JMSTimestamp").to_numpy()
        later = (moments[1:] > moments[:-1]) | (moments[1:] == moments[:-1]) & (numbers[1:] > numbers[:-1])
        if not later.all():
            order = np.lexsort((numbers, moments)) if moments.any() else np.argsort(numbers, kind="stable")
            messages, shards = messages.take(pa.array(order)).combine_chunks(), shards[order]
            moments, numbers = moments[order], numbers[order]
        alone = _alone(moments, numbers, messages.column(DESTINATION))
        if alone is not None:
            again = sorted(set(numbers[~alone].tolist()))
            parts = [pa.array(again, pa.int64())] if ranks is None else ranks.given(again).flatten()
            names = ["row"] if ranks is None else ranks.names
            problems = dict(zip(again, repeated_problems(parts, names), strict=True))
            wrong += [(number, problems[number]) for number in numbers[~alone].tolist()]
            messages = messages.filter(pa.array(alone)).combine_chunks()
            moments, numbers, shards = moments[alone], numbers[alone], shards[alone]
        if _EVENT in bare:  # every shard sees an event, one tells
            first = pc.equal(unnumbered.column(_SHARD), 0)
            unnumbered = unnumbered.filter(pc.or_(pc.is_null(unnumbered.column(_EVENT)), first))
        wrong += [(None, UNNUMBERED)] * unnumbered.num_rows
        start = 0
        for moment, number, text in events:
            at = moment if source.order == "timestamp" else 0
            stop = int(np.searchsorted(moments, at, side="left"))
            stop += int(np.searchsorted(numbers[stop : np.searchsorted(moments, at, side="right")], number))
            _feed(carry, messages, shards, start, stop)
            start = stop
            verb, _, name = text.strip().partition(" ")
            problem = carry.event(verb, name.strip(), moment)
            if problem and 0 in carry.shards:  # every shard sees it, one tells
                wrong.append((number, problem))
        _feed(carry, messages, shards, start, messages.num_rows)
        deliveries = carry.take(codes=True)
        if wrong:
            whose = [number for number, _ in wrong]
            lost = {
                "row": pa.array(whose, pa.int64()) if ranks is None else ranks.given(whose),
                "blocked_by": pa.array([problem for _, problem in wrong], deliveries.schema.field("blocked_by").type),
            }
            columns = [
                lost[field.name]
                if field.name in lost
                else pa.array(["rejected"] * len(wrong), field.type)
                if field.name == "reason"
                else pa.nulls(len(wrong), field.type)
                for field in deliveries.schema
            ]
            deliveries = pa.concat_tables([deliveries, pa.Table.from_arrays(columns, schema=deliveries.schema)])
        return deliveries


def _unread(rows: Any) -> list[tuple[int, str]]:
    """(row, problem) of the rows whose properties cannot be read."""
    import pyarrow.compute as pc

    from pyengine.backlog.tables.messages import ROW

    if PROBLEM not in rows.column_names:
        return []
    those = rows.filter(pc.is_valid(rows.column(PROBLEM)))
    return list(zip(those.column(ROW).to_pylist(), those.column(PROBLEM).to_pylist(), strict=True))


class _Ranks:
    """Whole numbers in the place of several, in their order: the places of the tuples among all of a micro-batch's."""

    def __init__(self, rows: Any, kind: Any) -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from pyengine.backlog.tables.messages import ROW

        self.names = [kind.field(place).name for place in range(kind.num_fields)]
        self.fields = [kind.field(place) for place in range(kind.num_fields)]
        names = [f"{PART}{place}" for place in range(len(self.names))]
        there = np.logical_and.reduce([pc.is_valid(rows.column(name)).to_numpy() for name in names])
        tuples = np.stack([pc.fill_null(rows.column(name), 0).to_numpy() for name in names], axis=1)
        self.tuples, ranks = np.unique(tuples[there], axis=0, return_inverse=True)
        found = np.zeros(len(there), np.int64)
        found[there] = ranks.reshape(-1)
        self.ranked = rows.drop_columns(names).append_column(ROW, pa.array(found, mask=~there))

    def given(self, ranks: Any) -> Any:
        """The tuples of these ranks as structs; null for None."""
        import numpy as np
        import pyarrow as pa

        absent = np.array([rank is None for rank in ranks], bool) if isinstance(ranks, list) else None
        places = np.array([rank or 0 for rank in ranks], np.int64) if isinstance(ranks, list) else ranks
        taken = self.tuples[places] if len(self.tuples) else np.zeros((len(places), len(self.names)), np.int64)
        columns = [pa.array(taken[:, place]) for place in range(len(self.names))]
        mask = None if absent is None else pa.array(absent)
        return pa.StructArray.from_arrays(columns, fields=self.fields, mask=mask)


def _alone(moments: Any, numbers: Any, queues: Any) -> Any:
    """Of messages in order which have a number, and moment, that no other of their queue has; None: all of them."""
    import numpy as np

    alike = (moments[1:] == moments[:-1]) & (numbers[1:] == numbers[:-1])
    if not alike.any():
        return None
    codes = queues.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((codes, numbers, moments))
    sorted_keys = [each[order] for each in (moments, numbers, codes)]
    same = np.logical_and.reduce([each[1:] == each[:-1] for each in sorted_keys])
    alone = np.ones(len(numbers), bool)
    alone[order[1:][same]] = False
    alone[order[:-1][same]] = False
    return None if alone.all() else alone


def _feed(carry: Any, messages: Any, shards: Any, start: int, stop: int) -> None:
    for batch in messages.slice(start, stop - start).combine_chunks().to_batches():
        carry.feed(batch, shards[start:stop])


def _events(rows: Any, source: Source) -> tuple[list[tuple[int, int, str]], list[tuple[int, str]]]:
    """(moment, row, text) of the events, each once, in order; (row, problem) of those without a readable moment,
    reported by the task of the first shard. The moment is the source's timestamp column, or 0."""
    import numpy as np

    from pyengine.backlog.tables.messages import ROW, to_messages

    numbers = rows.column(ROW).to_numpy()
    moments = np.zeros(len(numbers), np.int64)
    wrong: list[tuple[int, str]] = []
    if source.timestamp is not None and len(numbers):
        types = tuple(item for item in source.types if item[0] in source.timestamp.columns)
        only = Source("event", path="event", timestamp=source.timestamp, order=source.order, properties=(), types=types)
        timed, rejects = to_messages(
            rows.drop_columns([name for name in (_SHARD, _EVENT, ROW, PROBLEM) if name in rows.column_names]),
            np.arange(len(numbers)),
            only,
        )
        first = rows.column(_SHARD).to_numpy() == 0
        wrong = [(int(numbers[reject.row]), problem_of(reject)) for reject in rejects if first[reject.row]]
        kept = timed.column(ROW)
        moments, numbers, rows = timed.column("JMSTimestamp").to_numpy(), numbers[kept.to_numpy()], rows.take(kept)
    texts = rows.column(_EVENT).to_pylist()
    # A moment puts them in order only where it does so with the rows.
    by_moment = source.order == "timestamp"
    events = set(zip(moments.tolist(), numbers.tolist(), texts, strict=True))
    return sorted(events, key=lambda event: event if by_moment else (*event[1:], event[0])), wrong
