"""Sights of the same queues put in order, and given times, before rules compare them.

A date in the text counts as it is. The time of a file does not survive a copy, a mail or a checkout: the broker's own
offsets only grow, and so do the times at which it stored what was consumed last; they order what has no date.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cmp_to_key

from pyengine.backlog.diagnosis.evidence import HERE, Evidence, OffsetState
from pyengine.backlog.diagnosis.rules.series import change
from pyengine.dataclass import dataclass

Queue = tuple[str, str, int]  # topic, broker, number


@dataclass(frozen=True, slots=True)
class Sight:
    """One table of one group. read: its place among all that was read."""

    read: int
    states: dict[Queue, OffsetState]

    @property
    def time(self) -> int | None:
        return next(iter(self.states.values())).time

    @property
    def dated(self) -> bool:
        state = next(iter(self.states.values()))
        return state.dated or state.file == HERE

    @property
    def newest(self) -> int | None:
        """The newest store time in it: it was not taken before that."""
        return max((each.last_time for each in self.states.values() if each.last_time), default=None)


def in_order(evidence: Evidence) -> Evidence:
    """The evidence with its offsets in the order of their moments, each with the best time that is known of it."""
    if not evidence.offsets:
        return evidence
    tables: dict[tuple[str, str], dict[tuple[str, int, int | None], dict[Queue, OffsetState]]] = {}
    for state in evidence.offsets:
        table = tables.setdefault((state.system, state.group), {})
        states = table.setdefault((state.file, state.sight, state.time), {})
        states[state.topic, state.broker, state.queue] = state
    offsets: list[OffsetState] = []
    for table in tables.values():
        sights = [Sight(number, states) for number, states in enumerate(table.values())]
        for sight, time in _timed(sorted(sights, key=cmp_to_key(_compare))):
            offsets.extend(replace(each, time=time) for each in sight.states.values())
    return replace(evidence, offsets=_with_ranges(offsets, evidence))


def _compare(one: Sight, other: Sight) -> int:
    """Below 0 if ``one`` was taken before ``other``."""
    if one.time != other.time and one.time is not None and other.time is not None:
        order = -1 if one.time < other.time else 1
    else:
        order = one.read - other.read
    if one.dated and other.dated:
        return order
    earlier, later = (one, other) if order < 0 else (other, one)
    return -order if _swapped(earlier, later) else order


def _swapped(earlier: Sight, later: Sight) -> bool:
    """The broker's own offsets tell that what counts as the later look was the earlier one.

    They went back there, and so they do where a broker lost messages: then more than half of what they were is gone, or
    the group's offsets went back with them while the store times went on.
    """
    both = [(earlier.states[queue], later.states[queue]) for queue in earlier.states.keys() & later.states.keys()]
    grown = [change(first.broker_offset, last.broker_offset) or 0 for first, last in both]
    if max(grown, default=0) > 0 or not any(grown):
        return False
    if any((change(first.consumer_offset, last.consumer_offset) or 0) > 0 for first, last in both):
        return True
    times = change(earlier.newest, later.newest) or 0
    if times:
        return times < 0
    ends = [sorted((first.broker_offset or 0, last.broker_offset or 0)) for first, last in both]
    return not any(2 * lower < higher for lower, higher in ends)


def _timed(sights: Sequence[Sight]) -> list[tuple[Sight, int | None]]:
    """A time for each, never falling: its own; else, if the files have none, its newest store time."""
    times = [sight.time for sight in sights]
    known = [time for time in times if time is not None]
    if len(known) < len(times) or len(sights) < 2:
        return list(zip(sights, times, strict=True))
    dated = [sight.dated for sight in sights]
    if not all(dated):
        known.sort()  # of files that were written in another order than the looks were taken
        stored = [sight.newest for sight in sights]
        dates = [time for time in stored if time]
        # A date in one file and the time of another one may be years apart.
        if any(dated) or known[-1] - known[0] < 1000:
            if len(dates) == len(stored) and dates == sorted(set(dates)):
                known = dates
            elif any(dated):
                return [(sight, None) for sight in sights]
    return list(zip(sights, known, strict=True))


def _with_ranges(offsets: list[OffsetState], evidence: Evidence) -> list[OffsetState]:
    """With the broker's offsets by topicStatus where the offsets' own file has none (consumerOffset.json)."""
    if not evidence.ranges:
        return offsets
    found = []
    for state in offsets:
        range_ = next(
            (
                each
                for each in reversed(evidence.ranges)
                if (each.topic, each.queue) == (state.topic, state.queue) and each.broker in (state.broker, "")
            ),
            None,
        )
        if range_ is None and not state.broker:
            known = [each for each in evidence.ranges if (each.topic, each.queue) == (state.topic, state.queue)]
            range_ = known[0] if len(known) == 1 else None
        if range_ is not None:
            newest = range_.max_offset if state.broker_offset is None else state.broker_offset
            oldest = range_.min_offset if state.min_offset is None else state.min_offset
            state = replace(state, broker_offset=newest, min_offset=oldest)
        found.append(state)
    return found
