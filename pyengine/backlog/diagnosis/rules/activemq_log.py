"""Rules for ActiveMQ's log: which limit stops producers, of which destination."""

from __future__ import annotations

from collections.abc import Iterator

from pyengine.backlog.diagnosis.evidence import Evidence, UsageLimit
from pyengine.backlog.diagnosis.rules.destinations import FLOW_CONTROL
from pyengine.backlog.diagnosis.rules.series import clock
from pyengine.backlog.findings import Finding, Said, Severity, say


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Every rule on every destination and limit."""
    lines: dict[tuple[str | None, str, str], list[UsageLimit]] = {}
    for each in sorted(evidence.usage_limits, key=lambda limit: limit.time or 0):
        # A store is one for all destinations; a memory limit may be a destination's own.
        place = (each.kind, each.destination) if each.usage == "memory" else (None, "")
        lines.setdefault((*place, each.usage), []).append(each)
    for (_, _, usage), limits in lines.items():
        yield memory_limit(limits) if usage == "memory" else store_full(limits)


def memory_limit(limits: list[UsageLimit]) -> Finding:
    """blocked_producers: a memory limit stops producers, by the broker's log."""
    return Finding(
        "blocked_producers",
        Severity.ERROR,
        _where(limits[-1]),
        _evidence(limits),
        FLOW_CONTROL,
    )


def store_full(limits: list[UsageLimit]) -> Finding:
    """store_full: storeUsage, tempUsage or the scheduler's limit is reached, or too small for a file of the journal."""
    last = limits[-1]
    if last.usage == "temp":
        advice = say(
            "Non-persistent messages that memory has no room for go to the temporary store. Drain what waits, give "
            "messages a time to live, or raise tempUsage."
        )
    elif last.usage == "journal":
        advice = say("Raise storeUsage above the journal's file size (32 mb by default; journalMaxFileLength).")
    else:
        advice = say(
            "KahaDB deletes a journal file only when none of its messages is needed: one old message in a "
            "dead-letter queue, or a durable subscription that is away, holds a whole file. Consume or purge those, or "
            "raise storeUsage."
        )
    places = dict.fromkeys(f"{each.kind}://{each.destination}" for each in limits if each.kind is not None)
    stopped = (say("stopped: producers of {places}", places=", ".join([*places][:5])),) if places else ()
    return Finding("store_full", Severity.ERROR, say("the broker's store"), (*_evidence(limits), *stopped), advice)


def _where(limit: UsageLimit) -> Said:
    if limit.kind is None:
        return say("the broker's memory")
    if limit.kind == "topic":
        return say("topic {name}", name=limit.destination)
    return say("queue {name}", name=limit.destination)


def _evidence(limits: list[UsageLimit]) -> tuple[Said, ...]:
    last = limits[-1]
    longest = max((each.blocked for each in limits if each.blocked is not None), default=None)
    return (
        say("{words} ({file}:{line})", words=last.words, file=last.file, line=last.line),
        *(
            (say("{count} such lines since {clock}", count=len(limits), clock=clock(limits[0].time)),)
            if len(limits) > 1 and limits[0].time is not None
            else ()
        ),
        *((say("a producer was stopped for {seconds} s", seconds=longest),) if longest is not None else ()),
    )
