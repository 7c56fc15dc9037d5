"""The folder of a stream's state: one file a shard and generation, and how far the stream has come.

A generation is the number of the micro-batch that wrote it. A file appears whole or not at all; the one before the
newest stays until the next micro-batch is written, so that a micro-batch can be repeated. ``progress-N`` says that
micro-batch N is done and which generation of each shard counts then; that with the highest N counts, so that a driver
which is late cannot take the stream back. It is ``coming-N`` until the deliveries of the micro-batch are written.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

from pyengine._engine.serialization.codec import seal, unseal
from pyengine.backlog.tables.output import replace_file, written
from pyengine.dataclass import dataclass
from pyengine.disk_sync import sync_folder
from pyengine.errors import OutputError, SnapshotError, counted, shown

MAGIC, VERSION = b"PYEC", 1
CHECKPOINT = "checkpoint"  # Spark's folder in ours


Figures = tuple[int, tuple[tuple[str, int], ...]]


def write_whole(path: Path, data: bytes) -> None:
    """``replace_file`` of bytes, in a folder that is made if need be. Raises OutputError."""
    with written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, lambda partial: partial.write_bytes(data))


def _unlink_older(folder: Path, name: str, *patterns: str) -> None:
    """Let go of the files of earlier micro-batches than ``name`` is of, and of what killed writers left of them."""
    for pattern in patterns:
        for old in folder.glob(pattern):
            if old.name.removeprefix(".") < name:
                old.unlink(missing_ok=True)


@dataclass(frozen=True)
class Progress:
    """How far a stream has come and what it is a stream of. batch: the last micro-batch that is done, -1 none.

    generations: the one of each shard that counts behind that micro-batch, -1 for a shard that has no state yet.
    checkpoint: the id that Spark's checkpoint gives the query, "" if it is not known. figures: of each shard the bytes
    of its state and how many messages wait there for which reason; None or nothing: not counted yet.
    """

    batch: int
    shards: int
    topology: str
    late: tuple[str, ...]
    columns: bytes
    generations: tuple[int, ...]
    checkpoint: str = ""
    figures: tuple[Figures | None, ...] = ()

    def difference(self, now: Progress) -> str:
        """Differences between the stream that left this and the one that resumes; empty if they are the same."""
        if self.shards != now.shards:
            return f"it has {counted(self.shards, 'shard')}, not {now.shards}"
        if self.late != now.late:
            return f"its late consumers are {list(self.late)}, not {list(now.late)}"
        if self.topology != now.topology:
            were, are = self.topology.splitlines(), now.topology.splitlines()
            changes = [
                f"{'without' if line[0] == '+' else 'with'} {shown(line[1:])}"
                for line in list(unified_diff(were, are, n=0, lineterm=""))[2:]
                if line[0] in "+-" and line[1:] not in ("", "[[consumer]]", "[[policy]]")
            ]
            more = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
            return f"its topology is one {', '.join(changes[:4])}{more}"
        if self.columns != now.columns:
            return f"its columns are {_columns(self.columns)}, not {_columns(now.columns)}"
        if self.checkpoint and now.checkpoint and self.checkpoint != now.checkpoint:
            return "its checkpoint was deleted or replaced, and what was read until then would be read again"
        return ""

    def with_batch(self, batch: int, shards: Iterable[int], figures: Sequence[Figures | None] = ()) -> Progress:
        """Behind a micro-batch that wrote these shards. figures: of all shards."""
        anew = set(shards)
        generations = (batch if shard in anew else each for shard, each in enumerate(self.generations))
        return replace(self, batch=batch, generations=tuple(generations), figures=tuple(figures))

    def figures_of(self, shard: int) -> Figures | None:
        """The figures of a shard; None: not counted yet."""
        if self.generations[shard] < 0:
            return 0, ()
        return self.figures[shard] if self.figures else None

    def to_json(self) -> dict[str, Any]:
        """For ``from_json``."""
        return {
            "batch": self.batch,
            "shards": self.shards,
            "topology": self.topology,
            "late": list(self.late),
            "columns": base64.b64encode(self.columns).decode("ascii"),
            "generations": self.generations,
            "checkpoint": self.checkpoint,
            "figures": self.figures,
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any], generations: Sequence[int]) -> Progress:
        """generations: those that count where it stores none."""
        return Progress(
            stored["batch"],
            stored["shards"],
            stored["topology"],
            tuple(stored["late"]),
            base64.b64decode(stored["columns"]),
            tuple(stored.get("generations") or generations),
            stored.get("checkpoint", ""),
            tuple(each and (each[0], tuple(map(tuple, each[1]))) for each in stored.get("figures", ())),
        )


def _columns(serialized: bytes) -> str:
    import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(serialized))
    return shown(", ".join(f"{field.name} {field.type}" for field in schema), str)


@dataclass(frozen=True)
class StateFolder:
    """path: a folder that the driver and every worker see under this name."""

    path: str

    def _checkpoint(self) -> str:
        """The id of Spark's query; "" where its checkpoint is none of ``CHECKPOINT`` here."""
        try:
            return str(json.loads((Path(self.path) / CHECKPOINT / "metadata").read_text("utf-8"))["id"])
        except (OSError, ValueError, LookupError, TypeError):
            return ""

    def _shard(self, shard: int) -> Path:
        return Path(self.path) / f"shard-{shard:05d}"

    def _generations(self, shard: int) -> list[int]:
        folder = self._shard(shard)
        return sorted(int(file.stem) for file in folder.glob("[0-9]*.state")) if folder.is_dir() else []

    def read_shard(self, shard: int, generation: int) -> bytes | None:
        """A generation of a shard; None for -1. Raises SnapshotError if it is not there."""
        if generation < 0:
            return None
        path = self._shard(shard) / f"{generation:020d}.state"
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise SnapshotError(
                f"{path} is missing: the state of shard {shard} as micro-batch {generation} left it was deleted or "
                "replaced by another one, or the stream went on meanwhile"
            ) from None

    def write_shard(self, shard: int, batch: int, before: int, data: bytes) -> None:
        """Write a generation; ones older than that it came from, ``before``, are no longer needed."""
        write_whole(self._shard(shard) / f"{batch:020d}.state", data)
        _unlink_older(self._shard(shard), f"{before:020d}.state", "*.state", ".*.state.*")

    def _progress(self, batch: int) -> Path:
        return Path(self.path) / f"progress-{batch:020d}"

    def _coming(self, batch: int) -> Path:
        return Path(self.path) / f"coming-{batch:020d}"

    def read_progress(self) -> Progress | None:
        """How far the stream has come; None for a folder of no stream yet. Raises SnapshotError."""
        while True:
            # A state of an earlier version has one file, and no generations in it.
            path = max(Path(self.path).glob("progress-*"), default=Path(self.path) / "progress")
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                if path.name == "progress":
                    return None
                continue  # a newer one has come
            break
        start, end = unseal(MAGIC, VERSION, data)
        stored: dict[str, Any] = json.loads(data[start:end])
        batch, shards = stored["batch"], stored["shards"]
        return Progress.from_json(stored, [self._newest(shard, batch) for shard in range(shards)])

    def _newest(self, shard: int, batch: int) -> int:
        return max((generation for generation in self._generations(shard) if generation <= batch), default=-1)

    def _attempt(self, batch: int, plan: str) -> Path:
        return Path(self.path) / f"attempt-{batch:020d}-{plan}"

    def write_attempt(self, batch: int, plan: str, before: Progress, writing: str) -> None:
        """Let the workers of a query's plan know of a micro-batch how far the stream was and where deliveries go."""
        path = self._attempt(batch, plan)
        partial = path.with_name(f".{path.name}")
        with written(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps([before.to_json(), writing]), "utf-8")  # of no use after a power cut
            os.replace(partial, path)

    def read_attempt(self, batch: int, plan: str) -> tuple[Progress, str]:
        """What ``write_attempt`` wrote. Raises SnapshotError if the micro-batch is over."""
        try:
            stored, writing = json.loads(self._attempt(batch, plan).read_text("utf-8"))
        except FileNotFoundError:
            raise SnapshotError(f"{self.path}: a task of micro-batch {batch} begins, and the stream went on") from None
        return Progress.from_json(stored, ()), writing

    def prepare_progress(self, progress: Progress) -> None:
        """Keep what ``write_progress`` will say."""
        write_whole(self._coming(progress.batch), seal(MAGIC, VERSION, json.dumps(progress.to_json()).encode()))

    def write_progress(self, batch: int, deliveries: str) -> None:
        """Mark a micro-batch whose deliveries are written as done. Raises SnapshotError if nothing was prepared."""
        try:
            with written(self._progress(batch)):
                os.replace(self._coming(batch), self._progress(batch))
        except OutputError:
            if self._coming(batch).exists():
                raise
            found = self.read_progress()
            if found is None or found.batch < batch:
                raise SnapshotError(
                    f"{deliveries} is there, and {self.path} does not know of it: state and sink belong together"
                ) from None
        with written(self._progress(batch)):
            sync_folder(Path(self.path))
        _unlink_older(Path(self.path), self._progress(batch).name, "progress*")
        _unlink_older(Path(self.path), self._coming(batch).name, "coming-*", ".coming-*")
        _unlink_older(Path(self.path), f"attempt-{batch + 1:020d}", "attempt-*", ".attempt-*")

    def before(self, start: Progress, batch: int, migrates: bool = False) -> Progress | None:
        """How far the stream is where a micro-batch begins; None if it is done already. Raises SnapshotError.

        migrates: what it is a stream of may differ, except the number of shards and the checkpoint.
        """
        found, start = self.read_progress(), replace(start, checkpoint=self._checkpoint())
        if found is None:
            if batch:
                raise SnapshotError(
                    f"{self.path}: the stream has come to micro-batch {batch}, and the folder holds no state of it"
                )
            return start
        same = replace(start, topology=found.topology, late=found.late, columns=found.columns) if migrates else start
        if difference := found.difference(same):
            hint = '; on_change="migrate" takes it over' if found.shards == start.shards and not migrates else ""
            raise SnapshotError(
                f"{self.path}: it is the state of another stream: {difference}. Go on with what it was made with, or "
                "give this stream a state and a sink of its own; pyengine.spark.held tells what waits in the former "
                f"one{hint}"
            )
        if batch == found.batch:
            return None
        if batch != found.batch + 1:
            raise SnapshotError(
                f"{self.path}: the state stands behind micro-batch {found.batch}, and the stream begins {batch}; "
                "checkpoint and state belong together, restore both"
            )
        return replace(found, checkpoint=found.checkpoint or start.checkpoint)
