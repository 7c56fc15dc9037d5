"""A group's run on offsets alone against a slow one with message objects, the live client's own calls and tuples.

`python -m tests.backlog.simulate.test_pull_run 500` plays so many random traces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyengine._engine.simulation.group_simulation import PullRun
from pyengine.errors import InvalidMessageError
from pyengine.rocketmq.tables.allocation import MessageQueue
from tests.model.pull_run_model import MS, PullRunModel

SECOND = 1000 * MS


def parameters(rng: np.random.Generator) -> dict[str, Any]:
    """A client's settings, limits low enough that all of them hold pulls back now and then."""
    return {
        "threads": int(rng.integers(1, 5)),
        "factor": float(rng.choice([0.5, 1.0, 3.0])),
        "pull_batch_size": int(rng.integers(1, 33)),
        "pull_interval": int(rng.choice([0, 0, 0, 20])),
        "consume_message_batch_max_size": int(rng.integers(1, 6)),
        "pull_threshold_for_queue": int(rng.choice([5, 1000])),
        "pull_threshold_size_for_queue": int(rng.choice([1, 100])),
        "consume_concurrently_max_span": int(rng.choice([10, 2000])),
        "pull_threshold_for_topic": int(rng.choice([-1, -1, 30])),
        "pull_threshold_size_for_topic": int(rng.choice([-1, -1, 2])),
        "max_reconsume_times": int(rng.choice([-1, 0, 2])),
        "consume_timeout": int(rng.integers(1, 3)),
    }


def group_of(queues: int) -> tuple[list[MessageQueue], Callable[[str, list[str], bool], list[MessageQueue]]]:
    """The queues of a topic and of its retries, and who gets which: in turn, and the first the retries."""
    topic = [MessageQueue("t", "b", number) for number in range(queues)]
    retry = MessageQueue("%RETRY%g", "b", 0)

    def allocate(name: str, names: list[str], of_retry: bool) -> list[MessageQueue]:
        mine = sorted(names).index(name)
        return ([retry] if mine == 0 else []) if of_retry else topic[mine :: len(names)]

    return [*topic, retry], allocate


@pytest.mark.parametrize("seed", range(6))
def test_equals_the_run_with_the_live_client_s_calls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, queues = 400, int(rng.integers(1, 5))
    everything, allocate = group_of(queues)
    grain = int(rng.choice([1, MS, 10 * MS]))  # coarse: many things happen at one moment
    arrivals = np.cumsum(rng.integers(0, 200 * MS, rows)) // grain * grain
    services = rng.integers(0, 300 * MS, rows) // grain * grain
    services[rng.random(rows) < 0.02] = 400 * SECOND
    lines = rng.integers(0, queues, rows).astype(np.int32)
    failures = (rng.random(rows) < 0.1) * rng.integers(1, 5, rows).astype(np.int32)
    sizes = rng.integers(0, 300_000, rows)
    round_trip = int(rng.choice([0, MS, 30 * MS]))
    fast = PullRun("g", everything, allocate, arrivals, services, lines, failures=failures, sizes=sizes,
                   round_trip=round_trip)  # fmt: skip
    slow = PullRunModel("g", everything, allocate, arrivals.tolist(), services.tolist(), lines.tolist(),
                        failures=failures.tolist(), sizes=sizes.tolist(), round_trip=round_trip)  # fmt: skip
    here = ["c0", "c1"]
    for name in here:
        settings = parameters(rng)
        for run in (fast, slow):
            run.join(name, at_once=True, **settings)
    fast.settle()
    slow.settle()
    at = 0
    for step in range(40):
        at += int(rng.integers(0, 5 * SECOND)) if step < 39 else 900 * SECOND
        fast.run(at)
        slow.run(at)
        fast._check()
        seen = fast.started.tolist(), fast.finished.tolist(), fast.deliveries.tolist(), fast.dead, fast.moments
        assert seen == (slow.started, slow.finished, slow.deliveries, slow.dead, slow.moments)
        assert fast.members_seen() == slow.members_seen()
        assert fast.offsets() == slow.offsets()
        what = rng.integers(0, 12)
        name = str(rng.choice(here))
        if what == 0 and len(here) < 4:
            here.append(f"n{step}")
            settings = parameters(rng)
            for run in (fast, slow):
                run.join(here[-1], **settings)
        elif what in (1, 2) and len(here) > 1:
            here.remove(name)
            for run in (fast, slow):
                run.leave(name, lost=bool(what == 1))
        elif what == 3:
            for run in (fast, slow):
                run.set_factor(name, 2.0)
        elif what == 4 and step > 25:
            for run in (fast, slow):
                run.kill(name)
    assert sum(slow.deliveries) > 0


@pytest.mark.parametrize(
    "field", ["threads", "pull_batch_size", "consume_message_batch_max_size", "consume_timeout"]
)  # fmt: skip
def test_a_client_without_threads_batches_or_time_is_refused(field: str) -> None:
    queues = [MessageQueue("t", "b", 0), MessageQueue("%RETRY%g", "b", 0)]
    none = np.zeros(0, np.int64)
    run = PullRun("g", queues, lambda name, names, retry: queues[:1], none, none, none.astype(np.int32))
    with pytest.raises(InvalidMessageError, match=field):
        run.join("c", **{field: 0})


@pytest.mark.parametrize("seed", range(4))
def test_long_stretches_of_nothing_equal_going_through_them(seed: int) -> None:
    """Hours in which nobody has a message are skipped here and gone through by the slow run; then all goes on alike."""
    rng = np.random.default_rng(seed)
    rows, queues = 120, int(rng.integers(1, 4))
    everything, allocate = group_of(queues)
    grain = int(rng.choice([1, MS, 5 * SECOND]))  # coarse: what falls due at one moment is done in its order
    gaps = rng.integers(0, 20 * MS, rows)
    gaps[::30] += rng.integers(0, 5 * 3600, 4) * SECOND
    arrivals = np.cumsum(gaps) // grain * grain
    services = rng.integers(0, 300 * MS, rows) // min(grain, MS) * min(grain, MS)
    lines = rng.integers(0, queues, rows).astype(np.int32)
    failures = (rng.random(rows) < 0.05) * rng.integers(1, 3, rows).astype(np.int32)
    round_trip = int(rng.choice([0, MS, 5 * SECOND]))
    sizes = rng.integers(0, 1000, rows)
    fast = PullRun("g", everything, allocate, arrivals, services, lines, failures=failures, sizes=sizes,
                   round_trip=round_trip)  # fmt: skip
    slow = PullRunModel("g", everything, allocate, arrivals.tolist(), services.tolist(), lines.tolist(),
                        failures=failures.tolist(), sizes=sizes.tolist(), round_trip=round_trip)  # fmt: skip
    settings = {name: parameters(rng) for name in ("c0", "c1", "c2")}
    for run in (fast, slow):
        run.join("c0", at_once=True, **settings["c0"])
        run.join("c1", at_once=True, **settings["c1"])
        run.settle()
    changes: dict[int, Callable[[Any], None]] = {
        2: lambda run: run.join("c2", **settings["c2"]),
        3: lambda run: run.set_factor("c1", 2.0),
        7: lambda run: run.leave("c2", lost=True),
        9: lambda run: run.kill("c1"),
        12: lambda run: run.leave("c1", lost=False),
        24: lambda run: None,
    }
    for hour, change in changes.items():
        for run in (fast, slow):
            run.run(hour * 3600 * SECOND + seed)
            change(run)
        fast._check()
        seen = fast.started.tolist(), fast.finished.tolist(), fast.deliveries.tolist(), fast.dead, fast.moments
        assert seen == (slow.started, slow.finished, slow.deliveries, slow.dead, slow.moments)
        assert fast.members_seen() == slow.members_seen()
        assert fast.offsets() == slow.offsets()


if __name__ == "__main__":
    for each in range(int(sys.argv[1])):
        test_equals_the_run_with_the_live_client_s_calls(each)
        test_long_stretches_of_nothing_equal_going_through_them(each)
    print(f"{sys.argv[1]} random traces: the same answers")
