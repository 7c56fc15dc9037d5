"""Rules for Kafka's groups: those of :mod:`~pyengine.backlog.diagnosis.rules.offsets` in Kafka's words and with
Kafka's tools, and what Kafka alone knows: states of a group, members without a partition, partitions without a leader.

Lags that an exporter tells without offsets are judged here too, whosever they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pyengine.backlog.diagnosis.evidence import ConsumerGroupState, Evidence
from pyengine.backlog.diagnosis.evidence.kafka_groups import UNAVAILABLE
from pyengine.backlog.diagnosis.rules import offsets
from pyengine.backlog.diagnosis.rules.progress import QUIET, Group, Progress, groups, lag_alone
from pyengine.backlog.diagnosis.rules.series import by_time, seconds, span
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.dataclass import dataclass

# AwaitingSync is 0.9's and 0.10's word, Assigning and Reconciling those of the protocol of 4.0.
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "AwaitingSync", "Assigning", "Reconciling")
# While a group rebalances no member has a partition and nothing is committed: only these rules hold then.
ALWAYS = (offsets.rewound, offsets.ahead_of_broker, offsets.retention)
GROWN, MANY = 1.5, 1000  # a lag without offsets grows if it is so many times what it was, and so many records more


@dataclass(frozen=True, slots=True)
class Partition(Progress):
    """A group in one partition, first and last seen."""

    @property
    def stands_still(self) -> bool:
        # The marker that ends a transaction takes an offset that no record has: a lag of 1 may stay for ever.
        if self.last.lag == self.first.lag == 1 and self.produced == 0:
            return False
        return Progress.stands_still.fget(self)  # type: ignore[attr-defined, no-any-return]

    def words(self) -> Said:
        now, then = self.last, self.first
        if self.never_committed:
            return say(
                "{label}: no offset was ever committed, log end offset {end}, {before} {span} before; a new member "
                "begins where auto.offset.reset sends it",
                label=now.label,
                end=now.broker_offset,
                before=then.broker_offset,
                span=span(self.period),
            )
        if now.broker_offset is None and now.consumer_offset is None:
            return lag_alone(self)
        if now.broker_offset is None and not self.period:
            return say(
                "{label}: start offset {offset}, lag {lag}", label=now.label, offset=now.consumer_offset, lag=self.lag
            )
        if now.broker_offset is None:
            return say(
                "{label}: start offset {offset}, {before} {span} before, lag {lag}",
                label=now.label,
                offset=now.consumer_offset,
                before=then.consumer_offset,
                span=span(self.period),
                lag=self.lag,
            )
        if self.went_back or self.period:
            return say(
                "{label}: current offset {offset}, {before} {span} before, log end offset {end}, {end_before} "
                "before, lag {lag}",
                label=now.label,
                offset=now.consumer_offset,
                before=then.consumer_offset,
                span=span(self.period),
                end=now.broker_offset,
                end_before=then.broker_offset,
                lag=self.lag,
            )
        return say(
            "{label}: current offset {offset}, log end offset {end}, lag {lag}",
            label=now.label,
            offset=now.consumer_offset,
            end=now.broker_offset,
            lag=self.lag,
        )


@dataclass(frozen=True, slots=True)
class GroupStates:
    """The states reported of a group, the oldest first."""

    states: tuple[ConsumerGroupState, ...] = ()

    @property
    def kind(self) -> str:
        return next((each.kind for each in reversed(self.states)), "consumer")

    @property
    def state(self) -> str:
        return next((each.state for each in reversed(self.states) if each.state), "")

    @property
    def members(self) -> int | None:
        return next((each.members for each in reversed(self.states) if each.members is not None), None)

    @property
    def idle(self) -> int:
        return next((each.idle for each in reversed(self.states) if each.idle is not None), 0)

    @property
    def well(self) -> int:
        return next((each.well for each in reversed(self.states) if each.well), 0)

    @property
    def unsettled(self) -> list[ConsumerGroupState]:
        return [each for each in self.states if each.state in REBALANCING]


# Sentences of the common rules in Kafka's words, with the same fields.
WORDS: dict[str, Callable[..., Said]] = {
    "no client in the group, lag {lag}": lambda lag: say("no active member, lag {lag}", lag=lag),
    "{moving:other queue moves|other queues move}": lambda moving: say(
        "{moving:other partition moves|other partitions move}", moving=moving
    ),
    "{rest:other queue is|other queues are} up to date, to which nothing comes": lambda rest: say(
        "{rest:other partition is|other partitions are} up to date, to which nothing comes", rest=rest
    ),
    "{hot:queue grows|queues grow}, {others:other keeps up or is|others keep up or are} at rest": lambda hot, others: (
        say(
            "{hot:partition grows|partitions grow}, {others:other keeps up or is|others keep up or are} at rest",
            hot=hot,
            others=others,
        )
    ),
    "{orphans:queue|queues} without a client, {clients:client|clients}": lambda orphans, clients: say(
        "{orphans:partition|partitions} without a member, {clients:member|members}", orphans=orphans, clients=clients
    ),
    "{name}: queues {count}": lambda name, count: say("{name}: partitions {count}", name=name, count=count),
    "the group's clients have queues of other topics only": lambda: say(
        "the group's members have partitions of other topics only"
    ),
}
ADVICE = {
    "stopped": say(
        "Nothing consumes. Start the consumers; if they run, look at their bootstrap.servers and group.id, and in "
        "their log for what threw them out (max.poll.interval.ms, session.timeout.ms). A consumer that uses assign() "
        "is not a member."
    ),
    "not_subscribed": say(
        "The group consumed this topic once, and its offsets are still there. Subscribe to it, or delete them: "
        "`kafka-consumer-groups --delete-offsets --group GROUP --topic TOPIC`."
    ),
    "unassigned_queue": say(
        "The members that are there have not subscribed to these partitions, or do not know them yet: those of a new "
        "count of partitions are seen after metadata.max.age.ms (5 min). Partitions of a consumer that uses assign() "
        "belong to no member either."
    ),
    "rewound": say(
        "An administrator reset the offsets (`kafka-consumer-groups --reset-offsets`), auto.offset.reset took "
        "effect, or a "
        "member committed an older offset after a rebalance. Expect repeats."
    ),
    "ahead_of_broker": say(
        "The topic was recreated, or its log was cut (an unclean leader election). The next fetch is out of range, and "
        "auto.offset.reset decides where it goes on. Stop the members and say it yourself: `kafka-consumer-groups "
        "--reset-offsets --to-earliest --execute`, or --to-latest."
    ),
    "broker_lost_messages": say(
        "No group can do that: the topic was recreated, a replica that was behind became the leader "
        "(unclean.leader.election.enable), the log was restored from a copy, or the two looks went to different "
        "clusters. Find out which before you reset the group's offsets."
    ),
    "retention_overtook": say(
        "retention.ms and retention.bytes delete records, consumed or not; a consumer that asks for one that is gone "
        "goes where auto.offset.reset sends it. Keep records longer than the longest outage you want to survive, "
        "and consume faster."
    ),
    "uneven_allocation": say(
        "The range assignor divides each topic by itself, and members that subscribe to different topics share "
        "nothing. Look at partition.assignment.strategy (CooperativeStickyAssignor spreads all topics) and at the "
        "subscriptions."
    ),
}
STUCK = say(
    "The other partitions move, so this is about one record or one partition: a record that fails each time (poison), "
    "a partition that was paused and not resumed, or, under isolation.level=read_committed, a transaction that hangs. "
    "The consumer's log names the offset of a record that fails; `kafka-transactions find-hanging --broker-id ID` "
    "finds a transaction, and its abort ends it. More members do not help: a partition has one."
)
STALLED = say(
    "Members are there but nothing is committed: a listener that does not return, a record that fails each time, or "
    "enable.auto.commit=false without a commit. Thread dumps of the members, given to `pyengine diagnose`, name the "
    "line; a program that keeps its offsets elsewhere looks the same."
)
STALLED_UNSEEN = say(
    "Nothing is committed, and it is not shown whether members are there: `kafka-consumer-groups --describe --members "
    "--group GROUP` shows them. If there are none, start them; else their thread dumps, given to `pyengine diagnose`, "
    "name the line at which they stand."
)
STALLED_SHARE = say(
    "The start offset of a share group moves when its oldest records are acknowledged: one of them is acquired again "
    "and again, or never accepted, released or rejected. See group.share.delivery.count.limit and the members' log."
)
SLOW = say(
    "A partition has one member, so more members cannot help: make the work between two polls faster, hand records to "
    "threads, or add partitions (keys then go to others)."
)
HOT = say(
    "These partitions get more than one member consumes, and the others have nothing to do with it: a key that is "
    "used more than others, or a partitioner of your own. More members do not help, for a partition has one: spread "
    "the keys (a part of the key that is finer, or more partitions), or make the work between two polls faster."
)
SLOW_SHARE = say("Members of a share group share partitions: more of them help, beyond the number of partitions too.")


def in_words(finding: Finding, group: Group | None = None, states: GroupStates | None = None) -> Finding:
    """A finding of the common rules in Kafka's words."""
    evidence = tuple(
        WORDS[line.template](**line.fields) if isinstance(line, Said) and line.template in WORDS else line
        for line in finding.evidence
    )
    advice: str = ADVICE.get(finding.code, finding.advice)
    if group is not None:
        kind = states.kind if states else "consumer"
        if finding.code == "one_queue_stuck":
            advice = _stuck_advice(group)
        elif finding.code == "stalled":
            has_members = bool(group.clients or group.connected)
            advice = STALLED_SHARE if kind == "share" else STALLED if has_members else STALLED_UNSEEN
        elif finding.code == "slow":
            advice = SLOW_SHARE if kind == "share" else HOT if finding.advice == offsets.HOT else SLOW
        elif finding.code == "too_few_consumers":
            advice = say(
                "{members:member|members} for {partitions:partition|partitions}: more members help, up to "
                "{partitions}.",
                members=len(group.clients or ()),
                partitions=len(group.queues),
            )
    return replace(finding, evidence=evidence, advice=advice)


def _stuck_advice(group: Group) -> Said:
    owners = {each.last.client for each in group.stuck}
    theirs = [each for each in group.queues if each.last.client in owners]
    if len(owners) == 1 and all(owners) and len(theirs) > 1 and len(group.stuck) == len(theirs):
        return say(
            "All partitions of {client} stand still and those of others move: look at that process. Its thread "
            "dumps, given to `pyengine diagnose`, name the line; if one record fails each time, its log names the "
            "offset. More members do not help: a partition has one.",
            client=next(iter(owners)),
        )
    return STUCK


def rebalancing(name: str, states: GroupStates) -> Iterator[Finding]:
    """rebalancing: the group's partitions are being assigned again; at two looks: it does not come to rest."""
    unsettled = states.unsettled
    if states.state not in REBALANCING:
        return
    first, last = unsettled[0], unsettled[-1]
    period = seconds(first, last)
    lines = [say("state {state} ({file})", state=last.state, file=last.file)]
    if last.members:
        lines.append(say("{members:member|members}", members=last.members))
    if period >= QUIET:
        lines.append(say("so it was {span} before", span=span(period)))
    yield Finding(
        "rebalancing",
        Severity.WARNING,
        say("group {group}", group=name),
        tuple(lines),
        say(
            "The group does not come to rest: members come and go. Their logs say why: poll() called later than "
            "max.poll.interval.ms (fewer records by max.poll.records help), heartbeats missed (session.timeout.ms), "
            "restarts (group.instance.id keeps a member's partitions)."
        )
        if period >= QUIET
        else say(
            "While it rebalances no member has a partition and nothing is committed; it takes seconds. Look "
            "again: if it "
            "still rebalances a minute later, members come and go (max.poll.interval.ms, session.timeout.ms, restarts)."
        ),
    )


def no_such_group(name: str, states: GroupStates) -> Iterator[Finding]:
    """no_such_group: Kafka does not know the group."""
    if states.state == "Dead":
        yield Finding(
            "no_such_group",
            Severity.WARNING,
            say("group {group}", group=name),
            (say("the group does not exist ({file})", file=states.states[-1].file),),
            say(
                "Its name is another one (`kafka-consumer-groups --list`), it never committed, or its offsets are "
                "gone: without members they are kept for offsets.retention.minutes."
            ),
        )


def idle_members(name: str, states: GroupStates) -> Iterator[Finding]:
    """idle_members: members of a consumer group that have no partition."""
    if states.idle and states.kind == "consumer" and states.state not in REBALANCING:
        yield Finding(
            "idle_members",
            Severity.INFO,
            say("group {group}", group=name),
            (
                say(
                    "{members:member|members}, {idle} of them without a partition",
                    members=states.members or states.idle,
                    idle=states.idle,
                ),
            ),
            say("More members than partitions: the rest stand by. Add partitions to the topic if more should work."),
        )


def unavailable(group: Group) -> Iterator[Finding]:
    """partition_unavailable: the tool could not get the end of a partition: it has no leader."""
    gone = [each for each in group.queues if each.last.verdict == UNAVAILABLE]
    if gone:
        yield Finding(
            "partition_unavailable",
            Severity.ERROR,
            group.where,
            tuple(
                say("{label}: current offset {offset}, no log end offset", label=each.last.label,
                    offset=each.last.consumer_offset)
                for each in gone[:5]
            ),
            say(
                "The partition has no leader: its brokers are down or its topic was deleted. `kafka-topics --describe "
                "--unavailable-partitions` lists such partitions."
            ),
        )  # fmt: skip


def lag_grows(group: Group) -> Iterator[Finding]:
    """lag_grows: a lag that is reported without offsets grows."""
    without_offsets = [
        each for each in group.queues if each.last.told_lag is not None and each.last.consumer_offset is None
    ]
    if without_offsets and not _has_grown(without_offsets):  # one among many, whose sum does not show it
        without_offsets = [each for each in without_offsets if _has_grown([each])]
    lag, before = sum(each.lag for each in without_offsets), sum(each.first.lag or 0 for each in without_offsets)
    if without_offsets and group.period >= QUIET:
        yield Finding(
            "lag_grows",
            Severity.WARNING,
            group.where,
            (
                say("lag {before} -> {lag} in {span}", before=before, lag=lag, span=span(group.period)),
                *_worst(without_offsets),
            ),
            say(
                "A lag without offsets does not tell whether anything is consumed. `kafka-consumer-groups --describe` "
                "(of RocketMQ: `mqadmin consumerProgress`), twice, a minute apart, tells whether it is slow or stands "
                "still."
            ),
        )


def _has_grown(queues: Sequence[Progress]) -> bool:
    lag, before = sum(each.lag for each in queues), sum(each.first.lag or 0 for each in queues)
    return lag >= before * GROWN and lag - before >= MANY


def _worst(queues: Sequence[Progress]) -> list[Said]:
    return [each.words() for each in sorted(queues, key=lambda each: -each.lag)[:5]]


def _of_kafka(group: Group, states: GroupStates) -> Group:
    """The group with its reported members: no client of an empty group has a partition."""
    empty = states.state == "Empty"
    queues = tuple(
        Partition(each.first, replace(each.last, client="") if empty else each.last) for each in group.queues
    )
    return replace(group, queues=queues, connected=0 if empty else states.members, well=states.well)


def _totals(found: Sequence[Group]) -> dict[str, Counter[str]]:
    """How many partitions each member of a group has, of all topics together."""
    totals: dict[str, Counter[str]] = {}
    for group in found:
        totals.setdefault(group.name, Counter()).update(group.clients or ())
    return totals


def _even(group: Group, partitions: Counter[str]) -> bool:
    """Members have equally many partitions of all topics together (the sticky assignors), or keep up as it is."""
    even = not partitions or max(partitions.values()) - min(partitions.values()) < 2
    return even or (group.period >= QUIET and not any(each.severity for each in offsets.trend(group)))


def poll_too_late(evidence: Evidence) -> Iterator[Finding]:
    """poll_too_late: by a consumer's log, a member leaves its group because its work takes too long."""
    for group, events in by_time(
        [event for event in evidence.events if event.kind == "poll_late"], lambda event: event.group
    ).items():
        last = events[-1]
        yield Finding(
            "poll_too_late",
            Severity.WARNING,
            say("group {group}", group=str(group) or say("(not named)")),
            (
                say(
                    "{count:line|lines} of its log: poll() later than max.poll.interval.ms ({file}:{line})",
                    count=len(events),
                    file=last.file,
                    line=last.line,
                ),
            ),
            say(
                "The work between two calls of poll() takes longer than max.poll.interval.ms (5 min unless it is set): "
                "the member leaves, its partitions go to others, and its records come again there. Make the work "
                "faster, or fetch fewer records a poll (max.poll.records). Thread dumps, given to `pyengine diagnose`, "
                "name the line that takes the time."
            ),
        )


def findings(evidence: Evidence) -> Iterator[Finding]:
    """The findings of whole groups, then those of the common rules for every group and topic of Kafka."""
    yield from poll_too_late(evidence)
    states = by_time(evidence.consumer_groups, lambda each: each.group)
    states_of = {str(name): GroupStates(tuple(each)) for name, each in states.items()}
    for name, each in states_of.items():
        yield from rebalancing(name, each)
        yield from no_such_group(name, each)
        yield from idle_members(name, each)
    every = list(groups(evidence))
    found = [_of_kafka(group, states_of.get(group.name, GroupStates())) for group in every if group.system == "kafka"]
    for finding in offsets.broker_lost_messages(found):
        yield in_words(finding)
    totals = _totals(found)
    for group in found:
        of_all = states_of.get(group.name, GroupStates())
        for rule in offsets.RULES:
            if rule is offsets.uneven_allocation and _even(group, totals[group.name]):
                continue
            if of_all.state not in REBALANCING or rule in ALWAYS:
                for finding in rule(group):
                    yield in_words(finding, group, of_all)
        yield from unavailable(group)
    for group in (*found, *(each for each in every if each.system != "kafka")):
        yield from lag_grows(replace(group, queues=tuple(Partition(each.first, each.last) for each in group.queues)))
