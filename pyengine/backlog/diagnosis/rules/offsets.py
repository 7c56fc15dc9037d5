"""Rules for offsets that groups have committed: RocketMQ's consumerProgress and Kafka's consumer groups.

One queue (partition) is classified as: up to date (no lag), draining, slow, stalled (lag, a client,
no commit moves), stopped (lag and no client), rewound (the committed offset went back). Queues that stand
still, that have no owner, that were rewound or whose broker lost messages have findings of their own and count in no
trend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyengine.backlog.diagnosis.evidence import Evidence, GroupState, OffsetState
from pyengine.backlog.diagnosis.rules.clients import SWITCHED_OFF
from pyengine.backlog.diagnosis.rules.progress import DEAD, QUIET, RETRY, Group, Progress, apart, groups
from pyengine.backlog.diagnosis.rules.series import BREATH, by_time, empty_in, seconds, span
from pyengine.backlog.findings import Finding, Said, Severity, say

HOT_GROWS = 0.02  # of what is consumed meanwhile
HOT_AT_ONCE = 3  # times a breath of an average queue: so much in one queue is looked at again
HOT = say(
    "These queues get more than one client consumes, and the others have nothing to do with it: a key that is used "
    "more than others, or a selector that sends to them. More clients do not help, for a queue has one: spread the "
    "keys over more queues, make the listener faster, or give these queues a client without others."
)
FAILING = 0.01  # redeliveries among what a group consumes
FAILS = say(
    "The listener throws or answers RECONSUME_LATER: each failure comes back after 10 s, 30 s, 1 min ... "
    "up to 16 times, then it goes to %DLQ%. Read the listener's log; more clients, threads or queues only "
    "fail faster."
)
UNFINISHED = say(
    "One unfinished message holds the offset of its queue: everything behind it is consumed "
    "but cannot be committed, and a restart repeats it. `mqadmin consumerStatus -s` of its "
    "client shows the thread at work. More clients do not help: a queue has one client."
)


def stopped(group: Group) -> Iterator[Finding]:
    """stopped: messages wait and no client is in the group."""
    waiting = [each for each in group.queues if each.lag > 0]
    if waiting and group.has_no_client:
        yield Finding(
            "stopped",
            Severity.ERROR,
            group.where,
            (say("no client in the group, lag {lag}", lag=sum(each.lag for each in waiting)), *_worst(waiting)),
            say("Nothing consumes. Start the consumers; if they run, look at their connection and their group's name."),
        )


def not_subscribed(group: Group) -> Iterator[Finding]:
    """not_subscribed: the group has clients, and none of them consumes this topic, in which it has offsets."""
    waiting = [each for each in group.queues if each.lag > 0]
    if waiting and group.unsubscribed and not group.topic.startswith(RETRY):
        yield Finding(
            "not_subscribed",
            Severity.WARNING,
            group.where,
            (say("the group's clients have queues of other topics only"), *_worst(waiting)),
            say(
                "The group consumed this topic once, and its offsets are still there. Subscribe to it in every member, "
                "or let it be: its messages are kept in vain."
            ),
        )


def unassigned_queue(group: Group) -> Iterator[Finding]:
    """unassigned_queue: the group has clients, but one queue with messages belongs to none of them."""
    orphans = group.orphans
    if orphans:
        yield Finding(
            "unassigned_queue",
            Severity.ERROR,
            group.where,
            (
                say(
                    "{orphans:queue|queues} without a client, {clients:client|clients}",
                    orphans=len(orphans),
                    clients=len(group.clients or ()),
                ),
                *_worst(orphans),
            ),
            say(
                "Two clients with one client id make a hole in the allocation, and so do members that "
                "see different routes or use different strategies: make ids unique and settings equal."
            ),
        )


def stalled(group: Group) -> Iterator[Finding]:
    """stalled / one_queue_stuck: messages wait and the committed offset does not move: everywhere, or in few queues."""
    stuck = group.stuck
    moving = [each for each in group.queues if (each.moved or 0) > 0]
    # Up to date, and used before: what is stuck are a few queues, not the group.
    at_rest = [each for each in group.queues if each.last.lag == 0 and each.last.consumer_offset]
    if not stuck:
        return
    if moving or group.well or (at_rest and 4 * len(stuck) <= len(group.queues)):
        if moving:
            others = say("{moving:other queue moves|other queues move}", moving=len(moving))
        elif group.well:
            others = say("{well:other partition is|other partitions are} well by the monitor", well=group.well)
        else:
            others = say("{rest:other queue is|other queues are} up to date, to which nothing comes", rest=len(at_rest))
        yield Finding(
            "one_queue_stuck",
            Severity.ERROR,
            group.where,
            (others, *_shared_broker(stuck, moving), *_worst(stuck)),
            _stuck_advice(group, stuck, moving),
        )
    else:
        yield Finding(
            "stalled",
            Severity.ERROR,
            group.where,
            tuple(_worst(stuck)),
            say(
                "Clients are there but nothing is committed. Look for a blocked listener: thread dumps "
                "of the clients, given to `pyengine diagnose`, name the line."
            )
            if group.clients or group.connected
            else say(
                "Nothing is committed, and the table does not show whether clients are there: `mqadmin "
                "consumerConnection -g GROUP` does. If none is, start them; else their thread dumps, given to "
                "`pyengine diagnose`, name the line at which the listener stands."
            ),
        )


def _broker_of(stuck: Sequence[Progress], moving: Sequence[Progress]) -> str:
    """The broker of which no queue moves, while those of others do; empty where that is not what tells them apart."""
    brokers = {each.last.broker for each in stuck}
    moves = {each.last.broker for each in moving}
    if len(stuck) < 2 or len(brokers) != 1 or not moves or brokers & moves:
        return ""
    return next(iter(brokers)) or ""


def _shared_broker(stuck: Sequence[Progress], moving: Sequence[Progress]) -> Iterator[Said]:
    broker = _broker_of(stuck, moving)
    if broker:
        yield say("all of the standing queues are on broker {broker}, and none of its queues moves", broker=broker)


def _stuck_advice(group: Group, stuck: Sequence[Progress], moving: Sequence[Progress]) -> Said:
    owners = {each.last.client for each in stuck}
    if len(stuck) > 1 and len(owners) == 1 and all(owners) and not any(each.last.client in owners for each in moving):
        return say(
            "All of them belong to {client}, and nothing of that client moves: look at that process. More clients do "
            "not help; thread dumps of it, given to `pyengine diagnose`, name the line.",
            client=next(iter(owners)),
        )
    broker = _broker_of(stuck, moving)
    if broker:
        return say(
            "What the standing queues share is their broker, {broker}: look at it before the clients. `mqadmin "
            "clusterList` shows whether it lives and takes messages, `mqadmin brokerStatus` whether it answers pulls; "
            "the clients' log says whether they reach its address. If it is well, one unfinished message in each of "
            "its queues holds the offset.",
            broker=broker,
        )
    return UNFINISHED


def trend(group: Group) -> Iterator[Finding]:
    """slow / too_few_consumers / draining: commits move, and the lag grows or stays, or falls (then: until when).

    Queues that grow while the others keep up are reported apart: the sum hides them, and more clients do not help them.
    """
    working = group.working
    hot = [] if group.pop else _hot(working)
    others = [each for each in working if each not in hot]
    if hot and others and not _grows(others):
        yield Finding(
            "slow",
            Severity.WARNING,
            group.where,
            (
                say(
                    "{hot:queue grows|queues grow}, {others:other keeps up or is|others keep up or are} at rest",
                    hot=len(hot),
                    others=len(others),
                ),
                *_worst(hot),
            ),
            HOT,
        )
        working = tuple(others)
    moved = sum(each.moved or 0 for each in working)
    lag, before = sum(each.lag for each in working), sum(each.first.lag or 0 for each in working)
    if group.period < QUIET or moved <= 0 or lag <= 0:
        return
    rate = moved / group.period
    change = (
        say("lag {before} -> {lag} in {span}", before=before, lag=lag, span=span(group.period)),
        say("{rate:.1f} messages a second are committed", rate=rate),
    )
    if _grows(working):
        room, advice = _room(group)
        yield Finding("too_few_consumers" if room else "slow", Severity.WARNING, group.where, change, advice)
    elif lag < before and lag > rate * 60:
        left = lag * group.period / (before - lag)
        last = max((each.last.time or 0) for each in group.queues)
        yield Finding(
            "draining",
            Severity.INFO,
            group.where,
            change,
            empty_in(left, last),
        )


def _room(group: Group) -> tuple[bool, Said]:
    """Whether more clients help, and the advice."""
    clients, queues = group.clients, len(group.queues)
    if group.pop:
        return True, say(
            "The clients pop: no queue belongs to one of them, and more clients help, beyond the number of queues too. "
            "Make the listener faster, or start more."
        )
    if clients is None and not group.connected:
        return False, say(
            "The table does not show clients. Up to {queues}, one a queue, more of them help; beyond that make the "
            "listener faster, add threads, or add queues.",
            queues=queues,
        )
    count = (group.connected or 0) if clients is None else len(clients)
    if not 0 < count < queues > (group.connected or 0):
        return False, say(
            "More clients cannot help beyond one a queue: make the listener faster, add threads, or add queues."
        )
    if clients is None or group.told_apart:
        return True, say(
            "{clients:client|clients} for {queues:queue|queues}: more clients help, up to {queues}.",
            clients=count,
            queues=queues,
        )
    return True, say(
        "{clients:address|addresses} for {queues:queue|queues}: more clients help, up to {queues} "
        "(a host may run several).",
        clients=count,
        queues=queues,
    )


def more_than_a_breath(group: Group, behind: Sequence[Progress]) -> bool:
    """What waits in one look is more than a group of this rate has under way: altogether, or in one queue."""
    rate = group.tps or 0.0
    most = max(each.lag for each in behind)
    busy = sum(each.last.consumer_offset not in (None, 0) for each in group.queues)
    return sum(each.lag for each in behind) > rate * BREATH or (
        not group.pop and busy > 0 and most > HOT_AT_ONCE * BREATH * rate / busy
    )


def _grows(working: Sequence[Progress]) -> bool:
    """The lag of all of them together grows by more than normal variation, or stays."""
    lag, before = sum(each.lag for each in working), sum(each.first.lag or 0 for each in working)
    moved, period = sum(each.moved or 0 for each in working), max(each.period for each in working)
    breath = moved / period * BREATH if period else 0.0
    return moved > 0 and ((lag > before and lag > breath) or _stays(working))


def _hot(working: Sequence[Progress]) -> list[Progress]:
    """Queues whose own lag grows by more than commits breathe, if they are few: a quarter of the group's at most."""
    grown = [
        each
        for each in working
        if each.period >= QUIET
        and (each.moved or 0) > 0
        and each.lag - (each.first.lag or 0) > HOT_GROWS * (each.moved or 0)
        and each.lag > 2 * BREATH * (each.moved or 0) / each.period
    ]
    return grown if 4 * len(grown) <= len(working) else []


def _stays(working: Sequence[Progress]) -> bool:
    """The lag is what it was, and messages that waited at first wait still: more than were committed meanwhile.

    Only queues that move count. A backlog that stands still elsewhere does not make the working ones slow.
    """
    moving = [each for each in working if (each.moved or 0) > 0]
    lag = sum(each.lag for each in moving)
    return lag == sum(each.first.lag or 0 for each in moving) and lag > sum(each.moved or 0 for each in moving)


def rewound(group: Group) -> Iterator[Finding]:
    """rewound: a committed offset went back."""
    back = [each for each in group.queues if each.rewound and not each.went_back]
    if back:
        yield Finding(
            "rewound",
            Severity.WARNING,
            group.where,
            tuple(each.words() for each in back[:5]),
            say(
                "An administrator reset the offset, or a client committed an older one after a rebalance. Expect "
                "repeats."
            ),
        )


def ahead_of_broker(group: Group) -> Iterator[Finding]:
    """ahead_of_broker: the committed offset lies beyond the newest message.

    The tools ask for the two offsets at different moments: beyond by less than what moves meanwhile is up to date.
    """
    ahead = [each for each in group.queues if each.lag < 0 and not _alive(group, each)]
    if ahead:
        yield Finding(
            "ahead_of_broker",
            Severity.ERROR,
            group.where,
            tuple(each.words() for each in ahead[:5]),
            say(
                "The topic was recreated or the broker lost its store. New messages are skipped until it "
                "is reset: reset the group's offset to the newest or the oldest message."
            ),
        )


def _alive(group: Group, queue: Progress) -> bool:
    if queue.period:
        return (queue.moved or 0) > 0 and -queue.lag <= (queue.produced or 0)
    return -queue.lag <= (group.tps or 0) * BREATH


def retention(group: Group) -> Iterator[Finding]:
    """retention_overtook: the next message to consume was deleted before it was consumed."""
    lost = []
    for each in group.queues:
        oldest, next_offset = each.last.min_offset, each.last.consumer_offset
        if oldest is not None and next_offset is not None and 0 <= next_offset < oldest:
            lost.append(
                say(
                    "{label}: oldest offset {oldest}, next to consume {next_offset}: {lost:message is|messages are} "
                    "lost",
                    label=each.last.label,
                    oldest=oldest,
                    next_offset=next_offset,
                    lost=oldest - next_offset,
                )
            )
        elif oldest is None and each.last.last_time == 0 and next_offset and each.lag > 0:
            lost.append(
                say(
                    "{label}: LastTime N/A (1970) at consumer offset {next_offset}, which is not 0, with lag {lag}",
                    label=each.last.label,
                    next_offset=next_offset,
                    lag=each.lag,
                )
            )
    if lost:
        yield Finding(
            "retention_overtook",
            Severity.ERROR,
            group.where,
            tuple(lost[:5]),
            say(
                "The broker deletes by age and by disk use, consumed or not. Keep messages longer than "
                "the longest outage you want to survive, and consume faster."
            ),
        )


def uneven_allocation(group: Group) -> Iterator[Finding]:
    """uneven_allocation: one client has at least two queues more than another of its group, and messages wait."""
    clients = group.clients
    if clients and len(clients) > 1 and group.told_apart and any(each.lag > 0 for each in group.working):
        most, least = max(clients.values()), min(clients.values())
        if most - least >= 2:
            yield Finding(
                "uneven_allocation",
                Severity.WARNING,
                group.where,
                tuple(say("{name}: queues {count}", name=name, count=count) for name, count in clients.most_common(5)),
                say(
                    "Averagely spreads a topic's queues within one; consistent hashing and machine rooms do "
                    "not. `pyengine allocate` shows what another strategy would give."
                ),
            )


def _worst(queues: Sequence[Progress]) -> list[Said]:
    return [each.words() for each in sorted(queues, key=lambda each: -each.lag)[:5]]


RULES = (
    stopped,
    not_subscribed,
    unassigned_queue,
    stalled,
    trend,
    rewound,
    ahead_of_broker,
    retention,
    uneven_allocation,
)
# What befalls a group in all its topics at once.
ONE_CAUSE = ("stopped", "stalled")


def disabled(evidence: Evidence) -> Iterator[Finding]:
    """consume_disabled: the broker refuses pulls of a group that has offsets or clients."""
    used = {each.group for each in evidence.offsets} | {each.group for each in evidence.groups}
    used |= {each.group for each in evidence.clients} | {each.group for each in evidence.checks}
    for settings in evidence.group_settings:
        if not settings.consume_enable and settings.group in used:
            yield Finding(
                "consume_disabled",
                Severity.ERROR,
                say("group {group}", group=settings.group),
                (say("consumeEnable false ({file})", file=settings.file),),
                SWITCHED_OFF,
            )


def unread_queues(evidence: Evidence) -> Iterator[Finding]:
    """unread_queues: a topic is written to more queues than are read, or may not be read at all."""
    for topic in evidence.topics:
        readable = topic.perm & 4
        if topic.write_queues > topic.read_queues or (topic.perm & 2 and not readable):
            yield Finding(
                "unread_queues",
                Severity.ERROR,
                say("topic {topic}", topic=topic.topic),
                (
                    say(
                        "writeQueueNums {write_queues}, readQueueNums {read_queues}, perm {perm}",
                        write_queues=topic.write_queues,
                        read_queues=topic.read_queues,
                        perm=topic.perm,
                    ),
                ),
                say(
                    "Messages go to queues that no consumer gets. Raise readQueueNums first, then "
                    "writeQueueNums. To shrink a topic lower writeQueueNums first and wait until the rest is "
                    "consumed."
                ),
            )


def broker_lost_messages(found: Sequence[Group]) -> Iterator[Finding]:
    """broker_lost_messages: a broker's newest offset went back, and with it the offsets that groups have
    committed, so that the cause is not in a group. A group that is beyond the broker's end has its own finding,
    ahead_of_broker."""
    topics: dict[str, list[Progress]] = {}
    for group in found:
        queues = [each for each in group.queues if each.went_back]
        if queues and all(each.lag >= 0 for each in queues):
            topics.setdefault(group.topic, []).extend(queues)
    if topics:
        names = list(topics)
        yield Finding(
            "broker_lost_messages",
            Severity.ERROR,
            say("topic {topic}", topic=", ".join(names[:5])),
            tuple(each.words() for each in [queue for name in names for queue in topics[name]][:5]),
            say(
                "No group can do that: the topic was recreated, the broker came back without its store or with an "
                "older one, a replica that was behind took over, or the two looks went to different clusters. Find out "
                "which before you touch the group's offset."
            ),
        )


def commits_stand(evidence: Evidence) -> Iterator[Finding]:
    """one_queue_stuck, of what a client logs of its commits: one queue's stand while others of the topic move.

    The log knows no broker's offsets: a queue to which nothing comes looks the same, all queues of a topic rarely do.
    """
    logged = [each for each in evidence.offsets if each.broker_offset is None and each.client]
    topics: dict[tuple[str, str], list[list[OffsetState]]] = {}
    for states in by_time(logged, lambda o: (o.group, o.topic, o.broker, o.queue)).values():
        topics.setdefault((states[0].group, states[0].topic), []).append(states)
    for (group, topic), queues in topics.items():
        stand = []
        for states in queues:
            since = next(each for each in states if each.consumer_offset == states[-1].consumer_offset)
            moved = [other for other in queues if _committed_since(other, since)]
            if moved and seconds(since, states[-1]) >= 2 * QUIET and not _committed_since(states, since):
                stand.append((since, states[-1], len(moved)))
        if stand:
            yield Finding(
                "one_queue_stuck",
                Severity.ERROR,
                say("group {name}, topic {topic}", name=group, topic=topic),
                tuple(
                    say(
                        "{label}: {offset} is committed again and again for {span}, {moving:other queue moves|other "
                        "queues move}",
                        label=last.label,
                        offset=last.consumer_offset,
                        span=span(seconds(since, last)),
                        moving=moving,
                    )
                    for since, last, moving in stand[:5]
                ),
                UNFINISHED,
            )


def _committed_since(states: Sequence[OffsetState], since: OffsetState) -> bool:
    """Another offset was committed after a moment than at it."""
    later = [each for each in states if (each.time or 0) >= (since.time or 0)]
    return len(later) > 1 and later[0].consumer_offset != later[-1].consumer_offset


def failing(found: Sequence[Group], evidence: Evidence) -> dict[str, Finding]:
    """failing_listener: the group's retry topic gets more than a few messages, or its dead-letter topic any.

    Group -> finding. What waits in the retry topic comes of it: to consume it faster would only fail faster.
    """
    dead: dict[str, list[Progress]] = {}
    letters = [each for each in evidence.offsets if each.topic.startswith(DEAD)]
    for states in by_time(letters, lambda o: (o.group, o.topic, o.broker, o.queue)).values():
        dead.setdefault(states[0].group, []).append(Progress(states[0], states[-1]))
    findings: dict[str, Finding] = {}
    by_name: dict[str, list[Group]] = {}
    for group in found:
        by_name.setdefault(group.name, []).append(group)
    for name, parts in by_name.items():
        retried = _arrived(each for group in parts if group.topic.startswith(RETRY) for each in group.queues)
        died = _arrived(dead.get(name, ()))
        first = [each for group in parts if not group.topic.startswith(RETRY) for each in group.queues]
        consumed = sum(max(each.moved or 0, 0) for each in first)
        # Messages that fall due in the retry topic of a stopped group do not come from its listener.
        at_work = any(group.commits for group in parts)
        if not died and (retried <= FAILING * consumed or not at_work):
            continue
        lasted = span(max(group.period for group in parts))
        counts = []
        if retried:
            counts.append(
                say("{count:message came|messages came} to the retry topic in {span}", count=retried, span=lasted)
            )
        if died:
            counts.append(
                say("{count:message came|messages came} to the dead-letter topic in {span}", count=died, span=lasted)
            )
        findings[name] = Finding(
            "failing_listener",
            Severity.WARNING if not died else Severity.ERROR,
            say("group {group}", group=name or say("(not named)")),
            tuple(counts),
            FAILS,
        )
    return findings


def _arrived(queues: Iterable[Progress]) -> int:
    return sum(max(each.produced or 0, 0) for each in queues if each.period)


def _one_cause(found: Sequence[Finding], group: str) -> Finding:
    """One finding for what is wrong with a group in several topics at once."""
    first = found[0]
    if len(found) == 1:
        return first
    topics = ", ".join(str(each.where.fields["topic"]) for each in found if isinstance(each.where, Said))
    lines = [line for each in found for line in each.evidence]
    return replace(
        first,
        where=say("group {name}, topic {topic}", name=group or say("(not named)"), topic=topics),
        evidence=tuple(lines[:6]),
    )


def lines_of_groups(evidence: Evidence) -> Iterator[Finding]:
    """What one line a group, or a group and topic, tells: stopped, stalled, slow, draining."""
    for first, last in _lines(evidence):
        where = line_of(last)
        if _fails(last, evidence):
            yield Finding(
                "failing_listener",
                Severity.WARNING,
                say("group {group}", group=last.group),
                (
                    say(
                        "{rate:.2f} messages a second come to the retry topic ({file})",
                        rate=last.in_tps or 0,
                        file=last.file,
                    ),
                ),
                FAILS,
            )
        elif last.clients == 0:
            yield Finding(
                "stopped",
                Severity.ERROR,
                where,
                (say("OFFLINE with diff total {diff_total} ({file})", diff_total=last.diff_total, file=last.file),),
                say("Nothing consumes. Start the consumers, or delete the group if it is not needed."),
            )
        elif not last.tps and _nothing_goes(first, last):
            yield Finding(
                "stalled",
                Severity.ERROR,
                where,
                (say("{waiting} wait, 0 a second are consumed ({file})", waiting=last.diff_total, file=last.file),),
                say(
                    "Nothing is consumed. `mqadmin consumerConnection -g GROUP` tells whether a client is there: if "
                    "none is, start them; else their thread dumps, given to `pyengine diagnose`, name the line."
                ),
            )
        elif last.tps and _outrun(first, last):
            yield Finding(
                "slow",
                Severity.WARNING,
                where,
                (
                    say(
                        "{waiting} wait, {tps:.2f} a second are consumed ({file})",
                        waiting=last.diff_total,
                        tps=last.tps,
                        file=last.file,
                    ),
                ),
                say(
                    "Messages come faster than they are consumed. `mqadmin consumerProgress -g GROUP -s true`, twice, "
                    "tells whether more clients help or one queue stands still."
                ),
            )


def _lines(evidence: Evidence) -> Iterator[tuple[GroupState, GroupState]]:
    """The first and the last line of each group, or group and topic, that has a backlog of which no queue is known."""
    known = {each.group for each in evidence.offsets} | apart(evidence)
    for states in by_time(evidence.groups, lambda g: (g.group, g.topic)).values():
        first, last = states[0], states[-1]
        if last.group not in known and last.diff_total > 0:
            yield first, last


def line_of(line: GroupState) -> Said:
    """Of what a line speaks."""
    if line.topic:
        return say("group {name}, topic {topic}", name=line.group, topic=line.topic)
    return say("group {group}", group=line.group)


def lines_seen_once(evidence: Evidence) -> Iterator[GroupState]:
    """Lines with a backlog of more than a breath that were seen once, and whose rates do not tell where it goes.

    The list of all groups shows whole numbers of messages a second: 0 may be nearly one.
    """
    for first, last in _lines(evidence):
        decided = last.clients == 0 or _fails(last, evidence) or _nothing_goes(first, last) or _outrun(first, last)
        rate = (last.tps or 0) + (1 if last.in_tps is None else 0)
        if not decided and not seconds(first, last) and last.diff_total > rate * BREATH:
            yield last


def _fails(line: GroupState, evidence: Evidence) -> bool:
    """A line of a retry topic to which more than a few of the messages that the group consumes come."""
    if not line.topic.startswith(RETRY) or not line.in_tps:
        return False
    same = [each for each in evidence.groups if each.group == line.group and each.time == line.time]
    return line.in_tps > FAILING * sum(each.tps or 0 for each in same if not each.topic.startswith(RETRY))


def _nothing_goes(first: GroupState, last: GroupState) -> bool:
    """Nothing is consumed, for longer than a pause between two messages: more than a minute's waits, or more has come
    than the list's whole numbers of messages a second can hide."""
    if last.in_tps is not None:
        return last.diff_total > 60 * last.in_tps > 0
    return last.diff_total - first.diff_total > seconds(first, last) > 0


def _outrun(first: GroupState, last: GroupState) -> bool:
    """More arrives than is consumed, beyond the normal variation of a queue."""
    assert last.tps is not None
    if last.diff_total <= last.tps * BREATH:
        return False
    return last.diff_total > first.diff_total if first is not last else (last.in_tps or 0) > last.tps


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Every rule on every group and topic; settings; then groups of which only a line is known."""
    yield from disabled(evidence)
    yield from unread_queues(evidence)
    found = [group for group in groups(evidence) if group.system != "kafka"]  # rules.kafka has those
    yield from broker_lost_messages(found)
    failures = failing(found, evidence)
    yield from failures.values()
    by_group: dict[tuple[str, str], list[Finding]] = {}
    for group in found:
        retries = group.name in failures and group.topic.startswith(RETRY)
        for rule in RULES:
            if not (retries and rule in (trend, stalled)):
                for finding in rule(group):
                    by_group.setdefault((group.name, finding.code), []).append(finding)
    for (name, code), several in by_group.items():
        if code in ONE_CAUSE:
            yield _one_cause(several, name)
        else:
            yield from several
    yield from commits_stand(evidence)
    yield from lines_of_groups(evidence)
