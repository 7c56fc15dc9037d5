"""The main job: read a topology's source, dispatch it on Spark, write who got what and why the rest waits."""

from __future__ import annotations

import json
import os
import platform
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyengine.backlog.tables.explanation import explain
from pyengine.backlog.tables.output import remove_partials, replace_file, written
from pyengine.backlog.tables.summary import RejectSummary, Summary
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, IllegalStateError, OutputError, OutputExistsError, PyengineError
from pyengine.folder_lock import LOCK, FolderLock
from pyengine.spark.failure import interrupted_as_such
from pyengine.spark.session import LOCAL, own_session, require_count, require_path, require_spark, running_session
from pyengine.topology import Topology
from pyengine.topology.checked import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyengine.backlog.tables.runs import Run
    from pyengine.backlog.tables.sources import Piece

MARKER = "summary.json"  # a folder with this file is one of ours
PLAN = "plan.json"
_RUN_ROWS = 500_000
_SHARD_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. stage: in the order given here. done, total: tasks of the stage. rows: messages of the run, 0
    until the source is read."""

    stage: Literal["read", "start", "ingest", "dispatch", "measure", "done"]
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
    master: str | None = None,
    partitions: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> RunResult:
    """Read the source, dispatch every message and write the answer into the folder ``out``.

    out gets messages/ (Parquet: properties with their types, headers, ``__row``), deliveries/ and held/ (Parquet,
    columns of ``dispatch``), rejects/ (Parquet: row, column, value, reason, file and file_row of rows that are not
    messages; row counts in the source, file_row is the line of the file, in Parquet the row, all from 0) and
    summary.json. It appears when the run is complete; until then an earlier result stays, and a run that was
    interrupted goes on where it was when it is started again with the same topology over the same Parquet files.
    Parquet is read by the workers, other sources in this process; memory grows with queues, consumers and groups, not
    with the messages of one. The file system must be one that every worker sees. spark: a session to use as it is;
    None: the one that runs in this process, and where none does, one is started with ``master`` and stopped afterwards.
    master: None: "local[*]"; a session that is there must have it already. partitions: tasks that dispatch; None: two
    for each core, on the caller's session its shuffle partitions. progress: called now and then, from this thread or
    another one, never from two at a time.

    Raises OutputExistsError when ``out`` holds what no run wrote, IllegalStateError while another run writes it,
    OutputError for a full disk (with room again, the next run goes on), InvalidSourceError, MissingColumnError,
    UnsupportedColumnError for the source, ConfigurationError for a number of partitions that is none and for another
    master than that of the session, MissingExtraError, MissingJavaError.
    """
    require_spark()
    check("topology", topology, Topology)
    topology = topology.with_places()
    check("out", out, str | os.PathLike)
    require_path("out", out)
    require_count("partitions", partitions)
    begun = time.monotonic()
    check("master", master, str | None)
    spark = running_session() if spark is None else spark
    if spark is not None and master is not None:
        _require_master(spark, master)
    folder = Path(out).absolute()
    tell = _Teller(progress)
    _refuse_foreign(folder)
    with _aside(folder) as aside:
        tell("read")
        plan = _plan(topology, aside, partitions)
        work = aside / plan.work
        if (work / MARKER).is_file():  # it was interrupted behind its last step
            summary = json.loads((work / MARKER).read_text("utf-8"))
            _explain_again(topology, summary)
        else:
            with interrupted_as_such():
                summary = _dispatched(topology, plan, aside, spark, LOCAL if master is None else master, tell)
            name: Literal["messages", "deliveries", "held", "rejects"]
            for name in ("messages", "deliveries", "held", "rejects"):
                summary["paths"][name] = str(folder / name)
            summary["paths"]["out"] = str(folder)
            summary["paths"]["summary"] = str(folder / MARKER)
            summary["times"]["total"] = round(time.monotonic() - begun, 3)
            text = json.dumps(summary, indent=1, ensure_ascii=False)
            replace_file(work / MARKER, lambda path: path.write_text(text, "utf-8"))
        for done in ("runs", "done"):
            shutil.rmtree(work / done, ignore_errors=True)
        _replace(folder, work)
    tell("done")
    return RunResult(folder, summary)


def _require_master(session: SparkSession, master: str) -> None:
    """That a session runs where the caller asks for."""
    own = session.sparkContext.master if is_classic(session) else "Spark Connect"
    if own != master:
        raise ConfigurationError(
            "master", master, f"a session runs here on {own}", "stop it first, or leave master away to use it"
        )


def _dispatched(
    topology: Topology, plan: _Plan, aside: Path, spark: SparkSession | None, master: str, tell: _Teller
) -> Summary:
    """Everything but the names of the folders in the result."""
    begun = time.monotonic()
    work = aside / plan.work
    runs: list[Run] = []
    if not plan.pieces:
        plan = replace(plan, shards=plan.shards or 2 * (os.cpu_count() or 1))
        runs = _ingest_here(topology, work, plan.shards)
        tell.rows = sum(run.messages for run in runs)
    tell("start")
    with own_session(master) if spark is None else nullcontext(spark) as session:
        if not plan.shards:
            plan = replace(plan, shards=_shards(session, plan, own=spark is None))
        replace_file(aside / PLAN, lambda path: path.write_text(plan.to_text(), "utf-8"))
        if plan.pieces:
            with tell.watching(session, "ingest"):
                runs = _ingest_there(session, plan, work)
            tell.rows = sum(run.messages for run in runs)
        ingested = time.monotonic()
        with tell.watching(session, "dispatch"):
            tallies = _dispatch(session, plan, len(runs), work)
        spark_version = session.version
    dispatched = time.monotonic()
    tell("measure")
    _complete(work)
    summary = _summary(topology, work, runs, tallies)
    summary["master"] = master if spark is None else "the caller's session"
    summary["partitions"] = plan.shards
    summary["versions"] = _versions(spark_version)
    summary["times"] = {
        "ingest": round(ingested - begun, 3),
        "dispatch": round(dispatched - ingested, 3),
        "total": 0.0,
    }
    return summary


def _shards(session: SparkSession, plan: _Plan, *, own: bool) -> int:
    """Tasks that dispatch: two for each core or the caller's shuffle partitions, more where a shard would be large."""
    cores = session.sparkContext.defaultParallelism if own else 0
    usual = 2 * cores if own else int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    return max(usual, sum(piece.rows for piece in plan.pieces) // _SHARD_ROWS)


def _complete(work: Path) -> None:
    """Folders that got no file get an empty one, so that everything can be read the same way."""
    import pyarrow.parquet as pq

    from pyengine.activemq.tables.dispatch import ASSIGNMENT_SCHEMA
    from pyengine.backlog.tables.messages import REJECT_SCHEMA

    for name, schema in (("deliveries", ASSIGNMENT_SCHEMA), ("held", ASSIGNMENT_SCHEMA), ("rejects", REJECT_SCHEMA)):
        if not any((work / name).glob("part-*")):
            empty = schema.empty_table()
            replace_file(work / name / "part-000000.parquet", partial(pq.write_table, empty))
    remove_partials(work)


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


def aside_of(folder: Path) -> Path:
    """Where a run works that is to write ``folder``, and what it leaves when it is interrupted."""
    return folder.with_name(f".{folder.name}.partial")


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` to work in, for one run at a time; it goes when the block ends well.

    It stays when the block is interrupted (by a kill, KeyboardInterrupt, a full disk or an error of Spark), and the
    next run of the same topology goes on in it; another error of ours removes it, because the same run would fail
    again.
    """
    aside = aside_of(folder)
    with written(aside):
        aside.mkdir(parents=True, exist_ok=True)
    with _locked(aside):
        old = _old(folder)
        if old.exists() and not folder.exists():  # it was killed between the two renames of _replace
            old.rename(folder)
        try:
            yield aside
        except OutputError:
            raise
        except PyengineError:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other processes, if the system can. Raises IllegalStateError if one holds it."""
    lock = None
    try:
        lock = FolderLock(folder)
    except (BlockingIOError, FileNotFoundError) as error:
        raise IllegalStateError(
            f"{folder}: another run works here; wait for its end, or name another folder"
        ) from error
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _replace(folder: Path, work: Path) -> None:
    """Put ``work`` in the place of ``folder``."""
    with written(folder):
        shutil.rmtree(_old(folder), ignore_errors=True)
        if folder.exists():
            folder.rename(_old(folder))
        work.rename(folder)
    shutil.rmtree(_old(folder), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    """topology: as text. pieces: of a Parquet source. seen: its files, to tell a changed one. shards: 0 not chosen.

    work: a folder of this plan's own: workers that outlive a killed run of another plan do not write into it.
    """

    topology: str
    pieces: tuple[Piece, ...]
    seen: str
    shards: int
    work: str = ""

    def to_text(self) -> str:
        from pyengine.backlog.tables.runs import LAYOUT
        from pyengine.backlog.tables.shards import pieces_to_text

        return json.dumps([LAYOUT, self.topology, pieces_to_text(self.pieces), self.seen, self.shards, self.work])

    @classmethod
    def from_text(cls, text: str) -> _Plan:
        from pyengine.backlog.tables.runs import LAYOUT
        from pyengine.backlog.tables.shards import piece_from_text

        layout, topology, pieces, seen, shards, work = json.loads(text)
        if layout != LAYOUT:
            raise ValueError(f"runs of layout {layout!r}")
        return cls(topology, tuple(piece_from_text(each) for each in pieces), seen, shards, work)


def _plan(topology: Topology, aside: Path, shards: int | None) -> _Plan:
    """The work of a run, or what an interrupted run of the same topology over the same files left."""
    from pyengine.activemq.tables.dispatch import columns_read
    from pyengine.backlog.tables.messages import message_schema
    from pyengine.backlog.tables.sources import parquet_pieces, read_schema

    pieces = parquet_pieces(topology.source)
    if pieces:
        # Wrong input is refused before Spark starts.
        made = message_schema(read_schema(pieces[0], topology.source), topology.source)
        columns_read(topology, made.names)
    wanted = _Plan(topology.to_text(), tuple(pieces or ()), _seen(topology), shards or 0)
    try:
        kept = _Plan.from_text((aside / PLAN).read_text("utf-8"))
    except (OSError, ValueError, KeyError):  # none, or of another version
        kept = None
    if kept is not None and wanted.shards in (0, kept.shards):
        work = aside / kept.work
        usable = work.is_dir() if wanted.pieces else (work / MARKER).is_file()
        if usable and replace(wanted, shards=kept.shards, work=kept.work) == kept:
            return kept
    return _fresh(aside, wanted)


def _fresh(aside: Path, plan: _Plan) -> _Plan:
    for left in aside.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        elif left.name != LOCK:
            left.unlink()
    plan = replace(plan, work=uuid.uuid4().hex)
    with written(aside):
        for name in ("messages", "rejects", "deliveries", "held", "runs", "done"):
            (aside / plan.work / name).mkdir(parents=True)
    return plan


def _seen(topology: Topology) -> str:
    """What tells whether the source's files are still the same."""
    from pyengine.backlog.tables.sources import source_files

    return json.dumps(
        [(name, os.stat(name).st_size, os.stat(name).st_mtime_ns) for name in source_files(topology.source)]
    )


def _ingest_here(topology: Topology, work: Path, shards: int) -> list[Run]:
    """Messages, rejects and runs of a source that is not Parquet, read in this process."""
    from pyengine.activemq.tables.dispatch import columns_read
    from pyengine.backlog.tables.messages import message_schema
    from pyengine.backlog.tables.rows import Rows
    from pyengine.backlog.tables.runs import write_run
    from pyengine.backlog.tables.shards import write_rejects
    from pyengine.backlog.tables.sources import read_source

    rows = read_source(topology.source)
    columns_read(topology, message_schema(rows.table.schema, topology.source).names)
    runs: list[Run] = []
    starts = range(0, max(1, rows.table.num_rows), _RUN_ROWS)
    for number, start in enumerate(starts):
        part = Rows(
            rows.table.slice(start, _RUN_ROWS),
            rows.numbers.slice(start, _RUN_ROWS),
            () if number else rows.rejects,
            rows.files,
            rows.lines,
        )
        run, rejects = write_run(
            part, topology, work / "runs", number, len(starts), shards, only_needed=True, messages=work / "messages"
        )
        write_rejects(work / "rejects", number, rejects, rows)
        runs.append(run)
    return runs


def _ingest_there(session: SparkSession, plan: _Plan, work: Path) -> list[Run]:
    """The same of Parquet files, read by the workers; what an earlier attempt finished is not done again."""
    from pyengine.backlog.tables.runs import run_from_text

    text, pieces, shards = plan.topology, plan.pieces, plan.shards

    def ingest(number: int) -> str:
        from pyengine.backlog.tables.runs import run_to_text, write_run
        from pyengine.backlog.tables.shards import write_rejects
        from pyengine.backlog.tables.sources import read_piece

        topology = Topology.from_text(text)
        rows = read_piece(pieces[number], topology.source)
        run, rejects = write_run(
            rows, topology, work / "runs", number, len(pieces), shards, only_needed=True, messages=work / "messages"
        )
        write_rejects(work / "rejects", number, rejects, rows)
        return run_to_text(run)

    return [run_from_text(each) for each in _each(session, len(pieces), ingest, work, "run")]


def _dispatch(session: SparkSession, plan: _Plan, runs: int, work: Path) -> list[str]:
    """Write deliveries/ and held/, a task for each shard; the measures of each, pickled."""
    text = plan.topology

    def assign(shard: int) -> str:
        import base64
        import pickle

        from pyengine.activemq.tables.dispatch import dispatch_batches
        from pyengine.backlog.tables.measures import Measures
        from pyengine.backlog.tables.runs import ordered
        from pyengine.backlog.tables.shards import write_assignments

        topology = Topology.from_text(text)
        measures = Measures(topology)
        batches = dispatch_batches(topology, measures.settled(ordered(work / "runs", runs, shard, topology)))
        write_assignments(work, shard, batches, measures.add)
        measures.close()
        return base64.b64encode(pickle.dumps(measures.tallies)).decode("ascii")

    return _each(session, plan.shards, assign, work, "shard")


def _each(session: SparkSession, tasks: int, do: Callable[[int], str], work: Path, name: str) -> list[str]:
    """Answers of tasks, kept in work/done so that a run that was interrupted goes on where it was."""
    from pyengine.spark.shards import scheduled

    def kept(number: int) -> Path:
        return work / "done" / f"{name}-{number:06}"

    def once(place: int) -> str:
        answer = do(left[place])
        replace_file(kept(left[place]), lambda path: path.write_text(answer, "utf-8"))
        return ""

    left = [number for number in range(tasks) if not kept(number).is_file()]
    scheduled(session, len(left), once)
    return [kept(number).read_text("utf-8") for number in range(tasks)]


def _summary(topology: Topology, work: Path, runs: list[Run], tallies: list[str]) -> Summary:
    """Counts and samples of what was written."""
    import base64
    import pickle

    import pyarrow.parquet as pq

    from pyengine.backlog.tables.measures import Measures

    measures = Measures(topology)
    for each in tallies:
        measures.tallies.update(pickle.loads(base64.b64decode(each)))
    destinations = measures.destinations()
    rows, messages = sum(run.rows for run in runs), sum(run.messages for run in runs)
    source = topology.source
    return {
        "title": topology.title,
        "description": topology.description,
        "topology": topology.file,
        "source": source.path or f"{source.package}:{source.table}",
        "rows": rows,
        "messages": messages,
        "delivered": sum(each["delivered"] for each in destinations.values()),
        "held": sum(each["held"] for each in destinations.values()),
        "rejected": rows - messages,
        "destinations": destinations,
        "rejects": _rejects(pq.read_table(work / "rejects", partitioning=None)),
        "times": {"ingest": 0.0, "dispatch": 0.0, "total": 0.0},
        "versions": {},
        "paths": {"out": "", "messages": "", "deliveries": "", "held": "", "rejects": "", "summary": "", "report": ""},
        "master": "",
        "partitions": 0,
    }


def _explain_again(topology: Topology, summary: Summary) -> None:
    """A file keeps the English of a sentence alone; the page and the table want it in other languages, too."""
    for name, destination in summary["destinations"].items():
        for held in destination["held_by_reason"]:
            held["explanation"] = explain(held["reason"], topology, name, held["consumer"])


def _rejects(table: Any) -> list[RejectSummary]:
    from pyengine.backlog.tables.measures import EXAMPLES

    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in table.sort_by("row").to_pylist():
        found.setdefault((line["column"], line["reason"]), []).append(line)
    return [
        {
            "column": column,
            "reason": reason,
            "count": len(lines),
            "examples": [line["row"] for line in lines[:EXAMPLES]],
            "places": [f"{Path(line['file']).name}:{line['file_row']}" for line in lines[:EXAMPLES]],
        }
        for (column, reason), lines in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
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
        self, stage: Literal["read", "start", "ingest", "dispatch", "measure", "done"], done: int = 0, total: int = 0
    ) -> None:
        if self.progress is not None:
            with self.lock:
                self.progress(Progress(stage, done, total, self.rows))

    @contextmanager
    def watching(self, session: SparkSession, stage: Literal["ingest", "dispatch"]) -> Iterator[None]:
        """Tasks of the running jobs, a few times a second; on Spark Connect, which has no tracker, only the stage."""
        self(stage)
        context = getattr(session, "sparkContext", None) if is_classic(session) else None
        if self.progress is None or context is None:
            yield
            return
        over = threading.Event()
        tracker = context.statusTracker()
        watcher = threading.Thread(
            target=self._poll, args=(tracker, over, stage), name="pyengine-progress", daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _poll(self, tracker: Any, over: threading.Event, name: Literal["ingest", "dispatch"]) -> None:
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
                self(name, *now)
                last = now


def is_classic(session: Any) -> bool:
    """False for Spark Connect, which has no SparkContext."""
    return "connect" not in type(session).__module__
