"""Rules for the logs of RocketMQ clients: flow control, pulls that were refused, queues that change hands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from pyengine.backlog.diagnosis.evidence import ClientEvent, Evidence, FlowControlState, OffsetMove
from pyengine.backlog.diagnosis.evidence.model import EventKind
from pyengine.backlog.diagnosis.rules.clients import SWITCHED_OFF, WHAT_TO_DO, flow_control
from pyengine.backlog.diagnosis.rules.series import by_time, seconds, span
from pyengine.backlog.findings import Finding, Said, Severity, say

STORM, FEWEST = 1800.0, 4  # seconds in which clients leave more often than so many times, and twice each of them
RESENT = 60.0  # seconds in which every client has sent its subscription again (heartbeats come every 30 s)
PASSING = ("CODE: 25", "not latest", "group info not exist")
LOGGED: dict[EventKind, str] = {
    "pull_expired": "pull_stopped",
    "not_locked": "lock_not_held",
    "not_unlocked": "unlock_failed",
    "expired": "timeout_cleaning",
    "failed": "failing_listener",
}


def from_log(evidence: Evidence) -> Iterator[Finding]:
    """flow_control: lines of the client's log, by queue and cause; the same oldest offset again and again is named."""
    series = by_time(evidence.flow_controls, lambda f: (f.group, f.label, f.cause))
    for lines in series.values():
        yield _logged(lines)


def _logged(lines: list[FlowControlState]) -> Finding:
    first, last = lines[0], lines[-1]
    evidence = [
        say(
            "lines in {file}: {count_lines}, flowControlTimes {times}, last on line {line}",
            count_lines=len(lines),
            file=last.file,
            times=last.times,
            line=last.line,
        )
    ]
    if len(lines) > 1 and last.min_offset is not None and first.min_offset == last.min_offset:
        evidence.append(
            say(
                "minOffset stays {min_offset} for {span}: one message holds it",
                min_offset=last.min_offset,
                span=span(seconds(first, last)),
            )
        )
    where = (
        say("group {group}, queue {label}", group=last.group, label=last.label)
        if last.label
        else say("group {group}", group=last.group or say("(not named)"))
    )
    return flow_control(where, last.cause, tuple(evidence))


def offset_illegal(evidence: Evidence) -> Iterator[Finding]:
    """offset_illegal: pulls asked for offsets that the broker does not have, and it gave others.

    One finding a group and direction: forward skips what was deleted (retention_overtook), back repeats.
    """
    back: dict[str, list[OffsetMove]] = {}
    lost: dict[str, list[OffsetMove]] = {}
    for move in evidence.offset_moves:
        past_the_end = move.highest is not None and move.asked is not None and move.asked > move.highest
        below = move.lowest is not None and move.asked is not None and move.asked < move.lowest
        forward = move.asked is not None and move.given is not None and move.given > move.asked
        (lost if (below or forward) and not past_the_end else back).setdefault(move.group, []).append(move)
    if len(back) > 1 and "" in back:  # the broker's line of the same pull that names no group
        del back[""]
    for group, moves in back.items():
        yield Finding(
            "offset_illegal",
            Severity.ERROR,
            say("group {group}", group=group or say("(not named)")),
            tuple(_moves(moves)),
            say(
                "The committed offset lies beyond what the broker has: the topic was recreated, the broker lost "
                "messages or a replica that was behind took over. The client goes on where the broker says, and "
                "everything from there is consumed again: expect repeats, and find out what happened to the broker."
            ),
        )
    for group, moves in lost.items():
        yield Finding(
            "retention_overtook",
            Severity.ERROR,
            say("group {group}", group=group or say("(not named)")),
            tuple(_moves(moves)),
            say(
                "What was asked for is deleted: the group was away or slower for longer than the broker keeps "
                "messages, and what lay between is lost to it. Keep messages longer than the longest outage you want "
                "to survive, and consume faster."
            ),
        )


def _moves(moves: list[OffsetMove]) -> Iterator[Said]:
    last_moves: dict[str, OffsetMove] = {}
    for move in moves:
        if move.label not in last_moves or last_moves[move.label].given is None:
            last_moves[move.label] = move
    if len(last_moves) > 1:
        last_moves.pop("?", None)
    for label, move in list(last_moves.items())[:5]:
        if move.given is None:
            yield say("{label}: asked for {asked}, the broker ends at {highest} ({file}:{line})", label=label,
                      asked=move.asked, highest=move.highest, file=move.file, line=move.line)  # fmt: skip
        elif move.asked is None:
            yield say("{label}: goes on at {given} ({file}:{line})", label=label, given=move.given, file=move.file,
                      line=move.line)  # fmt: skip
        else:
            yield say("{label}: asked for {asked}, goes on at {given} ({file}:{line})", label=label, asked=move.asked,
                      given=move.given, file=move.file, line=move.line)  # fmt: skip


def pull_paused(evidence: Evidence) -> Iterator[Finding]:
    """pull_paused: the program suspended the consumer and has not resumed it since."""
    for group, events in _by_group(evidence, "paused", "resumed").items():
        last = events[-1]
        if last.kind == "paused":
            yield Finding(
                "pull_paused",
                Severity.ERROR,
                say("group {group}", group=group or say("(not named)")),
                (say("consumer was paused ({file}:{line})", file=last.file, line=last.line),),
                say(
                    "The program called suspend() and pulls nothing until it calls resume(): look for what should "
                    "have called it."
                ),
            )


def refused_pulls(evidence: Evidence) -> Iterator[Finding]:
    """different_subscriptions / consume_disabled, by the codes with which the broker refuses pulls.

    Code 25 is a subscription younger than the last heartbeat, and a group that the broker does not know has sent none
    yet: both count if they go on for longer than heartbeats take.
    """
    for group, events in _by_group(evidence, "subscription").items():
        passing = all(any(words in each.words for words in PASSING) for each in events)
        if passing and seconds(events[0], events[-1]) < RESENT:
            continue
        yield Finding(
            "different_subscriptions",
            Severity.ERROR,
            say("group {group}", group=group or say("(not named)")),
            (
                say("{words} ({file}:{line})", words=events[-1].words, file=events[-1].file, line=events[-1].line),
                say("{count:pull was|pulls were} refused", count=len(events)),
            ),
            WHAT_TO_DO["different_subscriptions"],
        )
    for group, events in _by_group(evidence, "forbidden").items():
        yield Finding(
            "consume_disabled",
            Severity.ERROR,
            say("group {group}", group=group),
            (say("{words} ({file}:{line})", words=events[-1].words, file=events[-1].file, line=events[-1].line),),
            SWITCHED_OFF,
        )


def of_log(evidence: Evidence) -> Iterator[Finding]:
    """pull_stopped, lock_not_held, unlock_failed, timeout_cleaning and failing_listener, as the client logs them.

    A lock that is not held yet is a finding only if it lasts: queues change owners.
    """
    for kind, code in LOGGED.items():
        series = by_time([each for each in evidence.events if each.kind == kind], lambda each: (each.group, each.label))
        for events in series.values():
            first, last = events[0], events[-1]
            if kind == "not_locked":
                held = [each for each in evidence.events if each.kind == "locked" and each.label == last.label]
                if seconds(first, last) < RESENT or any((each.time or 0) >= (last.time or 0) for each in held):
                    continue
            group = last.group or say("(not named)")
            yield Finding(
                code,
                Severity.WARNING if code in ("timeout_cleaning", "failing_listener") else Severity.ERROR,
                say("group {group}, queue {label}", group=group, label=last.label)
                if last.label
                else say("group {group}", group=group),
                (
                    say("{words} ({file}:{line})", words=last.words, file=last.file, line=last.line),
                    say("{count:line says|lines say} so", count=len(events)),
                ),
                WHAT_TO_DO[code],
            )


def dealt_out(evidence: Evidence) -> Iterator[Finding]:
    """different_subscriptions / idle_clients, by what clients log at a rebalance."""
    for group, events in _by_group(evidence, "rebalanced").items():
        topics: dict[str, set[str]] = {}
        last: dict[tuple[str, str], ClientEvent] = {}
        for each in events:
            if not each.topic.startswith("%RETRY%"):
                topics.setdefault(each.client_id, set()).add(each.topic)
                last[each.client_id, each.topic] = each
        if any(_missing(name, topics, last) for name in topics):
            yield Finding(
                "different_subscriptions",
                Severity.ERROR,
                say("group {group}", group=group),
                tuple(
                    say("{ids}: {subscriptions}", ids=name, subscriptions=", ".join(sorted(subscriptions)))
                    for name, subscriptions in list(topics.items())[:5]
                ),
                WHAT_TO_DO["different_subscriptions"],
            )
        crowded = {each.topic: each for each in last.values() if (each.members or 0) > (each.queues or 0) > 0}
        for topic, each in crowded.items():
            yield Finding(
                "idle_clients",
                Severity.INFO,
                say("group {group}, topic {topic}", group=group, topic=topic),
                (
                    say(
                        "{members:client|clients} for {queues:queue|queues} ({file}:{line})",
                        members=each.members,
                        queues=each.queues,
                        file=each.file,
                        line=each.line,
                    ),
                ),
                WHAT_TO_DO["idle_clients"],
            )


def rebalance_storm(evidence: Evidence) -> Iterator[Finding]:
    """rebalance_storm: by what one client logs, clients leave its group more often within half an hour than two
    restarts of each of them make it."""
    worst: dict[str, list[ClientEvent]] = {}
    for group, events in _by_group(evidence, "rebalanced").items():
        dealt = [each for each in events if each.members is not None]
        for states in by_time(dealt, lambda each: (each.client_id, each.topic)).values():
            falls = [
                after
                for before, after in itertools.pairwise(states)
                if before.members is not None and after.members is not None and after.members < before.members
            ]
            most = max(each.members or 0 for each in states)
            for at in range(len(falls)):
                within = [each for each in falls[at:] if seconds(falls[at], each) <= STORM]
                if len(within) > max(2 * most, FEWEST, len(worst.get(group, ()))):
                    worst[group] = within
    for group, falls in worst.items():
        last = falls[-1]
        yield Finding(
            "rebalance_storm",
            Severity.WARNING,
            say("group {group}", group=group),
            (
                say(
                    "topic {topic}: {count:time|times} in {span} there were fewer clients than before, last {members} "
                    "({file}:{line})",
                    topic=last.topic,
                    count=len(falls),
                    span=span(seconds(falls[0], last)),
                    members=last.members,
                    file=last.file,
                    line=last.line,
                ),
            ),
            say(
                "Clients come and go. Each time queues change hands, and what was consumed and not committed comes "
                "again. Look for clients that restart, that stand still in a garbage collection, or that do not reach "
                "every broker: a client asks any one broker of the topic for the group's members, and a broker forgets "
                "who sent no heartbeat for 2 min."
            ),
        )


def _missing(client: str, topics: dict[str, set[str]], last: dict[tuple[str, str], ClientEvent]) -> bool:
    """A member was dealt queues of one topic and none of another, which has enough for every member of that moment."""
    counts = {last[client, topic].members for topic in topics[client]}
    return any(
        each.topic not in topics[client] and (each.queues or 0) >= (each.members or 0) and each.members in counts
        for each in last.values()
    )


def _by_group(evidence: Evidence, *kinds: str) -> dict[str, list[ClientEvent]]:
    series = by_time([each for each in evidence.events if each.kind in kinds], lambda each: each.group)
    return {str(group): events for group, events in series.items()}


LOG_RULES = (from_log, offset_illegal, pull_paused, refused_pulls, of_log, dealt_out, rebalance_storm)


def findings(evidence: Evidence) -> Iterator[Finding]:
    """What the logs of clients say."""
    for rule in LOG_RULES:
        yield from rule(evidence)
