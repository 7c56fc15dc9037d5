"""What the settings of a simulated consumer or client may be, whether a scenario's file or Python says them.

It joins, leaves or breaks, dies and slows down at seconds of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyengine.errors import ConfigurationError, shown
from pyengine.topology.checked import refuse_if
from pyengine.topology.limits import first_twice, text_problem

TIMES = ("joins_at", "leaves_at", "dies_at", "breaks_at")
LONGEST = 9_223_372_036  # seconds that nanoseconds in 64 bits can tell: 292 years
SLOWEST = 1e6
INT32 = 2**31 - 1
MOST_QUEUES = 100_000


def refuse_beyond(name: str, value: float, low: float, high: float) -> None:
    """Raises ConfigurationError for a number that is not from ``low`` to ``high``."""
    if not low <= value <= high:
        raise ConfigurationError(name, shown(value), "is out of range", f"allowed: {low:.10g} to {high:.10g}")


def refuse_twice(name: str, entries: Sequence[Any]) -> None:
    """Raises ConfigurationError for entries of which two have one name."""
    if places := first_twice([entry.name for entry in entries]):
        problem = f"is already used by {name}[{places[0]}]", "each needs one of its own"
        refuse_if(f"{name}[{places[1]}].name", entries[places[1]].name, problem)


def life_problem(times: Mapping[str, float], slows: Sequence[float]) -> tuple[str, str, str] | None:
    """Of when it comes and goes, and what happens in between: the key, what is wrong and what to write.

    times: by the names of ``TIMES``, those that are given. slows: seconds at which it slows down.
    """
    if "leaves_at" in times and "breaks_at" in times:
        return "breaks_at", "stands beside leaves_at", "it goes once: write one of them"
    comes = times.get("joins_at", 0.0)
    goes = times.get("leaves_at", times.get("breaks_at", LONGEST))
    for key, at in [item for item in times.items() if item[0] != "joins_at"] + [("slows_at", at) for at in slows]:
        if at < comes:
            return key, f"is before it joins, at {comes:g}", "write a later second"
        if at > goes:
            return key, f"is after it has gone, at {goes:g}", "write an earlier second"
    return None


def check_life(kind: str, who: Any) -> None:
    """The fields that a consumer and a client have in common. Raises ConfigurationError."""
    refuse_if(f"{kind}.name", who.name, text_problem(who.name, "give it a name of its own"))
    refuse_beyond(f"{kind}.factor", who.factor, 0, SLOWEST)
    times = {key: value for key in TIMES if (value := getattr(who, key)) is not None}
    for key, value in times.items():
        refuse_beyond(f"{kind}.{key}", value, 0, LONGEST)
    for place, (at, factor) in enumerate(who.slows):
        refuse_beyond(f"{kind}.slows[{place}][0]", at, 0, LONGEST)
        refuse_beyond(f"{kind}.slows[{place}][1]", factor, 0, SLOWEST)
    if wrong := life_problem(times, [at for at, _ in who.slows]):
        key = "slows" if wrong[0] == "slows_at" else wrong[0]
        refuse_if(f"{kind}.{key}", getattr(who, key), wrong[1:])
