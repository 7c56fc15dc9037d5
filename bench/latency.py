"""latency: each step timed by itself, sides in turn; rows of p50, p99 and p99.9."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from bench.contest import RivalMissingError, Row

ROUNDS, STEPS = 15, 2_000
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}

Run = Callable[[int], tuple[list[object], list[int]]]  # steps -> the answer of each, and its nanoseconds


def timed(step: Callable[[int], object]) -> Run:
    """A run of ``step(0)``, ``step(1)``, ... Processor time, the reading of the clock included (some 0.3 us)."""

    def run(steps: int) -> tuple[list[object], list[int]]:
        answers, spent, clock = [], [], time.process_time_ns
        for number in range(steps):
            start = clock()
            answer = step(number)
            spent.append(clock() - start)
            answers.append(answer)
        return answers, spent

    return run


def percentile(spent: list[int], share: float) -> float:
    """Seconds that this share of the steps does not exceed."""
    return sorted(spent)[min(int(len(spent) * share), len(spent) - 1)] * 1e-9


@dataclass(frozen=True)
class Latency:
    """question: a sentence with the workload in it. sides: "pyengine" and the rivals; each is open while it is measured
    and gives its run. at_most: seconds that our p50 may take. goals: rival -> ratio of the p50.
    """

    question: str
    unit: str
    sides: Mapping[str, Callable[[], AbstractContextManager[Run]]]
    at_most: float | None = None
    goals: Mapping[str, float] = field(default_factory=dict)

    def rows(self) -> Iterator[Row]:
        """Rounds of every side in turn; the answers of each round are asserted equal."""
        missing: dict[str, str] = {}
        spent: dict[str, list[list[int]]] = {}
        with ExitStack() as open_sides:
            runs: dict[str, Run] = {}
            for name, side in self.sides.items():
                try:
                    runs[name] = open_sides.enter_context(side())
                except RivalMissingError as reason:
                    missing[name] = str(reason)
            for _ in range(ROUNDS):
                expected: list[object] | None = None
                for name, run in runs.items():
                    answers, nanoseconds = run(STEPS)
                    expected = answers if expected is None else expected
                    assert answers == expected, f"{self.question}: {name} answers differently"
                    spent.setdefault(name, []).append(nanoseconds)
        yield from (row for name in list(self.sides)[1:] or [""] for row in self.against(name, spent, missing))

    def against(self, rival: str, spent: Mapping[str, list[list[int]]], missing: Mapping[str, str]) -> Iterator[Row]:
        """The rows beside one rival: the least and the median of the rounds."""
        ours = spent[next(iter(self.sides))]
        for name, share in PERCENTILES.items():
            values = [percentile(each, share) for each in ours]
            theirs = [percentile(each, share) for each in spent.get(rival, [])]
            first = rival in ("", list(self.sides)[1]) and name == "p50"
            yield Row(
                question=f"{self.question}: {name}",
                unit=self.unit,
                rival=rival,
                ours_best=min(values),
                ours_median=statistics.median(values),
                rival_best=min(theirs, default=None),
                rival_median=statistics.median(theirs) if theirs else None,
                goal=self.goals.get(rival) if name == "p50" else None,
                at_most=self.at_most if first else None,
                note=missing.get(rival, ""),
            )
