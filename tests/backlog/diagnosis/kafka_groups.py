"""Groups of Kafka as its tools print them, release by release, and what is wrong with them.

The forms are those of ConsumerOffsetChecker (0.8, 0.9), ConsumerGroupCommand (0.9 to 4.1), ShareGroupCommand and
StreamsGroupCommand.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyengine.backlog.diagnosis.evidence import Evidence, read_text

GROUP, TOPIC = "billing", "orders"
T, LATER = 1_593_511_201_000, 1_593_511_261_000  # a minute apart


@dataclass(frozen=True)
class Row:
    """A partition. end, reached: offsets; None: not shown. member: who has it, of how many members."""

    partition: int
    end: int | None
    reached: int | None
    member: int | None = 1

    @property
    def cells(self) -> tuple[object, ...]:
        lag = None if self.end is None or self.reached is None else self.end - self.reached
        shown = ["-" if each is None else each for each in (self.reached, self.end, lag)]
        if self.member is None:
            return (GROUP, TOPIC, self.partition, *shown, "-", "-", "-")
        client = f"consumer-{GROUP}-{self.member}"
        return (
            GROUP,
            TOPIC,
            self.partition,
            *shown,
            f"{client}-9d1f0c1a-77aa-4c3e-9df1",
            f"/10.0.0.{self.member}",
            client,
        )


def _old(row: tuple[object, ...]) -> tuple[object, ...]:
    """Until 0.10.1: one column for the owner, words where later releases have dashes."""
    owner = "none" if row[6] == "-" else f"{row[8]}_{row[7]}"
    return (*("unknown" if each == "-" else each for each in row[:6]), owner)


TITLES = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
OLD_TITLES = (*TITLES[:6], "OWNER")


def _table(form: str, titles: tuple[object, ...], rows: list[tuple[object, ...]]) -> str:
    return "\n".join(form % row for row in (titles, *rows)) + "\n"


def offset_checker(rows: list[Row]) -> str:
    """ConsumerOffsetChecker."""
    titles = ("Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner")
    return _table("%-15s %-30s %-3s %-15s %-15s %-15s %s", titles, [_old(row.cells) for row in rows])


def release_0_9(rows: list[Row]) -> str:
    return "\n".join(
        ", ".join(map(str, row))
        for row in (("GROUP", "TOPIC", "PARTITION", "CURRENT OFFSET", "LOG END OFFSET", "LAG", "OWNER"),
                    *(_old(row.cells) for row in rows))
    ) + "\n"  # fmt: skip


def release_0_10_0(rows: list[Row]) -> str:
    return _table("%-30s %-30s %-10s %-15s %-15s %-15s %s", OLD_TITLES, [_old(row.cells) for row in rows])


def release_0_10_2(rows: list[Row]) -> str:
    """To 1.0; there is no column for the group before 2.3."""
    return "\n" + _table("%-30s %-10s %-15s %-15s %-10s %-50s%-30s %s", TITLES[1:], [row.cells[1:] for row in rows])


def release_2_8(rows: list[Row]) -> str:
    form = "%-15s %-15s %-10s %-15s %-15s %-15s %-44s %-15s %s"
    return "\n" + _table(form, TITLES, [row.cells for row in rows])


def release_4_verbose(rows: list[Row]) -> str:
    form = "%-15s %-15s %-10s %-15s %-15s %-15s %-15s %-44s %-15s %s"
    titles = (*TITLES[:3], "LEADER-EPOCH", *TITLES[3:])
    return "\n" + _table(form, titles, [(*row.cells[:3], "-", *row.cells[3:]) for row in rows])


RELEASES: dict[str, Callable[[list[Row]], str]] = {
    "ConsumerOffsetChecker": offset_checker,
    "0.9": release_0_9,
    "0.10.0": release_0_10_0,
    "0.10.2": release_0_10_2,
    "2.8": release_2_8,
    "4.0 --verbose": release_4_verbose,
}


def wrapped(text: str, how: str) -> str:
    """A text as a terminal of 80 columns or a mail leaves it."""
    lines = []
    for line in text.split("\n"):
        if how == "terminal":
            lines += [line[at : at + 80] for at in range(0, max(len(line), 1), 80)]
        elif how == "mail":
            lines += textwrap.wrap(line, 76, break_long_words=False, break_on_hyphens=False) or [""]
        else:
            lines.append(f"> {line}" if how == "quoted" else line)
    return "\n".join(lines)


@dataclass(frozen=True)
class Case:
    """Two looks a minute apart. note: what the tool writes in front of the table from 0.10.2 on."""

    codes: frozenset[str]
    first: list[Row]
    last: list[Row]
    note: str = ""


def rows(count: int = 4, members: int = 2, lag: int = 5) -> list[Row]:
    """Partitions that are up to date."""
    return [
        Row(number, 50_000 + number, 50_000 + number - lag, 1 + number * members // count) for number in range(count)
    ]


def moved(before: list[Row], came: int = 600, consumed: int = 600) -> list[Row]:
    """A minute later."""
    return [replace(each, end=(each.end or 0) + came, reached=(each.reached or 0) + consumed) for each in before]


def _but(states: list[Row], number: int, **changes: int | None) -> list[Row]:
    return [replace(each, **changes) if each.partition == number else each for each in states]  # type: ignore[arg-type]


def _case(*codes: str, first: list[Row], last: list[Row], note: str = "") -> Case:
    return Case(frozenset(codes), first, last, note)


UP, BEHIND = rows(), rows(lag=20_000)
GONE = [replace(each, member=None) for each in rows(lag=4_000)]
CASES = {
    "healthy": _case(first=UP, last=moved(UP)),
    "healthy, idle": _case(first=rows(lag=0), last=rows(lag=0)),
    "healthy, nothing consumes and nothing waits": _case(
        first=[replace(each, member=None) for each in rows(lag=0)],
        last=[replace(each, member=None) for each in rows(lag=0)],
        note="Consumer group 'billing' has no active members.",
    ),
    "healthy, the marker of a transaction has an offset": _case(first=rows(lag=1), last=rows(lag=1)),
    "one partition": _case("one_queue_stuck", first=_but(UP, 2, reached=41_000),
                           last=_but(moved(UP), 2, reached=41_000)),
    "all of them": _case("stalled", first=BEHIND, last=moved(BEHIND, consumed=0)),
    "nobody": _case("stopped", first=GONE, last=moved(GONE, consumed=0),
                    note="Consumer group 'billing' has no active members."),
    "slow": _case("slow", first=rows(members=4, lag=20_000), last=moved(rows(members=4, lag=20_000), consumed=300)),
    "few members": _case("too_few_consumers", first=BEHIND, last=moved(BEHIND, consumed=300)),
    "reset": _case("rewound", first=UP, last=_but(moved(UP), 1, reached=9)),
    "one belongs to nobody": _case("unassigned_queue", first=_but(UP, 3, reached=9_000, member=None),
                                   last=_but(moved(UP), 3, reached=9_000, member=None)),
    "the broker's fault": _case("broker_lost_messages", first=UP, last=[Row(n, 700 + n, 690, 1 + n // 2)
                                                                       for n in range(4)]),
}  # fmt: skip
REBALANCING = [replace(each, member=None) for each in rows(lag=4_000)]


def look(release: str, states: list[Row], note: str = "", how: str = "") -> str:
    """What stands on a terminal: the command, what the tool says, its table."""
    command = f"$ kafka-consumer-groups.sh --bootstrap-server kb1:9092 --describe --group {GROUP}\n"
    said = f"\n{note}\n" if note and release not in ("ConsumerOffsetChecker", "0.9", "0.10.0") else ""
    return command + said + wrapped(RELEASES[release](states), how)


def looks(release: str, case: Case, how: str = "") -> Evidence:
    """Two files, a minute apart."""
    found = Evidence()
    for time, states in ((T, case.first), (LATER, case.last)):
        found.add(read_text(look(release, states, case.note, how), f"{time}.txt", time))
    return found


@dataclass
class Pair:
    """A text that a rule speaks of and one close by; several looks are a minute apart."""

    speaks: tuple[str, ...]
    silent: tuple[str, ...]
    evidence: tuple[Callable[[], Evidence], Callable[[], Evidence]] = field(init=False)

    def __post_init__(self) -> None:
        self.evidence = lambda: _read(self.speaks), lambda: _read(self.silent)


def _read(texts: tuple[str, ...]) -> Evidence:
    found = Evidence()
    for number, text in enumerate(texts):
        found.add(read_text(text, f"{number}.txt", T + 60_000 * number))
    return found


STATE = """
GROUP                     COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           #MEMBERS
billing                   kb1:9092  (1)             range                {state:15} {members}
"""
MEMBERS = """
GROUP           CONSUMER-ID                                     HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT
billing         consumer-1-029af89c-873c-4751-a720-cefd41a669d6 /10.0.0.1       consumer-1      3               x(1,2), y(0)
billing         consumer-2-42c1abd4-e3b2-425d-a8bb-e1ea49b29bb2 /10.0.0.2       consumer-2      {partitions:<15} -
"""  # noqa: E501
NO_GROUP = "\nError: Consumer group 'biling' does not exist.\n"
CLIENT_LAG = 'kafka_consumer_fetch_manager_records_lag{{client_id="c-1",topic="orders",partition="0"}} {lag}\n'
PAIRS = {
    "rebalancing": Pair(
        (look("2.8", REBALANCING, "Warning: Consumer group 'billing' is rebalancing."),),
        (look("2.8", REBALANCING, "Consumer group 'billing' has no active members."),),
    ),
    "rebalancing, of --state": Pair(
        (STATE.format(state="CompletingRebalance", members=3),), (STATE.format(state="Stable", members=3),)
    ),
    "no_such_group": Pair((NO_GROUP,), (STATE.format(state="Empty", members=0),)),
    "idle_members": Pair((MEMBERS.format(partitions=0),), (MEMBERS.format(partitions=1),)),
    "partition_unavailable": Pair((look("2.8", [Row(0, None, 100)]),), (look("2.8", [Row(0, None, None)]),)),
    "lag_grows": Pair(
        (CLIENT_LAG.format(lag="900.0"), CLIENT_LAG.format(lag="9000.0")),
        (CLIENT_LAG.format(lag="9000.0"), CLIENT_LAG.format(lag="9500.0")),
    ),
}
