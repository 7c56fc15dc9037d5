"""How invented Kafka clusters are drawn. Nothing of ``pyengine.backlog`` is imported here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.backlog.tools.clusters import START, Case, Client, Cluster, Group, Lags, Moment, Queue, waits_later

TOPICS = ("orders", "payment-events", "clickstream.raw", "page_views", "inventory.cdc.stock_levels_by_warehouse_v2")
GROUPS = (
    "billing",
    "order service (blue)",
    "audit",
    "search-indexer",
    "connect-jdbc-sink",
    "fraud.detection.streams.production.eu-west-1",
)
RELEASES = ("0.9.0.1", "0.10.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.4.1", "3.9.1", "4.0.0",
            "4.1.0", "4.2.0")  # fmt: skip
HEALTHY: frozenset[str] = frozenset()
OFFSETS, STATE, MEMBERS, ALL, SHARE = "offsets", "state", "members", "all groups", "share"


@dataclass
class Draw:
    """One group under way."""

    random: Random
    release: str

    def __post_init__(self) -> None:
        chance = self.random
        self.seconds = chance.choice((45, 60, 60, 90, 120, 300, 3600))
        self.rate: float = chance.choice((2, 5, 11, 40, 120, 350))
        self.topic = chance.choice(TOPICS)
        self.name = chance.choice(GROUPS)
        self.places = range(chance.choice((4, 6, 8, 12, 24)))
        self.kind = "consumer" if self.release.startswith("4.") and chance.random() < 0.5 else "classic"
        self.state = ("Stable", "Stable")

    def clients(self, count: int) -> tuple[Client, ...]:
        chance = self.random
        old = self.release.startswith(("0.", "1."))
        long_hosts = chance.random() < 0.15
        net = f"10.{chance.randrange(256)}.{chance.randrange(256)}"
        found = []
        for number, host in enumerate(chance.sample(range(2, 250), count), 1):
            name = f"consumer-{number}" if old else chance.choice((f"consumer-{self.name}-{number}", f"app-{number}"))
            unique = str(uuid.UUID(int=chance.getrandbits(128), version=4))
            member = unique if self.kind == "consumer" else f"{name}-{unique}"
            found.append(
                Client(
                    member,
                    f"/fd00:{host:x}:0:0:0:0:0:2" if long_hosts else f"/{net}.{host}",
                    0,
                    "",
                    ((self.topic, ""),),
                    START,
                    name=name,
                )
            )
        return tuple(found)

    def owners(self, clients: Sequence[Client]) -> list[str]:
        """Range: the real default strategy."""
        if not clients:
            return [""] * len(self.places)
        ids = sorted(each.id for each in clients)
        found = []
        for index, name in enumerate(ids):
            found += [name] * (len(self.places) // len(ids) + (1 if index < len(self.places) % len(ids) else 0))
        return found

    def queue(self, number: int, lags: Lags, owner: str) -> tuple[Queue, Queue]:
        """A partition at both moments."""
        rate = self.rate * self.random.uniform(0.6, 1.4) if self.rate >= 2 else self.rate
        coming = int(rate * self.seconds)
        first = self.random.randrange(100_000, 4_000_000) + max(0, lags[0]) + 3 * coming
        newest, waits = (first, first + coming), (lags[0], waits_later(lags, coming))
        before, after = (
            Queue(self.topic, "", number, 0, newest[moment], newest[moment] - waits[moment], 0, 0, 0, owner)
            for moment in range(2)
        )
        return before, after

    def few(self) -> int:
        return self.random.randrange(0, int(3 * self.rate) + 1)

    def keeping_up(self) -> Lags:
        return self.few(), self.few()

    def standing(self) -> Lags:
        """The committed offset stays, the newest goes on."""
        return self.random.randrange(int(self.rate) + 1, int(400 * self.rate) + 2), 1.0

    def growing(self) -> Lags:
        return int(self.random.uniform(60, 600) * self.rate), self.random.uniform(0.2, 0.7)

    def draining(self) -> Lags:
        faster = self.random.uniform(0.2, 0.9)
        left = int(self.random.uniform(180, 1200) * (1 + faster) * self.rate)
        return left + int(1.4 * faster * self.rate * self.seconds), -faster

    def workers(self, *, least: int = 1, most: int | None = None) -> tuple[Client, ...]:
        return self.clients(self.random.randint(least, most or len(self.places)))

    def group(self, queues: Sequence[tuple[Queue, Queue]], clients: Sequence[Client]) -> Group:
        states = self.state if clients else ("Empty", "Empty")
        moments = tuple(
            Moment(START + moment * self.seconds * 1000, tuple(pair[moment] for pair in queues), tuple(clients), 0.0,
                   states[moment])
            for moment in range(2)
        )  # fmt: skip
        return Group(self.name, self.kind, moments)

    def simple(self, lags: Callable[[], Lags], clients: Sequence[Client]) -> Group:
        owners = self.owners(clients)
        return self.group([self.queue(number, lags(), owners[number]) for number in self.places], clients)


def shows_owners_alone(release: str) -> bool:
    """Releases whose tables are of the partitions that members have."""
    return release.startswith(("0.9.", "0.10.0.", "0.10.1."))


def shows_standby(release: str) -> bool:
    """Whether the table of partitions has rows of members without one: since 1.0 it leaves them out."""
    return release.startswith("0.") and not shows_owners_alone(release)


Drawn = tuple[Group, frozenset[str]]


def keeps_up(draw: Draw) -> Drawn:
    return draw.simple(draw.keeping_up, draw.workers()), HEALTHY


def at_rest(draw: Draw) -> Drawn:
    draw.rate = 0
    return draw.simple(lambda: (0, 0), draw.workers()), HEALTHY


def at_rest_without_members(draw: Draw) -> Drawn:
    draw.rate = 0
    return draw.simple(lambda: (0, 0), ()), HEALTHY


def standby_members(draw: Draw) -> Drawn:
    """More members than partitions, which keep up: the rest stand by."""
    group = draw.simple(draw.keeping_up, draw.clients(len(draw.places) + draw.random.randint(1, 3)))
    return group, frozenset({"idle_members"}) if shows_standby(draw.release) else HEALTHY


def some_partitions_unused(draw: Draw) -> Drawn:
    """Nothing ever came to half of the partitions: nothing is committed there."""
    clients = draw.workers()
    owners = draw.owners(clients)
    queues = []
    for number, owner in enumerate(owners):
        if number % 2:
            empty = Queue(draw.topic, "", number, 0, 0, None, 0, 0, 0, owner)
            queues.append((empty, empty))
        else:
            queues.append(draw.queue(number, draw.keeping_up(), owner))
    return draw.group(queues, clients), HEALTHY


def drains(draw: Draw) -> Drawn:
    return draw.simple(draw.draining, draw.workers()), frozenset({"draining"})


def stopped(draw: Draw) -> Drawn:
    return draw.simple(draw.standing, ()), frozenset({"stopped"})


def stalled(draw: Draw) -> Drawn:
    return draw.simple(draw.standing, draw.workers()), frozenset({"stalled"})


def one_queue_stuck(draw: Draw) -> Drawn:
    clients = draw.workers()
    owners = draw.owners(clients)
    stuck = set(draw.random.sample(range(len(draw.places)), draw.random.randint(1, max(1, len(draw.places) // 4))))
    queues = [
        draw.queue(number, draw.standing() if number in stuck else draw.keeping_up(), owner)
        for number, owner in enumerate(owners)
    ]
    return draw.group(queues, clients), frozenset({"one_queue_stuck"})


def never_commits_one(draw: Draw) -> Drawn:
    """One partition gets messages and nothing was ever committed for it, while the others keep up."""
    clients = draw.workers()
    owners = draw.owners(clients)
    odd = draw.random.randrange(len(draw.places))
    queues = []
    for number, owner in enumerate(owners):
        before, after = draw.queue(number, draw.keeping_up(), owner)
        if number == odd:
            before, after = replace(before, committed=None), replace(after, committed=None)
        queues.append((before, after))
    return draw.group(queues, clients), frozenset({"one_queue_stuck"})


def too_few_consumers(draw: Draw) -> Drawn:
    return draw.simple(draw.growing, draw.workers(most=len(draw.places) // 2)), frozenset({"too_few_consumers"})


def slow(draw: Draw) -> Drawn:
    return draw.simple(draw.growing, draw.clients(len(draw.places))), frozenset({"slow"})


def rewound(draw: Draw) -> Drawn:
    """Somebody set the offsets back: all of them, or one."""
    whole, odd = draw.random.random() < 0.7, draw.random.randrange(len(draw.places))
    back = draw.random.uniform(1.5, 2.5)
    lags = iter(
        [(draw.few(), back) if whole or number == odd else draw.keeping_up() for number in range(len(draw.places))]
    )
    return draw.simple(lambda: next(lags), draw.workers()), frozenset({"rewound"})


def ahead_of_broker(draw: Draw) -> Drawn:
    """The topic was made anew: offsets of before lie beyond its end, and stay."""
    far = draw.random.randrange(5_000, 20_000) + int(1.4 * draw.rate * draw.seconds)
    return draw.simple(lambda: (-far, 1.0), draw.workers()), frozenset({"ahead_of_broker"})


def rebalancing(draw: Draw) -> Drawn:
    """Members join and leave at both moments: nobody has a partition."""
    # 0.10 and 0.11 call the second state AwaitingSync.
    second = "AwaitingSync" if draw.release.startswith("0.") else "CompletingRebalance"
    draw.state = ("PreparingRebalance", draw.random.choice(("PreparingRebalance", second)))
    draw.kind = "classic"
    clients = draw.workers()
    queues = [draw.queue(number, draw.standing(), "") for number in range(len(draw.places))]
    return draw.group(queues, clients), frozenset({"rebalancing"})


def unassigned_queue(draw: Draw) -> Drawn:
    """One partition with messages belongs to nobody, the others keep up."""
    clients = draw.workers(least=2)
    owners = draw.owners(clients)
    odd = draw.random.randrange(len(draw.places))
    queues = [
        draw.queue(number, draw.standing() if number == odd else draw.keeping_up(), "" if number == odd else owner)
        for number, owner in enumerate(owners)
    ]
    held = {queue.owner for queue, _ in queues}
    return draw.group(queues, [each for each in clients if each.id in held]), frozenset({"unassigned_queue"})


def slow_trickle(draw: Draw) -> Drawn:
    """Less than a record a second, and each is consumed as it comes."""
    draw.seconds, draw.rate = 300, draw.random.choice((0.1, 0.25, 0.5))
    return draw.simple(lambda: (0, draw.random.choice((0, 0, 1))), draw.workers()), HEALTHY


def transaction_marker(draw: Draw) -> Drawn:
    """The last transaction ended with a marker, which takes an offset and is never consumed: a lag of 1 that stays."""
    draw.rate = 0
    return draw.simple(lambda: (1, 1), draw.workers()), HEALTHY


def two_topics(draw: Draw) -> Drawn:
    clients = draw.workers()
    owners = draw.owners(clients)
    first = [draw.queue(number, draw.keeping_up(), owner) for number, owner in enumerate(owners)]
    draw.topic = draw.random.choice([each for each in TOPICS if each != draw.topic])
    second = [draw.queue(number, draw.keeping_up(), owner) for number, owner in enumerate(owners)]
    return draw.group([*first, *second], clients), HEALTHY


def deployed_anew(draw: Draw) -> Drawn:
    """All members were replaced between the two moments, and nothing waits."""
    group, _ = keeps_up(draw)
    last = group.moments[1]
    clients = draw.clients(len(last.clients))
    names = dict(zip((each.id for each in last.clients), (each.id for each in clients), strict=True))
    queues = tuple(replace(each, owner=names[each.owner]) for each in last.queues)
    return replace(group, moments=(group.moments[0], replace(last, queues=queues, clients=clients))), HEALTHY


def has_rebalanced(draw: Draw) -> Drawn:
    """It rebalanced at the first moment, and has come to rest and keeps up at the second."""
    draw.state, draw.kind = ("PreparingRebalance", "Stable"), "classic"
    group, _ = keeps_up(draw)
    first = group.moments[0]
    queues = tuple(replace(each, owner="") for each in first.queues)
    return replace(group, moments=(replace(first, queues=queues), group.moments[1])), HEALTHY


def one_member_hung(draw: Draw) -> Drawn:
    """All partitions of one member stand still, those of the others go on."""
    clients = draw.workers(least=2)
    owners = draw.owners(clients)
    hung = draw.random.choice(sorted(set(owners)))
    queues = [
        draw.queue(number, draw.standing() if owner == hung else draw.keeping_up(), owner)
        for number, owner in enumerate(owners)
    ]
    return draw.group(queues, clients), frozenset({"one_queue_stuck"})


def broker_lost_messages(draw: Draw) -> Drawn:
    """A replica that was far behind became the leader: the ends fell, and the group's offsets with them."""
    group, _ = keeps_up(draw)
    left = draw.random.uniform(0.05, 0.4)
    last = group.moments[1]
    queues = tuple(
        replace(each, newest=int(each.newest * left), committed=max(0, int(each.newest * left) - each.lag))
        for each in last.queues
    )
    moments = (group.moments[0], replace(last, queues=queues))
    return replace(group, moments=moments), frozenset({"broker_lost_messages"})


def stuck_and_slow(draw: Draw) -> Drawn:
    """One partition stands still, and the members are too slow, or too few, for the others."""
    few = draw.random.random() < 0.5
    clients = draw.clients(draw.random.randint(1, len(draw.places) // 2) if few else len(draw.places))
    stuck = draw.random.randrange(len(draw.places))
    lags = iter([draw.standing() if number == stuck else draw.growing() for number in draw.places])
    return draw.simple(lambda: next(lags), clients), frozenset(
        {"one_queue_stuck", "too_few_consumers" if few else "slow"}
    )


def stuck_while_draining(draw: Draw) -> Drawn:
    """One partition stands still, and the backlog of the others is worked off."""
    stuck = draw.random.randrange(len(draw.places))
    lags = iter([draw.standing() if number == stuck else draw.draining() for number in draw.places])
    return draw.simple(lambda: next(lags), draw.workers()), frozenset({"one_queue_stuck", "draining"})


def stopped_at_rest(draw: Draw) -> Drawn:
    """Nothing comes any more, but records wait and nobody is there."""
    draw.rate = 0
    waits = draw.random.randrange(100, 100_000)
    return draw.simple(lambda: (waits, waits), ()), frozenset({"stopped"})


def stalled_at_rest(draw: Draw) -> Drawn:
    """Nothing comes any more, records wait, and members are there that consume none."""
    draw.rate = 0
    waits = draw.random.randrange(100, 100_000)
    return draw.simple(lambda: (waits, waits), draw.workers()), frozenset({"stalled"})


def not_subscribed(draw: Draw) -> Drawn:
    """The group consumed another topic once, and no longer subscribes to it; it keeps up in its own."""
    clients = draw.workers()
    owners = draw.owners(clients)
    queues = [draw.queue(number, draw.keeping_up(), owner) for number, owner in enumerate(owners)]
    draw.topic = draw.random.choice([each for each in TOPICS if each != draw.topic])
    queues += [draw.queue(number, draw.standing(), "") for number in draw.places]
    return draw.group(queues, clients), frozenset({"not_subscribed"})


def half_of_the_partitions_stuck(draw: Draw) -> Drawn:
    """Half of the partitions stand still, whosever they are."""
    stuck = set(draw.random.sample(range(len(draw.places)), len(draw.places) // 2))
    lags = iter([draw.standing() if number in stuck else draw.keeping_up() for number in range(len(draw.places))])
    return draw.simple(lambda: next(lags), draw.workers()), frozenset({"one_queue_stuck"})


def breathes(draw: Draw) -> Drawn:
    """Up to nine seconds of work wait, at one moment more, at the other less."""

    def lags() -> Lags:
        most = int(5.4 * draw.rate) + 1
        return draw.random.randrange(most), draw.random.randrange(most)

    return draw.simple(lags, draw.workers()), HEALTHY


def rewound_while_stopped(draw: Draw) -> Drawn:
    """Offsets were set back while nobody was there, and nobody came since."""
    draw.rate = 0
    back = draw.random.randrange(1_000, 50_000)
    return draw.simple(lambda: (0, back), ()), frozenset({"rewound", "stopped"})


def ahead_without_members(draw: Draw) -> Drawn:
    """The topic was made anew while nobody was there."""
    far = draw.random.randrange(5_000, 20_000) + int(1.4 * draw.rate * draw.seconds)
    return draw.simple(lambda: (-far, 1.0), ()), frozenset({"ahead_of_broker"})


def one_partition_keeps_up(draw: Draw) -> Drawn:
    draw.places = draw.places[:1]
    return draw.simple(draw.keeping_up, draw.workers(most=1)), HEALTHY


def one_partition_is_slow(draw: Draw) -> Drawn:
    draw.places = draw.places[:1]
    return draw.simple(draw.growing, draw.workers(most=1)), frozenset({"slow"})


def one_partition_stalled(draw: Draw) -> Drawn:
    draw.places = draw.places[:1]
    return draw.simple(draw.standing, draw.workers(most=1)), frozenset({"stalled"})


def grows_a_little(draw: Draw) -> Drawn:
    """A tenth of what comes is left over."""
    draw.seconds = max(draw.seconds, 120)

    def lags() -> Lags:
        return int(draw.random.uniform(200, 600) * draw.rate), draw.random.uniform(0.1, 0.15)

    return draw.simple(lags, draw.clients(len(draw.places))), frozenset({"slow"})


def begins_at_the_end(draw: Draw) -> Drawn:
    """Nothing was committed for a partition that holds old records: its member began at the end, and nothing came."""
    group, _ = keeps_up(draw)
    odd = draw.random.randrange(len(draw.places))
    end = group.moments[0].queues[odd].newest
    moments = tuple(
        replace(
            moment,
            queues=tuple(
                replace(each, committed=None, newest=end) if each.number == odd else each for each in moment.queues
            ),
        )
        for moment in group.moments
    )
    return replace(group, moments=moments), HEALTHY


def slow_with_standby(draw: Draw) -> Drawn:
    """More members than partitions, and what waits grows: more of them do not help."""
    group = draw.simple(draw.growing, draw.clients(len(draw.places) + 2))
    return group, frozenset({"slow", "idle_members"} if shows_standby(draw.release) else {"slow"})


def share_keeps_up(draw: Draw) -> Drawn:
    draw.kind = "share"
    return draw.simple(draw.keeping_up, draw.workers()), HEALTHY


def share_stopped(draw: Draw) -> Drawn:
    draw.kind = "share"
    return draw.simple(draw.standing, ()), frozenset({"stopped"})


def among_many(draw: Draw, hot: Callable[[], Lags], others: Callable[[], Lags], *, idle: bool = False) -> Group:
    """One partition of 64 does something else than the others. idle: nothing comes to those."""
    draw.places = list(range(64))
    clients = draw.workers(most=12)
    owners, odd, rate = draw.owners(clients), draw.random.randrange(64), draw.rate
    queues = []
    for number, owner in enumerate(owners):
        draw.rate = rate if number == odd or not idle else 0
        queues.append(draw.queue(number, hot() if number == odd else others(), owner))
    return draw.group(queues, clients)


def one_of_many_grows(draw: Draw) -> Drawn:
    """A key is used more than others: its partition grows, the others keep up, and hide it in the sum."""
    return among_many(draw, draw.growing, draw.keeping_up), frozenset({"slow"})


def one_of_many_grows_others_rest(draw: Draw) -> Drawn:
    return among_many(draw, draw.growing, lambda: (0, 0), idle=True), frozenset({"slow"})


def one_of_many_stuck_others_rest(draw: Draw) -> Drawn:
    return among_many(draw, draw.standing, lambda: (0, 0), idle=True), frozenset({"one_queue_stuck"})


def one_of_many_grows_others_drain(draw: Draw) -> Drawn:
    """The backlog of the others is worked off, and one partition's grows meanwhile."""
    return among_many(draw, draw.growing, draw.draining), frozenset({"slow", "draining"})


Rule = Callable[[Draw], Drawn]
RULES: dict[str, tuple[tuple[Rule, ...], tuple[Rule, ...]]] = {
    OFFSETS: (
        (keeps_up, at_rest, at_rest_without_members, standby_members, some_partitions_unused, drains, slow_trickle,
         transaction_marker, two_topics, deployed_anew, has_rebalanced, breathes, one_partition_keeps_up,
         begins_at_the_end),
        (stopped, stalled, one_queue_stuck, never_commits_one, too_few_consumers, slow, rewound, ahead_of_broker,
         rebalancing, unassigned_queue, one_member_hung, broker_lost_messages, stuck_and_slow,
         stuck_while_draining, stopped_at_rest, stalled_at_rest, not_subscribed,
         half_of_the_partitions_stuck, rewound_while_stopped, ahead_without_members, one_partition_is_slow,
         one_partition_stalled, grows_a_little, slow_with_standby, one_of_many_grows, one_of_many_grows_others_rest,
         one_of_many_stuck_others_rest, one_of_many_grows_others_drain),
    ),
    STATE: ((keeps_up, at_rest_without_members, deployed_anew), (rebalancing, one_queue_stuck, stopped)),
    MEMBERS: ((keeps_up, at_rest), (rebalancing, one_member_hung)),
}  # fmt: skip
RULES[ALL] = RULES[OFFSETS]


# A partition that nobody has, and a group in which nobody is, are in no table of 0.9, 0.10.0 and 0.10.1.
NOT_SHOWN: tuple[Rule, ...] = (
    at_rest_without_members, has_rebalanced, stopped, rebalancing, unassigned_queue, stopped_at_rest, not_subscribed,
    rewound_while_stopped, ahead_without_members,
)  # fmt: skip


def commands_known(release: str) -> tuple[str, ...]:
    """What the tools of a release can be asked: --state and --members came with 1.1, --all-groups with 2.4."""
    if release.startswith("0."):
        return (OFFSETS,)
    if release.startswith("1."):
        return (OFFSETS, STATE, MEMBERS)
    return (OFFSETS, ALL, STATE, MEMBERS)


def share_case(number: int, release: str) -> Case:
    """A share group. The tool of 4.1 shows where each partition starts and nothing else: no cause can be seen."""
    draw = Draw(Random(f"share {release} {number}"), release)
    group, _ = (share_keeps_up, share_stopped)[number % 2](draw)
    return Case(Cluster(number, "kafka", release, ("",), (group,)), SHARE, "share", HEALTHY)


def case(number: int, release: str) -> Case:
    """The invented cluster of a number, as one release of the tools looks at it.

    Even numbers are healthy; numbers in a row take the rules in turn.
    """
    random = Random(f"kafka {release} {number}")
    left_out = NOT_SHOWN if shows_owners_alone(release) else ()
    pairs = [(shown, rule) for shown in commands_known(release) for rule in RULES[shown][number % 2]
             if rule not in left_out]  # fmt: skip
    shown, rule = pairs[number // 2 % len(pairs)]
    draw = Draw(random, release)
    group, truth = rule(draw)
    groups = [group]
    if shown == ALL:
        for name in ("aside-1", "aside-2"):
            beside = Draw(random, release)
            beside.name, beside.topic, beside.seconds = name, f"{name}-topic", draw.seconds
            groups.append(keeps_up(beside)[0])
    return Case(Cluster(number, "kafka", release, ("",), tuple(groups)), shown, rule.__name__, truth)
