"""Diagnosis: snapshots in, findings out. A healthy system gives none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyengine.backlog.evidence import Evidence
from pyengine.backlog.findings import Finding
from pyengine.backlog.rules import clients, destinations, offsets, streams, threads
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
    found = [finding for rule in rules for finding in rule(evidence)]
    return sorted(found, key=lambda finding: -finding.severity)
