"""Rows that tasks hand to the commit of a write: files beside what is written, complete before the commit begins."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from pyengine.dataclass import dataclass
from pyengine.disk_sync import sync_file, sync_folder

LEFT = 7 * 86_400  # seconds; a task that is alive writes some batch within them


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
        sync_folder(path.parent)  # a commit that is resumed after a power failure finds the file whole
    except BaseException:
        path.unlink(missing_ok=True)  # not the folder: another task may have just made it for its own file
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


def forget(paths: Iterable[str], folder: str) -> None:
    """Let go of the files of tasks, of their folders with the last one, and of ``folder`` if nothing is in it."""
    for path in paths:
        Path(path).unlink(missing_ok=True)
    for each in {folder, *(str(Path(path).parent) for path in paths)}:
        with suppress(OSError):  # others are in it, or it is gone
            Path(each).rmdir()


def sweep_left(directory: str) -> None:
    """Take away what writes left in ``directory`` whose driver was killed: folders and half notes in which nothing was
    written for a week. What the note of a stream names stays, its micro-batch goes on with that.
    """
    hidden = Path(directory).absolute() / ".spark"
    with suppress(OSError, ValueError, LookupError, TypeError):  # the write that is over must not fail
        notes = [*hidden.glob("*.json")]
        named = {Path(path).parent.name for note in notes for path in json.loads(note.read_text("utf-8"))["files"]}
        for left in set(hidden.iterdir()) - set(notes):
            files = [left, *(left.iterdir() if left.is_dir() else ())]
            if left.name not in named and max(map(_changed, files)) < time.time() - LEFT:
                (shutil.rmtree if left.is_dir() else os.unlink)(left)


def _changed(path: Path) -> float:
    return path.stat().st_mtime
