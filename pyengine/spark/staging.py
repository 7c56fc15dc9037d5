"""Rows that tasks hand to the commit of a write: files beside what is written, complete before the commit begins."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from pyengine.disk_sync import sync_file, sync_folder


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task has written. path: its file."""

    path: str


def new_folder(directory: str) -> str:
    """Where the tasks of one write put their files: a hidden folder in ``directory``."""
    return str(Path(directory).absolute() / ".spark" / uuid.uuid4().hex)


def stage(folder: str, batches: Iterable[pa.RecordBatch]) -> Staged:
    """Keep the batches of a task, which were checked."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"{uuid.uuid4().hex}.arrow"
    try:
        writer: Any = None
        with pa.OSFile(str(path), "wb") as file:
            for batch in batches:
                if writer is None:
                    writer = pa.ipc.new_stream(file, batch.schema)
                writer.write_batch(batch)
            if writer is not None:
                writer.close()
            sync_file(file.fileno())
        sync_folder(path.parent)  # whoever goes on with a commit after a power cut finds the file whole
    except BaseException:
        forget([str(path)])
        raise
    return Staged(str(path))


def staged_rows(paths: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows of some files, in order; a map is a list of pairs."""
    for path in paths:
        if Path(path).stat().st_size:
            with pa.OSFile(path, "rb") as file, pa.ipc.open_stream(file) as batches:
                for batch in batches:
                    yield from batch.to_pylist()


def paths_of(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    """The files of the tasks, in the order of the tasks."""
    return [message.path for message in messages if isinstance(message, Staged)]


def forget(paths: Iterable[str]) -> None:
    """Let go of the files of tasks, and of their folder with the last one."""
    for path in paths:
        Path(path).unlink(missing_ok=True)
        with suppress(OSError):  # others are in it, or it is gone
            Path(path).parent.rmdir()
