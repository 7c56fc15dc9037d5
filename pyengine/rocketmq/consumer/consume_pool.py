"""The threads that listeners run on: Java's ThreadPoolExecutor with a queue without bound, as RocketMQ sets it up."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from pyengine._engine.rocketmq.client.validators import allowed_core_pool_size
from pyengine.clock import Clock, Timer, Worker
from pyengine.rocketmq.consumer.client import call_later, hand_over
from pyengine.rocketmq.consumer.listener_call import Waiting
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

# The user's own interrupt, which a listener under a manual clock was ended by, once the rest of the task is done; or
# Waiting, if a listener has not answered yet: its thread has no other task before that.
Task = Callable[[], KeyboardInterrupt | Waiting | None]

KEEP_ALIVE = 60_000  # ms that a thread beyond ``core`` stays without a task


class ConsumePool:
    """Up to ``core`` threads; one more with each task until then, as in Java, and never more (spec rocketmq 6.1).

    Of the threads that wait, the one that waits the longest gets the next task. name: prefix of the threads' names,
    numbers follow. maximum: consume_thread_max, which only bounds update_core_pool_size.
    """

    def __init__(self, clock: Clock, name: str, core: int, maximum: int) -> None:
        self._clock = clock
        self._name = name
        self._core = core
        self._maximum = maximum
        self._lock = threading.RLock()  # taken by itself: Ctrl-C within Condition.__enter__ would leave it locked
        self._changed = threading.Condition(self._lock)
        self._tasks: deque[Task] = deque()
        self._idle: deque[tuple[Worker, int]] = deque()  # and since when, ms, if there are more than ``core``
        self._shrinking: Timer | None = None
        self._workers: list[Worker] = []
        self._started = 0
        self._busy = 0
        self._closed = False

    @property
    def core_pool_size(self) -> int:
        """How many threads there may be."""
        return self._core

    def update_core_pool_size(self, size: int) -> None:
        """Change it; silently nothing unless 0 < size < consume_thread_max and size fits a short.

        Larger, threads for tasks that wait start at once. Smaller, the threads that are too many go on as long as they
        get tasks, and end after a minute without one (ThreadPoolExecutor.setCorePoolSize).
        """
        if not allowed_core_pool_size(size, self._maximum):
            return
        called = []
        with self._lock:
            grown, self._core = size - self._core, size
            for _ in range(min(grown, len(self._tasks))):
                if len(self._workers) < size:
                    called.append(self._one_more())
            if len(self._workers) > size:
                now = self._clock.now()
                self._idle = deque((worker, now) for worker, _ in self._idle)
                self._shrink_later()
        self._call(called)

    def submit(self, tasks: Sequence[Task]) -> int:
        """Run each on a thread of the pool. Returns how many it took, from the first on: none once it is closed."""
        called = []
        with self._lock:
            if self._closed:
                return 0
            self._tasks.extend(tasks)
            for _ in tasks:
                if len(self._workers) < self._core:
                    called.append(self._one_more())
                elif self._idle:
                    called.append(self._idle.popleft()[0])
                    self._busy += 1
                else:
                    break
        self._call(called)
        return len(tasks)

    def _one_more(self) -> Worker:
        """A new thread, which is busy; the lock is held."""
        self._started += 1
        worker = self._clock.worker(f"{self._name}{self._started}")
        self._workers.append(worker)
        self._busy += 1
        return worker

    def _call(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.submit(partial(self._drain, worker))

    def _shrink_later(self) -> None:
        """Look again when the thread that waits the longest has waited for long enough; the lock is held."""
        if self._idle and (self._shrinking is None or not self._shrinking.pending):
            self._shrinking = call_later(self._clock, self._idle[0][1] + KEEP_ALIVE, self._shrink)

    def _shrink(self) -> None:
        ended = []
        with self._lock:
            now = self._clock.now()
            while self._idle and len(self._workers) > self._core and now - self._idle[0][1] >= KEEP_ALIVE:
                worker = self._idle.popleft()[0]
                self._workers.remove(worker)
                ended.append(worker)
            if len(self._workers) > self._core and not self._closed:
                self._shrink_later()
        for worker in ended:
            worker.close()

    def close(self, wait: int) -> bool:
        """Take no more tasks and wait up to ``wait`` ms for the rest; what has not begun then never does.

        True if everything was done. A listener that still runs is left to end.
        """
        with self._lock:
            self._closed = True
            done = self._clock.wait(self._changed, lambda: not self._tasks and not self._busy, wait)
            self._tasks.clear()
            idle = list(self._idle)
            if self._shrinking is not None:
                self._shrinking.cancel()
        for worker, _ in idle:
            worker.close()
        return done

    def _run(self, task: Task) -> KeyboardInterrupt | Waiting | None:
        try:
            return task()
        except Exception:
            # The real pool keeps this in a Future that is never read; the batch stays as it is in both.
            log.exception("a consume task of %s failed", self._name)
        return None

    def _drain(self, worker: Worker, first: Task | None = None) -> None:
        """Run tasks until none is left, or a listener waits. first: what its listener has waited with."""
        try:
            self._run_all(worker, first)
        except KeyboardInterrupt:  # the user's own, under a manual clock: the other tasks come when the clock goes on
            worker.submit(partial(self._drain, worker))
            raise

    def _run_all(self, worker: Worker, first: Task | None) -> None:
        task: Task | None = None
        begun = () if first is None else (first,)
        while True:
            try:
                # An iteration, so that no interrupt comes when a task has left the line and has no name yet.
                for task in chain(begun, iter(self._tasks.popleft, None)):
                    outcome = self._run(task)
                    task = None
                    if isinstance(outcome, Waiting):
                        outcome.wake = partial(hand_over, worker, partial(self._drain, worker, outcome.rest))
                        return
                    if outcome is not None:
                        raise outcome
            except IndexError:
                begun = ()
                with self._lock:
                    if self._tasks:
                        continue
                    self._rest(worker)
                    ends = self._closed
                break
            except KeyboardInterrupt:
                if task is not None:  # before or behind its listener: it comes again
                    self._tasks.appendleft(task)
                raise
        if ends:
            worker.close()

    def _rest(self, worker: Worker) -> None:
        """Its thread has no task; the lock is held."""
        self._busy -= 1
        if self._closed:
            self._workers.remove(worker)
        elif len(self._workers) > self._core:
            self._idle.append((worker, self._clock.now()))
            self._shrink_later()
        else:
            self._idle.append((worker, 0))
        self._changed.notify_all()
