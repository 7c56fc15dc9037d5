"""How invented RocketMQ clusters are drawn. Nothing of ``pyengine.backlog`` is imported here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.backlog.tools.clusters import START, Case, Client, Cluster, Group, Held, Lags, Moment, Queue, waits_later

TOPICS = (
    "orders",
    "payment_events",
    "MQ_INST_1380156306793859_BbXbx0Y4%orders",
    "user-login",
    "TopicTest",
    "stock_change",
    "mall_order_status_changed_to_paid_v2",
)
GROUPS = (
    "billing",
    "MQ_INST_1380156306793859_BbXbx0Y4%GID_billing",
    "audit_cg",
    "CID_search_sync",
    "push-gateway",
    "GID_order_timeout_close",
    "please_rename_me",
)
# Release of mqadmin -> number and name of the client's version that it knows.
RELEASES = {
    "3.2.6": (78, "V3_2_6_SNAPSHOT"),
    "4.0.0-incubating": (212, "V4_0_0_SNAPSHOT"),
    "4.1.0-incubating": (232, "V4_1_0_SNAPSHOT"),
    "4.2.0": (252, "V4_2_0_SNAPSHOT"),
    "4.3.2": (277, "V4_3_2"),
    "4.5.2": (317, "V4_5_2"),
    "4.7.1": (355, "V4_7_1"),
    "4.9.7": (407, "V4_9_7"),
    "5.0.0": (413, "V5_0_0"),
    "5.1.4": (441, "V5_1_4"),
    "5.3.3": (479, "V5_3_3"),
}
HEALTHY: frozenset[str] = frozenset()
PROGRESS, WITHOUT_CLIENTS, STATUS, LIST = "progress", "progress without clients", "status", "list"
BROKER, TOGETHER, STATS, CONNECTED = "brokerConsumeStats", "progress and status", "statsAll", "progress and connection"


def shows_clients_always(release: str) -> bool:
    """Releases without ``-s`` look for the clients by themselves."""
    return release.startswith(("4.1.", "4.2."))


def shows_no_clients(release: str) -> bool:
    """Releases whose tables have no column for clients."""
    return release.startswith(("3.", "4.0."))


@dataclass
class Draw:
    """One group under way: what every kind of cluster begins with."""

    random: Random
    release: str

    def __post_init__(self) -> None:
        chance = self.random
        self.seconds = chance.choice((45, 60, 60, 90, 120, 300, 3600))
        self.rate: float = chance.choice((2, 5, 11, 40, 120, 350))  # messages a second that come to a queue
        self.brokers = chance.choice(
            (("broker-a",), ("broker-a", "broker-b"), ("rmq-prod-0", "rmq-prod-1", "rmq-prod-2"))
        )
        per_broker = chance.choice((4, 8, 16)) if len(self.brokers) == 1 else chance.choice((2, 4, 8))
        self.topic = chance.choice(TOPICS)
        self.name = chance.choice(GROUPS)
        self.places = [(broker, number) for broker in self.brokers for number in range(per_broker)]
        self.kind = "push"

    def clients(self, count: int, *, same_id: bool = False) -> tuple[Client, ...]:
        chance, (version, name) = self.random, RELEASES[self.release]
        net = f"10.{chance.randrange(256)}.{chance.randrange(256)}"
        hosts = chance.sample(range(2, 250), count)
        in_containers = chance.random() < 0.2
        made = []
        for number, host in enumerate(hosts):
            pid = 1 if in_containers else chance.randrange(100, 40_000)
            suffix = f"{pid}#{chance.randrange(10**12, 10**14)}" if version >= 400 else str(pid)
            made.append(
                Client(
                    id=f"{net}.{host}@{suffix}",
                    address=f"{net}.{host}:{chance.randrange(30_000, 60_000)}",
                    version=version,
                    version_name=name,
                    subscriptions=((f"%RETRY%{self.name}", "*"), (self.topic, chance.choice(("*", "TagA || TagB")))),
                    started=START - chance.randrange(10**6, 10**9) - number,
                    rate=round(self.rate * len(self.places) / count, 2),
                    consume_ms=round(chance.uniform(0.5, 2.0), 2),
                )
            )
        text = made[0].subscriptions
        return tuple(replace(each, subscriptions=text) for each in made)

    def owners(self, clients: Sequence[Client], places: int) -> list[str]:
        """Averagely: the real default strategy, over ids in order."""
        if not clients:
            return [""] * places
        ids = sorted(each.id for each in clients)
        found = []
        for index, name in enumerate(ids):
            share = places // len(ids) + (1 if index < places % len(ids) else 0)
            found += [name] * share
        return found

    def queue(
        self, topic: str, place: tuple[str, int], lags: Lags, owner: str, rate: float | None = None
    ) -> tuple[Queue, Queue]:
        """A queue at both moments. lags: at each; rate: messages a second that come, the draw's if none is given."""
        rate = self.rate if rate is None else rate
        if rate >= 2:  # some keys are asked for more than others
            rate *= self.random.uniform(0.6, 1.4)
        coming = int(rate * self.seconds)
        first = self.random.randrange(100_000, 4_000_000) + max(0, lags[0]) + 3 * coming
        newest, waits = (first, first + coming), (lags[0], waits_later(lags, coming))
        found = []
        for moment in range(2):
            when = START + moment * self.seconds * 1000
            committed = newest[moment] - waits[moment]
            late = int(max(0, waits[moment]) / rate * 1000) if rate else self.random.randrange(60_000, 9_000_000)
            found.append(
                Queue(topic, place[0], place[1], max(0, first - 3_000_000), newest[moment], committed, committed,
                      when - late, when if rate else when - late, owner)
            )  # fmt: skip
        return found[0], found[1]

    def few(self) -> int:
        """What waits where consumers keep up: less than three seconds of work."""
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

    def retries(self, owner: str) -> list[tuple[Queue, Queue]]:
        """The group's retry topic, nothing in it; it has one queue a broker."""
        topic = f"%RETRY%{self.name}"
        empty = Queue(topic, "", 0, 0, 0, 0, 0, 0, 0, owner)
        return [(replace(empty, broker=broker),) * 2 for broker in self.brokers]

    def group(
        self, queues: Sequence[tuple[Queue, Queue]], clients: Sequence[Client], tps: float | None = None
    ) -> Group:
        owner = min((each.id for each in clients), default="")
        pairs = [*self.retries(owner), *queues]
        consumed = sum(max(0, (after.committed or 0) - (before.committed or 0)) for before, after in queues)
        speed = consumed / self.seconds if tps is None else tps
        moments = []
        for moment in range(2):
            seen = tuple(pair[moment] for pair in pairs)
            held = tuple(self._with_queues(client, seen) for client in clients)
            moments.append(Moment(START + moment * self.seconds * 1000, seen, held, speed))
        return Group(self.name, self.kind, tuple(moments))

    def _with_queues(self, client: Client, queues: Sequence[Queue]) -> Client:
        if client.held or self.kind == "pop":
            return client
        held = tuple(
            Held(each.topic, each.broker, each.number, each.committed or 0, min(1000, each.lag) if each.lag > 0 else 0,
                 each.committed or 0, (each.committed or 0) + max(0, min(1000, each.lag) - 1), 40)
            for each in queues if each.owner == client.id
        )  # fmt: skip
        return replace(client, held=held)

    def workers(self, *, most: int | None = None, least: int = 1) -> tuple[Client, ...]:
        return self.clients(self.random.randint(least, most or min(6, len(self.places))))

    def simple(self, lags: Callable[[], Lags], clients: Sequence[Client], tps: float | None = None) -> Group:
        """All queues do the same."""
        owners = self.owners(clients, len(self.places))
        return self.group(
            [self.queue(self.topic, place, lags(), owner) for place, owner in zip(self.places, owners, strict=True)],
            clients,
            tps,
        )


Drawn = tuple[Group, frozenset[str]]


def keeps_up(draw: Draw) -> Drawn:
    return draw.simple(draw.keeping_up, draw.workers()), HEALTHY


def at_rest(draw: Draw) -> Drawn:
    """Nothing comes, nothing waits."""
    draw.rate = 0
    return draw.simple(lambda: (0, 0), draw.workers(), 0.0), HEALTHY


def at_rest_without_clients(draw: Draw) -> Drawn:
    draw.rate = 0
    return draw.simple(lambda: (0, 0), (), 0.0), HEALTHY


def some_queues_unused(draw: Draw) -> Drawn:
    """Half of the queues get messages, nothing ever came to the others."""
    clients = draw.workers()
    owners = draw.owners(clients, len(draw.places))
    queues = []
    for number, (place, owner) in enumerate(zip(draw.places, owners, strict=True)):
        if number % 2:
            empty = Queue(draw.topic, *place, 0, 0, 0, 0, 0, 0, owner)
            queues.append((empty, empty))
        else:
            queues.append(draw.queue(draw.topic, place, draw.keeping_up(), owner))
    return draw.group(queues, clients), HEALTHY


def read_at_different_moments(draw: Draw) -> Drawn:
    """The commit of a moment later than the newest offset: a few below zero, and everything moves."""
    draw.rate = draw.random.choice((40, 120, 350))
    return draw.simple(lambda: (-draw.random.randrange(1, 4), -draw.random.randrange(1, 4)), draw.workers()), HEALTHY


def drains(draw: Draw) -> Drawn:
    return draw.simple(draw.draining, draw.workers()), frozenset({"draining"})


def pop_keeps_up(draw: Draw) -> Drawn:
    draw.kind = "pop"
    clients = draw.workers()
    queues = [draw.queue(draw.topic, place, draw.keeping_up(), "") for place in draw.places]
    return draw.group(queues, clients), HEALTHY


def stopped(draw: Draw) -> Drawn:
    return draw.simple(draw.standing, (), 0.0), frozenset({"stopped"})


def stalled(draw: Draw) -> Drawn:
    return draw.simple(draw.standing, draw.workers(), 0.0), frozenset({"stalled"})


def one_queue_stuck(draw: Draw) -> Drawn:
    """A quarter of the queues at most stands still, the others keep up."""
    clients = draw.workers()
    owners = draw.owners(clients, len(draw.places))
    stuck = set(draw.random.sample(range(len(draw.places)), draw.random.randint(1, max(1, len(draw.places) // 4))))
    queues = [
        draw.queue(draw.topic, place, draw.standing() if number in stuck else draw.keeping_up(), owner)
        for number, (place, owner) in enumerate(zip(draw.places, owners, strict=True))
    ]
    return draw.group(queues, clients), frozenset({"one_queue_stuck"})


def too_few_consumers(draw: Draw) -> Drawn:
    return draw.simple(draw.growing, draw.workers(most=len(draw.places) // 2)), frozenset({"too_few_consumers"})


def slow(draw: Draw) -> Drawn:
    """As many clients as queues, or more."""
    extra = draw.random.choice((0, 0, 2))
    return draw.simple(draw.growing, draw.clients(len(draw.places) + extra)), frozenset({"slow"})


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
    return draw.simple(lambda: (-far, 1.0), draw.workers(), 0.0), frozenset({"ahead_of_broker"})


def retention_overtook(draw: Draw) -> Drawn:
    """Nobody consumes, and the broker has deleted what is next: the last message consumed is gone too."""
    group, _ = stopped(draw)
    moments = tuple(
        replace(
            moment,
            queues=tuple(
                replace(each, consumed_at=0, oldest=(each.committed or 0) + max(1, each.lag // 2))
                if each.topic == draw.topic
                else each
                for each in moment.queues
            ),
        )
        for moment in group.moments
    )
    return replace(group, moments=moments), frozenset({"stopped", "retention_overtook"})


def unassigned_queue(draw: Draw) -> Drawn:
    """A hole in the allocation: queues of nobody stand still, the others keep up."""
    clients = draw.workers(least=2)
    owners = draw.owners(clients, len(draw.places))
    lost = draw.random.choice(sorted(set(owners)))
    queues = [
        draw.queue(draw.topic, place, *((draw.standing(), "") if owner == lost else (draw.keeping_up(), owner)))
        for place, owner in zip(draw.places, owners, strict=True)
    ]
    return draw.group(queues, [each for each in clients if each.id != lost]), frozenset({"unassigned_queue"})


def pop_slow(draw: Draw) -> Drawn:
    draw.kind = "pop"
    clients = draw.workers()
    queues = [draw.queue(draw.topic, place, draw.growing(), "") for place in draw.places]
    return draw.group(queues, clients), frozenset({"too_few_consumers"})


def pop_stopped(draw: Draw) -> Drawn:
    draw.kind = "pop"
    queues = [draw.queue(draw.topic, place, draw.standing(), "") for place in draw.places]
    return draw.group(queues, (), 0.0), frozenset({"stopped"})


def same_subscriptions(draw: Draw) -> Drawn:
    return draw.simple(draw.keeping_up, draw.workers(least=2)), HEALTHY


def different_subscriptions(draw: Draw) -> Drawn:
    clients = draw.workers(least=2)
    odd = draw.random.randrange(len(clients))
    retry = clients[0].subscriptions[0]
    other = draw.random.choice((((draw.topic, "TagC"),), ((draw.topic, "*"), ("another_topic", "*"))))
    clients = tuple(
        replace(each, subscriptions=(retry, *other)) if number == odd else each for number, each in enumerate(clients)
    )
    return draw.simple(draw.keeping_up, clients), frozenset({"different_subscriptions"})


def duplicate_client_id(draw: Draw) -> Drawn:
    """Two processes that call themselves the same, as containers with one host name and one pid do."""
    clients = draw.workers(least=2)
    twin = replace(clients[0], address=f"10.9.9.9:{draw.random.randrange(30_000, 60_000)}")
    return draw.simple(draw.keeping_up, (twin, *clients)), frozenset({"duplicate_client_id"})


def blocked_listener(draw: Draw) -> Drawn:
    """One client's queues have messages, and nothing was consumed of them for more than a minute."""
    clients = draw.workers()
    group = draw.simple(draw.keeping_up, clients)
    victim = draw.random.choice(
        [each.id for each in clients if any(q.owner == each.id for q in group.moments[0].queues)]
    )
    idle = draw.random.randrange(70_000, 600_000)

    def struck(client: Client) -> Client:
        if client.id != victim:
            return client
        held = tuple(
            replace(each, cached=draw.random.randrange(1, 400), idle=idle) if each.topic == draw.topic else each
            for each in client.held
        )
        return replace(
            client, held=tuple(replace(each, cached_to=each.cached_from + max(0, each.cached - 1)) for each in held)
        )

    moments = tuple(replace(each, clients=tuple(struck(client) for client in each.clients)) for each in group.moments)
    return replace(group, moments=moments), frozenset({"blocked_listener"})


def slow_trickle(draw: Draw) -> Drawn:
    """Less than a message a second, and each is consumed as it comes."""
    draw.seconds, draw.rate = 300, draw.random.choice((0.1, 0.25, 0.5))
    return draw.simple(lambda: (0, draw.random.choice((0, 0, 1))), draw.workers()), HEALTHY


def two_topics(draw: Draw) -> Drawn:
    """The group keeps up in two topics."""
    clients = draw.workers()
    owners = draw.owners(clients, len(draw.places))
    other = draw.random.choice([each for each in TOPICS if each != draw.topic])
    queues = [
        draw.queue(topic, place, draw.keeping_up(), owner)
        for topic in sorted((draw.topic, other))
        for place, owner in zip(draw.places, owners, strict=True)
    ]
    return draw.group(queues, clients), HEALTHY


def one_name_begins_another(draw: Draw) -> Drawn:
    """Two topics whose first 32 characters are the same: releases before 4.9.3 cut names there."""
    clients = draw.workers()
    owners = draw.owners(clients, len(draw.places))
    draw.topic = "mall_order_status_changed_to_paid_v2"
    queues = [
        draw.queue(topic, place, draw.keeping_up(), owner)
        for topic in (draw.topic, "mall_order_status_changed_to_paid_v3")
        for place, owner in zip(draw.places, owners, strict=True)
    ]
    return draw.group(queues, clients), HEALTHY


def clients_do_not_answer(draw: Draw) -> Drawn:
    """Clients of another language tell nothing of themselves, so that the tool finds no owner; they keep up."""
    return draw.group(
        [draw.queue(draw.topic, place, draw.keeping_up(), "") for place in draw.places], draw.workers()
    ), HEALTHY


def deployed_anew(draw: Draw) -> Drawn:
    """All clients were replaced between the two moments, and nothing waits."""
    before, _ = keeps_up(draw)
    clients = draw.clients(len(before.moments[1].clients))
    names = dict(zip((each.id for each in before.moments[1].clients), (each.id for each in clients), strict=True))
    last = before.moments[1]
    queues = tuple(replace(each, owner=names.get(each.owner, "")) for each in last.queues)
    held = tuple(replace(client, held=old.held) for client, old in zip(clients, before.moments[1].clients, strict=True))
    return replace(before, moments=(before.moments[0], replace(last, queues=queues, clients=held))), HEALTHY


def one_client_hung(draw: Draw) -> Drawn:
    """All queues of one client stand still, those of the others go on."""
    clients = draw.workers(least=2)
    owners = draw.owners(clients, len(draw.places))
    hung = draw.random.choice(sorted(set(owners)))
    queues = [
        draw.queue(draw.topic, place, draw.standing() if owner == hung else draw.keeping_up(), owner)
        for place, owner in zip(draw.places, owners, strict=True)
    ]
    return draw.group(queues, clients), frozenset({"one_queue_stuck"})


def listener_fails(draw: Draw) -> Drawn:
    """A third of the messages fail: the retry topic gets them again and again, and some wait there."""
    group, _ = keeps_up(draw)
    coming = int(draw.rate * draw.seconds * len(draw.places) / len(draw.brokers) / 3) + 1
    moments = []
    for number, moment in enumerate(group.moments):
        queues = []
        for each in moment.queues:
            if each.topic.startswith("%RETRY%"):
                newest = 50_000 + number * coming
                waits = draw.random.randrange(0, coming)
                done = 50_000 - draw.random.randrange(0, 50) if not number else newest - waits
                each = replace(each, newest=newest, committed=done, pulled=done, consumed_at=moment.time - 15_000,
                               stored_at=moment.time)  # fmt: skip
            queues.append(each)
        moments.append(replace(moment, queues=tuple(queues)))
    return replace(group, moments=tuple(moments)), frozenset({"failing_listener"})


def broker_lost_messages(draw: Draw) -> Drawn:
    """The broker came back with an older store: its offsets fell, and the group's with them."""
    group, _ = keeps_up(draw)
    left = draw.random.uniform(0.05, 0.4)
    last = group.moments[1]
    queues = tuple(
        replace(each, newest=int(each.newest * left), committed=max(0, int(each.newest * left) - each.lag),
                pulled=max(0, int(each.newest * left) - each.lag), oldest=0)
        if each.topic == draw.topic
        else each
        for each in last.queues
    )  # fmt: skip
    moments = (group.moments[0], replace(last, queues=queues))
    return replace(group, moments=moments), frozenset({"broker_lost_messages"})


def hole_by_a_twin(draw: Draw) -> Drawn:
    """Two processes with one id: each counts as a member, both take the same share, and the other is nobody's."""
    clients = draw.workers(least=2, most=4)
    twin = replace(clients[0], address=f"10.9.9.9:{draw.random.randrange(30_000, 60_000)}")
    ids = sorted(each.id for each in (twin, *clients))
    shares = draw.owners((twin, *clients), len(draw.places))
    seen = 0
    queues = []
    for index, (place, owner) in enumerate(zip(draw.places, shares, strict=True)):
        # The shares of one id lie beside each other: the second one is the hole.
        seen = seen + 1 if index and shares[index - 1] == owner else 0
        first = len(draw.places) // len(ids) + (1 if ids.index(owner) < len(draw.places) % len(ids) else 0)
        lost = owner == twin.id and seen >= first
        queues.append(
            draw.queue(draw.topic, place, draw.standing() if lost else draw.keeping_up(), "" if lost else owner)
        )
    return draw.group(queues, (twin, *clients)), frozenset({"duplicate_client_id"})


def listener_does_not_return(draw: Draw) -> Drawn:
    """One queue stands still since one message's listener does not return, and its client says so itself."""
    clients = draw.workers()
    owners = draw.owners(clients, len(draw.places))
    stuck = draw.random.randrange(len(draw.places))
    queues = [
        draw.queue(draw.topic, place, draw.standing() if number == stuck else draw.keeping_up(), owner)
        for number, (place, owner) in enumerate(zip(draw.places, owners, strict=True))
    ]
    group = draw.group(queues, clients)
    idle = draw.random.randrange(70_000, 600_000)
    place = (draw.topic, *draw.places[stuck])

    def struck(client: Client) -> Client:
        held = (replace(each, idle=idle) if (each.topic, each.broker, each.number) == place else each
                for each in client.held)  # fmt: skip
        return replace(client, held=tuple(held))

    moments = tuple(replace(each, clients=tuple(struck(client) for client in each.clients)) for each in group.moments)
    return replace(group, moments=moments), frozenset({"blocked_listener"})


def stuck_and_slow(draw: Draw) -> Drawn:
    """One queue stands still, and the clients are too slow, or too few, for the others."""
    few = draw.random.random() < 0.5
    clients = draw.clients(draw.random.randint(1, len(draw.places) // 2) if few else len(draw.places))
    stuck = draw.random.randrange(len(draw.places))
    lags = iter([draw.standing() if number == stuck else draw.growing() for number in range(len(draw.places))])
    return draw.simple(lambda: next(lags), clients), frozenset(
        {"one_queue_stuck", "too_few_consumers" if few else "slow"}
    )


def stuck_while_draining(draw: Draw) -> Drawn:
    """One queue stands still, and the backlog of the others is worked off."""
    stuck = draw.random.randrange(len(draw.places))
    lags = iter([draw.standing() if number == stuck else draw.draining() for number in range(len(draw.places))])
    return draw.simple(lambda: next(lags), draw.workers()), frozenset({"one_queue_stuck", "draining"})


def stopped_at_rest(draw: Draw) -> Drawn:
    """Nothing comes any more, but messages wait and nobody is there."""
    draw.rate = 0
    waits = draw.random.randrange(100, 100_000)
    return draw.simple(lambda: (waits, waits), (), 0.0), frozenset({"stopped"})


def stalled_at_rest(draw: Draw) -> Drawn:
    """Nothing comes any more, messages wait, and clients are there that consume none."""
    draw.rate = 0
    waits = draw.random.randrange(100, 100_000)
    return draw.simple(lambda: (waits, waits), draw.workers(), 0.0), frozenset({"stalled"})


def not_subscribed(draw: Draw) -> Drawn:
    """The group consumed another topic once, and no longer subscribes to it; it keeps up in its own."""
    clients = draw.workers()
    owners = draw.owners(clients, len(draw.places))
    other = draw.random.choice([each for each in TOPICS if each != draw.topic])
    queues = [
        draw.queue(draw.topic, place, draw.keeping_up(), owner)
        for place, owner in zip(draw.places, owners, strict=True)
    ]
    queues += [draw.queue(other, place, draw.standing(), "") for place in draw.places]
    return draw.group(queues, clients), frozenset({"not_subscribed"})


def half_of_the_queues_stuck(draw: Draw) -> Drawn:
    """Half of the queues stand still, whosever they are."""
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
    return draw.simple(lambda: (0, back), (), 0.0), frozenset({"rewound", "stopped"})


def ahead_without_clients(draw: Draw) -> Drawn:
    """The topic was made anew while nobody was there."""
    far = draw.random.randrange(5_000, 20_000) + int(1.4 * draw.rate * draw.seconds)
    return draw.simple(lambda: (-far, 1.0), (), 0.0), frozenset({"ahead_of_broker"})


def one_queue_keeps_up(draw: Draw) -> Drawn:
    draw.places = draw.places[:1]
    return draw.simple(draw.keeping_up, draw.workers(most=1)), HEALTHY


def one_queue_is_slow(draw: Draw) -> Drawn:
    draw.places = draw.places[:1]
    return draw.simple(draw.growing, draw.workers(most=1)), frozenset({"slow"})


def one_queue_stalled(draw: Draw) -> Drawn:
    draw.places = draw.places[:1]
    return draw.simple(draw.standing, draw.workers(most=1), 0.0), frozenset({"stalled"})


def grows_a_little(draw: Draw) -> Drawn:
    """A tenth of what comes is left over."""
    draw.seconds = max(draw.seconds, 120)

    def lags() -> Lags:
        return int(draw.random.uniform(200, 600) * draw.rate), draw.random.uniform(0.1, 0.15)

    return draw.simple(lags, draw.clients(len(draw.places))), frozenset({"slow"})


def offline_and_empty(draw: Draw) -> Drawn:
    """A group that nobody uses any more; nothing waits for it."""
    return at_rest_without_clients(draw)


def among_many(draw: Draw, hot: Callable[[], Lags], others: Callable[[], Lags], *, idle: bool = False) -> Group:
    """One queue of 64 does something else than the others. idle: nothing comes to those."""
    per_broker = 64 // len(draw.brokers)
    draw.places = [(broker, number) for broker in draw.brokers for number in range(per_broker)]
    clients = draw.workers()
    owners = draw.owners(clients, len(draw.places))
    odd = draw.random.randrange(len(draw.places))
    return draw.group(
        [
            draw.queue(draw.topic, place, hot(), owner)
            if number == odd
            else draw.queue(draw.topic, place, others(), owner, 0 if idle else None)
            for number, (place, owner) in enumerate(zip(draw.places, owners, strict=True))
        ],
        clients,
    )


def one_of_many_grows(draw: Draw) -> Drawn:
    """A key is used more than others: its queue grows, the others keep up, and hide it in the sum."""
    return among_many(draw, draw.growing, draw.keeping_up), frozenset({"slow"})


def one_of_many_grows_others_rest(draw: Draw) -> Drawn:
    return among_many(draw, draw.growing, lambda: (0, 0), idle=True), frozenset({"slow"})


def one_of_many_stuck_others_rest(draw: Draw) -> Drawn:
    return among_many(draw, draw.standing, lambda: (0, 0), idle=True), frozenset({"one_queue_stuck"})


def one_of_many_grows_others_drain(draw: Draw) -> Drawn:
    """The backlog of the others is worked off, and one queue's grows meanwhile."""
    return among_many(draw, draw.growing, draw.draining), frozenset({"slow", "draining"})


Rule = Callable[[Draw], Drawn]
# What is shown -> rules, healthy ones first; each row is drawn with the same chance as its neighbours.
RULES: dict[str, tuple[tuple[Rule, ...], tuple[Rule, ...]]] = {
    PROGRESS: (
        (keeps_up, at_rest, at_rest_without_clients, some_queues_unused, read_at_different_moments, drains,
         slow_trickle, two_topics, one_name_begins_another, clients_do_not_answer, deployed_anew, breathes,
         one_queue_keeps_up),
        (stopped, stalled, one_queue_stuck, too_few_consumers, slow, rewound, ahead_of_broker, retention_overtook,
         unassigned_queue, one_client_hung, listener_fails, broker_lost_messages, stuck_and_slow,
         stuck_while_draining, stopped_at_rest, stalled_at_rest, not_subscribed,
         half_of_the_queues_stuck, rewound_while_stopped, ahead_without_clients, one_queue_is_slow, one_queue_stalled,
         grows_a_little, one_of_many_grows, one_of_many_grows_others_rest, one_of_many_stuck_others_rest,
         one_of_many_grows_others_drain),
    ),
    WITHOUT_CLIENTS: (
        (keeps_up, at_rest, some_queues_unused, drains, slow_trickle, two_topics, one_name_begins_another),
        (one_queue_stuck, slow, rewound, ahead_of_broker, one_client_hung, listener_fails, broker_lost_messages,
         stalled),
    ),
    STATUS: ((same_subscriptions,), (different_subscriptions, duplicate_client_id, blocked_listener)),
    BROKER: (
        (keeps_up, at_rest, drains, slow_trickle, two_topics),
        (one_queue_stuck, slow, rewound, stalled, one_client_hung),
    ),
    TOGETHER: (
        (keeps_up, at_rest, deployed_anew),
        (one_queue_stuck, slow, too_few_consumers, different_subscriptions, hole_by_a_twin, listener_does_not_return),
    ),
    STATS: ((keeps_up, at_rest, two_topics), (slow, stalled)),
    CONNECTED: (
        (keeps_up, at_rest, drains),
        (stopped, stalled, too_few_consumers, slow, one_queue_stuck, duplicate_client_id),
    ),
    LIST: ((keeps_up, at_rest, offline_and_empty), (stopped,)),
}  # fmt: skip
POP_RULES: tuple[tuple[Rule, ...], tuple[Rule, ...]] = ((pop_keeps_up,), (pop_slow, pop_stopped))


def is_shown(shown: str, release: str) -> bool:
    """Whether a release has what is to be shown. brokerConsumeStats and backlogs in statsAll are there since 3.5."""
    if release.startswith("3.2.") and shown in (BROKER, STATS):
        return False
    left_out = (WITHOUT_CLIENTS,) if shows_clients_always(release) else ()
    return shown not in ((PROGRESS, TOGETHER) if shows_no_clients(release) else left_out)


def case(number: int, release: str) -> Case:
    """The invented cluster of a number, as one release of mqadmin looks at it.

    Even numbers are healthy; numbers in a row take the rules in turn.
    """
    random = Random(f"rocketmq {release} {number}")
    half = number % 2
    pairs = [(shown, rule) for shown, halves in RULES.items() for rule in halves[half] if is_shown(shown, release)]
    # The table of 5.0 is that of 4.9, which knows no POP: nobody can tell such a group by it.
    if release.startswith(("5.1", "5.3")):
        pairs += [(PROGRESS, rule) for rule in POP_RULES[half] * 3]
    shown, rule = pairs[number // 2 % len(pairs)]
    draw = Draw(random, release)
    group, truth = rule(draw)
    groups = [group]
    if shown == LIST:
        for name in ("aside_1", "aside_2"):
            beside = Draw(random, release)
            beside.name, beside.brokers, beside.topic = name, draw.brokers, f"{name}_topic"
            beside.seconds = draw.seconds
            beside.places = [(broker, number) for broker in draw.brokers for number in range(4)]
            groups.append(keeps_up(beside)[0])
    return Case(Cluster(number, "rocketmq", release, draw.brokers, tuple(groups)), shown, rule.__name__, truth)
