"""The threads on which a connection's sessions deliver to listeners (org.apache.activemq.thread.TaskRunnerFactory)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

from pyengine.clock import Clock, Timer, Worker
from pyengine.errors import IllegalStateError

KEEP_ALIVE = 30_000


class SessionTasks:
    """One connection's threads: a pool of at most ``size``, or one for each session.

    A thread of the pool that had nothing to do for 30 s ends.
    """

    def __init__(self, clock: Clock, size: int, *, dedicated: bool) -> None:
        self._clock = clock
        self._size = size
        self._dedicated = dedicated
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._numbers = count(1)
        # Those that wait, with the time since when, in ms; the last one works next.
        self._idle: list[tuple[Worker, int]] = []
        self._timer: Timer | None = None
        self._closed = False

    def task(self, name: str, run: Callable[[], bool]) -> SessionTask:
        """A task that calls ``run`` until it returns False, whenever it is woken up; name: of a thread of its own."""
        if not self._dedicated:
            return SessionTask(self._submit, run)
        worker = self._clock.worker(name)
        self._workers.append(worker)
        return SessionTask(partial(self._submit_to, worker), run)

    def _submit_to(self, worker: Worker, action: Callable[[], None]) -> None:
        with self._lock:  # so that the worker is not closed in between
            if not self._closed:
                worker.submit(action)
                return
        action()

    def _submit(self, action: Callable[[], None]) -> None:
        with self._lock:
            worker = None
            if self._idle:
                worker = self._idle.pop()[0]
            elif len(self._workers) < self._size and not self._closed:
                worker = self._clock.worker(f"ActiveMQ Session Task-{next(self._numbers)}")
                self._workers.append(worker)
            if worker is not None:
                worker.submit(partial(self._work, worker, action))
                return
        action()  # no thread is free: the caller works, as in CallerRunsPolicy

    def _work(self, worker: Worker, action: Callable[[], None]) -> None:
        try:
            action()
        finally:
            with self._lock:
                if not self._closed:
                    self._idle.append((worker, self._clock.now()))
                    if self._timer is None:
                        self._plan()

    def _plan(self) -> None:
        """The first that waits may end when its time has come. The lock is held."""
        # Without a clock the broker has stopped; its connections end too, and their threads with them.
        with suppress(IllegalStateError):
            self._timer = self._clock.call_at(min(since for _, since in self._idle) + KEEP_ALIVE, self._retire)

    def _retire(self) -> None:
        with self._lock:
            self._timer = None
            end = self._clock.now() - KEEP_ALIVE
            gone = [worker for worker, since in self._idle if since <= end]
            self._idle = [(worker, since) for worker, since in self._idle if since > end]
            self._workers = [worker for worker in self._workers if worker not in gone]
            if self._idle:
                self._plan()
        for worker in gone:
            worker.close()

    def close(self) -> None:
        """Let the threads finish what they do and stop them; later tasks run on the thread that submits them."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            workers, self._workers, self._idle, self._closed = self._workers, [], [], True
        for worker in workers:
            worker.close()


class SessionTask:
    """Runs ``run`` on a thread, never on two at once; a wake-up that comes while it runs makes it run again."""

    def __init__(self, submit: Callable[[Callable[[], None]], None], run: Callable[[], bool]) -> None:
        self._submit = submit
        self._run = run
        self._lock = threading.Lock()
        self._wanted = False
        self._running = False

    def wake_up(self) -> None:
        """There may be something to do."""
        with self._lock:
            if self._wanted:
                return
            self._wanted = True
            if self._running:
                return
        self._submit(self._work)

    def _work(self) -> None:
        with self._lock:
            self._wanted = False
            self._running = True
        again = False
        try:
            again = self._run()
        finally:
            with self._lock:
                self._running = False
                again = again or self._wanted
                self._wanted = again
            if again:
                self._submit(self._work)
