"""The stacks of this very process, sampled: a listener that stands at one line is named while it stands there."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from pyengine.backlog.evidence import ThreadDump, ThreadState
from pyengine.backlog.findings import Finding
from pyengine.backlog.rules.threads import CONSUMERS, stuck
from pyengine.clock import Clock, SystemClock, Timer

log = logging.getLogger("pyengine.backlog")


def take_dump(time: int) -> ThreadDump:
    """All threads of this process as they stand now. time: ms since 1970."""
    frames = sys._current_frames()
    threads = tuple(
        ThreadState(thread.name, "active", _stack(frames[thread.ident]))
        for thread in threading.enumerate()
        if thread.ident in frames and thread is not threading.current_thread()
    )
    return ThreadDump("this process", time, "python", "", threads)


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    lines = []
    while frame is not None:
        lines.append(f"{frame.f_code.co_name} ({frame.f_code.co_filename}:{frame.f_lineno})")
        frame = frame.f_back
    return tuple(lines)


class Watch:
    """Samples stacks until it is closed and reports each stuck listener once for each stay.

    threads: a regular expression for the names of the threads to watch; None: names that consumers' threads usually
    have. samples: how many sights of one and the same stack make a finding (3 at least). every: ms between two.
    report: called with each Finding; None: a warning in the log ``pyengine.backlog``. clock: None: the system's.

    >>> with Watch(samples=5, every=1000):
    ...     pass  # consume
    """

    def __init__(
        self,
        threads: str | None = None,
        *,
        samples: int = 5,
        every: int = 1000,
        report: Callable[[Finding], object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if samples < 3:
            raise ValueError(f"samples = {samples}: three at least, or every thread at work would be stuck")
        if every < 1:
            raise ValueError(f"every = {every}: milliseconds, 1 at least")
        self._names = re.compile(threads) if threads is not None else CONSUMERS
        self._every = every
        self._report = report or (lambda finding: log.warning("%s: %s", finding.where, "; ".join(finding.evidence)))
        self._owns_clock = clock is None
        self._clock = clock or SystemClock("pyengine watch")
        self._dumps: deque[ThreadDump] = deque(maxlen=samples)
        self._told: set[str] = set()
        self._timer: Timer | None = self._clock.call_at(self._clock.now() + every, self._tick)

    def sample(self) -> list[Finding]:
        """Take one dump now; what stands in all of the last ``samples`` ones."""
        self._dumps.append(take_dump(self._clock.now()))
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
        standing = {finding.where for finding in found}
        for finding in found:
            if finding.where not in self._told:
                self._report(finding)
        self._told = standing
        if self._timer is not None:
            self._timer = self._clock.call_at(self._clock.now() + self._every, self._tick)


def watch(consumer: object = None, **options: object) -> Watch:
    """Watch a consumer's threads: those named after its ``consumer_group``, or after what it gives as a name.

    consumer: an object with ``consumer_group`` (a RocketMQ push consumer), a regular expression of thread names, or
    None for all consumers of the process. options: those of :class:`Watch`.
    """
    if consumer is None or isinstance(consumer, str):
        return Watch(consumer, **options)  # type: ignore[arg-type]
    group = getattr(consumer, "consumer_group", None)
    if not isinstance(group, str):
        raise TypeError(f"{type(consumer).__name__} has no consumer_group: give the name of its threads instead")
    return Watch(re.escape(f"ConsumeMessageThread_{group[:100]}_"), **options)  # type: ignore[arg-type]
