"""Messages as shard files, sorted by queue and by order of sending, so that one task after another can dispatch them.

Written in two steps that need little memory whatever the size of the source or of a queue: each piece of the source
becomes a sorted run (pyengine.backlog.tables.runs), and the runs of a shard are merged as they are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyengine.activemq.tables.assignments import encoded, gathered
from pyengine.activemq.tables.dispatch import QUEUE, TRUTH, columns_read
from pyengine.backlog.tables.messages import rejects_table
from pyengine.backlog.tables.output import replace_file
from pyengine.backlog.tables.rows import Reject, Rows
from pyengine.backlog.tables.runs import ENCODED, ordered
from pyengine.backlog.tables.sources import Piece
from pyengine.errors import InvalidSourceError
from pyengine.topology import Topology

BATCH = 131_072
GROUP, GROUP_BYTES = 524_288, 1 << 27  # of a row group, which has its texts once: the fewer, the less there is to read
TEXTS = 1 << 22  # bytes of one column's different texts in a row group
MARKER = "shards.json"


def _dictionaries(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if pa.types.is_string(field.type) or field.name.startswith(TRUTH)]


def write_shard(folder: Path, runs: int, shard: int, topology: Topology, into: Path) -> int:
    """Merge a shard of so many runs into one file; return its number of messages."""
    total = 0

    def write(path: Path) -> None:
        nonlocal total
        writer = None
        batches = map(_plain, ordered(folder, runs, shard, topology, only_needed=False))
        for table in gathered(batches, GROUP, GROUP_BYTES):
            if writer is None:
                writer = pq.ParquetWriter(
                    path,
                    table.schema,
                    compression="zstd",
                    use_dictionary=_dictionaries(table),
                    dictionary_pagesize_limit=TEXTS,
                )
            writer.write_table(table.combine_chunks(), row_group_size=2 * GROUP)
            total += table.num_rows
        if writer is not None:
            writer.close()

    replace_file(into, write)
    return total


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
                            numbers = [field.name for field in batch.schema if pa.types.is_integer(field.type)]
                            # Most of them grow from row to row: a dictionary of them would be as long as the column.
                            writers[path] = pq.ParquetWriter(
                                path,
                                batch.schema,
                                use_dictionary=[name for name in batch.schema.names if name not in numbers],
                                column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
                            )
                        writers[path].write_batch(part)
            for writer in writers.values():
                writer.close()

        replace_file(folder / "held" / name, write_held)

    replace_file(folder / "deliveries" / name, write)


def shard_batches(path: Path, topology: Topology, told: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """What dispatch reads of a shard file, in order. told: columns of the answer, None all."""
    about = pq.read_metadata(path)
    codes = [name for name in ENCODED if name in about.schema.names]
    with pq.ParquetFile(path, metadata=about, read_dictionary=codes, pre_buffer=False) as file:
        names = [*columns_read(topology, file.schema_arrow.names, told), QUEUE]
        yield from file.iter_batches(BATCH, columns=names, use_threads=False)


def write_answer(path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Assignments, ``encoded``, as one Parquet file of plain texts, with its rows as they come; return how many."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    numbers = [name for name in schema.names if name not in texts]  # the bounds of few texts exclude no row
    total = 0

    def write(partial: Path) -> None:
        nonlocal total
        with pq.ParquetWriter(
            partial, encoded(schema), use_dictionary=texts, write_statistics=numbers, store_schema=False
        ) as writer:
            for table in gathered(batches, GROUP, GROUP_BYTES):
                writer.write_table(table, row_group_size=2 * GROUP)
                total += table.num_rows

    replace_file(path, write)
    return total


def write_rejects(folder: Path, number: int, rejects: Sequence[Reject], rows: Rows) -> None:
    """Rejects of a run as a Parquet file, if there are any. rows: those of the run."""
    if rejects:
        table = rejects_table(rejects, rows.files, rows.lines)
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


def pieces_to_text(pieces: Sequence[Piece]) -> list[str]:
    """Pieces as JSON, one each."""
    return [json.dumps(asdict(piece)) for piece in pieces]


def piece_from_text(text: str) -> Piece:
    """The inverse of pieces_to_text."""
    values = json.loads(text)
    folders = tuple((name, said, java) for name, said, java in values.get("folders", ()))
    first, rows = values["first"], values["rows"]
    return Piece(values["path"], tuple(values["row_groups"]), first, rows, values["file_first"], folders)
