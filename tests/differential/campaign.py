"""Many random scripts, by number or by time; the differences, each shrunk."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.differential.comparison import Difference, Script, ask, compare, differences, listed, shrunk
from tests.differential.real import RealBroker
from tests.differential.scripts import scripts

BATCH = 50
# A long campaign takes a fresh JVM now and then: a broker that was killed leaves a little behind.
JVM_LIFE = 500


@dataclass
class Campaign:
    """counts: played, agree, differ, listed (they differ, for a cause that docs/differences.md has), unstable (the real
    broker itself answered otherwise when asked again)."""

    kind: str
    counts: Counter[str] = field(default_factory=Counter)
    found: list[Difference] = field(default_factory=list)

    def play(self, real: RealBroker, first_seed: int, number: int) -> None:
        """One batch of scripts; what differs is kept, its shrinking left to ``report``."""

        @seed(first_seed)
        @settings(
            max_examples=number,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(scripts(kind=self.kind))
        def one(script: Script) -> None:
            self.counts["played"] += 1
            if not differences(ask(real, script)):
                self.counts["agree"] += 1
                return
            found = compare(real, script)
            if found is None:
                self.counts["unstable"] += 1
            elif listed(found):
                self.counts["listed"] += 1
            else:
                self.counts["differ"] += 1
                self.found.append(found)

        one()

    def shortest(self, real: RealBroker, number: int) -> list[Difference]:
        """The ``number`` shortest differences, shrunk."""
        return [shrunk(real, each) for each in sorted(self.found, key=lambda each: len(each.case["steps"]))[:number]]


def run(kind: str, *, seconds: float | None = None, number: int | None = None, first_seed: int = 0) -> Campaign:
    """Play scripts until the time is over, or ``number`` of them; shrink the five shortest differences."""
    campaign = Campaign(kind)
    end = None if seconds is None else time.monotonic() + seconds
    real = RealBroker()
    try:
        batch: Any = first_seed
        while (end is None or time.monotonic() < end) and (number is None or campaign.counts["played"] < number):
            if campaign.counts["played"] and campaign.counts["played"] % JVM_LIFE < BATCH:
                real.close()
                real = RealBroker()
            campaign.play(real, batch, BATCH)
            batch += 1
        campaign.found = campaign.shortest(real, 5)
    finally:
        real.close()
    return campaign
