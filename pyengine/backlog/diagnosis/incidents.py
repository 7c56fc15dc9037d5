"""One incident in several sources is reported as one cause with its consequences.

A listener that does not return is a stuck thread in dumps, a blocked listener in the running info, flow control in the
log and one stuck queue in consumerProgress: four findings, and one thing to mend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyengine.backlog.diagnosis.evidence import Evidence
from pyengine.backlog.diagnosis.evidence.tables import CUT, NARROW
from pyengine.backlog.findings import Finding, Said
from pyengine.dataclass import dataclass

# Cause -> what comes of it at the same place. A cause that comes of another one takes its own consequences along.
COMES_OF: dict[str, tuple[str, ...]] = {
    "stuck_thread": (
        "message_holds_offset", "blocked_listener", "timeout_cleaning", "unlock_failed", "lock_not_held",
        "one_queue_stuck", "stalled", "flow_control", "slow_listener", "poll_too_late",
    ),
    "slow_call": ("slow_listener", "flow_control", "slow", "too_few_consumers", "poll_too_late"),
    "poll_too_late": ("rebalancing", "rewound"),
    "message_holds_offset": ("blocked_listener", "timeout_cleaning", "one_queue_stuck", "stalled", "flow_control"),
    "blocked_listener": ("timeout_cleaning", "one_queue_stuck", "stalled", "flow_control"),
    "unlock_failed": ("lock_not_held", "one_queue_stuck", "stalled"),
    "lock_not_held": ("one_queue_stuck", "stalled"),
    "pull_stopped": ("one_queue_stuck", "stalled"),
    "pull_paused": ("one_queue_stuck", "stalled", "pull_stopped"),
    "one_queue_stuck": ("flow_control",),
    "stalled": ("flow_control",),
    "slow_listener": ("flow_control", "slow", "too_few_consumers"),
    "slow": ("flow_control",),
    "too_few_consumers": ("flow_control",),
    "duplicate_client_id": ("unassigned_queue", "uneven_allocation", "idle_clients", "stalled"),
    "rebalance_storm": ("unassigned_queue", "uneven_allocation", "rewound", "lock_not_held"),
    "different_subscriptions": ("unassigned_queue", "not_subscribed"),
    "consume_disabled": ("stopped", "stalled", "pull_stopped"),
    "offset_illegal": ("rewound", "ahead_of_broker"),
    "broker_lost_messages": ("offset_illegal", "ahead_of_broker", "rewound"),
    "ahead_of_broker": ("offset_illegal",),
}  # fmt: skip
# Codes that several sources may give of one group or client, or one source of several queues.
SAID_TWICE = {
    "different_subscriptions", "duplicate_client_id", "failing_listener", "consume_disabled", "stopped", "stalled",
    "one_queue_stuck", "blocked_listener", "timeout_cleaning", "lock_not_held", "pull_stopped", "unlock_failed",
    "message_holds_offset", "retention_overtook", "flow_control", "idle_clients",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """What a finding speaks of; empty: it does not say. A group and a topic hold queues, a client is of a group."""

    group: str = ""
    topics: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    client: str = ""

    def meets(self, other: Place) -> bool:
        """Whether both may speak of one thing: what both name is the same, and there is something that both name."""
        if self.queues and other.queues:
            if not self.queues & other.queues:
                return False
        elif self.topics and other.topics and not self.topics & other.topics:
            return False
        if self.client and other.client and self.client != other.client:
            return False
        if self.group and other.group:
            return self.group == other.group
        return bool(self.client and self.client == other.client) or bool(self.queues & other.queues)


def incidents(found: Iterable[Finding], evidence: Evidence) -> list[Finding]:
    """The findings, each of which has one cause, with what comes of it."""
    findings = list(found)
    places = {number: place_of(each, evidence) for number, each in enumerate(findings)}
    causes: dict[int, int] = {}
    by_code: dict[str, list[int]] = {}
    for number, each in enumerate(findings):
        by_code.setdefault(each.code, []).append(number)
    for number, each in enumerate(findings):
        causing = [
            other
            for code, others in by_code.items()
            if each.code in COMES_OF.get(code, ())
            for other in others
            if places[other].meets(places[number])
        ]
        if causing:  # the one that itself comes of the fewest
            causes[number] = min(causing, key=lambda other: (_depth(findings[other].code), other))
    chosen: list[Finding] = []
    for number, each in enumerate(findings):
        if number not in causes:
            behind = tuple(findings[other] for other in _behind(number, causes))
            severity = max((each, *behind), key=lambda finding: finding.severity).severity
            chosen.append(replace(each, severity=severity, consequences=behind) if behind else each)
    return [replace(each, consequences=tuple(_once(each.consequences, evidence))) for each in _once(chosen, evidence)]


def flat(found: Iterable[Finding]) -> Iterator[Finding]:
    """Causes and consequences, one by one."""
    for each in found:
        yield each
        yield from flat(each.consequences)


def _depth(code: str) -> int:
    return sum(code in effects for effects in COMES_OF.values())


def _behind(cause: int, causes: dict[int, int]) -> Iterator[int]:
    for number, of in causes.items():
        if of == cause:
            yield number
            yield from _behind(number, causes)


def _once(found: Sequence[Finding], evidence: Evidence) -> list[Finding]:
    """One finding for those of several sources about one group, or of several queues of one client."""
    by_subject: dict[tuple[object, ...], Finding] = {}
    for number, each in enumerate(found):
        key: tuple[object, ...] = (number,)
        if each.code in SAID_TWICE:
            place = place_of(each, evidence)
            per_queue = place.queues and not place.client
            whose = (place.group, place.client, str(each.advice)) if place.client or per_queue else (place.group,)
            key = (each.code, *whose) if any(whose[:2]) else key
        before = by_subject.get(key)
        if before is None:
            by_subject[key] = each
        else:
            lines = (*before.evidence, each.where, *each.evidence) if before.where != each.where else (
                *before.evidence, *each.evidence)  # fmt: skip
            by_subject[key] = replace(
                before,
                severity=max(before.severity, each.severity),
                evidence=tuple(dict.fromkeys(lines))[:8],
                consequences=(*before.consequences, *each.consequences),
            )
    return list(by_subject.values())


def place_of(finding: Finding, evidence: Evidence) -> Place:
    """The place by the fields of its sentences: group, name, topic, label, client_id."""
    where = finding.where.fields if isinstance(finding.where, Said) else {}
    lines = [each for each in (finding.where, *finding.evidence) if isinstance(each, Said)]
    labels = {_cut(str(each.fields["label"])) for each in lines if each.fields.get("label")}
    topics = {label.split("/")[0] for label in labels}
    if "topic" in where:
        topics |= {_cut(topic) for topic in str(where["topic"]).split(", ")}
    client = str(where.get("client_id") or "")
    group = str(where.get("group") or "")
    if "group" in where:
        client = client or str(where.get("name") or "")
    elif isinstance(finding.where, Said) and finding.where.template.startswith("group "):
        group = str(where.get("name") or "")
    if finding.code in ("stuck_thread", "slow_call"):
        group = _of_thread(str(where.get("names") or ""), evidence)
    if client and not group:
        group = next((each.group for each in evidence.clients if each.client_id == client), "")
    return Place(group, frozenset(topics), frozenset(labels), client)


def _cut(label: str) -> str:
    """A queue's label with its topic as the tools show it that cut names: others show the same one whole."""
    topic, slash, rest = label.partition("/")
    return topic.partition(CUT)[0][:NARROW] + slash + rest


def _of_thread(names: str, evidence: Evidence) -> str:
    """The group of a consume thread: ConsumeMessageThread_GROUP_3; before 4.9 without, then the only one there is."""
    groups = {
        each.group
        for states in (evidence.offsets, evidence.clients, evidence.flow_controls, evidence.checks)
        for each in states
    } - {""}
    named = [group for group in groups if names.startswith(f"ConsumeMessageThread_{group}_")]
    if named:
        return max(named, key=len)
    plain = names.partition(",")[0].removeprefix("ConsumeMessageThread_").isdigit()
    return next(iter(groups)) if plain and len(groups) == 1 else ""
