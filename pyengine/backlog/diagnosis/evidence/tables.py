"""Tables that command-line tools print: read by their header, never by column numbers.

``activemq-admin dstat``, ``mqadmin consumerProgress`` (of one group, of all) and ``brokerConsumeStats``;
:mod:`~pyengine.backlog.diagnosis.evidence.mqadmin` has mqadmin's other commands.
"""

from __future__ import annotations

import re
import time as clock
from dataclasses import replace
from typing import Literal

from pyengine.backlog.diagnosis.evidence import mqadmin
from pyengine.backlog.diagnosis.evidence.model import (
    DestinationState,
    Evidence,
    GroupState,
    OffsetState,
    Remark,
    Source,
)
from pyengine.backlog.diagnosis.evidence.needs import PROGRESS_TOO
from pyengine.backlog.diagnosis.evidence.numbers import whole
from pyengine.backlog.diagnosis.evidence.transcript import (
    Block,
    blocks,
    commands_in,
    groups_named,
    unwrapped,
    without_bars,
)
from pyengine.backlog.findings import say
from pyengine.dataclass import dataclass
from pyengine.destinations import ADVISORY

ABSENT = ("-", "N/A", "NA", "null", "")
DSTAT = ("Name", "Queue Size", "Consumer #")
PROGRESS = ("#Topic", "#Broker Offset", "#Consumer Offset")
GROUPS = ("#Group", "#Count", "#Diff Total")
# Commands whose table is read here: where it is not there, the command has failed or was copied alone.
WITH_TABLE = ("mqadmin consumerProgress", "mqadmin brokerConsumeStats", "mqadmin statsAll")
RETRY = "%RETRY%"
NARROW = 32  # mqadmin before 4.9.3 cuts topics, groups and brokers to so many characters; brokers still
CUT = "... ("  # between what is left of a name and the number of the topic
_BEHIND_TABLE = re.compile(
    r"Consume (TPS|Diff|Inflight)|Diff Total:|(Warning: )?Consumer group |JAVA_|Java HotSpot|OpenJDK|INFO|log4j|SLF4J"
    r"|RocketMQLog:|RMQ[A-Z]|Picked up|[\[$#>].*[#$>]\s*$|\$\s"
    r"|[-: ]{3,}$"
)
_TPS = re.compile(r"^\s*Consume TPS:\s*([\d.,]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """One line under a header: cell by column name."""

    line: int
    text: str
    cells: dict[str, str]

    def integer(self, name: str) -> int | None:
        """A cell as a number; None if it is absent. Raises ValueError for other text."""
        text = self.cells.get(name, "")
        return None if text in ABSENT else whole(name, text.replace(",", ""))


def recognises(text: str) -> bool:
    """True if any line is one of the headers, or one of mqadmin's commands."""
    text = _plain(text)
    return any(_header(line) for line in text.splitlines()) or mqadmin.recognises(text)


def read(text: str, file: str, modified: int | None) -> Evidence:
    """All tables of a file; other lines may stand between them."""
    text = _plain(text)
    found = Evidence()
    named = groups_named(text) or {block.group for block in blocks(text, _begins) if block.group}
    for block in blocks(text, _begins):
        if mqadmin.takes(block):
            mqadmin.read(block, file, modified, found)
        else:
            _Table(block, file, modified, _group_of(block, named) or _group_in_name(file)).read(found)
    if any(each.system == "rocketmq" and not each.group for each in found.offsets):
        # Two sights of a group could not be compared if only one of them had a name.
        why = say("names no group; keep the command with its -g GROUP in the file")
        found.remarks.append(Remark(file, 0, "#Topic", why))
    if not found.count:
        found.remarks.extend(mqadmin.failures(text, file))
    if not found.sources:
        for command in commands_in(text):
            what = say("{command} without its table", command=command) if command in WITH_TABLE else command
            found.sources.append(Source(file, what, needs=PROGRESS_TOO))
    return found


def _plain(text: str) -> str:
    """The text with its tables as the tool printed them."""
    return unwrapped("\n".join(map(without_bars, text.splitlines())) if "|" in text else text, _begins)


def _begins(line: str) -> bool:
    return bool(_header(line)) or mqadmin.begins(line)


class _Table:
    """Reads the one table of a block."""

    def __init__(self, block: Block, file: str, modified: int | None, group: str) -> None:
        self.block = block
        self.file = file
        self.time = modified if block.time is None else block.time
        self.group = group
        self.titles = block.lines[0]
        self.header = _header(self.titles)
        self.offsets: list[OffsetState] = []

    def read(self, found: Evidence) -> None:
        if not self.header:
            lines = enumerate(self.block.lines, self.block.first)
            number, line = next((at, each) for at, each in lines if each.strip())
            # What stands in front of the first command or table is the people's own words.
            if self.block.sight > 1 and not self.block.command and not _BEHIND_TABLE.match(line.strip()):
                self.remark(found, number, line, fits=False)
            return
        for number, line in enumerate(self.block.lines[1:], self.block.first + 1):
            if not line.strip():
                continue
            row = _row(number, line, self.header)
            if row is None:
                if not _BEHIND_TABLE.match(line.strip()):
                    self.remark(found, number, line, fits=False)
                continue
            try:
                self.add(row, found)
            except ValueError:
                self.remark(found, number, line, fits=True)
            except KeyError:
                self.remark(found, number, line, fits=False)
        found.offsets.extend(self.whole())
        times = () if self.time is None else (self.time,)
        found.sources.append(Source(self.file, self.kind(), times, self.product()))

    def remark(self, found: Evidence, number: int, line: str, *, fits: bool) -> None:
        why = say("a number was expected") if fits else say("does not fit the table above it")
        found.remarks.append(Remark(self.file, number, line.strip(), why))

    def add(self, row: Row, found: Evidence) -> None:
        if self.header[0] == "Name":
            found.destinations.append(_destination(row, self.header, self.file, self.time))
        elif "#Diff Total" in self.header:
            found.groups.append(self.group_line(row))
        else:
            self.offsets.append(self.progress(row))

    def kind(self) -> str:
        if self.header[0] == "Name":
            return "activemq-admin dstat"
        if "#Group" in self.header and "#Topic" in self.header:
            return "mqadmin brokerConsumeStats"
        return "mqadmin consumerProgress"

    def product(self) -> str:
        """Which releases of RocketMQ print the table in this form."""
        if not self.header[0].startswith("#"):
            return ""
        if "#Diff Total" in self.header or "#Group" in self.header:
            return "RocketMQ 3.2 - 4.9.2" if self.narrow else "RocketMQ 4.9.3 - 5.3"
        if "#Inflight" in self.header:
            return "RocketMQ 5.1 - 5.3"
        if "#LastTime" not in self.header:
            return "RocketMQ 3"
        if not self.narrow:
            return "RocketMQ 4.9.3 - 5.0"
        if "#Client IP" not in self.header:
            return "RocketMQ 3.5 - 4.0, 4.9.0 - 4.9.2"
        return "RocketMQ 4.1, 4.2" if re.search(r"\sNA\s", self.block.text) else "RocketMQ 4.1 - 4.9.2"

    @property
    def narrow(self) -> bool:
        """Names are cut at 32 characters; assumed if the blanks between columns are gone."""
        second = self.titles.find("#", self.titles.find("#") + 1)
        return second - self.titles.find("#") < 2 * NARROW

    def group_line(self, row: Row) -> GroupState:
        clients = 0 if row.cells["#Version"] == "OFFLINE" else row.integer("#Count") or 0
        return GroupState(
            self.file,
            self.time,
            row.cells["#Group"],
            clients,
            row.integer("#Diff Total") or 0,
            row.integer("#TPS"),
            model=row.cells.get("#Model", ""),
        )

    def progress(self, row: Row) -> OffsetState:
        last = row.cells.get("#LastTime")
        client = row.cells.get("#Client IP")
        return OffsetState(
            self.file,
            self.time,
            "rocketmq",
            row.cells.get("#Group", self.group),
            row.cells["#Topic"],
            row.cells.get("#Broker Name", ""),
            row.integer("#QID") or 0,
            row.integer("#Broker Offset"),
            row.integer("#Consumer Offset"),
            inflight=row.integer("#Inflight"),
            last_time=stored_at(last),
            client=None if client is None else ("" if client in ABSENT else client),
            sight=self.block.sight,
            dated=self.block.time is not None,
        )

    def whole(self) -> list[OffsetState]:
        """What only the whole table tells: whether the column of clients says anything, the rate behind the rows, and
        which cut names are those of several topics."""
        states = self.offsets
        if not self.clients_count():
            states = [replace(each, client=None) for each in states]
        if rate := _TPS.search(self.block.text):
            states = [replace(each, tps=float(rate[1].replace(",", "."))) for each in states]
        return told_apart(states) if self.narrow else states

    def clients_count(self) -> bool:
        """False if the column of clients is there and empty: 4.3 to 4.8 print N/A in it without -s true."""
        if "#Client IP" not in self.header or not self.narrow or "#Inflight" in self.header:
            return True
        if any(each.client for each in self.offsets):
            return True
        if re.search(r"\sNA\s", self.block.text):
            return True
        return bool(self.block.shows_clients)


def told_apart(states: list[OffsetState]) -> list[OffsetState]:
    """Topics whose names were cut to the same text: rows are sorted by the whole name, then by broker and queue, so
    another topic begins where broker and queue go back. Each gets a number behind its name."""
    found: list[OffsetState] = []
    runs: dict[tuple[str, str], list[list[OffsetState]]] = {}
    for state in states:
        series = runs.setdefault((state.group, state.topic), [[]])
        if series[-1] and (state.broker, state.queue) <= (series[-1][-1].broker, series[-1][-1].queue):
            series.append([])
        series[-1].append(state)
    for (_, topic), series in runs.items():
        cut = len(topic) == NARROW and len(series) > 1
        for number, run in enumerate(series, 1):
            found.extend(replace(each, topic=f"{topic}{CUT}{number})") if cut else each for each in run)
    return found


def _header(line: str) -> tuple[str, ...]:
    """The column names if the line is a header we know."""
    for known in (DSTAT, PROGRESS, GROUPS):
        if all(name in line for name in known):
            return tuple(re.split(r"\s+(?=#)" if line.lstrip().startswith("#") else r"\s{2,}", line.strip()))
    return ()


def _row(number: int, line: str, header: tuple[str, ...]) -> Row | None:
    cells = line.split()
    last = header[-1]
    # The only cell with a blank inside is the time at the end of a line of consumerProgress.
    if last == "#LastTime" and len(cells) == len(header) + 1:
        cells[-2:] = [f"{cells[-2]} {cells[-1]}"]
    if len(cells) == len(header) - 1 and last == "#LastTime":
        cells.append("")
    # A group without clients leaves type and model blank, one that pulls by itself the model.
    if header[0] == "#Group" and len(header) - len(cells) in (1, 2):
        cells[-2:-2] = [""] * (len(header) - len(cells))
    # A destination's name may have blanks inside; all else is numbers.
    if header[0] == "Name" and len(cells) > len(header):
        cells[: len(cells) - len(header) + 1] = [line.strip().rsplit(maxsplit=len(header) - 1)[0]]
    return Row(number, line, dict(zip(header, cells, strict=True))) if len(cells) == len(header) else None


def _destination(row: Row, header: tuple[str, ...], file: str, time: int | None) -> DestinationState:
    # Only the listing of queues has the column of messages in flight; the listing of all says nowhere what is what.
    of_topics = "Inflight #" not in header and ("topic" in file.lower() or row.cells["Name"].startswith(ADVISORY))
    kind: Literal["queue", "topic"] = "topic" if of_topics else "queue"
    size, consumers = row.integer("Queue Size"), row.integer("Consumer #")
    return DestinationState(
        file,
        time,
        "",
        row.cells["Name"],
        kind,
        size or 0,
        consumers or 0,
        producer_count=row.integer("Producer #"),
        enqueue_count=row.integer("Enqueue #"),
        dequeue_count=row.integer("Dequeue #"),
        in_flight_count=row.integer("Inflight #"),
        memory_percent=row.integer("Memory %"),
    )


def stored_at(text: str | None) -> int | None:
    """The store time of the last message consumed: None if the tool has no such column, 0 for its N/A.

    Before 4.3 it prints a time of 0 as this machine's midnight of 1970, which is the last evening of 1969 west of
    Greenwich. Raises ValueError for other text.
    """
    if text is None or text == "":
        return None
    if text in ABSENT or text.startswith(("1970-01-01", "1969-12-31")):
        return 0
    return int(clock.mktime(clock.strptime(text, "%Y-%m-%d %H:%M:%S"))) * 1000


def _group_of(block: Block, named: set[str]) -> str:
    """The group of a table that has no column for it: by the command, by the retry topic in it, else the only group
    that the text names at all."""
    retry = sorted(re.findall(rf"^{RETRY}(\S+)", block.text, re.MULTILINE), key=len)
    return block.group or (retry[0] if retry else "") or (next(iter(named)) if len(named) == 1 else "")


def _group_in_name(file: str) -> str:
    """The group that the file's name names, if it is the command's own words."""
    match = re.search(r"consumerProgress\b.*?\s-g\s+(\S+)", file)
    return match[1] if match else ""
