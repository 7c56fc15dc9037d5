"""Messages as shard files, sorted by queue and by order of sending, so that one task after another can dispatch them.

Written in two steps that need little memory whatever the size of a queue: each piece of the source becomes a run (one
Parquet file, a row group for each shard, sorted), and the runs of a shard are merged as they are read. What selectors
say of each message is found where the data lies and kept as a column of numbers (TRUTH), so that the one task that
assigns a huge queue in order has no selector to evaluate.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyengine import Columns
from pyengine.activemq.dispatch import DESTINATION, QUEUE, TRUTH, columns_read, compiled, order_columns
from pyengine.backlog.messages import rejects_table, to_messages
from pyengine.backlog.sources import Piece, Reject, Rows
from pyengine.errors import InvalidSourceError
from pyengine.topology import Topology
from pyengine.topology.model import TOPIC

BATCH = 32_768
GROUP = 131_072
MARKER = "shards.json"
_ENCODED = (DESTINATION, "JMSXGroupID")  # few different texts: read and kept as codes


@dataclass(frozen=True, slots=True)
class Run:
    """One sorted file. groups: shard -> its row group. rows, messages: read, and become messages."""

    file: str
    groups: dict[int, int]
    rows: int
    messages: int


def queue_keys(names: Sequence[str], together: bool) -> np.ndarray[Any, Any]:
    """A 64-bit key for each destination, the same in every process; topics that hang together share one."""
    found = [
        0
        if together and name.startswith(TOPIC)
        else int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
        for name in names
    ]
    return np.array(found, np.uint64).view(np.int64)


def write_run(
    rows: Rows, topology: Topology, folder: Path, number: int, shards: int, *, only_needed: bool, messages: Path | None
) -> tuple[Run, list[Reject]]:
    """Rows of a source as run ``number`` in ``folder``; also as plain messages in the folder ``messages``.

    only_needed: keep what this topology's dispatch reads, and the truths of its selectors; False: every column.
    """
    made, rejects = to_messages(rows.table, rows.numbers, topology.source)
    needed = columns_read(topology, made.column_names)
    every = [*rows.rejects, *rejects]
    name = f"run-{number:06}.parquet"
    if messages is not None:
        replace_file(messages / f"part-{number:06}.parquet", lambda path: pq.write_table(made, path))
    table = made
    truths = {consumer.selector for consumer in topology.consumers if consumer.selector}
    if only_needed:
        table = made.select(columns_read_plain(topology, needed))
    if truths and made.num_rows:
        columns = Columns(made.select(needed).combine_chunks().to_batches()[0])
        for text in sorted(truths):
            table = table.append_column(TRUTH + text, pa.array(compiled(text).truth(columns)))
    else:
        for text in sorted(truths):
            table = table.append_column(TRUTH + text, pa.array([], pa.int8()))
    encoded = table.column(DESTINATION).combine_chunks().dictionary_encode()
    keys = queue_keys(encoded.dictionary.to_pylist(), topology.shares_topics)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    by_row = keys[codes] if len(keys) else np.zeros(0, np.int64)
    table = table.append_column(QUEUE, pa.array(by_row))
    shard = (by_row.view(np.uint64) % np.uint64(shards)).astype(np.int64)
    order = [table.column(column).to_numpy() for column in reversed(order_columns(topology, table.column_names))]
    places = np.lexsort((*order, shard))
    table, shard = table.take(pa.array(places)), shard[places]
    bounds = np.searchsorted(shard, np.arange(shards + 1))
    groups: dict[int, int] = {}

    def write(path: Path) -> None:
        with pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=_dictionaries(table)) as writer:
            for each in range(shards):
                if bounds[each] < bounds[each + 1]:
                    groups[each] = len(groups)
                    part = table.slice(bounds[each], bounds[each + 1] - bounds[each])
                    writer.write_table(part, row_group_size=part.num_rows)

    replace_file(folder / name, write)
    return Run(name, groups, made.num_rows + len({each.row for each in every}), made.num_rows), every


def columns_read_plain(topology: Topology, needed: Sequence[str]) -> list[str]:
    """Of the columns that dispatch reads those that are no selector's: numbers, group and destination."""
    read = {name for each in topology.consumers if each.selector for name in compiled(each.selector).names}
    read -= topology.policy_properties
    return [name for name in needed if name not in read or name.startswith(("__", "JMS"))]


def _dictionaries(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if pa.types.is_string(field.type) or field.name.startswith(TRUTH)]


def ordered(folder: Path, runs: Sequence[Run], shard: int, topology: Topology) -> Iterator[pa.RecordBatch]:
    """The messages of a shard in order, merged from its runs; a quarter of a million rows or so are in memory."""
    here = [run for run in runs if shard in run.groups]
    size = _rows_of_each(len(here))
    yield from merged([_batches(folder / run.file, [run.groups[shard]], topology, size=size) for run in here], topology)


def _rows_of_each(runs: int) -> int:
    """How many rows of a run are read at once, when so many are merged."""
    return max(1_024, min(BATCH, 8 * BATCH // max(1, runs)))


def merged(streams: Sequence[Iterator[pa.Table]], topology: Topology) -> Iterator[pa.RecordBatch]:
    """Sorted streams of tables as one sorted stream."""
    live: list[tuple[Iterator[pa.Table], pa.Table]] = []
    for stream in streams:
        head = next(stream, None)
        if head is not None:
            live.append((stream, head))
    while live:
        names = order_columns(topology, live[0][1].column_names)
        if len(live) == 1:
            stream, head = live.pop()
            yield from head.unify_dictionaries().combine_chunks().to_batches()
            for table in stream:
                yield from table.combine_chunks().to_batches()
            return
        bound = min(tuple(head.column(name)[-1].as_py() for name in names) for _, head in live)
        due: list[pa.Table] = []
        left: list[tuple[Iterator[pa.Table], pa.Table]] = []
        for stream, head in live:
            taken = _up_to(head, names, bound)
            if taken:
                due.append(head.slice(0, taken))
            rest: pa.Table | None = head.slice(taken)
            if taken == head.num_rows:
                rest = next(stream, None)
            if rest is not None:
                left.append((stream, rest))
        live = left
        table = pa.concat_tables(due).unify_dictionaries().combine_chunks()
        if len(due) > 1:
            keys = [table.column(name).to_numpy() for name in reversed(names)]
            table = table.take(pa.array(np.lexsort(keys)))
        yield from table.combine_chunks().to_batches()


def _up_to(table: pa.Table, names: Sequence[str], bound: tuple[int, ...]) -> int:
    """How many rows of a sorted table are not behind ``bound``."""
    low, high = 0, int(table.num_rows)
    for position, (name, value) in enumerate(zip(names, bound, strict=True)):
        values = table.column(name).slice(low, high - low).to_numpy()
        end = low + int(np.searchsorted(values, value, side="right"))
        if position == len(names) - 1:
            return end
        low, high = low + int(np.searchsorted(values, value, side="left")), end
        if low == high:
            return low
    return high


def _opened(path: Path) -> pq.ParquetFile:
    names = pq.read_schema(path).names
    return pq.ParquetFile(path, read_dictionary=[name for name in _ENCODED if name in names], pre_buffer=False)


def _batches(
    path: Path, groups: list[int], topology: Topology, told: Sequence[str] | None = None, size: int = BATCH
) -> Iterator[pa.Table]:
    with _opened(path) as file:
        names = [*columns_read(topology, file.schema_arrow.names, told), QUEUE]
        for batch in file.iter_batches(size, row_groups=groups, columns=names, use_threads=False):
            yield pa.Table.from_batches([batch])


def write_shard(folder: Path, runs: Sequence[Run], shard: int, topology: Topology, into: Path) -> int:
    """Merge a shard into one file; return its number of messages."""
    total = 0

    def write(path: Path) -> None:
        nonlocal total
        writer = None
        for table in _gathered(map(_plain, _every_column(folder, runs, shard, topology))):
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=_dictionaries(table))
            writer.write_table(table.combine_chunks(), row_group_size=GROUP)
            total += table.num_rows
        if writer is not None:
            writer.close()

    replace_file(into, write)
    return total


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches together as tables of GROUP rows or a few more, the last one of what is left."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= GROUP:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _every_column(folder: Path, runs: Sequence[Run], shard: int, topology: Topology) -> Iterator[pa.RecordBatch]:
    def batches(path: Path, group: int) -> Iterator[pa.Table]:
        with _opened(path) as file:
            for batch in file.iter_batches(size, row_groups=[group], use_threads=False):
                yield pa.Table.from_batches([batch])

    here = [run for run in runs if shard in run.groups]
    size = _rows_of_each(len(here))
    yield from merged([batches(folder / run.file, run.groups[shard]) for run in here], topology)


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def write_assignments(
    folder: Path, number: int, batches: Iterator[pa.RecordBatch], seen: Callable[[pa.RecordBatch], None]
) -> None:
    """Assignments as deliveries/ and held/ of a folder, a file of each that is not empty; ``seen`` gets every batch."""
    name = f"part-{number:06}.parquet"

    def write(given: Path) -> None:
        def write_held(held: Path) -> None:
            writers: dict[Path, pq.ParquetWriter] = {}
            for batch in batches:
                seen(batch)
                waits = pc.is_valid(batch.column("reason"))
                for path, part in ((given, batch.filter(pc.invert(waits))), (held, batch.filter(waits))):
                    if part.num_rows:
                        if path not in writers:
                            writers[path] = pq.ParquetWriter(path, batch.schema)
                        writers[path].write_batch(part)
            for writer in writers.values():
                writer.close()

        replace_file(folder / "held" / name, write_held)

    replace_file(folder / "deliveries" / name, write)


def shard_batches(path: Path, topology: Topology, told: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """What dispatch reads of a shard file, in order. told: columns of the answer, None all."""
    groups = list(range(pq.read_metadata(path).num_row_groups))
    for table in _batches(path, groups, topology, told):
        yield from table.combine_chunks().to_batches()


def write_answer(path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Assignments as one Parquet file, with its rows as they come; return how many."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    total = 0

    def write(partial: Path) -> None:
        nonlocal total
        with pq.ParquetWriter(partial, schema, use_dictionary=texts) as writer:
            for table in _gathered(batches):
                writer.write_table(table, row_group_size=2 * GROUP)
                total += table.num_rows

    replace_file(path, write)
    return total


def replace_file(path: Path, write: Any) -> None:
    """Call ``write`` with a name beside ``path`` and move what it wrote to ``path``; a second attempt may do so too."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        if partial.exists():
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_rejects(folder: Path, number: int, rejects: Sequence[Reject]) -> None:
    """Rejects of a run as a Parquet file, if there are any."""
    if rejects:
        table = rejects_table(rejects)
        replace_file(folder / f"part-{number:06}.parquet", lambda path: pq.write_table(table, path))


def write_marker(folder: Path, files: Sequence[str], order: str, rows: int, messages: int) -> None:
    """Say that the shard files of a folder are complete."""
    text = json.dumps({"files": list(files), "order": order, "rows": rows, "messages": messages}, indent=1)
    replace_file(folder / MARKER, lambda path: path.write_text(text, "utf-8"))


def read_marker(folder: Path) -> dict[str, Any]:
    """What write_marker wrote. Raises InvalidSourceError."""
    try:
        found: dict[str, Any] = json.loads((folder / MARKER).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSourceError(
            str(folder), f"holds no {MARKER}", "write it with pyengine.spark.write_shards"
        ) from error
    return found


def run_to_text(run: Run) -> str:
    """A run as JSON."""
    return json.dumps(asdict(run))


def run_from_text(text: str) -> Run:
    """The inverse of run_to_text."""
    values = json.loads(text)
    return Run(values["file"], {int(k): v for k, v in values["groups"].items()}, values["rows"], values["messages"])


def pieces_to_text(pieces: Sequence[Piece]) -> list[str]:
    """Pieces as JSON, one each."""
    return [json.dumps(asdict(piece)) for piece in pieces]


def piece_from_text(text: str) -> Piece:
    """The inverse of pieces_to_text."""
    values = json.loads(text)
    return Piece(values["path"], tuple(values["row_groups"]), values["first"], values["rows"])
