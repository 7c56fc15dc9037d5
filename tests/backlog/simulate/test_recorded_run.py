"""The simulation against a recorded run of the embedded brokers with real threads (tests/backlog/simulate/record.py).

A real worker needs a little longer for a message than its listener does: its thread wakes up, the acknowledgement goes
back, the next message comes. How much is in the recording too. So the workload is played twenty times, each message
with the work its listener really did and one of those recorded gaps, drawn at random; who gets a message turns on less
than a millisecond, so the twenty differ. The recorded run must look like one of them:

- mean waiting time within 5 % of theirs: with 600 messages theirs differ by 3 % among themselves;
- backlog, every 50 ms, within three messages of the lowest and the highest of theirs;
- messages that each consumer took within two of the fewest and the most of theirs.

The same bounds do not hold when a consumer has another prefetch or other threads, or comes or goes at another time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyengine.backlog.simulate.groups import SimulatedClient, simulate_group
from pyengine.backlog.simulate.queues import SimulatedConsumer, Simulation, Workload, simulate

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "recorded-run.json").read_text(encoding="ascii"))
MICROSECOND = 1000
LONGEST_GAP = 50_000  # µs; what waits longer for a free worker lies in a queue that changes hands, which is simulated
RUNS = 20
Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Run:
    """What was recorded; by message the last attempt, µs."""

    consumers: tuple[dict[str, Any], ...]
    arrivals: NDArray[np.int64]
    begun: NDArray[np.int64]
    ended: NDArray[np.int64]
    took: Counter[str]
    gaps: NDArray[np.int64]
    queues: NDArray[np.int32] | None

    @classmethod
    def read(cls, broker: str) -> Run:
        recorded = RECORDED[broker]
        arrivals = np.array(recorded["arrivals"])
        begun, ended = np.full((2, len(arrivals)), -1)
        who = [""] * len(arrivals)
        free = {each["name"]: [each.get("joins_at", 0)] * each.get("threads", 1) for each in recorded["consumers"]}
        gaps = []
        for row, name, begin, end in sorted(recorded["attempts"], key=lambda attempt: attempt[2]):
            begun[row], ended[row], who[row] = begin, end, name
            before = max(moment for moment in free[name] if moment <= begin)
            free[name].remove(before)
            free[name].append(end)
            gap = begin - max(before, arrivals[row])
            if gap < LONGEST_GAP:
                gaps.append(gap)
        queues = np.array(recorded["queues"], np.int32) if "queues" in recorded else None
        return cls(
            tuple(recorded["consumers"]), arrivals, begun, ended, Counter(who), np.array(gaps), queues,
        )  # fmt: skip

    def play(self, seed: int, otherwise: Settings) -> Simulation:
        """The same workload; otherwise: what is different for which consumer."""
        gaps = np.random.default_rng(seed).choice(self.gaps, len(self.arrivals))
        services = (self.ended - self.begun + gaps) * MICROSECOND
        workload = Workload(self.arrivals * MICROSECOND, services, queues=self.queues)
        settings = []
        for each in self.consumers:
            moments = {what: each[what] / 1e6 for what in ("joins_at", "leaves_at") if what in each}
            settings.append(dict(each) | moments | dict(otherwise.get(each["name"], {})))
        if self.queues is None:
            return simulate(workload, [SimulatedConsumer(**each) for each in settings])
        return simulate_group(workload, [SimulatedClient(**each) for each in settings], queues=4, round_trip=0)

    def differences(self, otherwise: Settings) -> list[str]:
        """Where the recorded run is out of bounds."""
        runs = [self.play(seed, otherwise) for seed in range(RUNS)]
        found = []
        wait = float((self.begun - self.arrivals).mean()) / 1e6
        simulated = float(np.mean([run.delays.mean() for run in runs]))
        if abs(wait - simulated) > 0.05 * simulated:
            found.append(f"waiting time {wait:.4f} s, simulated {simulated:.4f} s")
        times = np.arange(0, self.ended.max() / 1e6, 0.05)
        moments = times * 1e6
        backlog = np.searchsorted(self.arrivals, moments, side="right") - np.searchsorted(
            np.sort(self.ended), moments, side="right"
        )
        backlogs = np.array([run.backlog(times) for run in runs])
        out = np.maximum(backlogs.min(0) - backlog, backlog - backlogs.max(0))
        if out.max() > 3:
            found.append(f"backlog {out.max()} messages away at {times[out.argmax()]:.2f} s")
        for each in self.consumers:
            took = [run.work[each["name"]][1] for run in runs]
            if not min(took) - 2 <= self.took[each["name"]] <= max(took) + 2:
                found.append(f"{each['name']} took {self.took[each['name']]}, simulated {min(took)} to {max(took)}")
        return found


@pytest.mark.parametrize("broker", ["activemq", "rocketmq"])
def test_simulation_agrees_with_the_recorded_run(broker: str) -> None:
    run = Run.read(broker)
    assert len(run.arrivals) == 600
    assert (run.arrivals <= run.begun).all()
    assert (run.begun < run.ended).all()
    assert set(run.took) == {"a", "b", "c"}
    assert run.differences({}) == []


@pytest.mark.parametrize(
    ("broker", "otherwise"),
    [
        ("activemq", {"a": {"prefetch": 1}}),
        ("activemq", {"a": {"prefetch": 1000}}),
        ("activemq", {"c": {"joins_at": 2.5}}),
        ("activemq", {"b": {"leaves_at": None}}),
        ("rocketmq", {"b": {"threads": 2}}),
        ("rocketmq", {"c": {"joins_at": 2.0}}),
        ("rocketmq", {"b": {"leaves_at": None}}),
    ],
)
def test_other_settings_do_not_agree(broker: str, otherwise: Settings) -> None:
    assert len(Run.read(broker).differences(otherwise)) >= 2
