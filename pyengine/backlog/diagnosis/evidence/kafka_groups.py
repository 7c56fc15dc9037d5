"""What Kafka's own tools print of groups: ConsumerOffsetChecker and kafka-consumer-groups of 0.8 to 4.x, with
``--offsets``, ``--members`` and ``--state``, kafka-share-groups and kafka-streams-groups.

Tables are read by their header, at any place of a file, also if a terminal or a mail has wrapped them.
Until 2.2 a table has no column for its group: the group is then the one that the lines above name, or the command.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal

from pyengine.backlog.diagnosis.evidence.model import ConsumerGroupState, Evidence, OffsetState, Remark, Source
from pyengine.backlog.diagnosis.evidence.numbers import whole
from pyengine.backlog.diagnosis.evidence.transcript import moment_of, without_bars
from pyengine.backlog.findings import say
from pyengine.dataclass import dataclass

Kind = Literal["consumer", "share", "streams"]
ABSENT = ("-", "none", "unknown", "null", "")
NUMBERS = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "LEADER-EPOCH", "START-OFFSET", "OFFSET-LAG",
           "#PARTITIONS", "#MEMBERS")  # fmt: skip
TITLES = {
    *NUMBERS, "GROUP", "TOPIC", "OWNER", "CONSUMER-ID", "HOST", "CLIENT-ID", "COORDINATOR-(ID)", "ASSIGNMENT-STRATEGY",
    "STATE", "TYPE", "PROTOCOL", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "ASSIGNMENT-EPOCH", "GROUP-INSTANCE-ID",
    "ASSIGNMENT", "ASSIGNMENTS", "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED",
    "MEMBER-EPOCH", "MEMBER", "MEMBER-PROTOCOL", "PROCESS", "TOPOLOGY-EPOCH", "NEW-OFFSET",
}  # fmt: skip
# 0.9 writes titles with blanks inside, ConsumerOffsetChecker has its own.
OLD = {"Group": "GROUP", "Topic": "TOPIC", "Pid": "PARTITION", "Offset": "CURRENT-OFFSET", "logSize": "LOG-END-OFFSET",
       "Lag": "LAG", "Owner": "OWNER"}  # fmt: skip
_TWO_WORDS = (("CURRENT OFFSET", "CURRENT-OFFSET"), ("LOG END OFFSET", "LOG-END-OFFSET"))
_FENCE = re.compile(r"^```.*$")
_NOTE = re.compile(
    r"(?:The )?(?P<kind>[Cc]onsumer|[Ss]hare|[Ss]treams) group ['`](?P<group>.{1,255}?)['`] "
    r"(?P<says>has no active members|is rebalancing|does not exist or is rebalancing|does not exist|"
    r"has no offset information)"
)
_STATES = {
    "has no active members": "Empty",
    "is rebalancing": "PreparingRebalance",
    "does not exist or is rebalancing": "PreparingRebalance",
    "does not exist": "Dead",
    "has no offset information": "",
}
_FAILED = re.compile(r"Error: Executing (?:consumer|share|streams) group command failed due to (.*)")
_NOT_FOUND = re.compile(r"GroupIdNotFoundException: Group (?P<group>.+) not found")  # since 4.0
_FAILED_OLD = re.compile(r"Error while executing consumer group command (.*)")
# The stamp of the lines that the tool's logger writes in front of a table.
_STAMP = re.compile(r"^\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,]\d+)?\]? ")
_COMMAND = re.compile(
    r"(?:kafka-(?P<kind>consumer|share|streams)-groups|ConsumerOffsetChecker|ConsumerGroupCommand|ShareGroupCommand)\b.*"
)
# A command alone, or with output that has no group, as a list of names.
_RUN = re.compile(r"\bkafka-(?:consumer|share|streams)-groups(?:\.sh|\.bat)? .*--(?:list|describe|bootstrap-server)\b")
_NAMED = re.compile(r"--group[ =]['\"]?([^\s'\"]+)")
# What Java, its loggers, shells and the tool itself write between the tables.
_BETWEEN = re.compile(
    r"Note: |Warn(?:ing)?: |WARN|INFO|ERROR|DEBUG|Error: |\[?\d{4}-\d\d-\d\d|\[main\]|JAVA_|JMX_|KAFKA_|NOTE: |"
    r"OpenJDK |Java HotSpot|Picked up |SLF4J|log4j|Could not (?:find|fetch|parse)|No broker for|BROKER INFO|"
    r"\d+ -> \S+:\d+|Every [\d.]+s|[$#%>] |\S*[$#](?: |$)|\[\S+ \S+\][$#]|at \S+\(.*\)|Caused by: |\.\.\. \d+ more|"
    r"(?:java|org|kafka|joptsimple)\.[\w.$]+(?:Exception|Error)\b|Exit(?:ing|ed) |No topic available|DEPRECATED|"
    r"-{3,}|={3,}|"
    r"(?:TARGET-)?(?:ACTIVE|STANDBY|WARMUP)(?:-TASKS)?:"
)

MOST_BLANKS = 4  # in a group's name
# The end of a table before 0.10.2, and a row of it: names of groups and members may have blanks inside, topics not.
_OWNED = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "OWNER")
_NUMBER = r"(-?\d+|-|unknown|none)"
_OWNED_ROW = re.compile(rf"\s*(\S.*?)\s+(\S+)\s+(\d+)\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+(\S.*?)\s*$")

# The same since 2.3, of a group whose name has blanks inside.
_MEMBER_ROW = re.compile(
    rf"\s*(\S.*?)\s+(\S+)\s+(\d+)\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+(\S.*?)\s+(/\S+|-)\s+(\S.*?)\s*$"
)


@dataclass(slots=True)
class _Table:
    """A header and the file's lines that follow it. lines: how many the header itself takes."""

    titles: tuple[str, ...]
    text: str
    lines: int
    commas: bool

    @property
    def kind(self) -> Literal["offsets", "members", "state", ""]:
        if {"TOPIC", "PARTITION"} <= set(self.titles):
            return "" if "NEW-OFFSET" in self.titles else "offsets"
        if "#PARTITIONS" in self.titles or "PROCESS" in self.titles:
            return "members"
        return "state" if "STATE" in self.titles else ""

    def cells(self, line: str) -> list[str]:
        return re.split(r",\s+", line.strip()) if self.commas else line.split()

    def fits(self, cells: Sequence[str]) -> bool:
        """Each cell under a number's title is one, or absent."""
        return all(
            title not in NUMBERS or cell in ABSENT or re.fullmatch(r"-?[\d,]+", cell) is not None
            for title, cell in zip(self.titles, cells, strict=False)
        )

    def row(self, line: str) -> dict[str, str] | None:
        """A whole line under the header, or None."""
        cells = self.cells(line)
        # Assignments have blanks inside, and a state's coordinator is "host:port  (id)".
        if "COORDINATOR-(ID)" in self.titles:
            cells = re.sub(r"\s+\((-?\w*)\)", r"(\1)", line).split()
            if len(cells) == len(self.titles) - 1 and "ASSIGNMENT-STRATEGY" in self.titles:
                cells.insert(self.titles.index("ASSIGNMENT-STRATEGY"), "")  # of a group without members
        elif self.titles[-1].startswith(("ASSIGNMENT", "TARGET-ASSIGNMENT", "UPGRADED")) or "PROCESS" in self.titles:
            cells = [*cells[: len(self.titles) - 1], " ".join(cells[len(self.titles) - 1 :])]
        if len(cells) == len(self.titles) and self.fits(cells):
            return dict(zip(self.titles, cells, strict=True))
        return self.cut(line)

    def cut(self, line: str) -> dict[str, str] | None:
        """A line whose names have blanks inside: each cell begins where its column's title does, except the last one,
        which may stand behind a host that is longer than its column."""
        if (spelled := self.spelled(line)) is not None:
            return spelled
        if self.titles[-2:] != ("HOST", "CLIENT-ID") or self.lines > 1:
            return None
        begins = [found.start() for found in re.finditer(r"\S+", self.text)]
        if len(line) <= begins[-2] or any(line[begin - 1] != " " or line[begin] == " " for begin in begins[1:-1]):
            return None
        cells = [line[begin:end].strip() for begin, end in itertools.pairwise(begins[:-1])]
        cells += line[begins[-2] :].split(maxsplit=1)
        fitting = len(cells) == len(self.titles) and self.fits(cells)
        return dict(zip(self.titles, cells, strict=True)) if fitting else None

    def spelled(self, line: str) -> dict[str, str] | None:
        """A line with blanks in names, recognised by its numbers and by the host, which begins with a slash."""
        owned = self.titles[2:] == _OWNED
        of_members = (*_OWNED[:-1], "CONSUMER-ID", "HOST", "CLIENT-ID") == self.titles[2:]
        pattern = _OWNED_ROW if owned else _MEMBER_ROW if of_members else None
        match = pattern.match(line) if pattern and not self.commas else None
        return dict(zip(self.titles, match.groups(), strict=True)) if match else None

    def begins(self, line: str) -> bool:
        """A line that may be the first part of a row."""
        cells = self.cells(line)
        wanted = self.titles.index("PARTITION") if "PARTITION" in self.titles else 0
        # A line that begins with a number goes on where the one before was cut.
        if cells[0].isdecimal() or line[:1] in (" ", "\t"):
            return False
        if wanted < len(cells) < len(self.titles) and self.fits(cells):
            return True
        # A group's name may have blanks inside.
        spread = (cells[more:] for more in range(1, MOST_BLANKS) if "GROUP" in self.titles and not self.commas)
        return any(wanted < len(each) and each[wanted].isdecimal() and self.fits(each) for each in spread)

    def joined(self, parts: Sequence[str]) -> dict[str, str] | None:
        """A row out of the parts that a terminal cut anywhere, or a mail between words."""
        if self.commas:
            texts: Iterator[str] = iter(("".join(re.sub(r",$", ", ", part) for part in parts),))
        else:
            texts = _glued(parts)
        for text in texts:
            cells = self.cells(text)
            whole = len(cells) == len(self.titles) and self.fits(cells)
            row = dict(zip(self.titles, cells, strict=True)) if whole else self.spelled(text)
            if row is not None and _adds_up(row):
                return row
        return None


def _adds_up(row: dict[str, str]) -> bool:
    """The lag is what the offsets say: where a cut went through a number, its halves would pass for two."""
    numbers = [row.get(title, "") for title in ("LOG-END-OFFSET", "CURRENT-OFFSET", "LAG")]
    return not all(map(str.isdecimal, numbers)) or int(numbers[0]) - int(numbers[1]) == int(numbers[2])


def recognises(text: str) -> bool:
    """True for a table of Kafka's tools, one of their commands, or a line in which they say why there is none."""
    if _NOTE.search(text) or _FAILED.search(text) or _FAILED_OLD.search(text):
        return True
    lines = _lines(text)
    if any(_RUN.search(line) for line in lines if "kafka-" in line):
        return True
    return any(_header(lines, place) for place in range(len(lines)))


def read(text: str, file: str, modified: int | None) -> Evidence:
    """All tables of a file, and the sentences about groups beside them."""
    return _Reading(_lines(text), file, modified).all()


def _lines(text: str) -> list[str]:
    """The lines without what a wiki put around them."""
    return [without_bars(_FENCE.sub("", line).rstrip()) for line in text.splitlines()]


def _glued(parts: Sequence[str]) -> Iterator[str]:
    """One line out of several, each cut between two words or through one."""
    for glue in itertools.product((" ", ""), repeat=len(parts) - 1):
        yield parts[0] + "".join(g + part for g, part in zip(glue, parts[1:], strict=True))


def _moment(line: str) -> int | None:
    """The moment of a line that is a date, or that a logger wrote."""
    stamp = _STAMP.match(line)
    return moment_of(stamp[1]) if stamp else moment_of(line)


def _titles(text: str) -> tuple[str, ...]:
    """The column titles that a line consists of, or nothing."""
    for spoken, title in _TWO_WORDS:
        text = text.replace(spoken, title)
    words = re.split(r"[\s,|]+", text.replace("COORDINATOR (ID)", "COORDINATOR-(ID)").strip(" ,|"))
    titles = tuple(OLD[word] for word in words) if all(word in OLD for word in words) else tuple(words)
    return titles if TITLES.issuperset(titles) and len(set(titles)) == len(titles) else ()


def _header(lines: Sequence[str], place: int) -> _Table | None:
    """The header that begins at a line; it may take several."""
    line = lines[place]
    words = line.split()
    if len(words) < 2 or not ({"GROUP", "GROUP,", "TOPIC", "Group", "COORDINATOR", "CONSUMER-ID"} & set(words[:1])):
        return None
    parts = [line]
    for following in lines[place + 1 : place + 5]:
        if not following.strip() or following.split()[0] in words:  # a title stands in a header once
            break
        parts.append(following)
    titles, used = next(
        (
            (titles, count)
            for count in range(len(parts), 0, -1)
            for text in _glued(parts[:count])
            if (titles := _titles(text))
        ),
        ((), 1),
    )
    table = _Table(titles, line, used, "," in line)
    wanted = {"CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "START-OFFSET", "OFFSET-LAG", "NEW-OFFSET"}
    if {"TOPIC", "PARTITION"} <= set(titles):
        return table if wanted & set(titles) else None
    return table if table.kind or titles[:2] == ("GROUP", "TYPE") else None


@dataclass(slots=True)
class _Members:
    """The members of a group, by one table."""

    names: set[str] = field(default_factory=set)
    idle: set[str] = field(default_factory=set)
    offsets: bool = False  # the table is one of offsets


@dataclass(slots=True)
class _Reading:
    lines: list[str]
    file: str
    modified: int | None
    found: Evidence = field(default_factory=Evidence)
    failures: list[Remark] = field(default_factory=list)
    sight: int = 0
    dated: bool = False
    noted: set[str] = field(default_factory=set)  # groups that a sentence since the last table speaks of
    tool: str = ""  # by the last command
    width: int = 0  # where a terminal cut the lines, if it did: so long most of them are

    def all(self) -> Evidence:
        self.width = Counter(map(len, self.lines)).most_common(1)[0][0]
        table: _Table | None = None
        members: dict[tuple[Kind, str], _Members] = {}
        time = None if any(_moment(line) is not None for line in self.lines) else self.modified
        group, place = self.only_group(), 0
        while place < len(self.lines):
            line = self.lines[place]
            if header := _header(self.lines, place):
                self.close(members, time)
                table, members = header, {}
                self.sight += 1
                self.source(table, time)
                place += header.lines
                continue
            place += 1
            if line.startswith("#"):
                table = None  # mqadmin's tables begin so
            if not line.strip():
                continue
            moment = _moment(line)
            if moment is not None and (time is None or abs(moment - time) > ONE_RUN):
                self.close(members, time)
                time, members, self.dated = moment, {}, True
                self.sight += 1
            if note := _NOTE.search(line):
                group = note["group"]
                self.note(group, note["kind"].lower(), _STATES[note["says"]], time)  # type: ignore[arg-type]
            elif command := _COMMAND.search(line):
                named = _NAMED.search(line)
                group, self.tool = named[1] if named else "", command["kind"] or ""
            elif unknown := _NOT_FOUND.search(line):
                self.note(unknown["group"], "consumer", "Dead", time)
            elif failed := _FAILED.search(line) or _FAILED_OLD.search(line):
                why = say("the command failed and shows nothing of the group: {error}", error=failed[1][:200])
                self.failures.append(Remark(self.file, place, line.strip(), why))
            elif table is not None and not (moment is not None or _BETWEEN.match(line.strip())):
                taken = self.row(table, place - 1)
                if taken is None:
                    why = say("does not fit the table above it")
                    self.found.remarks.append(Remark(self.file, place, line.strip(), why))
                    continue
                cells, used = taken
                place += used - 1
                self.take(table, cells, group, time, members, place)
        self.close(members, time)
        if not self.found.count:
            self.found.remarks.extend(self.failures)
        if not self.found.sources:
            self.found.sources.append(Source(self.file, "kafka-consumer-groups", needs=DESCRIBE_TOO))
        return self.found

    def source(self, table: _Table, time: int | None) -> None:
        kind = self.kind(table)
        what = f"kafka-{kind}-groups --" + ("describe" if table.kind == "offsets" else table.kind)
        needs = ""
        if table.kind == "" and "NEW-OFFSET" in table.titles:
            what, needs = "kafka-consumer-groups --reset-offsets", DESCRIBE_TOO
        elif table.kind == "":
            what, needs = "kafka-groups --list", DESCRIBE_TOO
        elif table.kind != "offsets":
            needs = DESCRIBE_TOO
        self.found.sources.append(Source(self.file, what, () if time is None else (time,), _release(table), needs))

    def only_group(self) -> str:
        """The group of tables that stand before any name, if the text names but one."""
        names = {found["group"] for found in map(_NOTE.search, self.lines) if found}
        names |= {found[1] for line in self.lines if _COMMAND.search(line) and (found := _NAMED.search(line))}
        return names.pop() if len(names) == 1 else ""

    def row(self, table: _Table, place: int) -> tuple[dict[str, str], int] | None:
        """The row that begins at a line, and how many lines it takes."""
        line = self.lines[place]
        whole_line = table.row(line)
        if whole_line is not None and len(line) != self.width:
            return whole_line, 1
        parts = [line, *self.rest_of(table, place)] if whole_line is not None or table.begins(line) else []
        for count in range(len(parts), 1, -1):
            if (cells := table.joined(parts[:count])) is not None:
                return cells, count
        if whole_line is not None:
            return whole_line, 1
        return self.between_words(table, place) if table.lines > 1 else None

    def between_words(self, table: _Table, place: int) -> tuple[dict[str, str], int] | None:
        """A row that a mail wrapped as it did the header: as many lines as make up its cells."""
        parts = list(itertools.takewhile(str.strip, self.lines[place : place + table.lines + 1]))
        for count in range(2, len(parts) + 1):
            cells = table.cells(" ".join(parts[:count]))
            if len(cells) == len(table.titles) and table.fits(cells):
                row = dict(zip(table.titles, cells, strict=True))
                if _adds_up(row):
                    return row, count
        return None

    def rest_of(self, table: _Table, place: int) -> Iterator[str]:
        """What may belong to a row that was begun: up to the next row, table or note."""
        for following in range(place + 1, min(place + 6, len(self.lines))):
            line = self.lines[following]
            if (
                not line.strip()
                or table.row(line) is not None
                or table.begins(line)
                or _header(self.lines, following)
                or _NOTE.search(line)
                or _moment(line) is not None
                or _BETWEEN.match(line.strip())
            ):
                return
            yield line

    def note(self, group: str, kind: Kind, state: str, time: int | None) -> None:
        """A sentence of the tool has the state of a group."""
        if state:
            self.noted.add(group)
            members = 0 if state == "Empty" else None
            self.found.consumer_groups.append(ConsumerGroupState(self.file, time, group, kind, state, members))

    def take(
        self,
        table: _Table,
        cells: dict[str, str],
        group: str,
        time: int | None,
        members: dict[tuple[Kind, str], _Members],
        line: int,
    ) -> None:
        """What one row says."""
        name = cells.get("GROUP", group)
        kind = self.kind(table)
        try:
            if table.kind == "state":
                count = cells.get("#MEMBERS")
                self.found.consumer_groups.append(
                    ConsumerGroupState(
                        self.file, time, name, kind, cells["STATE"], None if count is None else whole("#MEMBERS", count)
                    )
                )
            elif table.kind == "members":
                group_members = members.setdefault((kind, name), _Members())
                who = cells.get("CONSUMER-ID") or cells.get("MEMBER", "")
                group_members.names.add(who)
                if cells.get("#PARTITIONS") == "0":
                    group_members.idle.add(who)
            elif table.kind == "offsets":
                self.offset(cells, name, kind, time, members.setdefault((kind, name), _Members()))
        except ValueError:
            self.found.remarks.append(
                Remark(self.file, line, self.lines[line - 1].strip(), say("a number was expected"))
            )

    def offset(self, cells: dict[str, str], group: str, kind: Kind, time: int | None, members: _Members) -> None:
        client = next((cells[title] for title in ("CONSUMER-ID", "OWNER") if title in cells), None)
        client = client if client not in ABSENT else ""
        members.offsets = True
        if client:
            members.names.add(client)
        if cells["PARTITION"] in ABSENT:
            if client:
                members.idle.add(client)  # the row of a member that has no partition
            return
        reached = _number(cells, "CURRENT-OFFSET" if "CURRENT-OFFSET" in cells else "START-OFFSET")
        end = _number(cells, "LOG-END-OFFSET")
        lag = _number(cells, "OFFSET-LAG" if "OFFSET-LAG" in cells else "LAG")
        if end is None and reached is not None and lag is not None and kind == "consumer":
            end = reached + lag  # a selection of the columns
        elif reached is None and end is not None and lag is not None:
            reached = end - lag
        self.found.offsets.append(
            OffsetState(
                self.file,
                time,
                "kafka",
                group,
                cells["TOPIC"],
                "",
                whole("PARTITION", cells["PARTITION"]),
                end,
                reached,
                client=client,
                sight=self.sight,
                dated=self.dated,
                told_lag=lag if end is None or reached is None else None,
                verdict=UNAVAILABLE if end is None and "LOG-END-OFFSET" in cells and reached is not None else "",
            )
        )

    def kind(self, table: _Table) -> Kind:
        """Whose groups a table has: by its columns, else by the command."""
        titles = set(table.titles)
        if titles & {"OFFSET-LAG", "PROCESS"}:
            return "streams"
        if "START-OFFSET" in titles or ("#PARTITIONS" in titles and "MEMBER-EPOCH" in titles):
            return "share"
        if table.kind != "offsets" and self.tool in ("share", "streams"):
            return self.tool  # type: ignore[return-value]
        if "COORDINATOR-(ID)" in titles and "GROUP" in titles and "ASSIGNMENT-STRATEGY" not in titles:
            others = (each.kind for each in reversed(self.found.consumer_groups) if each.kind != "consumer")
            return next(others, "share")
        return "consumer"

    def close(self, members: dict[tuple[Kind, str], _Members], time: int | None) -> None:
        """The state of each group by the table as a whole."""
        for (kind, group), group_members in members.items():
            # The tool prints this beside a table of a group that is not at rest; a member without partitions is in few.
            settled = "Stable" if group_members.offsets and group_members.names and group not in self.noted else ""
            if group_members.offsets and group in self.noted:
                group_members.idle.clear()  # while it rebalances no member has a partition
            if group_members.offsets and not (group_members.idle or settled or kind != "consumer"):
                continue
            counted = len(group_members.names) if group_members.idle or not group_members.offsets else None
            idle = len(group_members.idle) if counted else None
            self.found.consumer_groups.append(ConsumerGroupState(self.file, time, group, kind, settled, counted, idle))
        if members:
            self.noted.clear()


# ms within which the log lines of one run of a tool stand.
ONE_RUN = 10_000
# The tool shows no end of a partition that has a committed offset: it has no leader.
UNAVAILABLE = "no log end offset"


DESCRIBE_TOO = say("give `kafka-consumer-groups --describe --group GROUP` too, twice, a minute apart")


def _release(table: _Table) -> str:
    """Which releases of Kafka print a table in this form."""
    titles = table.titles
    if table.kind != "offsets":
        return ""
    if "START-OFFSET" in titles:
        return "Kafka 4.2 or newer" if "LAG" in titles else "Kafka 4.0 or 4.1"
    if "OFFSET-LAG" in titles:
        return "Kafka 4.1 or newer"
    if "LEADER-EPOCH" in titles:
        return "Kafka 4.0 or newer"
    if "OWNER" in titles:
        return "Kafka 0.8 or 0.9" if table.commas or "Pid" in table.text else "Kafka 0.10.0 or 0.10.1"
    if "CLIENT-ID" in titles:
        return "Kafka 2.3 or newer" if "GROUP" in titles else "Kafka 0.10.2 to 2.2"
    return ""


def _number(cells: dict[str, str], title: str) -> int | None:
    text = cells.get(title, "")
    number = None if text in ABSENT else whole(title, text.replace(",", ""))
    return None if number is not None and number < 0 and title != "LAG" else number
