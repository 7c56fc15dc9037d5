"""Rules for offsets that groups have committed: RocketMQ's consumerProgress and Kafka's consumer groups.

One queue (partition) is told apart as: up to date (no lag, whatever happens), draining, slow, stalled (lag, a client,
no commit moves), stopped (lag and no client), rewound (the committed offset went back).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyengine.backlog.evidence import Evidence, OffsetState
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.backlog.rules.series import BREATH, by_time, change, empty_in, seconds, span

QUIET = 30.0
DEAD = "%DLQ%"


@dataclass(frozen=True, slots=True)
class Progress:
    """One group in one queue, first and last seen."""

    first: OffsetState
    last: OffsetState

    @property
    def period(self) -> float:
        return seconds(self.first, self.last)

    @property
    def lag(self) -> int:
        return self.last.lag or 0

    @property
    def moved(self) -> int | None:
        """By how much the committed offset moved, None where that is not known."""
        return change(self.first.consumer_offset, self.last.consumer_offset)

    @property
    def never_committed(self) -> bool:
        """Messages came to a partition of Kafka for which nothing was ever committed, with a client or without.

        One to which none came may be up to date: a client that begins at its end has nothing to commit.
        """
        return (
            self.first.consumer_offset is None
            and self.last.uncommitted
            and (self.first.client == "") == (self.last.client == "")
            and (change(self.first.broker_offset, self.last.broker_offset) or 0) > 0
        )

    @property
    def stands_still(self) -> bool:
        if self.period < QUIET:
            return False
        return self.never_committed or (self.lag > 0 and (self.first.lag or 0) > 0 and self.moved == 0)

    def words(self) -> Said:
        if self.never_committed:
            return say(
                "{label}: no offset was ever committed, broker offset {broker_offset}, {before} {span} before; a "
                "client that comes anew begins where auto.offset.reset says",
                label=self.last.label,
                broker_offset=self.last.broker_offset,
                before=self.first.broker_offset,
                span=span(self.period),
            )
        if self.period:
            return say(
                "{label}: consumer offset {consumer_offset}, {before} {span} before, broker offset "
                "{broker_offset}, lag {lag}",
                label=self.last.label,
                consumer_offset=self.last.consumer_offset,
                before=self.first.consumer_offset,
                span=span(self.period),
                broker_offset=self.last.broker_offset,
                lag=self.lag,
            )
        return say(
            "{label}: consumer offset {consumer_offset}, broker offset {broker_offset}, lag {lag}",
            label=self.last.label,
            consumer_offset=self.last.consumer_offset,
            broker_offset=self.last.broker_offset,
            lag=self.lag,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """All queues of one group in one topic. connected: clients of the group by another source, None: no such source."""

    system: str
    name: str
    topic: str
    queues: tuple[Progress, ...]
    connected: int | None = None

    @property
    def where(self) -> Said:
        return say("group {name}, topic {topic}", name=self.name or say("(not named)"), topic=self.topic)

    @property
    def clients(self) -> Counter[str] | None:
        """Queues by client, as last seen; of RocketMQ by address. None where the tool did not show them."""
        shown = [each.last.client for each in self.queues]
        if any(client is None for client in shown):
            return None
        return Counter(client for client in shown if client)

    @property
    def told_apart(self) -> bool:
        """Each name of ``clients`` is one client: mqadmin shows addresses, and a host may run several clients."""
        named = self.clients or ()
        return self.system == "kafka" or all("@" in name for name in named) or len(named) == self.connected

    @property
    def commits(self) -> bool:
        """Somebody commits, whatever the tool shows: mqadmin shows N/A for a client that does not answer it."""
        return any((each.moved or 0) > 0 for each in self.queues)

    @property
    def period(self) -> float:
        return max(each.period for each in self.queues)


def groups(evidence: Evidence) -> Iterator[Group]:
    """Groups by topic, dead-letter topics apart (nobody need consume them), and groups whose clients say that each of
    them gets everything: those commit to files of their own, never to the broker."""
    apart = {each.group for each in evidence.clients if each.get("messageModel") == "BROADCASTING"}
    series = by_time(evidence.offsets, lambda o: (o.system, o.group, o.topic, o.broker, o.queue))
    found: dict[tuple[str, str, str], list[Progress]] = {}
    for states in series.values():
        last = states[-1]
        if not last.topic.startswith(DEAD) and last.group not in apart:
            found.setdefault((last.system, last.group, last.topic), []).append(Progress(states[0], last))
    for (system, name, topic), queues in found.items():
        yield Group(system, name, topic, tuple(queues), _connected(evidence, name))


def _connected(evidence: Evidence, group: str) -> int | None:
    """How many clients a group has: by consumerProgress of all groups, else by their running infos."""
    listed = [each for each in evidence.groups if each.group == group]
    if listed:
        return by_time(listed, lambda each: each.group)[group][-1].clients
    return len({each.client_id for each in evidence.clients if each.group == group}) or None


def stopped(group: Group) -> Iterator[Finding]:
    """stopped: messages wait and no client is in the group."""
    waiting = [each for each in group.queues if each.lag > 0]
    if waiting and group.clients is not None and not group.clients and not group.commits and not group.connected:
        yield Finding(
            "stopped",
            Severity.ERROR,
            group.where,
            (say("no client in the group, lag {lag}", lag=sum(each.lag for each in waiting)), *_worst(waiting)),
            say("Nothing consumes. Start the consumers; if they run, look at their connection and their group's name."),
        )


def unassigned_queue(group: Group) -> Iterator[Finding]:
    """unassigned_queue: the group has clients, but one queue with messages belongs to none of them."""
    orphans = [
        each
        for each in group.queues
        if each.last.client == "" and (each.never_committed or (each.lag > 0 and not each.moved))
    ]
    if orphans and group.clients:
        yield Finding(
            "unassigned_queue",
            Severity.ERROR,
            group.where,
            (
                say(
                    "{orphans:queue|queues} without a client, {clients:client|clients}",
                    orphans=len(orphans),
                    clients=len(group.clients),
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
    if group.clients is not None and not group.clients:
        return
    stuck = [each for each in group.queues if each.stands_still and each.last.client != ""]
    moving = [each for each in group.queues if each.moved]
    if not stuck:
        return
    if moving:
        yield Finding(
            "one_queue_stuck",
            Severity.ERROR,
            group.where,
            (say("{moving:other queue moves|other queues move}", moving=len(moving)), *_worst(stuck)),
            say(
                "One unfinished message holds the offset of its queue: everything behind it is consumed "
                "but cannot be committed, and a restart repeats it. `mqadmin consumerStatus -s` of its "
                "client shows the thread at work."
            ),
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
            ),
        )


def trend(group: Group) -> Iterator[Finding]:
    """slow / too_few_consumers / draining: commits move, and the lag grows or stays, or falls (then: until when)."""
    moved = sum(each.moved or 0 for each in group.queues)
    lag, before = sum(each.lag for each in group.queues), sum(each.first.lag or 0 for each in group.queues)
    if group.period < QUIET or moved <= 0 or lag <= 0:
        return
    rate = moved / group.period
    seen = (
        say("lag {before} -> {lag} in {span}", before=before, lag=lag, span=span(group.period)),
        say("{rate:.1f} messages a second are committed", rate=rate),
    )
    clients = group.clients
    if (lag > before and lag > rate * BREATH) or _stays(group):
        room = clients is not None and 0 < len(clients) < len(group.queues) > (group.connected or 0)
        if not room:
            advice = say(
                "More clients cannot help beyond one a queue: make the listener faster, add threads, or add queues."
            )
        elif group.told_apart:
            advice = say(
                "{clients:client|clients} for {queues:queue|queues}: more clients help, up to {queues}.",
                clients=len(clients or ()),
                queues=len(group.queues),
            )
        else:
            advice = say(
                "{clients:address|addresses} for {queues:queue|queues}: more clients help, up to {queues} "
                "(a host may run several).",
                clients=len(clients or ()),
                queues=len(group.queues),
            )
        yield Finding("too_few_consumers" if room else "slow", Severity.WARNING, group.where, seen, advice)
    elif lag < before and lag > rate * 60:
        left = lag * group.period / (before - lag)
        last = max((each.last.time or 0) for each in group.queues)
        yield Finding(
            "draining",
            Severity.INFO,
            group.where,
            seen,
            empty_in(left, last),
        )


def _stays(group: Group) -> bool:
    """The lag is what it was, and messages that waited at first wait still: more than were committed meanwhile.

    Only queues that move count. What stands still in others is no sign that those who work are slow.
    """
    moving = [each for each in group.queues if (each.moved or 0) > 0]
    lag = sum(each.lag for each in moving)
    return lag == sum(each.first.lag or 0 for each in moving) and lag > sum(each.moved or 0 for each in moving)


def rewound(group: Group) -> Iterator[Finding]:
    """rewound: a committed offset went back."""
    back = [each for each in group.queues if (each.moved or 0) < 0]
    if back:
        yield Finding(
            "rewound",
            Severity.WARNING,
            group.where,
            tuple(each.words() for each in back[:5]),
            say("Somebody reset the offset, or a client committed an older one after a rebalance. Expect repeats."),
        )


def ahead_of_broker(group: Group) -> Iterator[Finding]:
    """ahead_of_broker: the committed offset lies beyond the newest message."""
    ahead = [each for each in group.queues if (each.last.lag or 0) < 0]
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


def retention(group: Group) -> Iterator[Finding]:
    """retention_overtook: the next message to consume was deleted before it was consumed."""
    for each in group.queues:
        oldest, next_offset = each.last.min_offset, each.last.consumer_offset
        if oldest is not None and next_offset is not None and 0 <= next_offset < oldest:
            seen = say(
                "oldest offset {oldest}, next to consume {next_offset}: {lost:message is|messages are} lost",
                oldest=oldest,
                next_offset=next_offset,
                lost=oldest - next_offset,
            )
        elif oldest is None and each.last.last_time == 0 and next_offset and each.lag > 0:
            seen = say(
                "LastTime N/A (1970) at consumer offset {next_offset}, which is not 0, with lag {lag}",
                next_offset=next_offset,
                lag=each.lag,
            )
        else:
            continue
        yield Finding(
            "retention_overtook",
            Severity.ERROR,
            say("{where}, queue {label}", where=group.where, label=each.last.label),
            (seen,),
            say(
                "The broker deletes by age and by disk use, consumed or not. Keep messages longer than "
                "the longest outage you want to survive, and consume faster."
            ),
        )


def uneven_allocation(group: Group) -> Iterator[Finding]:
    """uneven_allocation: one client has at least two queues more than another of its group, and messages wait."""
    clients = group.clients
    if clients and len(clients) > 1 and group.told_apart and any(each.lag > 0 for each in group.queues):
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


RULES = (stopped, unassigned_queue, stalled, trend, rewound, ahead_of_broker, retention, uneven_allocation)


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
                say("Somebody switched it off. `mqadmin updateSubGroup -g GROUP -s true` switches it on."),
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


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Every rule on every group and topic; settings; then groups of which only a line is known."""
    yield from disabled(evidence)
    yield from unread_queues(evidence)
    for group in groups(evidence):
        for rule in RULES:
            yield from rule(group)
    for states in by_time(evidence.groups, lambda g: g.group).values():
        last = states[-1]
        if last.diff_total > 0 and last.clients == 0:
            yield Finding(
                "stopped",
                Severity.ERROR,
                say("group {group}", group=last.group),
                (say("OFFLINE with diff total {diff_total} ({file})", diff_total=last.diff_total, file=last.file),),
                say("Nothing consumes. Start the consumers, or delete the group if nobody needs it."),
            )
