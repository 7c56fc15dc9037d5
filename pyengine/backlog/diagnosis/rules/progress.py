"""The progress of groups in their queues: what two looks at committed offsets show, before any rule judges it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from pyengine.backlog.diagnosis.evidence import Evidence, OffsetState
from pyengine.backlog.diagnosis.rules.series import by_time, change, seconds, span
from pyengine.backlog.findings import Said, say
from pyengine.dataclass import dataclass

QUIET = 30.0
DEAD = "%DLQ%"
RETRY = "%RETRY%"


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
        """By how much the committed offset moved, None if that is not known."""
        return change(self.first.consumer_offset, self.last.consumer_offset)

    @property
    def produced(self) -> int | None:
        """By how much the broker's offset moved, None if that is not known."""
        return change(self.first.broker_offset, self.last.broker_offset)

    @property
    def went_back(self) -> bool:
        """The broker's offset fell, which no group can do."""
        return (self.produced or 0) < 0

    @property
    def rewound(self) -> bool:
        """The committed offset went back, or a monitor that watched it reports it (Burrow's REWIND)."""
        return (self.moved or 0) < 0 or self.last.verdict == "REWIND"

    @property
    def never_committed(self) -> bool:
        """Messages came to a partition of Kafka for which nothing was ever committed, with a client or without.

        One to which none came may be up to date: a client that begins at its end has nothing to commit.
        """
        return (
            self.first.consumer_offset is None
            and self.last.uncommitted
            and (self.first.client == "") == (self.last.client == "")
            and (self.produced or 0) > 0
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
                "new client begins where auto.offset.reset sends it",
                label=self.last.label,
                broker_offset=self.last.broker_offset,
                before=self.first.broker_offset,
                span=span(self.period),
            )
        if self.last.broker_offset is None and self.last.consumer_offset is None:
            return lag_alone(self)
        if self.last.broker_offset is None and not self.period:
            return say(
                "{label}: consumer offset {consumer_offset}, broker offset unknown",
                label=self.last.label,
                consumer_offset=self.last.consumer_offset,
            )
        if self.last.broker_offset is None:
            return say(
                "{label}: consumer offset {consumer_offset}, {before} before, broker offset unknown",
                label=self.last.label,
                consumer_offset=self.last.consumer_offset,
                before=self.first.consumer_offset,
            )
        if self.went_back:
            return say(
                "{label}: broker offset {broker_offset}, {broker_before} before, consumer offset {consumer_offset}, "
                "{before} before",
                label=self.last.label,
                broker_offset=self.last.broker_offset,
                broker_before=self.first.broker_offset,
                consumer_offset=self.last.consumer_offset,
                before=self.first.consumer_offset,
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


def lag_alone(progress: Progress) -> Said:
    """Of a source that says no offset."""
    label, lag = progress.last.label, progress.lag
    if not progress.period:
        return say("{label}: lag {lag}", label=label, lag=lag)
    return say(
        "{label}: lag {lag}, {before} {span} before",
        label=label,
        lag=lag,
        before=progress.first.lag,
        span=span(progress.period),
    )


@dataclass(frozen=True, slots=True)
class Group:
    """All queues of one group in one topic.

    connected: clients of the group by another source, None: no such source. others: topics of the group that have
    a client, except this one. well: partitions of the group that a monitor finds well and does not list.
    """

    system: str
    name: str
    topic: str
    queues: tuple[Progress, ...]
    connected: int | None = None
    others: frozenset[str] = frozenset()
    well: int = 0

    @property
    def where(self) -> Said:
        return say("group {name}, topic {topic}", name=self.name or say("(not named)"), topic=self.topic)

    @property
    def clients(self) -> Counter[str] | None:
        """Queues by client, as last seen; of RocketMQ by address. None if the tool did not show them.

        A group that consumes while no queue has a client has clients that mqadmin does not know by queue.
        """
        shown = [each.last.client for each in self.queues]
        if any(client is None for client in shown):
            return None
        named = Counter(client for client in shown if client)
        return None if not named and (self.commits or self.served) else named

    @property
    def served(self) -> bool:
        """In the one sight that there is the broker hands messages of this topic to the group.

        The rate is that of all its topics: where another one has clients it is theirs. A client of the retry topic
        alone may be one of several, the others of which did not answer the tool.
        """
        theirs = any(not topic.startswith(RETRY) for topic in self.others)
        return not self.period and bool(self.tps) and not theirs

    @property
    def tps(self) -> float | None:
        return next((each.last.tps for each in self.queues if each.last.tps is not None), None)

    @property
    def pop(self) -> bool:
        """Its clients pop: 5.x shows what is in flight, and no owner beside queues whose commits move."""
        shown = [each.last for each in self.queues]
        return (
            self.clients is None
            and all(each.client == "" and each.inflight is not None for each in shown)
            and not self.topic.startswith(RETRY)
        )

    @property
    def has_no_client(self) -> bool:
        """No client is in the group, as far as the tool or another one shows clients at all."""
        if self.connected == 0 and not self.clients:
            return not self.commits and not self.served
        return self.clients is not None and not self.clients and not self.connected and not self.others

    @property
    def unsubscribed(self) -> bool:
        """The group has clients, and none of them has a queue of this topic or a message of it in hand."""
        return (
            self.clients is not None
            and not self.clients
            and bool(self.others)
            and not any(each.last.inflight for each in self.queues)
        )

    @property
    def stuck(self) -> list[Progress]:
        """Queues that stand still though they have an owner."""
        if self.has_no_client or self.unsubscribed:
            return []
        owned = bool(self.clients)
        return [
            each
            for each in self.queues
            if each.stands_still and not each.went_back and not (owned and each.last.client == "")
        ]

    @property
    def orphans(self) -> list[Progress]:
        """Queues with messages that none of the group's clients has."""
        if not self.clients:
            return []
        return [
            each
            for each in self.queues
            if each.last.client == "" and (each.never_committed or (each.lag > 0 and not each.moved))
        ]

    @property
    def working(self) -> tuple[Progress, ...]:
        """The queues that a trend is made of."""
        apart = {each.last.label for each in (*self.stuck, *self.orphans)}
        return tuple(
            each for each in self.queues if each.last.label not in apart and not each.went_back and not each.rewound
        )

    @property
    def told_apart(self) -> bool:
        """Each name of ``clients`` is one client: mqadmin shows addresses, and a host may run several clients."""
        named = self.clients or ()
        return self.system == "kafka" or all("@" in name for name in named) or len(named) == self.connected

    @property
    def commits(self) -> bool:
        """A client commits, whether the tool shows it or not: mqadmin shows N/A for a client that does not answer
        it."""
        return any((each.moved or 0) > 0 for each in self.queues)

    @property
    def period(self) -> float:
        return max(each.period for each in self.queues)


def groups(evidence: Evidence) -> Iterator[Group]:
    """Groups by topic, dead-letter topics apart (they need no consumer), and groups whose clients say that each of
    them gets everything: those commit to files of their own, never to the broker."""
    broadcasting = apart(evidence)
    series = by_time(evidence.offsets, lambda o: (o.system, o.group, o.topic, o.broker, o.queue))
    found: dict[tuple[str, str, str], list[Progress]] = {}
    for states in series.values():
        last = states[-1]
        if not last.topic.startswith(DEAD) and last.group not in broadcasting:
            found.setdefault((last.system, last.group, last.topic), []).append(Progress(states[0], last))
    owned: dict[tuple[str, str], set[str]] = {}
    for each in evidence.offsets:
        if each.client:
            owned.setdefault((each.system, each.group), set()).add(each.topic)
    connected = _connected(evidence)
    for (system, name, topic), queues in found.items():
        others = frozenset(owned.get((system, name), set()) - {topic})
        yield Group(system, name, topic, tuple(queues), connected.get(name), others)


def apart(evidence: Evidence) -> set[str]:
    """Groups whose clients say that each of them gets everything: what the broker has of them is not where they are."""
    return {
        *(each.group for each in evidence.clients if each.get("messageModel") == "BROADCASTING"),
        *(each.group for each in evidence.groups if each.model == "BROADCASTING"),
        *(each.group for each in evidence.checks if each.model == "BROADCASTING"),
    }


def _connected(evidence: Evidence) -> dict[Hashable, int | None]:
    """How many clients a group has: by consumerProgress of all groups, else by the lists of its clients, else by their
    running infos."""
    infos: dict[Hashable, set[str]] = {}
    for each in evidence.clients:
        infos.setdefault(each.group, set()).add(each.client_id)
    checks = by_time(evidence.checks, lambda check: check.group)
    lines = by_time([each for each in evidence.groups if each.clients is not None], lambda line: line.group)
    return (
        {group: len(ids) for group, ids in infos.items()}
        | {group: len(states[-1].clients) for group, states in checks.items()}
        | {group: states[-1].clients for group, states in lines.items()}
    )
