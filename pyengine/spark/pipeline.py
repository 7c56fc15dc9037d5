"""The main job: read a topology's source, dispatch it on Spark, write who got what and why the rest waits."""

from __future__ import annotations

import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyengine.backlog.explanation import explain
from pyengine.backlog.summary import (
    ConsumerSummary,
    DaySummary,
    DestinationSummary,
    HeldSummary,
    RejectSummary,
    Summary,
)
from pyengine.errors import OutputExistsError
from pyengine.spark.failure import raised_on_driver
from pyengine.spark.session import require_spark, start_session
from pyengine.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKER = "summary.json"  # a folder with this file is one of ours
_FILE_ROWS = 100_000
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. stage: in the order given here. done, total: tasks of the stage. rows: messages of the run, 0
    until the source is read."""

    stage: Literal["read", "start", "dispatch", "measure", "done"]
    done: int
    total: int
    rows: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run wrote. out: the folder. summary: also in out/summary.json."""

    out: Path
    summary: Summary


def run(
    topology: Topology,
    out: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    master: str = "local[*]",
    partitions: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> RunResult:
    """Read the source, dispatch every message and write the answer into the folder ``out``.

    out gets messages/ (Parquet: properties with their types, headers, ``__row``), deliveries/ and held/ (Parquet,
    columns of ``dispatch``), rejects/ (Parquet: row, column, value, reason of rows that are no message) and
    summary.json. It appears when the run is complete; until then an earlier result stays. Its file system must be one
    that every worker sees. spark: a session to use as it is; None starts one with ``master`` and stops it afterwards.
    partitions: tasks that dispatch; None: two for each core, on the caller's session its shuffle partitions. progress:
    called now and then, from this thread or another one, never from two at a time.

    Raises OutputExistsError when ``out`` holds what no run wrote, InvalidSourceError, MissingColumnError,
    UnsupportedColumnError for the source, MissingExtraError, MissingJavaError.
    """
    require_spark()
    begun = time.monotonic()
    folder = Path(out).absolute()
    tell = _Teller(progress)
    _refuse_foreign(folder)
    with _aside(folder) as partial:
        tell("read")
        rows, messages = _ingest(topology, partial)
        tell.rows = messages
        ingested = time.monotonic()
        tell("start")
        session = spark if spark is not None else start_session(master)
        try:
            with tell.watching(session), raised_on_driver():
                used = _dispatch(session, topology, partial, partitions, own=spark is None)
            spark_version = session.version
        finally:
            if spark is None:
                session.stop()
        dispatched = time.monotonic()
        tell("measure")
        summary = _measure(topology, partial, rows)
        summary["master"] = master if spark is None else "the caller's session"
        summary["partitions"] = used
        summary["versions"] = _versions(spark_version)
        name: Literal["messages", "deliveries", "held", "rejects"]
        for name in ("messages", "deliveries", "held", "rejects"):
            summary["paths"][name] = str(folder / name)
        summary["paths"]["out"] = str(folder)
        summary["paths"]["summary"] = str(folder / MARKER)
        summary["times"] = {
            "ingest": round(ingested - begun, 3),
            "dispatch": round(dispatched - ingested, 3),
            "total": round(time.monotonic() - begun, 3),
        }
        (partial / MARKER).write_text(json.dumps(summary, indent=1, ensure_ascii=False), "utf-8")
    tell("done")
    return RunResult(folder, summary)


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise OutputExistsError(str(folder), "it is a file: name a folder")
    if folder.is_dir() and any(folder.iterdir()):
        try:
            ours = "destinations" in json.loads((folder / MARKER).read_text("utf-8"))
        except (OSError, ValueError, TypeError):
            ours = False
        if not ours:
            raise OutputExistsError(str(folder))


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` that takes its place when the block ends well, and is removed when it does not."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    for left in (partial, old):
        shutil.rmtree(left, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _ingest(topology: Topology, out: Path) -> tuple[int, int]:
    """Write messages/ and rejects/; return the number of rows and of messages."""
    import pyarrow.parquet as pq

    from pyengine.activemq.dispatch import columns_read
    from pyengine.backlog.messages import rejects_table, to_messages
    from pyengine.backlog.sources import read_source

    rows = read_source(topology.source)
    messages, rejects = to_messages(rows.table, rows.numbers, topology.source)
    columns_read(topology, messages.column_names)  # a selector that reads what is not there is told before Spark starts
    for name in ("messages", "rejects"):
        (out / name).mkdir()
    for index in range(0, max(1, messages.num_rows), _FILE_ROWS):
        pq.write_table(messages.slice(index, _FILE_ROWS), out / "messages" / f"part-{index // _FILE_ROWS:05}.parquet")
    every = [*rows.rejects, *rejects]
    pq.write_table(rejects_table(every), out / "rejects" / "part-00000.parquet")
    return messages.num_rows + len({reject.row for reject in every}), messages.num_rows


def _dispatch(session: SparkSession, topology: Topology, out: Path, partitions: int | None, *, own: bool) -> int:
    """Write deliveries/ and held/ from messages/; return the number of tasks that dispatched."""
    from pyspark.sql import functions as F  # noqa: N812

    from pyengine.spark.transforms import assign

    if partitions is None and own:
        partitions = 2 * session.sparkContext.defaultParallelism
    messages = session.read.parquet((out / "messages").as_uri())
    assigned = assign(messages, topology, partitions)
    outcome = F.when(F.col("reason").isNull(), "delivered").otherwise("held").alias("outcome")
    both = out / "assignments"
    assigned.select("*", outcome).write.partitionBy("outcome").parquet(both.as_uri())
    for value, name in (("delivered", "deliveries"), ("held", "held")):
        found = both / f"outcome={value}"
        if found.is_dir():
            found.rename(out / name)
        else:
            _write_nothing(out / name)
    shutil.rmtree(both)
    return partitions or int(session.conf.get("spark.sql.shuffle.partitions") or 0)


def _write_nothing(folder: Path) -> None:
    import pyarrow.parquet as pq

    from pyengine.activemq.dispatch import ASSIGNMENT_SCHEMA

    folder.mkdir()
    pq.write_table(ASSIGNMENT_SCHEMA.empty_table(), folder / "part-00000.parquet")


def _measure(topology: Topology, out: Path, rows: int) -> Summary:
    """Counts and samples of what was written."""
    import pyarrow.parquet as pq

    names = ["row", "message_id", "destination", "consumer", "reason", "blocked_by", "group", "timestamp", "bytes"]
    given = pq.read_table(out / "deliveries", columns=names, partitioning=None)
    held = pq.read_table(out / "held", columns=names, partitioning=None)
    destinations = {
        name: _destination(topology, name, given, held)
        for name in sorted({*_distinct(given), *_distinct(held), *(entry.name for entry in topology.destinations)})
    }
    rejects = pq.read_table(out / "rejects", partitioning=None)
    source = topology.source
    return {
        "title": topology.title,
        "description": topology.description,
        "topology": topology.file,
        "source": source.path or f"{source.package}:{source.table}",
        "rows": rows,
        "messages": given.num_rows + held.num_rows,
        "delivered": given.num_rows,
        "held": held.num_rows,
        "rejected": rows - given.num_rows - held.num_rows,
        "destinations": destinations,
        "rejects": _rejects(rejects),
        "times": {"ingest": 0.0, "dispatch": 0.0, "total": 0.0},
        "versions": {},
        "paths": {"out": "", "messages": "", "deliveries": "", "held": "", "rejects": "", "summary": "", "report": ""},
        "master": "",
        "partitions": 0,
    }


def _distinct(table: Any) -> list[str]:
    found: list[str] = table.column("destination").unique().to_pylist()
    return found


def _destination(topology: Topology, name: str, given: Any, held: Any) -> DestinationSummary:
    import pyarrow.compute as pc

    given = given.filter(pc.equal(given.column("destination"), name))
    held = held.filter(pc.equal(held.column("destination"), name))
    timed = topology.source.timestamp is not None
    policy = topology.policy_of(name)
    low = [pc.min(table.column("timestamp")).as_py() for table in (given, held)] if timed else []
    high = [pc.max(table.column("timestamp")).as_py() for table in (given, held)] if timed else []
    return {
        "description": topology.description_of(name),
        "policy": policy.destination,
        "messages": given.num_rows + held.num_rows,
        "bytes": sum(pc.sum(table.column("bytes")).as_py() or 0 for table in (given, held)),
        "delivered": given.num_rows,
        "held": held.num_rows,
        "rejected": pc.sum(pc.equal(held.column("reason"), "evaluation_error")).as_py() or 0,
        "first_timestamp": min((value for value in low if value is not None), default=None),
        "last_timestamp": max((value for value in high if value is not None), default=None),
        "consumers": _consumers(topology, name, given),
        "held_by_reason": _held(topology, name, held),
        "days": _days(given, held) if timed else [],
    }


def _consumers(topology: Topology, destination: str, given: Any) -> list[ConsumerSummary]:
    found = (
        given.group_by("consumer")
        .aggregate(
            [
                ("row", "count"),
                ("bytes", "sum"),
                ("group", "count_distinct"),
                ("timestamp", "min"),
                ("timestamp", "max"),
            ]
        )
        .to_pylist()
    )
    counts = {line["consumer"]: line for line in found}
    nothing = {"row_count": 0, "bytes_sum": 0, "group_count_distinct": 0, "timestamp_min": None, "timestamp_max": None}
    lines: list[ConsumerSummary] = []
    for consumer in topology.consumers_of(destination):
        line = counts.get(consumer.name, nothing)
        timed = topology.source.timestamp is not None
        lines.append(
            {
                "name": consumer.name,
                "delivered": line["row_count"],
                "bytes": line["bytes_sum"],
                "groups": line["group_count_distinct"],
                "first_timestamp": line["timestamp_min"] if timed else None,
                "last_timestamp": line["timestamp_max"] if timed else None,
                "selector": consumer.selector,
                "exclusive": consumer.exclusive,
                "priority": consumer.priority,
            }
        )
    return lines


def _held(topology: Topology, destination: str, held: Any) -> list[HeldSummary]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found: list[HeldSummary] = []
    pairs = held.group_by(["reason", "blocked_by"]).aggregate([("row", "count")]).to_pylist()
    for pair in sorted(pairs, key=lambda line: (-line["row_count"], line["reason"], line["blocked_by"] or "")):
        consumer = pair["blocked_by"]
        same = (
            pc.is_null(held.column("blocked_by")) if consumer is None else pc.equal(held.column("blocked_by"), consumer)
        )
        mine = held.filter(pc.and_(pc.equal(held.column("reason"), pair["reason"]), pc.fill_null(same, False)))
        first = mine.take(pc.select_k_unstable(mine, _EXAMPLES, [("row", "ascending")]))
        names = pc.coalesce(first.column("message_id"), first.column("row").cast(pa.string()))
        found.append(
            {
                "reason": pair["reason"],
                "consumer": consumer or "",
                "count": pair["row_count"],
                "examples": names.to_pylist(),
                "explanation": explain(pair["reason"], topology, destination, consumer or ""),
            }
        )
    return found


def _days(given: Any, held: Any) -> list[DaySummary]:
    import numpy as np

    days: dict[int, list[int]] = {}
    for index, table in enumerate((given, held)):
        stamps = table.column("timestamp").to_numpy()
        numbers, counts = np.unique(stamps // 86_400_000, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            days.setdefault(int(number), [0, 0])[index] = count
    found: list[DaySummary] = []
    for number in sorted(days):
        delivered, waits = days[number]
        found.append({"day": _day(number), "delivered": delivered, "held": waits})
    return found


def _day(number: int) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
    except OverflowError:
        return f"day {number}"  # a timestamp that no calendar holds


def _rejects(table: Any) -> list[RejectSummary]:
    found: dict[tuple[str, str], list[int]] = {}
    for line in table.to_pylist():
        found.setdefault((line["column"], line["reason"]), []).append(line["row"])
    return [
        {"column": column, "reason": reason, "count": len(rows), "examples": rows[:_EXAMPLES]}
        for (column, reason), rows in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _versions(spark: str) -> dict[str, str]:
    found = {"python": platform.python_version(), "spark": spark}
    for name, distribution in (("pyengine", "pyengine-dispatch"), ("pyarrow", "pyarrow"), ("numpy", "numpy")):
        try:
            found[name] = version(distribution)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    found["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
    return found


class _Teller:
    """Calls the caller's ``progress``, one call at a time."""

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self.progress = progress
        self.rows = 0
        self.lock = threading.Lock()

    def __call__(
        self, stage: Literal["read", "start", "dispatch", "measure", "done"], done: int = 0, total: int = 0
    ) -> None:
        if self.progress is not None:
            with self.lock:
                self.progress(Progress(stage, done, total, self.rows))

    @contextmanager
    def watching(self, session: SparkSession) -> Iterator[None]:
        """Tasks of the running jobs, a few times a second; on Spark Connect, which has no tracker, only the stage."""
        self("dispatch")
        context = getattr(session, "sparkContext", None) if _is_classic(session) else None
        if self.progress is None or context is None:
            yield
            return
        over = threading.Event()
        tracker = context.statusTracker()
        watcher = threading.Thread(target=self._poll, args=(tracker, over), name="pyengine-progress", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _poll(self, tracker: Any, over: threading.Event) -> None:
        stages: dict[int, tuple[int, int]] = {}
        last = (0, 0)
        while not over.wait(0.2):
            for job in tracker.getActiveJobsIds():
                found = tracker.getJobInfo(job)
                for stage in found.stageIds if found else ():
                    info = tracker.getStageInfo(stage)
                    if info:
                        stages[stage] = (info.numCompletedTasks, info.numTasks)
            now = (sum(done for done, _ in stages.values()), sum(total for _, total in stages.values()))
            if now != last:
                self("dispatch", *now)
                last = now


def _is_classic(session: Any) -> bool:
    return "connect" not in type(session).__module__
