"""Many random traces, by time or by number of operations; each difference shrunk."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.rocketmq.differential import ours
from tests.rocketmq.differential.ours_consumer import comparable
from tests.rocketmq.differential.ours_texts import local_state
from tests.rocketmq.differential.real import RealClasses
from tests.rocketmq.differential.traces import KINDS, Operation, Trace, trace

BATCH = 68
MOST_FOUND = 5


@dataclass
class Campaign:
    """counts: operations by kind, failures among them and traces; found: the differences, shrunk, as text."""

    counts: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    @property
    def operations(self) -> int:
        return sum(self.counts[kind] for kind in KINDS)


def _seen(kind: str, answer: list[Any]) -> list[Any]:
    """The real answer in the form of ours: a strategy that answers null owns nothing, some texts are our own."""
    result, state = answer
    if kind == "allocate":
        return [[] if result is None else result, state]
    if kind == "local_offsets":
        state = local_state(state)
    if isinstance(result, dict) and (kind != "texts" or result["class"].endswith("NullPointerException")):
        return [{**result, "text": None}, state]
    return [result, state]


def difference(tried: Trace, answers: list[Any]) -> str | None:
    """The first operation that differs, with both answers; None if none does."""
    for i, (real, mine) in enumerate(zip(answers, ours.play(tried), strict=True)):
        if tried["kind"] == "consumer":
            real, mine = comparable(tried["ops"][i][0], real), comparable(tried["ops"][i][0], mine)
        real = _seen(tried["kind"], real)
        if real != mine:
            return f"operation {i} {json.dumps(tried['ops'][i])}\n  real {json.dumps(real)}\n  ours {json.dumps(mine)}"
    return None


def _without(items: list[Any]) -> Iterator[list[Any]]:
    """All, the halves, the quarters, ... and each single item left out."""
    step = len(items)
    while step:
        for start in range(0, len(items), step):
            yield items[:start] + items[start + step :]
        step //= 2


def _smaller(operations: list[Operation]) -> Iterator[list[Operation]]:
    """Fewer operations, or fewer messages, queues or clients in one of them."""
    yield from (less for less in _without(operations) if less)
    for i, operation in enumerate(operations):
        for k, argument in enumerate(operation):
            if isinstance(argument, list) and operation[0] != "contains":
                for less in _without(argument):
                    yield [*operations[:i], [*operation[:k], less, *operation[k + 1 :]], *operations[i + 1 :]]


def shrunk(real: RealClasses, tried: Trace) -> str:
    """A trace that is no longer than it must be, and how it differs."""
    kind, operations = tried["kind"], tried["ops"]
    told = difference(tried, real.play([tried])[0])
    smaller = True
    while smaller:
        smaller = False
        for less in _smaller(operations):
            shorter = {"kind": kind, "ops": less}
            differs = difference(shorter, real.play([shorter])[0])
            if differs is not None:
                operations, told, smaller = less, differs, True
                break
    return f"{json.dumps({'kind': kind, 'ops': operations})}\n  {told}"


def run(*, seconds: float | None = None, operations: int | None = None, seed: int = 0) -> Campaign:
    """Play traces of all kinds until the time is over or so many operations were compared, or a few differ."""
    campaign = Campaign()
    end = None if seconds is None else time.monotonic() + seconds
    kinds = ["consumer"] * 6 + ["process_queue"] * 3 + ["allocate"] * 3 + ["offset_store", "offset"]
    kinds += ["sql", "texts", "local_offsets"]
    real = RealClasses()
    number = 0
    try:
        while (end is None or time.monotonic() < end) and (operations is None or campaign.operations < operations):
            traces = [trace(kinds[i % len(kinds)], f"{seed}.{i}") for i in range(number, number + BATCH)]
            number += BATCH
            for tried, answers in zip(traces, real.play(traces), strict=True):
                campaign.counts["traces"] += 1
                campaign.counts[tried["kind"]] += len(answers)
                campaign.counts["failures"] += sum(isinstance(result, dict) for result, _ in answers)
                if len(campaign.found) < MOST_FOUND and difference(tried, answers) is not None:
                    campaign.found.append(shrunk(real, tried))
            if len(campaign.found) >= MOST_FOUND:
                break
    finally:
        real.close()
    return campaign
