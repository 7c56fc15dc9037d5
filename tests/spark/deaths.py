"""Death at a chosen step: just before or just after a file or a folder gets its name."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


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


class DiedError(Exception):
    """The driver's part of a micro-batch ends here, as if its process did."""


def raise_died() -> None:
    raise DiedError("died at the step")
