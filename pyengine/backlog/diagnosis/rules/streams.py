"""Rules for Spark's streaming progress."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pyengine.backlog.diagnosis.evidence import Evidence, StreamProgress
from pyengine.backlog.diagnosis.rules.series import by_time, seconds, span
from pyengine.backlog.findings import Finding, Severity, say

ENOUGH = 3


def falling_behind(reports: list[StreamProgress]) -> Iterator[Finding]:
    """stream_behind: over at least three batches with input, fewer rows a second are processed than come in."""
    busy = [each for each in reports if each.input_rows > 0]
    rates = [
        (r.input_per_second, r.processed_per_second) for r in busy if r.input_per_second and r.processed_per_second
    ]
    behind = [each.behind for each in reports if each.behind is not None]
    grows = len(behind) >= ENOUGH and all(a < b for a, b in pairwise(behind))
    slower = len(rates) >= ENOUGH and all(done < come for come, done in rates)
    if grows or slower:
        last = busy[-1] if busy else reports[-1]
        yield Finding(
            "stream_behind",
            Severity.WARNING,
            say("stream {query}", query=last.query),
            (
                say(
                    "batch {batch}: {coming} rows a second come in, {done} are processed",
                    batch=last.batch,
                    coming=last.input_per_second,
                    done=last.processed_per_second,
                ),
                *(
                    (say("offsets behind the newest: {before} -> {after}", before=behind[0], after=behind[-1]),)
                    if behind
                    else ()
                ),
            ),
            say("Bound a batch (maxOffsetsPerTrigger), add partitions and cores, or make the batch cheaper."),
        )


def stopped(reports: list[StreamProgress]) -> Iterator[Finding]:
    """stream_stalled: offsets behind the newest, and batches without a row."""
    tail = reports[-ENOUGH:]
    if len(tail) == ENOUGH and all(each.input_rows == 0 and (each.behind or 0) > 0 for each in tail):
        yield Finding(
            "stream_stalled",
            Severity.ERROR,
            say("stream {query}", query=tail[-1].query),
            (
                say(
                    "{count} batches without rows in {span}, {behind:offset|offsets} behind",
                    count=ENOUGH,
                    span=span(seconds(tail[0], tail[-1])),
                    behind=tail[-1].behind,
                ),
            ),
            say(
                "The source holds data that the query does not read: look at the driver's log for the last batch, or "
                "for a minimum that it waits for (minOffsetsPerTrigger)."
            ),
        )


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Each query by itself."""
    for reports in by_time(evidence.streams, lambda s: s.query).values():
        yield from falling_behind(reports)
        yield from stopped(reports)
