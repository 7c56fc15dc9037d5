"""Runs: each piece of the source as one sorted file, of which a merge reads a shard's part block by block.

A run holds the messages of a piece by shard, queue and order of sending. Each shard's part is cut into blocks; a block
is an Arrow IPC stream of its own with its length before it, and a table at the end of the file says where the blocks of
each shard begin. Whoever merges a shard therefore needs of each run two places in the file and one block at a time,
whatever the number of shards and the rows of the run, and no file stays open in between. What selectors say of each
message is found where the data lies and kept as a column of numbers (TRUTH), so that the one task that assigns a huge
queue in order has no selector to evaluate.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyengine.activemq.tables.dispatch import DESTINATION, QUEUE, TRUTH, columns_read, compiled, order_columns
from pyengine.activemq.tables.typed_names import TYPED
from pyengine.activemq.tables.typed_texts import TypedRows
from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.output import replace_file
from pyengine.backlog.tables.rows import Reject, Rows
from pyengine.dataclass import dataclass
from pyengine.errors import InvalidSourceError
from pyengine.topology import Topology
from pyengine.topology.model import TOPIC

LAYOUT = 2  # of a run file; whoever goes on with the files of an earlier process compares it
WINDOW = 131_072  # rows that a merge reads before it hands on what is complete
BLOCK, HEADS = 32_768, 262_144  # rows of a block at most, of the blocks of all runs together
_LEAST = 64  # rows of a block, however many runs there are
_TAIL = struct.Struct("<q8s")
_MAGIC = b"pyrun-02"
_LENGTH = struct.Struct("<q")
ENCODED = (DESTINATION, "JMSXGroupID")  # few different texts: kept as codes of their block
_WRITING = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READING = pa.ipc.IpcReadOptions(use_threads=False)


@dataclass(frozen=True, slots=True)
class Run:
    """rows, messages: of its piece of the source, as read and as they became messages."""

    rows: int
    messages: int


def run_path(folder: Path, number: int) -> Path:
    """The file of a run."""
    return folder / f"run-{number:06}.blocks"


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
    rows: Rows,
    topology: Topology,
    folder: Path,
    number: int,
    runs: int,
    shards: int,
    *,
    only_needed: bool,
    messages: Path | None,
) -> tuple[Run, list[Reject]]:
    """Rows of a source as run ``number`` of so many in ``folder``; also as plain messages in the folder ``messages``.

    only_needed: keep what this topology's dispatch reads, and the truths of its selectors; False: every column.
    """
    made, rejects = to_messages(rows.table, rows.numbers, topology.source)
    needed = columns_read(topology, made.column_names)
    every = [*rows.rejects, *rejects]
    if messages is not None:
        replace_file(messages / f"part-{number:06}.parquet", lambda path: pq.write_table(made, path))
    table = made
    truths = {consumer.selector for consumer in topology.consumers if consumer.selector}
    if only_needed:
        table = made.select(columns_read_plain(topology, needed))
    if truths and made.num_rows:
        asked = TypedRows(made.select(needed).combine_chunks().to_batches()[0])
        for text in sorted(truths):
            table = table.append_column(TRUTH + text, pa.array(asked.truth(compiled(text))))
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
    bounds = np.searchsorted(shard, np.arange(shards + 1)).tolist()
    replace_file(run_path(folder, number), lambda path: _write_blocks(path, table, bounds, _rows_of_block(runs)))
    return Run(made.num_rows + len({each.row for each in every}), made.num_rows), every


def columns_read_plain(topology: Topology, needed: Sequence[str]) -> list[str]:
    """Of the columns that dispatch reads those that are no selector's: numbers, group and destination."""
    read = {name for each in topology.consumers if each.selector for name in compiled(each.selector).names}
    read -= topology.policy_properties
    own = [name for name in needed if not name.startswith(TYPED) or name.removeprefix(TYPED) not in read]
    return [name for name in own if name not in read or name.startswith(("__", "JMS"))]


def _rows_of_block(runs: int) -> int:
    """So that the blocks at which the merge of so many runs stands fit into memory."""
    return max(_LEAST, min(BLOCK, HEADS // max(1, runs)))


def _write_blocks(path: Path, table: pa.Table, bounds: Sequence[int], size: int) -> None:
    """bounds: where in the table each shard begins, and its end."""
    batches = table.combine_chunks().to_batches()
    starts: list[int] = []
    with path.open("wb") as file:
        for low, high in pairwise(bounds):
            starts.append(file.tell())
            for start in range(low, high, size):
                block = _encoded(batches[0].slice(start, min(size, high - start)))
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, block.schema, options=_WRITING) as writer:
                    writer.write_batch(block)
                stream = sink.getvalue()
                file.write(_LENGTH.pack(stream.size))
                file.write(stream)
        starts.append(file.tell())
        file.write(struct.pack(f"<{len(starts)}q", *starts))
        file.write(_TAIL.pack(len(starts), _MAGIC))


def _encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = batch.schema.names
    columns = [
        column.dictionary_encode() if name in ENCODED else column
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def blocks(path: Path, shard: int) -> Iterator[pa.Table]:
    """The blocks of a shard in a run, in order; one is read when it is asked for.

    Raises InvalidSourceError for a file that is no run of this layout.
    """
    with path.open("rb") as file:
        end = file.seek(-_TAIL.size, os.SEEK_END)
        places, magic = _TAIL.unpack(file.read(_TAIL.size))
        if magic != _MAGIC:
            raise InvalidSourceError(str(path), "is not a run of this version", "remove it and run again")
        file.seek(end - _LENGTH.size * (places - shard))
        position, stop = struct.unpack("<2q", file.read(2 * _LENGTH.size))
    while position < stop:
        with path.open("rb") as file:
            file.seek(position)
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            data = file.read(length)
        position += _LENGTH.size + length
        with pa.ipc.open_stream(data, options=_READING) as stream:
            yield stream.read_all()


def ordered(
    folder: Path, runs: int, shard: int, topology: Topology, *, only_needed: bool = True
) -> Iterator[pa.RecordBatch]:
    """The messages of a shard in order, merged from so many runs.

    In memory are a window of rows and a block of each run, whose rows are the fewer the more runs there are.
    only_needed: the columns that dispatch reads; False: all.
    """
    streams = [blocks(run_path(folder, number), shard) for number in range(runs)]
    for batch in merged(streams, topology):
        yield batch.select([*columns_read(topology, batch.schema.names), QUEUE]) if only_needed else batch


class _Stream:
    """A sorted stream of tables. held: what is read and not handed on, with the last key of each table."""

    __slots__ = ("held", "tables")

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self.tables = tables
        self.held: list[tuple[tuple[int, ...], pa.Table]] = []

    def load(self, topology: Topology) -> tuple[int, ...] | None:
        """Read one more table; its last key, None at the end."""
        table = next((table for table in self.tables if table.num_rows), None)
        if table is None:
            return None
        last = tuple(table.column(name)[-1].as_py() for name in order_columns(topology, table.column_names))
        self.held.append((last, table))
        return last

    def up_to(self, bound: tuple[int, ...] | None, topology: Topology) -> Iterator[pa.Table]:
        """Take what is not behind ``bound``; None: everything."""
        whole = 0
        for last, table in self.held:
            if bound is not None and last > bound:
                if taken := _up_to(table, order_columns(topology, table.column_names), bound):
                    yield table.slice(0, taken)
                    self.held[whole] = last, table.slice(taken)
                break
            yield table
            whole += 1
        del self.held[:whole]


def merged(streams: Sequence[Iterator[pa.Table]], topology: Topology, window: int = WINDOW) -> Iterator[pa.RecordBatch]:
    """Sorted streams of tables as one sorted stream.

    The stream that was read least far is read on until ``window`` rows have come; then everything up to where the least
    of them now stands is complete. So a step costs what it takes and hands on, plus one search in each stream.
    """
    every = [_Stream(tables) for tables in streams]
    ends = [(last, place) for place, stream in enumerate(every) if (last := stream.load(topology)) is not None]
    heapq.heapify(ends)
    while ends or any(stream.held for stream in every):
        loaded = 0
        while ends and loaded < window:
            stream = every[ends[0][1]]
            last = stream.load(topology)
            if last is None:
                heapq.heappop(ends)
            else:
                heapq.heapreplace(ends, (last, ends[0][1]))
                loaded += stream.held[-1][1].num_rows
        bound = ends[0][0] if ends else None
        due = [table for stream in every for table in stream.up_to(bound, topology)]
        if not due:
            continue
        table = pa.concat_tables(due).unify_dictionaries().combine_chunks()
        if len(due) > 1:
            keys = [table.column(name).to_numpy() for name in reversed(order_columns(topology, table.column_names))]
            table = table.take(pa.array(np.lexsort(keys))).combine_chunks()
        yield from table.to_batches(max_chunksize=BLOCK)


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


def run_to_text(run: Run) -> str:
    """A run as JSON."""
    return json.dumps(asdict(run))


def run_from_text(text: str) -> Run:
    """The inverse of run_to_text."""
    values = json.loads(text)
    return Run(values["rows"], values["messages"])
