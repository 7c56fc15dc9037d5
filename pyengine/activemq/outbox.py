"""The broker's lock, and what a change made under it wants delivered afterwards.

A change runs with the lock held and posts its deliveries; they are made in order once the lock is free, by one thread
at a time. So whoever is called may call the broker again, and order holds over all threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from pyengine.activemq.commands import ConnectionSink, MessageAck, MessageDispatch
from pyengine.clock import Clock, Worker


class Units(Protocol):
    """What keeps the changes: a store, in which each change is written whole."""

    def seal(self) -> int:
        """The present change is over; returns its number, 0 if there is nothing to keep."""

    def wait(self, unit: int) -> None:
        """Return when the change of that number is kept."""

    def write(self) -> bool:
        """Keep all changes that are over; False, and nothing is done, if another thread is at it."""


class Outbox:
    """``with outbox:`` is one change of the broker's state; ``post`` says what to call once it is over, and ``posted``
    are these calls, for whoever has many of them.

    A call that was posted returns None, or a tuple: then ``answered`` is called with its items, as a change that nobody
    waits for. units: where changes are kept; a change that kept something is over when it is written. later: called,
    with the lock free, when a change that nobody waits for was left unwritten because another thread was writing.
    handed_over: what ``answered`` is to be called with for threads that found another one at work; these changes are
    made before any that begins later.
    """

    def __init__(
        self,
        units: Units | None = None,
        later: Callable[[], object] = lambda: None,
        answered: Callable[..., object] = lambda *answer: None,
    ) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        self._units = units
        self._later = later
        self._answered = answered
        self.posted: deque[tuple[Callable[[Any], Any], Any]] = deque()
        self.handed_over: deque[tuple[Any, ...]] = deque()
        self._delivering = False

    def post(self, call: Callable[[Any], Any], argument: Any) -> None:
        """Call ``call(argument)`` after this change. The lock is held by the caller."""
        self.posted.append((call, argument))

    def __enter__(self) -> Outbox:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def begin(self, wait: bool = True) -> bool:
        """Begin a change, or a part of one; ``leave`` ends it, as ``with`` does by itself.

        wait: False not to wait for a thread that is making one; nothing is begun then, and False returned.
        """
        if not self.lock.acquire(wait):
            return False
        self.depth += 1
        if self.handed_over:
            self._take_over()
        return True

    def hand_over(self, *answer: Any) -> None:
        """Have the thread that is making a change call ``answered`` with this, as a change that nobody waits for.

        Waiting for that thread would stop this one at every message, once the two have met: a lock that is given back
        goes to the one who waits for it, so each of them finds the other one there from then on.
        """
        self.handed_over.append(answer)
        # That thread looks once more when it has given the lock back; here it has done so already.
        if self.begin(False):
            self.leave(False)

    def _take_over(self) -> None:
        """Call ``answered`` with what was handed over. The lock is held."""
        if self.depth == 1:
            while self.handed_over:
                self._answered(*self.handed_over.popleft())

    def leave(self, wait: bool = True) -> None:
        """A change, or a part of one, is over: it is kept, and the calls that it posted are made, unless another change
        is at it.

        wait: False where nobody asks for an answer: the change is written at once unless another thread is writing.
        """
        lock, posted = self.lock, self.posted
        while True:
            depth = self.depth = self.depth - 1
            if depth:
                lock.release()
                return
            unit = 0 if self._units is None else self._units.seal()
            answers = 0
            try:
                if posted and not self._delivering:
                    self._delivering = True
                    try:
                        while posted:
                            call, argument = posted.popleft()
                            lock.release()
                            try:
                                answer = call(argument)
                            finally:
                                lock.acquire()
                            if answer is not None:
                                answers = self._answer(answer) or answers
                    finally:
                        self._delivering = False
            finally:
                lock.release()
                if unit:
                    self._keep(unit, wait)
                if answers:
                    self._keep(answers, False)
            if not self.handed_over or not self.begin(False):
                return
            wait = False

    def _answer(self, answer: tuple[Any, ...]) -> int:
        """Make the change that a posted call asked for; return its unit. The lock is held."""
        self.depth += 1
        try:
            if self.handed_over:
                self._take_over()
            self._answered(*answer)
        finally:
            self.depth -= 1
        return 0 if self._units is None else self._units.seal()

    def _keep(self, unit: int, wait: bool) -> None:
        assert self._units is not None
        if wait:
            self._units.wait(unit)
        elif not self._units.write():
            self._later()


class DispatchTask:
    """The dispatch task of one connection: hands it what is dispatched asynchronously, in order, on a worker.

    acknowledge: called with what the connection answers.
    """

    def __init__(
        self,
        clock: Clock,
        name: str,
        sink: ConnectionSink,
        acknowledge: Callable[[MessageAck, Callable[[Exception], object]], object],
    ) -> None:
        self._clock = clock
        self._name = name
        self._sink = sink
        self._acknowledge = acknowledge
        self._waiting: deque[MessageDispatch] = deque()
        self._lock = threading.Lock()
        self._asked = False
        self._closed = False
        self._worker: Worker | None = None

    def add(self, command: MessageDispatch) -> None:
        """Deliver ``command`` on the task's worker, after those before it."""
        self._waiting.append(command)
        if not self._asked:
            self._ask()

    def _ask(self) -> None:
        with self._lock:
            if self._asked or self._closed:
                return
            self._asked = True
            if self._worker is None:
                self._worker = self._clock.worker(self._name)
            self._worker.submit(self._run)  # with the lock: nobody closes it in between

    def close(self) -> None:
        """Stop; what was not delivered yet is not."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            worker = self._worker
        if worker is not None:
            worker.close()

    def _run(self) -> None:
        waiting, sink = self._waiting, self._sink
        try:
            while waiting:
                if len(waiting) > 1 and sink.dispatch_all is not None:
                    sink.dispatch_all([waiting.popleft() for _ in range(len(waiting))])
                elif (answer := sink.dispatch(waiting.popleft())) is not None:
                    self._acknowledge(*answer)
        finally:
            # Whoever adds looks at ``asked`` afterwards, so it is taken back before the last look at what waits.
            self._asked = False
            if waiting:
                self._ask()
