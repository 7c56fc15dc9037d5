"""The time that a runtime lives by: the system's, or one that a test moves by hand.

Everything in the runtimes that waits, fires later or works on a thread of its own asks the clock. Under
:class:`SystemClock` that means real threads; under :class:`ManualClock` nothing runs by itself: work is done on the
calling thread, in the order in which it was asked for, so every run of a script is the same run.
"""

from __future__ import annotations

import heapq
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import count
from queue import SimpleQueue
from threading import get_ident
from typing import Any
from weakref import WeakSet

from pyengine.attributes import named_arguments
from pyengine.durations import milliseconds, whole_milliseconds
from pyengine.errors import IllegalStateError
from pyengine.whole_numbers import is_whole_number

Action = Callable[[], Any]

# ms by which the system's time must have been set back for timers to move with it; less is how time is kept right.
SET_BACK = 500

# Actions of a manual clock that wait within one another; each is some ten frames of Python's stack.
DEEPEST = 50

# Seconds after which a thread that waits for another one's turn looks again.
SLICE = 0.002

# Timers that a clock keeps without asking which of them were cancelled.
FEW_TIMERS = 64


class Timer:
    """An action that a clock will run once, at ``when`` (ms), unless it is cancelled first."""

    __slots__ = ("_action", "when")

    def __init__(self, when: int, action: Action) -> None:
        self.when = when
        self._action: Action | None = action

    def cancel(self) -> None:
        """Never run the action; harmless when it ran already."""
        self._action = None

    @property
    def pending(self) -> bool:
        """True until the action ran or was cancelled."""
        return self._action is not None

    def fire(self) -> None:
        """Run the action, if it is still wanted."""
        action, self._action = self._action, None
        if action is not None:
            action()


class _Timers:
    """The timers of a clock, the earliest first; of those due together the one that was asked for first.

    A cancelled one goes when it is the earliest, or with the others before so many were added as are pending: cancelled
    timers never outnumber pending ones by more than a few.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._number = count()
        self._sweep_at = FEW_TIMERS

    def add(self, when: int, action: Action) -> Timer:
        if len(self._heap) >= self._sweep_at:
            pending = [entry for entry in self._heap if entry[2].pending]
            heapq.heapify(pending)
            self._sweep_at = max(FEW_TIMERS, 2 * len(pending))
            self._heap = pending
        timer = Timer(when, action)
        heapq.heappush(self._heap, (when, next(self._number), timer))
        return timer

    def next(self) -> int | None:
        """When the earliest that is pending is due."""
        while self._heap and not self._heap[0][2].pending:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> tuple[int, Timer]:
        when, _, timer = heapq.heappop(self._heap)
        return when, timer

    def set_back(self, milliseconds: int) -> None:
        """Let all be due so much earlier; their order stays."""
        self._heap = [(when - milliseconds, number, timer) for when, number, timer in self._heap]

    def clear(self) -> None:
        self._heap.clear()


class _SharedTimers(_Timers):
    """The same for several threads."""

    def __init__(self, timers: _Timers) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._heap = timers._heap
        self._number = timers._number
        self._sweep_at = timers._sweep_at

    def add(self, when: int, action: Action) -> Timer:
        with self._lock:
            return super().add(when, action)

    def next(self) -> int | None:
        with self._lock:
            return super().next()

    def pop(self) -> tuple[int, Timer]:
        with self._lock:
            return super().pop()

    def clear(self) -> None:
        with self._lock:
            super().clear()


class Worker(ABC):
    """Runs actions one after the other, in the order given; a thread under the system's clock."""

    @abstractmethod
    def submit(self, action: Action) -> None:
        """Run ``action`` after those given before. Raises IllegalStateError on a closed worker."""

    @abstractmethod
    def close(self) -> None:
        """Run what was submitted, then stop; returns when it has stopped (at once on the worker's own thread)."""


class Clock(ABC):
    """Milliseconds since 1970, timers, waiting and workers.

    settles: whether ``settle`` may have something to do.
    """

    settles = True

    @abstractmethod
    def now(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""

    @abstractmethod
    def call_at(self, when: int, action: Action) -> Timer:
        """Run ``action`` once when :meth:`now` reaches ``when`` (ms). Those due together run in the order given."""

    @abstractmethod
    def wait(
        self, condition: threading.Condition, ready: Callable[[], bool], timeout_ms: int | timedelta | None = None
    ) -> bool:
        """Wait until ``ready()`` is true, at most ``timeout_ms`` (None: for ever); returns ``ready()``.

        ``condition`` is held by the caller. Under a manual clock waiting moves the time, timer by timer, and without a
        timeout it raises IllegalStateError if no timer is left that could change anything.
        """

    @abstractmethod
    def worker(self, name: str) -> Worker:
        """A new worker; ``name`` is its thread's name."""

    @abstractmethod
    def close(self) -> None:
        """Stop the clock's own thread; pending timers never run."""

    @abstractmethod
    def settle(self) -> None:
        """Under a manual clock: run what workers were asked to do; real threads need no help."""


class SystemClock(Clock):
    """The system's time and real threads. One daemon thread runs all timers of this clock; it starts with the first.

    name: the name of that thread. An action that raises is reported through :func:`threading.excepthook`; the timers
    behind it still run. If the system's time is set back, timers move back with it: a timer that was due in a second
    fires in a second, though :meth:`now` is then before ``when``.
    """

    settles = False

    def __init__(self, name: str = "pyengine timer") -> None:
        self._name = name
        # Taken by itself: Ctrl-C within Condition.__enter__ would leave it locked.
        self._lock = threading.RLock()
        _system_clocks.add(self)
        self._changed = threading.Condition(self._lock)
        self._timers = _Timers()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._ahead = self._of_monotonic()

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def _of_monotonic(self) -> int:
        """How far the system's time is ahead of the monotonic time, ms."""
        return self.now() - time.monotonic_ns() // 1_000_000

    def _move_with_time(self) -> None:
        """Let timers keep their distance to a time that was set back. The lock is held."""
        ahead = self._of_monotonic()
        back = self._ahead - ahead
        if abs(back) >= SET_BACK:
            self._ahead = ahead
        if back >= SET_BACK:
            self._timers.set_back(back)

    def call_at(self, when: int, action: Action) -> Timer:
        with self._lock:
            if self._closed:
                raise IllegalStateError("the clock is closed")
            self._move_with_time()
            earliest = self._timers.next()
            timer = self._timers.add(when, action)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    self._thread.start()
                except BaseException:  # Ctrl-C too; the thread may run by then
                    self._thread = None
                    raise
            if earliest is None or when < earliest:  # otherwise it sleeps long enough
                self._changed.notify()
        return timer

    def wait(
        self, condition: threading.Condition, ready: Callable[[], bool], timeout_ms: int | timedelta | None = None
    ) -> bool:
        return condition.wait_for(ready, None if timeout_ms is None else milliseconds("timeout_ms", timeout_ms) / 1000)

    def worker(self, name: str) -> Worker:
        return _ThreadWorker(name)

    def settle(self) -> None:
        pass

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._timers.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        with self._lock:
            if self._thread is not threading.current_thread():
                return
        while True:
            with self._lock:
                self._move_with_time()
                while not self._closed and ((due := self._timers.next()) is None or due > self.now()):
                    ahead = None if due is None else due - self.now()
                    self._changed.wait(None if ahead is None else min(ahead / 1000, threading.TIMEOUT_MAX))
                    self._move_with_time()
                if self._closed:
                    return
                _, timer = self._timers.pop()
            _report(timer.fire)


# A process that is forked has no timer thread: were its clock's lock held by that one just then, it would stay held.
_system_clocks: WeakSet[SystemClock] = WeakSet()
_held: list[SystemClock] = []


def _before_fork() -> None:
    _held.extend(_system_clocks)
    for clock in _held:
        clock._lock.acquire()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()


def _in_child() -> None:
    for clock in _held:  # what its timers were for is the parent's; a new timer starts a thread of this process
        clock._timers.clear()
        clock._thread = None
        clock._changed = threading.Condition(clock._lock)
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


@named_arguments
class ManualClock(Clock):
    """A time that stands still until it is moved. now: its first value, ms.

    It belongs to the thread that made it, and raises IllegalStateError on any other: what would run on other threads
    runs inside :meth:`advance`, :meth:`wait` and :meth:`settle`, and what an action raises comes out there. A broker
    that listens makes its clock one that all threads :meth:`share`.
    """

    def __init__(self, now: int = 1_000_000_000_000) -> None:
        self._owner = threading.current_thread()
        self._owner_ident = get_ident()
        self._now = now
        self._timers = _Timers()
        self._asked: deque[tuple[_ManualWorker, Action]] = deque()
        self._settling = False
        self._waits = 0
        self._turn: AbstractContextManager[object] | None = None  # of the thread that runs actions; None: not shared

    def __getstate__(self) -> dict[str, object]:
        if self._turn is not None:
            raise TypeError("a ManualClock that threads share cannot be pickled")
        return {name: value for name, value in vars(self).items() if name not in ("_owner", "_owner_ident")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _owner=threading.current_thread(), _owner_ident=get_ident())

    def share(self) -> AbstractContextManager[object]:
        """Let every thread use this clock from now on. Actions run on the thread that moves the time or settles, one
        thread at a time; with what is returned, ``with turn:``, a thread keeps the others from that."""
        self._check_thread()
        if self._turn is None:
            self._timers = _SharedTimers(self._timers)
            self._turn = threading.RLock()
        return self._turn

    def _check_thread(self) -> None:
        if self._turn is None and get_ident() != self._owner_ident:
            raise IllegalStateError(
                f"this ManualClock belongs to thread {self._owner.name!r}, and this is thread "
                f"{threading.current_thread().name!r}: its time moves for one thread; with several use SystemClock()"
            )

    def now(self) -> int:
        if get_ident() != self._owner_ident:
            self._check_thread()
        return self._now

    def call_at(self, when: int, action: Action) -> Timer:
        self._check_thread()
        return self._timers.add(when, action)

    def wait(
        self, condition: threading.Condition, ready: Callable[[], bool], timeout_ms: int | timedelta | None = None
    ) -> bool:
        self._check_thread()
        end = None if timeout_ms is None else self._now + milliseconds("timeout_ms", timeout_ms)
        if self._turn is not None:
            return self._wait_in_turn(condition, ready, end)
        while not ready():
            if self._settling:
                self._give_turns_to_others(ready)
            else:
                self.settle()
            if ready():
                break
            following = self._timers.next()
            if following is None and end is None:
                raise IllegalStateError(
                    "waiting without a timeout under a manual clock, and no timer is left that could end it"
                )
            if end is not None and (following is None or following > end):
                self._now = max(self._now, end)
                break
            self._step()
        return ready()

    def _wait_in_turn(self, condition: threading.Condition, ready: Callable[[], bool], end: int | None) -> bool:
        """``wait`` on a clock that threads share: while another one acts, it has ``condition`` too."""
        turn: Any = self._turn
        while not ready():
            if not turn.acquire(blocking=False):
                condition.wait(SLICE)
                continue
            try:
                self.settle()
                if ready():
                    break
                following = self._timers.next()
                if following is not None and (end is None or following <= end):
                    self._step()
                    continue
                if end is not None:
                    self._now = max(self._now, end)
                    break
            finally:
                turn.release()
            condition.wait(SLICE)
        return ready()

    def worker(self, name: str) -> Worker:
        self._check_thread()
        return _ManualWorker(self, name)

    def close(self) -> None:
        self._timers.clear()

    def advance(self, milliseconds: int | timedelta) -> None:
        """Move the time on by so many ms, or a timedelta, running every timer that falls due, each at its own moment,
        and all that they ask for."""
        self._check_thread()
        if isinstance(milliseconds, timedelta):
            milliseconds = whole_milliseconds(milliseconds)
        if not is_whole_number(milliseconds):
            raise TypeError(f"milliseconds = {milliseconds!r}: a whole number of ms, or a timedelta; a second is 1000")
        if milliseconds < 0:
            raise ValueError(f"milliseconds = {milliseconds}: time does not go back")
        if self._turn is None:
            self._advance(milliseconds)
            return
        with self._turn:
            self._advance(milliseconds)

    def _advance(self, milliseconds: int) -> None:
        end = self._now + milliseconds
        self.settle()
        while (following := self._timers.next()) is not None and following <= end:
            self._step()
        self._now = max(self._now, end)  # an action may itself have moved the time

    def settle(self) -> None:
        """Run what was submitted to workers, and what that submits, until nothing is left; no time passes.

        Within an action of a worker this is left to the call that settles already.
        """
        if get_ident() != self._owner_ident:
            self._check_thread()
        if self._turn is not None:
            with self._turn:
                self._settle()
        elif self._asked:
            self._settle()

    def _settle(self) -> None:
        if self._settling or not self._asked:
            return
        self._settling = True
        try:
            self._waits = 0
            self._give_turns()
        finally:
            self._settling = False

    def _give_turns_to_others(self, ready: Callable[[], bool]) -> None:
        """An action waits here: until it is ready the other workers go on, where not DEEPEST wait already."""
        if self._waits < DEEPEST:
            self._waits += 1
            try:
                self._give_turns(ready)
            finally:
                self._waits -= 1

    def _give_turns(self, ready: Callable[[], bool] | None = None) -> None:
        """Run what was submitted. ready: until it is true, and without workers that are at work, as a thread does one
        thing at a time."""
        at = 0
        while at < len(self._asked) and not (ready is not None and ready()):
            worker, action = self._asked[at]
            if ready is not None and worker.at_work:
                at += 1
                continue
            del self._asked[at]
            at = 0
            worker.at_work = True
            try:
                action()
            finally:
                worker.at_work = False

    def ask(self, worker: _ManualWorker, action: Action) -> None:
        """Run ``action`` at the next :meth:`settle`."""
        if get_ident() != self._owner_ident:
            self._check_thread()
        self._asked.append((worker, action))

    def _step(self) -> None:
        when, timer = self._timers.pop()
        self._now = max(self._now, when)
        timer.fire()
        self.settle()


class _ThreadWorker(Worker):
    def __init__(self, name: str) -> None:
        self._asked: SimpleQueue[Action | None] = SimpleQueue()  # None: the end
        self._lock = threading.Lock()  # nothing comes behind the end
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, action: Action) -> None:
        with self._lock:
            if self._closed:
                raise IllegalStateError(f"worker {self._thread.name!r} is closed")
            self._asked.put(action)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._asked.put(None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while (action := self._asked.get()) is not None:
            _report(action)


class _ManualWorker(Worker):
    def __init__(self, clock: ManualClock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._closed = False
        self.at_work = False

    def submit(self, action: Action) -> None:
        if self._closed:
            raise IllegalStateError(f"worker {self._name!r} is closed")
        self._clock.ask(self, action)

    def close(self) -> None:
        self._closed = True
        self._clock.settle()


def _report(action: Action) -> None:
    """Run an action on a thread of ours; what it raises goes where a thread's own exceptions go."""
    try:
        action()
    except BaseException as error:  # the thread has more to do
        threading.excepthook(
            threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
        )
