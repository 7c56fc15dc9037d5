"""The folder of a stream's state: one file a shard and generation, and how far the stream has come.

A generation is the number of the micro-batch that wrote it. A file appears whole or not at all; the one before the
newest stays until the next micro-batch is written, so that a micro-batch can be repeated.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyengine._engine.varint import seal, unseal
from pyengine.errors import SnapshotError

MAGIC, VERSION = b"PYEC", 1


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when all of it is on the disk."""
    waiting = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with waiting.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(waiting, path)


@dataclass(frozen=True)
class Progress:
    """How far a stream has come and what it is a stream of. batch: the last micro-batch that is done, -1 none."""

    batch: int
    shards: int
    topology: str
    late: tuple[str, ...]
    columns: bytes


@dataclass(frozen=True)
class StateFolder:
    """path: a folder that the driver and every worker see under this name."""

    path: str

    def _shard(self, shard: int) -> Path:
        return Path(self.path) / f"shard-{shard:05d}"

    def _generations(self, shard: int) -> list[int]:
        folder = self._shard(shard)
        return sorted(int(file.stem) for file in folder.glob("[0-9]*.state")) if folder.is_dir() else []

    def read_shard(self, shard: int, before: int) -> bytes | None:
        """The newest state that is older than micro-batch ``before``; None if the shard has none."""
        found = [generation for generation in self._generations(shard) if generation < before]
        return (self._shard(shard) / f"{found[-1]:020d}.state").read_bytes() if found else None

    def write_shard(self, shard: int, batch: int, data: bytes) -> None:
        """Write a generation; older ones than the one it came from are no longer needed."""
        folder = self._shard(shard)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{batch:020d}.state", data)
        for generation in [number for number in self._generations(shard) if number < batch][:-1]:
            (folder / f"{generation:020d}.state").unlink(missing_ok=True)

    def shards(self) -> Iterable[int]:
        """The shards that have state."""
        return sorted(int(folder.name[6:]) for folder in Path(self.path).glob("shard-*"))

    def read_progress(self) -> Progress | None:
        """How far the stream has come; None for a folder of no stream yet. Raises SnapshotError."""
        path = Path(self.path) / "progress"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        start, end = unseal(MAGIC, VERSION, data)
        told: dict[str, Any] = json.loads(data[start:end])
        return Progress(
            told["batch"], told["shards"], told["topology"], tuple(told["late"]), base64.b64decode(told["columns"])
        )

    def write_progress(self, progress: Progress) -> None:
        """Say that a micro-batch is done."""
        told = {
            "batch": progress.batch,
            "shards": progress.shards,
            "topology": progress.topology,
            "late": list(progress.late),
            "columns": base64.b64encode(progress.columns).decode("ascii"),
        }
        Path(self.path).mkdir(parents=True, exist_ok=True)
        write_whole(Path(self.path) / "progress", seal(MAGIC, VERSION, json.dumps(told).encode()))

    def continues(self, start: Progress, batch: int) -> bool:
        """Whether a micro-batch is the next one (or the last one again: False). Raises SnapshotError if neither."""
        found = self.read_progress()
        if found is None:
            if batch:
                raise SnapshotError(
                    f"{self.path}: the stream has come to micro-batch {batch}, and the folder holds no state of it"
                )
            return True
        for field, now in (("shards", start.shards), ("topology", start.topology), ("late", start.late)):
            if getattr(found, field) != now:
                raise SnapshotError(f"{self.path}: it is the state of another stream: its {field} differs")
        if found.columns != start.columns:
            raise SnapshotError(f"{self.path}: it is the state of a stream with other columns")
        if batch == found.batch:
            return False
        if batch != found.batch + 1:
            raise SnapshotError(
                f"{self.path}: the state stands behind micro-batch {found.batch}, and the stream begins {batch}; "
                "checkpoint and state belong together, restore both"
            )
        return True
