"""The stacks of this very process, sampled: a listener that stands at one line is named while it stands there."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from types import FrameType, TracebackType
from typing import Protocol, Self, runtime_checkable

from pyengine.backlog.diagnosis.evidence import HERE, ThreadDump, ThreadState
from pyengine.backlog.diagnosis.rules.threads import CONSUMERS, stuck
from pyengine.backlog.findings import Finding
from pyengine.clock import Clock, SystemClock, Timer
from pyengine.durations import milliseconds
from pyengine.visible import logger

log = logger("pyengine.backlog")


# Which threads are in a listener now, by their idents.
InListener = Callable[[], Collection[int]]


def take_dump(time: int, idents: Collection[int] | None = None) -> ThreadDump:
    """All threads of this process, or those with these idents, as they stand now. time: ms since 1970."""
    frames = sys._current_frames()
    folders = sorted((f"{each}{os.sep}" for each in sys.path if each), key=len, reverse=True)
    threads = tuple(
        ThreadState(
            thread.name,
            "active",
            _stack(frames[thread.ident], folders),
            ident=str(thread.ident),
            cpu=_ran(thread.native_id),
        )
        for thread in threading.enumerate()
        if thread.ident in frames
        and thread is not threading.current_thread()
        and (idents is None or thread.ident in idents)
    )
    return ThreadDump(HERE, time, "python", "", threads)


def _ran(number: int | None) -> float | None:
    """ms that a thread of this process has run; None if the system does not say, as others than Linux."""
    try:
        with open(f"/proc/self/task/{number}/schedstat", "rb") as schedstat:
            return int(schedstat.read().split()[0]) / 1e6
    except (OSError, IndexError, ValueError):
        return None


def _stack(frame: FrameType | None, folders: Sequence[str]) -> tuple[str, ...]:
    lines = []
    while frame is not None:
        lines.append(f"{frame.f_code.co_name} ({_short(frame.f_code.co_filename, folders)}:{frame.f_lineno})")
        frame = frame.f_back
    return tuple(lines)


def _short(file: str, folders: Sequence[str]) -> str:
    """A file's name as py-spy gives it, without the folder that modules are found in: ``threading.py``."""
    return next((file[len(folder) :] for folder in folders if file.startswith(folder)), file)


class Watch:
    """Samples stacks until it is closed and reports each stuck listener once for each stay.

    threads: a regular expression for the names of the threads to watch, or a function that gives the idents of those
    that are in a listener now; None: names that consumers' threads usually have. samples: how many sights of one and
    the same stack make a finding (3 at least). every: ms between two, or a
    timedelta. report: called with each Finding; None: a warning
    in the log ``pyengine.backlog``. clock: None: the system's.

    >>> with Watch(samples=5, every=1000):
    ...     pass  # consume
    """

    def __init__(
        self,
        threads: str | InListener | None = None,
        *,
        samples: int = 5,
        every: int | timedelta = 1000,
        report: Callable[[Finding], object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if samples < 3:
            raise ValueError(f"samples = {samples}: three at least, or every thread at work would be stuck")
        every = milliseconds("every", every)
        if every < 1:
            raise ValueError(f"every = {every}: milliseconds, 1 at least")
        self._threads = threads if callable(threads) else None
        self._names = re.compile(threads) if isinstance(threads, str) else CONSUMERS if threads is None else None
        self._every = every
        self._report = report or (lambda finding: log.warning("%s: %s", finding.where, "; ".join(finding.evidence)))
        self._owns_clock = clock is None
        self._clock = clock or SystemClock("pyengine watch")
        self._dumps: deque[ThreadDump] = deque(maxlen=samples)
        self._told: set[tuple[str, str]] = set()
        self._timer: Timer | None = self._clock.call_at(self._clock.now() + every, self._tick)

    def sample(self) -> list[Finding]:
        """Take one dump now; what stands in all of the last ``samples`` ones."""
        self._dumps.append(take_dump(self._clock.now(), self._threads and self._threads()))
        return list(stuck(list(self._dumps), self._names)) if len(self._dumps) == self._dumps.maxlen else []

    def close(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if self._owns_clock:
                self._clock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tick(self) -> None:
        found = self.sample()
        standing = {(finding.where, finding.code) for finding in found}
        for finding in found:
            if (finding.where, finding.code) not in self._told:
                self._report(finding)
        self._told = standing
        if self._timer is not None:
            self._timer = self._clock.call_at(self._clock.now() + self._every, self._tick)


@runtime_checkable
class Listening(Protocol):
    """What delivers to listeners on one thread at a time: an ActiveMQ session, or a consumer of one."""

    @property
    def listening_thread(self) -> int | None:
        """The ident of the thread that is in a listener now."""


def watch(consumer: object = None, **options: object) -> Watch:
    """Watch a consumer's threads: those named after its ``consumer_group``, or the one that is in its listener.

    consumer: an object with ``consumer_group`` (a RocketMQ push consumer) or with ``listening_thread`` (an ActiveMQ
    session, or a consumer, which stands for its session), a regular expression of thread names, or None for all
    consumers of the process. options: those of :class:`Watch`.
    """
    if consumer is None or isinstance(consumer, str):
        return Watch(consumer, **options)  # type: ignore[arg-type]
    if isinstance(consumer, Listening):
        return Watch(partial(_listening, consumer), **options)  # type: ignore[arg-type]
    group = getattr(consumer, "consumer_group", None)
    if not isinstance(group, str):
        hint = "give the name of its threads instead"
        raise TypeError(f"{type(consumer).__name__} has no consumer_group and no listening_thread: {hint}")
    return Watch(re.escape(f"ConsumeMessageThread_{group[:100]}_"), **options)  # type: ignore[arg-type]


def _listening(consumer: Listening) -> tuple[int, ...]:
    thread = consumer.listening_thread
    return () if thread is None else (thread,)
