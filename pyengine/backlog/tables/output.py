"""Results on the disk: a file appears whole and stays, and what the disk refuses is an OutputError."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyengine.disk_sync import sync_file, sync_folder
from pyengine.errors import OutputError, PyengineError


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Around writing a file or folder: what the disk refuses is raised as OutputError."""
    try:
        yield
    except PyengineError:
        raise
    except OSError as error:
        raise OutputError(str(path), error.strerror or str(error).partition("\n")[0]) from error


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` with a name beside ``path`` and move what it wrote to ``path``, when it is on the disk; a second
    attempt may do so too, at the same time.

    Raises OutputError for what the disk refuses.
    """
    # Attempts of one task may run at once in containers, whose processes have the same numbers.
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    with written(path):
        try:
            write(partial)
            if partial.exists():
                with partial.open("rb+") as file:
                    sync_file(file.fileno())
                partial.replace(path)
                sync_folder(path.parent)
        finally:
            partial.unlink(missing_ok=True)


def remove_partials(folder: Path) -> None:
    """Take away what killed processes had begun to write with ``replace_file``, in a folder and those in it."""
    for left in folder.rglob(".*.partial"):
        left.unlink(missing_ok=True)
