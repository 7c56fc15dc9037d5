"""Where the source is Parquet, Spark plans and schedules and the workers read: rows never cross the JVM."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyengine.backlog.tables.output import remove_partials
from pyengine.errors import InvalidSourceError, OutputExistsError
from pyengine.spark.failure import raised_on_driver, sent_to_driver
from pyengine.spark.session import require_count, require_path, require_spark
from pyengine.topology import Topology
from pyengine.topology.checked import check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyengine.backlog.tables.sources import Piece

RUNS = ".runs"


def write_shards(session: SparkSession, topology: Topology, folder: str | os.PathLike[str], *, shards: int = 16) -> int:
    """Ingest a topology's Parquet source into shard files for ``dispatch_shards``; returns the number of messages.

    folder: a new one that every worker sees. It gets shard-*.parquet, sorted by queue and order of sending, with every
    property and the truth of the topology's selectors; rejects/ (rows that are not messages) and shards.json. shards:
    files, each the work of one task; a queue is in one of them. Memory does not grow with the source, a queue or a
    group.

    Raises OutputExistsError, InvalidSourceError (also for a source that is not Parquet of one schema),
    MissingColumnError, UnsupportedColumnError, ConfigurationError for a number of shards that is none.
    """
    require_spark()
    require_count("shards", shards)
    from pyengine.backlog.tables.sources import parquet_pieces

    check("topology", topology, Topology)
    topology = topology.with_places()
    check("folder", folder, str | os.PathLike)
    require_path("folder", folder)
    into = _new(folder)
    pieces = parquet_pieces(topology.source)
    if pieces is None:
        source = topology.source
        problem, hint = (
            "is not Parquet, or its files differ in their columns",
            "write it as Parquet of one schema first",
        )
        raise InvalidSourceError(source.path or f"{source.package}:{source.table}", problem, hint)
    with _emptied(into):
        return _write_shards(session, topology, into, pieces, shards)


def _write_shards(session: SparkSession, topology: Topology, into: Path, pieces: Sequence[Piece], shards: int) -> int:
    from pyengine.backlog.tables import shards as files
    from pyengine.backlog.tables.runs import run_from_text

    (into / RUNS).mkdir(parents=True)
    (into / "rejects").mkdir()
    text, texts = topology.to_text(), files.pieces_to_text(pieces)
    runs, runs_folder = len(pieces), into / RUNS

    def ingest(number: int) -> str:
        from pyengine.backlog.tables.runs import run_to_text, write_run
        from pyengine.backlog.tables.sources import read_piece

        here = Topology.from_text(text)
        rows = read_piece(files.piece_from_text(texts[number]), here.source)
        run, rejects = write_run(rows, here, runs_folder, number, runs, shards, only_needed=False, messages=None)
        files.write_rejects(into / "rejects", number, rejects, rows)
        return run_to_text(run)

    made = [run_from_text(each) for each in scheduled(session, len(texts), ingest)]

    def merge(shard: int) -> str:
        from pyengine.backlog.tables import shards as files

        here = Topology.from_text(text)
        return json.dumps(files.write_shard(runs_folder, runs, shard, here, into / f"shard-{shard:05}.parquet"))

    counts = [int(each) for each in scheduled(session, shards, merge)]
    names = [f"shard-{shard:05}.parquet" for shard, count in enumerate(counts) if count]
    files.write_marker(into, names, topology.source.order, sum(run.rows for run in made), sum(counts))
    shutil.rmtree(runs_folder)
    remove_partials(into)
    return sum(counts)


def dispatch_shards(
    session: SparkSession,
    topology: Topology,
    folder: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The consumer of each message of the shard files that ``write_shards`` wrote, as ``dispatch`` answers. Lazy.

    topology: may have other consumers and policies than the one that wrote the shards; selectors that are new are
    evaluated by the task that dispatches. columns: of the answer, None all; others are neither read nor passed to
    Spark, which costs more than the dispatch. Raises InvalidSourceError for a folder without shards or in another
    order, ValueError for a column that the answer does not have.
    """
    require_spark()
    from pyspark.sql.pandas.types import from_arrow_schema

    paths, schema = _shards_of(topology, folder, columns)
    work = ShardAssignment(topology.to_text(), tuple(map(str, paths)), tuple(schema.names))
    numbers = session.range(0, len(paths), 1, max(1, len(paths)))
    return numbers.mapInArrow(work, from_arrow_schema(schema))


def assign_shards(
    session: SparkSession,
    topology: Topology,
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
) -> int:
    """``dispatch_shards``, written as Parquet by the workers: no row crosses to Spark. Returns the number of rows.

    out: a new folder that every worker sees; it gets a file for each shard, queue by queue. columns, errors: as there,
    and OutputExistsError.
    """
    require_spark()
    check("out", out, str | os.PathLike)
    require_path("out", out)
    into = _new(out)
    paths, schema = _shards_of(topology, folder, columns)
    text, names = topology.to_text(), tuple(schema.names)

    def assign(number: int) -> str:
        from pyengine.activemq.tables.dispatch import dispatch_batches
        from pyengine.backlog.tables import shards as files

        here = Topology.from_text(text)
        answer = dispatch_batches(here, files.shard_batches(paths[number], here, names), names, codes=True)
        return str(files.write_answer(into / f"part-{number:05}.parquet", schema, answer))

    with _emptied(into):
        into.mkdir(parents=True, exist_ok=True)
        total = sum(int(each) for each in scheduled(session, len(paths), assign))
        remove_partials(into)
    return total


def _new(folder: str | os.PathLike[str]) -> Path:
    """A folder that is empty or not there. Raises OutputExistsError."""
    into = Path(folder).absolute()
    if into.exists() and not into.is_dir():
        raise OutputExistsError(str(into), "it is a file: name a folder")
    if into.exists() and any(into.iterdir()):
        raise OutputExistsError(str(into))
    return into


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    """Around filling a new folder: where that fails it is as before, and can be tried again."""
    there = folder.exists()
    try:
        yield
    except BaseException:
        for made in folder.iterdir() if there else [folder]:
            shutil.rmtree(made, ignore_errors=True) if made.is_dir() else made.unlink(missing_ok=True)
        raise


def _shards_of(
    topology: Topology, folder: str | os.PathLike[str], columns: Sequence[str] | None
) -> tuple[list[Path], Any]:
    """Paths of the shard files, and the schema of the answer."""
    import pyarrow as pa

    from pyengine.activemq.tables.dispatch import ASSIGNMENT_SCHEMA
    from pyengine.backlog.tables.shards import read_marker

    check("topology", topology, Topology)
    check("folder", folder, str | os.PathLike)
    require_path("folder", folder)
    where = Path(folder).absolute()
    marker = read_marker(where)
    if marker["order"] != topology.source.order:
        raise InvalidSourceError(
            str(where), f"is sorted by {marker['order']}, not by {topology.source.order}", "write the shards again"
        )
    for name in columns or ():
        if name not in ASSIGNMENT_SCHEMA.names:
            raise ValueError(f"columns: the answer has no {name!r}; it has {', '.join(ASSIGNMENT_SCHEMA.names)}")
    schema = pa.schema([field for field in ASSIGNMENT_SCHEMA if columns is None or field.name in columns])
    return [where / name for name in marker["files"]], schema


class ShardAssignment:
    """What a worker runs: it reads its shard files itself. The topology travels as text."""

    def __init__(self, text: str, paths: tuple[str, ...], columns: tuple[str, ...]) -> None:
        self.text = text
        self.paths = paths
        self.columns = columns

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyengine.activemq.tables.dispatch import dispatch_batches
        from pyengine.backlog.tables.shards import shard_batches

        with sent_to_driver():
            topology = Topology.from_text(self.text)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    rows = shard_batches(Path(self.paths[number]), topology, self.columns)
                    yield from dispatch_batches(topology, rows, self.columns)


def scheduled(session: SparkSession, tasks: int, work: Callable[[int], str]) -> list[str]:
    """``work(0)``, ``work(1)``, ... each in a task of its own; the answers in order."""

    def play(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        pa.set_cpu_count(1)
        with sent_to_driver():
            for batch in batches:
                numbers = batch.column(0).to_pylist()
                yield pa.RecordBatch.from_pydict(
                    {"number": pa.array(numbers, pa.int64()), "answer": [work(number) for number in numbers]}
                )

    if not tasks:
        return []
    numbers = session.range(0, tasks, 1, tasks)
    with raised_on_driver():
        rows = numbers.mapInArrow(play, "number long, answer string").collect()
    return [row.answer for row in sorted(rows, key=lambda row: row.number)]
