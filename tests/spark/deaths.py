"""Death at a chosen step, just before or just after a file or a folder gets its name, and what a power cut leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@dataclass(frozen=True)
class Death:
    """when: "before" or "after" the ``nth`` rename to a path that ends with ``target`` ("{0}": the batch)."""

    when: str
    target: str
    nth: int = 1

    def in_batch(self, batch: int) -> Death:
        """This step of this micro-batch."""
        return replace(self, target=self.target.format(batch))

    @contextmanager
    def awaited(self, die: Callable[[], None]) -> Iterator[None]:
        """Calls ``die`` at that step if this process comes to it inside the block."""
        real = os.rename, os.replace
        came = 0

        def watched(rename: Callable[..., None]) -> Callable[..., None]:
            def watching(source: Any, target: Any, **options: Any) -> None:
                nonlocal came
                here = os.fspath(target).endswith(self.target)
                came += here
                if here and came == self.nth and self.when == "before":
                    die()
                rename(source, target, **options)
                if here and came == self.nth and self.when == "after":
                    die()

            return watching

        os.rename, os.replace = watched(os.rename), watched(os.replace)
        try:
            yield
        finally:
            os.rename, os.replace = real


@dataclass(frozen=True)
class DyingWork:
    """The work of a Spark task, in a worker that gets SIGKILL at the step."""

    work: Callable[[Iterable[Any]], Iterator[Any]]
    death: Death

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        with self.death.awaited(lambda: os.kill(os.getpid(), signal.SIGKILL)):
            yield from self.work(batches)


class Disk:
    """What stays after a power cut: files that were synced when they were whole, in folders synced with their names."""

    def __init__(self, patched: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        self._sizes: dict[int, int] = {}
        self._names: dict[int, set[str]] = {}
        for module in modules:
            for name, instead in (("sync_file", self._sync_file), ("sync_folder", self._sync_folder)):
                if hasattr(module, name):
                    patched.setattr(module, name, instead)

    def _sync_file(self, descriptor: int) -> None:
        about = os.fstat(descriptor)
        self._sizes[about.st_ino] = about.st_size

    def _sync_folder(self, folder: Path) -> None:
        self._names[folder.stat().st_ino] = {path.name for path in folder.iterdir()}

    def keeps(self, path: Path) -> bool:
        """Whether a file is there as it is now; of a folder, whether its name is there."""
        named = path.name in self._names.get(path.parent.stat().st_ino, ())
        about = path.stat()
        return named and (path.is_dir() or self._sizes.get(about.st_ino) == about.st_size)


class DiedError(Exception):
    """The driver's part of a micro-batch ends here, as if its process did."""


def raise_died() -> None:
    raise DiedError("died at the step")
