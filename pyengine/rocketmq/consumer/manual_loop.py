"""The event loop of coroutine listeners under a manual clock, on the thread that moves the clock."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple, Unpack

from pyengine.clock import Clock

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")
PATIENCE = 0.05  # real seconds for files and executors before a time of the manual clock is waited for


class _ManualSelector(selectors.DefaultSelector):
    """What a loop waits in: it does not wait for a time of the manual clock, but ends that run of the loop."""

    loop: ManualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        real = self.loop.executing > 0 or len(self.get_map()) > 1  # one is how other threads wake the loop
        if real and timeout is None:
            return super().select(None)
        found = super().select(PATIENCE if real else 0)
        if not found:
            self.loop.due = timeout
            self.loop.stop()
        return found


class ManualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a manual clock's: ``asyncio.sleep(60)`` ends when the clock is advanced by a minute.

    Files, sockets and executors are waited for in real time. due: seconds until the next timer, after a run.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.executing = 0
        self.due: float | None = None
        selector = _ManualSelector()
        selector.loop = self
        super().__init__(selector)
        self._clock_resolution = 0.0005  # a timer is due in its ms, however its seconds are rounded

    def time(self) -> float:
        return self.clock.now() / 1000

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Arguments]], Answer], *args: *Arguments
    ) -> asyncio.Future[Answer]:
        found = super().run_in_executor(executor, func, *args)
        self.executing += 1
        found.add_done_callback(self._executed)
        return found

    def _executed(self, _: object) -> None:
        self.executing -= 1
