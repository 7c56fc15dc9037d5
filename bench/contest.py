"""contest: one question, several sides that answer it; equal answers first, then interleaved times, then ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

ROUNDS = 15
REPETITION = 0.02  # seconds a repetition should last, so that the clock and the loop around it do not count


class RivalMissingError(Exception):
    """A rival that cannot run here; the text says why in one line. Its rows are printed as not available."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Times are CPU seconds a unit of work, the minimum (and median) over the repetitions.

    goal: the ratio rival / ours to reach. at_most: seconds a unit that ours may take. rival_best None: not available.
    bytes: everything here is bytes instead of seconds.
    """

    question: str
    unit: str
    rival: str
    ours_best: float
    ours_median: float
    rival_best: float | None
    rival_median: float | None
    goal: float | None = None
    at_most: float | None = None
    note: str = ""
    bytes: bool = False

    @property
    def ratio(self) -> float | None:
        return None if self.rival_best is None else self.rival_best / self.ours_best

    @property
    def reached(self) -> bool | None:
        """None where there is nothing to reach or no rival to measure."""
        if self.at_most is not None:
            return self.ours_best <= self.at_most
        if self.goal is None or self.ratio is None:
            return None
        return self.ratio >= self.goal


@dataclass(frozen=True)
class Side:
    """call: does ``units`` units of work. answer: the comparable answer to the whole question.

    clock: for work outside this process; returns CPU seconds a unit of one repetition, and then ``call`` is not timed.
    """

    call: Callable[[], object]
    answer: Callable[[], object]
    units: int
    clock: Callable[[], float] | None = None

    def stopwatch(self) -> Callable[[], float]:
        """A function that runs one repetition and returns seconds a unit."""
        if self.clock is not None:
            return self.clock
        call, loops = self.call, 1
        call()
        while True:
            start = time.process_time()
            for _ in range(loops):
                call()
            spent = time.process_time() - start
            if spent >= REPETITION / 2:
                break
            loops = max(loops * 2, int(loops * REPETITION / spent) if spent > REPETITION / 20 else 0)

        def repetition() -> float:
            start = time.process_time()
            for _ in range(loops):
                call()
            return (time.process_time() - start) / (loops * self.units)

        return repetition


@dataclass(frozen=True)
class Contest:
    """question: a sentence with the workload in it. sides: "pyengine" and the rivals, each built when first needed
    (a builder may raise RivalMissingError). goals: rival -> ratio. at_most: seconds a unit ours may take.
    """

    question: str
    unit: str
    sides: Mapping[str, Callable[[], Side]]
    goals: Mapping[str, float]
    at_most: float | None = None
    ours: str = "pyengine"

    @cached_property
    def expected(self) -> object:
        return self.sides[self.ours]().answer()

    def side(self, name: str) -> Side:
        """The side, its answer asserted equal to ours."""
        side = self.sides[name]()
        if name != self.ours:
            answer = side.answer()
            assert answer == self.expected, f"{self.question}: {name} answers differently from {self.ours}"
        return side

    def rows(self) -> Iterator[Row]:
        """Interleaved repetitions of every side; one row for each rival (one in all when there is none)."""
        watches: dict[str, Callable[[], float]] = {self.ours: self.side(self.ours).stopwatch()}
        missing: dict[str, str] = {}
        for name in self.sides:
            if name == self.ours:
                continue
            try:
                watches[name] = self.side(name).stopwatch()
            except RivalMissingError as reason:
                missing[name] = str(reason)
        times: dict[str, list[float]] = {name: [] for name in watches}
        for _ in range(ROUNDS):
            for name, watch in watches.items():
                spent = watch()
                assert spent > 0, f"{self.question}: {name} says that it took {spent} s a {self.unit}"
                times[name].append(spent)
        best = {name: min(values) for name, values in times.items()}
        median = {name: statistics.median(values) for name, values in times.items()}
        for place, name in enumerate([name for name in self.sides if name != self.ours] or [""]):
            yield Row(
                question=self.question,
                unit=self.unit,
                rival=name,
                ours_best=best[self.ours],
                ours_median=median[self.ours],
                rival_best=best.get(name),
                rival_median=median.get(name),
                goal=self.goals.get(name),
                at_most=None if place else self.at_most,
                note=missing.get(name, ""),
            )


def speed_test(contests: Callable[[], Iterator[Contest]]) -> Callable[..., None]:
    """The pytest-benchmark test of a bench module: every side of every question, grouped by question."""
    import pytest

    cases = [
        pytest.param(contest, name, id=f"{contest.question} - {name}")
        for contest in contests()
        for name in contest.sides
    ]

    @pytest.mark.parametrize(("contest", "name"), cases)
    def test_speed(contest: Contest, name: str, benchmark: object) -> None:
        try:
            side = contest.side(name)
        except RivalMissingError as reason:
            pytest.skip(str(reason))
        benchmark.group = contest.question  # type: ignore[attr-defined]
        benchmark.extra_info.update(side=name, unit=contest.unit, units_per_call=side.units)  # type: ignore[attr-defined]
        if side.clock is not None:
            benchmark.extra_info["seconds_a_unit_by_own_clock"] = side.clock()  # type: ignore[attr-defined]
        benchmark(side.call)  # type: ignore[operator]

    return test_speed
