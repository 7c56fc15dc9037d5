"""The same thing seen several times: first and last, what changed, and how fast."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import datetime
from typing import Protocol, TypeVar

from pyengine.backlog.findings import Said, say


class Seen(Protocol):
    """Anything with a moment."""

    @property
    def time(self) -> int | None: ...


# A backlog of less than so many seconds of work is normal: clients commit every five seconds, and sizes vary.
BREATH = 10.0

S = TypeVar("S", bound=Seen)


def by_time(states: Iterable[S], key: Callable[[S], Hashable]) -> dict[Hashable, list[S]]:
    """States by key, each list in time order; those without a time keep the order they were read in."""
    series: dict[Hashable, list[S]] = {}
    for state in states:
        series.setdefault(key(state), []).append(state)
    for each in series.values():
        each.sort(key=lambda state: -1 if state.time is None else state.time)
    return series


def seconds(first: Seen, last: Seen) -> float:
    """Seconds between two sights; 0 where either has no time."""
    if first.time is None or last.time is None:
        return 0.0
    return (last.time - first.time) / 1000


def change(before: int | None, after: int | None) -> int | None:
    """after - before, or None where either is unknown."""
    return None if before is None or after is None else after - before


def clock(ms: int) -> str:
    """A moment as people write it, this machine's time zone."""
    return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(" ", "seconds")


def span(number: float) -> str:
    """A length of time as people say it."""
    if number < 120:
        return f"{number:.0f} s"
    if number < 7200:
        return f"{number / 60:.0f} min"
    return f"{number / 3600:.1f} h"


def empty_in(left: float, now: int | None) -> Said:
    """The advice for a backlog that shrinks. left: seconds. now: ms, or None if it is unknown."""
    if not now:
        return say("Healthy: empty in {span}.", span=span(left))
    return say("Healthy: empty in {span}, about {clock}.", span=span(left), clock=clock(now + int(left * 1000)))
