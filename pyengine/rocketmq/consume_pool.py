"""The threads that listeners run on: Java's ThreadPoolExecutor with a queue without bound, as RocketMQ sets it up."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from pyengine._engine.consumer_parameters import allowed_core_pool_size
from pyengine.clock import Clock, Worker

log = logging.getLogger("pyengine.rocketmq")

Task = Callable[[], None]


class ConsumePool:
    """Up to ``core`` threads; one more with each task until then, as in Java, and never more (spec rocketmq 6.1).

    name: prefix of the threads' names, numbers follow. maximum: consume_thread_max, which only bounds
    update_core_pool_size.
    """

    def __init__(self, clock: Clock, name: str, core: int, maximum: int) -> None:
        self._clock = clock
        self._name = name
        self._core = core
        self._maximum = maximum
        self._changed = threading.Condition()
        self._tasks: deque[Task] = deque()
        self._idle: list[Worker] = []
        self._workers: list[Worker] = []
        self._started = 0
        self._busy = 0
        self._closed = False

    @property
    def core_pool_size(self) -> int:
        """How many threads there may be."""
        return self._core

    def update_core_pool_size(self, size: int) -> None:
        """Change it; silently nothing unless 0 < size < consume_thread_max and size fits a short."""
        if allowed_core_pool_size(size, self._maximum):
            with self._changed:
                self._core = size

    def submit(self, tasks: Sequence[Task]) -> int:
        """Run each on a thread of the pool. Returns how many it took, from the first on: none once it is closed."""
        called = []
        with self._changed:
            if self._closed:
                return 0
            self._tasks.extend(tasks)
            for _ in tasks:
                if len(self._workers) < self._core:
                    self._started += 1
                    worker = self._clock.worker(f"{self._name}{self._started}")
                    self._workers.append(worker)
                elif self._idle:
                    worker = self._idle.pop()
                else:
                    break
                self._busy += 1
                called.append(worker)
        for worker in called:
            worker.submit(partial(self._drain, worker))
        return len(tasks)

    def close(self, wait: int) -> bool:
        """Take no more tasks and wait up to ``wait`` ms for the rest; what has not begun then never does.

        True if everything was done. A listener that still runs is left to end.
        """
        with self._changed:
            self._closed = True
            done = self._clock.wait(self._changed, lambda: not self._tasks and not self._busy, wait)
            self._tasks.clear()
            idle = list(self._idle)
        for worker in idle:
            worker.close()
        return done

    def _run(self, task: Task) -> None:
        try:
            task()
        except Exception:
            # The real pool keeps this in a Future that nobody reads; the batch stays as it is in both.
            log.exception("a consume task of %s failed", self._name)

    def _drain(self, worker: Worker) -> None:
        """Run tasks until none is left, or this thread is one too many."""
        try:
            self._run_all(worker)
        except KeyboardInterrupt:  # the user's own, under a manual clock: the other tasks come when the clock goes on
            worker.submit(partial(self._drain, worker))
            raise

    def _run_all(self, worker: Worker) -> None:
        while True:
            with self._changed:
                retires = self._closed or len(self._workers) > self._core
                if not self._tasks or (retires and not self._closed):
                    self._busy -= 1
                    if retires:
                        self._workers.remove(worker)
                    else:
                        self._idle.append(worker)
                    self._changed.notify_all()
                    break
                task = self._tasks.popleft()
            self._run(task)
            # Without the lock: whether to end is asked under it once no task is left, or a thread is one too many.
            while len(self._workers) <= self._core:
                try:
                    task = self._tasks.popleft()
                except IndexError:
                    break
                self._run(task)
        if retires:
            worker.close()
