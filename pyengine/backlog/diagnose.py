"""Diagnosis: snapshots in, findings out. A healthy system gives none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyengine.backlog.evidence import Evidence
from pyengine.backlog.findings import Finding, Said, say
from pyengine.backlog.rules import clients, destinations, offsets, streams, threads
from pyengine.backlog.rules.series import by_time
from pyengine.backlog.rules.sights import in_order
from pyengine.topology.checked import check

Rules = Callable[[Evidence], Iterator[Finding]]
ROOMS: tuple[Rules, ...] = (
    destinations.findings,
    offsets.findings,
    clients.findings,
    threads.findings,
    streams.findings,
)


def diagnose(evidence: Evidence, rules: Iterable[Rules] = ROOMS) -> list[Finding]:
    """Every finding, the worst first; within one severity in the order of the rules.

    evidence: what ``pyengine.backlog.evidence.read_files`` read: one snapshot or several over time. A rule that needs
    to see a change finds nothing in a single snapshot.
    """
    check("evidence", evidence, Evidence)
    evidence = in_order(evidence)
    found = [finding for rule in rules for finding in rule(evidence)]
    return sorted(found, key=lambda finding: -finding.severity)


def seen_too_seldom(evidence: Evidence) -> list[Said]:
    """What should be looked at again, because the rules cannot tell yet whether it moves."""
    check("evidence", evidence, Evidence)
    found = []
    served = [each for each in evidence.destinations if each.queue_size and each.consumer_count]
    behind = [each for each in evidence.offsets if each.lag or each.uncommitted]
    waiting = [
        *([it.time for it in seen] for seen in by_time(served, lambda it: (it.broker, it.kind, it.name)).values()),
        *(
            [it.time for it in seen]
            for seen in by_time(behind, lambda it: (it.system, it.group, it.topic, it.broker, it.queue)).values()
        ),
    ]
    once = sum(len(times) == 1 or len(set(times) - {None}) == 1 for times in waiting)
    if once:
        found.append(
            say(
                "{count:queue with a backlog was|queues with a backlog were} seen once: a second snapshot a minute "
                "later shows whether it moves",
                count=once,
            )
        )
    for looks in threads.looks(evidence):
        if len(looks) < threads.ENOUGH and looks[0].tool != "consumerStatus":
            found.append(
                say(
                    "{file}: {count:dump|dumps} of its process, but {enough} of them, some seconds apart, show which "
                    "thread stands still",
                    file=looks[0].file,
                    count=len(looks),
                    enough=threads.ENOUGH,
                )
            )
    return found
