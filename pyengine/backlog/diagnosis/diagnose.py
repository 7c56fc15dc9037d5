"""Diagnosis: snapshots in, findings out. A healthy system gives none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyengine.backlog.diagnosis.evidence import Evidence
from pyengine.backlog.diagnosis.evidence.needs import JOLOKIA_TOO
from pyengine.backlog.diagnosis.evidence.tables import CUT
from pyengine.backlog.diagnosis.incidents import incidents
from pyengine.backlog.diagnosis.rules import (
    activemq_log,
    client_log,
    clients,
    connections,
    destinations,
    kafka,
    offsets,
    progress,
    streams,
    threads,
)
from pyengine.backlog.diagnosis.rules.series import by_time, clock
from pyengine.backlog.diagnosis.rules.sights import in_order
from pyengine.backlog.findings import Finding, Said, say
from pyengine.topology.checked import check

Rules = Callable[[Evidence], Iterator[Finding]]
ROOMS: tuple[Rules, ...] = (
    destinations.findings,
    activemq_log.findings,
    offsets.findings,
    kafka.findings,
    connections.findings,
    clients.findings,
    client_log.findings,
    threads.findings,
    streams.findings,
)


def diagnose(evidence: Evidence, rules: Iterable[Rules] = ROOMS) -> list[Finding]:
    """Every cause with what comes of it, the worst first; within one severity in the order of the rules.

    evidence: what ``evidence.read_files`` read: one snapshot or several over time. A rule that needs to see a change
    finds nothing in a single snapshot.
    """
    check("evidence", evidence, Evidence)
    evidence = in_order(evidence)
    found = [finding for rule in rules for finding in rule(evidence)]
    return sorted(incidents(found, evidence), key=lambda finding: -finding.severity)


def seen_too_seldom(evidence: Evidence) -> list[Said]:
    """What should be looked at again, because the rules cannot tell yet whether it moves."""
    check("evidence", evidence, Evidence)
    found = list(_backlogs_seen_once(in_order(evidence)))
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


def _backlogs_seen_once(evidence: Evidence) -> Iterator[Said]:
    """Of evidence in order."""
    served = [each for each in evidence.destinations if each.queue_size and each.consumer_count]
    series = by_time(served, lambda state: (state.broker, state.kind, state.name)).values()
    once = sum(len({state.time for state in states} - {None}) < 2 for states in series)
    if once:
        yield say(
            "{count:queue with a backlog was|queues with a backlog were} seen once: a second snapshot a minute "
            "later shows whether it moves",
            count=once,
        )
    for line in offsets.lines_seen_once(evidence):
        yield say(
            "{where}: {waiting} wait, seen once: a second look a minute later shows whether they become fewer",
            where=offsets.line_of(line),
            waiting=line.diff_total,
        )
    for group in progress.groups(evidence):
        behind = [each for each in group.queues if (each.lag > 0 or each.last.uncommitted) and not each.period]
        if not behind or not offsets.more_than_a_breath(group, behind):
            continue
        if any(each.first is not each.last for each in behind):
            again = say("seen twice, and nothing tells how far apart: put the output of `date` in front of each table")
        elif group.system == "rocketmq" and any(each.last.client is None for each in behind):
            again = say(
                "seen once, without its clients: a second `mqadmin consumerProgress -g GROUP -s true` a minute later "
                "shows whether it moves"
            )
        else:
            again = say("seen once: a second snapshot a minute later shows whether it moves")
        stored = min((each.last.last_time for each in behind if each.last.last_time), default=None)
        if stored is not None:
            again = say("consumed up to what was stored at {clock}, {again}", clock=clock(stored), again=again)
        yield say(
            "group {name}, topic {topic}: lag {lag} in {queues:queue|queues}, {again}",
            name=group.name or say("(not named)"),
            topic=group.topic,
            lag=sum(each.lag for each in behind),
            queues=len(behind),
            again=again,
        )


def _broadcasting(evidence: Evidence) -> Iterator[Said]:
    """Groups with offsets or a line of their own, neither of which decides."""
    named = {each.group for each in evidence.offsets} | {each.group for each in evidence.groups}
    shown = {each.group for each in evidence.clients}
    for group in sorted((progress.apart(evidence) & named) - shown):
        yield say(
            "group {group} consumes by broadcasting: its clients keep their offsets in files of their own, and what "
            "the broker has of it tells nothing; give consumerStatus of its clients",
            group=group,
        )


def to_bring(evidence: Evidence) -> list[Said]:
    """What was read and tells nothing of a backlog alone, and what to bring with it; nothing where that is there."""
    check("evidence", evidence, Evidence)
    if _measured(evidence):
        return [*_broadcasting(evidence), *_without_queues(evidence)]
    requests = {
        (each.file, each.what): say(
            "{file} is {what}, which has no backlog by itself: {needs}",
            file=each.file,
            what=each.what,
            needs=each.needs,
        )
        for each in evidence.sources
        if each.needs
    }
    return [*requests.values(), *_states(evidence), *_broadcasting(evidence), *_without_queues(evidence)]


def _without_queues(evidence: Evidence) -> Iterator[Said]:
    """Consumers of queues of which nothing else was read."""
    known = {(each.broker, each.name) for each in evidence.destinations}
    consumers = {
        (each.broker, each.destination, each.consumer_id)
        for each in evidence.subscriptions
        if each.kind == "queue" and (each.broker, each.destination) not in known
    }
    if count := len(consumers):
        yield say(
            "{count:consumer was|consumers were} read without {count:|its queue|their queues}, which shows no backlog "
            "by itself: {needs}",
            count=count,
            needs=JOLOKIA_TOO,
        )


def _states(evidence: Evidence) -> Iterator[Said]:
    """The newest state that Kafka reports of each group whose backlog is not shown."""
    newest = {each.group: each for each in in_order(evidence).consumer_groups if each.state}
    for each in newest.values():
        if each.members is None:
            yield say("group {group}: state {state}", group=each.group, state=each.state)
        else:
            yield say(
                "group {group}: state {state}, {members:member|members}",
                group=each.group,
                state=each.state,
                members=each.members,
            )


def names_cut(evidence: Evidence) -> list[Said]:
    """Topics that a table shows under one name, because the tool cut theirs."""
    check("evidence", evidence, Evidence)
    cut = dict.fromkeys(each.topic for each in evidence.offsets if each.topic.endswith(")") and CUT in each.topic)
    names = dict.fromkeys(topic.partition(CUT)[0] for topic in cut)
    return [
        say(
            "mqadmin before 4.9.3 cuts names at 32 characters: {name} stands for {count} topics here",
            name=name,
            count=sum(topic.startswith(name + CUT) for topic in cut),
        )
        for name in names
    ]


def judged_healthy(evidence: Evidence) -> bool:
    """Whether no finding means that all is well: something was measured, and no backlog was seen once only."""
    check("evidence", evidence, Evidence)
    ordered = in_order(evidence)
    looked = any(len(looks) >= threads.ENOUGH for looks in threads.looks(evidence))
    not_known_yet = (*_backlogs_seen_once(ordered), *_without_queues(ordered))
    return bool(_measured(ordered) or looked) and not not_known_yet


def _measured(evidence: Evidence) -> bool:
    """A backlog, or what clients do about one, is in the evidence: settings, and lists of clients, are neither."""
    apart = progress.apart(evidence)
    return bool(
        evidence.destinations
        or any(each.kind == "topic" for each in evidence.subscriptions)  # what waits for it is its own
        or any(each.queues or each.rates for each in evidence.clients)
        or evidence.streams
        or any(
            each.clients or each.diff_total or each.tps is not None
            for each in evidence.groups
            if each.group not in apart
        )
        or evidence.usage_limits
        or evidence.flow_controls
        or evidence.offset_moves
        or any(each.lag is not None or each.uncommitted for each in evidence.offsets if each.group not in apart)
    )
