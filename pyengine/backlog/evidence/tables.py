"""Tables that command-line tools print: read by their header, never by column numbers.

``activemq-admin dstat``, ``mqadmin consumerProgress`` (of one group, of all) and ``kafka-consumer-groups --describe``.
"""

from __future__ import annotations

import itertools
import re
import time as clock
from dataclasses import dataclass
from typing import Literal

from pyengine.backlog.evidence.model import DestinationState, Evidence, GroupState, OffsetState, Remark
from pyengine.backlog.evidence.numbers import whole
from pyengine.backlog.findings import say
from pyengine.destinations import ADVISORY

ABSENT = ("-", "N/A", "null", "")
DSTAT = ("Name", "Queue Size", "Consumer #")
PROGRESS = ("#Topic", "#Broker Offset", "#Consumer Offset")
GROUPS = ("#Group", "#Count", "#Diff Total")
KAFKA = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET")


@dataclass(frozen=True, slots=True)
class Row:
    """One line under a header: cell by column name."""

    line: int
    text: str
    cells: dict[str, str]

    def integer(self, name: str) -> int | None:
        """A cell as a number; None where it is absent. Raises ValueError for other text."""
        text = self.cells.get(name, "")
        return None if text in ABSENT else whole(name, text.replace(",", ""))


def recognises(text: str) -> bool:
    """True if any line is one of the headers."""
    return any(_header(line) for line in text.splitlines())


def read(text: str, file: str, modified: int | None) -> Evidence:
    """All tables of a file, whatever stands between them."""
    found = Evidence()
    header: tuple[str, ...] = ()
    titles = ""
    group = _group_in(text) or _group_in(file)
    for number, line in enumerate(text.splitlines(), 1):
        if names := _header(line):
            header, titles = names, line
        elif not line.strip():
            continue
        elif header:
            row = _row(number, line, header) or _cut(number, line, header, titles)
            if row is None:
                if not re.match(
                    r"Consume (TPS|Diff|Inflight)|(Warning: )?Consumer group |JAVA_|INFO|log4j", line.strip()
                ):
                    found.remarks.append(Remark(file, number, line.strip(), say("does not fit the table above it")))
                continue
            try:
                _add(row, header, group, file, modified, found)
            except ValueError:
                found.remarks.append(Remark(file, number, line.strip(), say("a number was expected")))
            except KeyError:
                found.remarks.append(Remark(file, number, line.strip(), say("does not fit the table above it")))
    if not group and any(each.system == "rocketmq" for each in found.offsets):
        # Two sights of a group could not be compared if only one of them had a name.
        why = say("names no group; keep the command with its -g GROUP in the file")
        found.remarks.append(Remark(file, 0, "#Topic", why))
    return found


def _header(line: str) -> tuple[str, ...]:
    """The column names if the line is a header we know."""
    for known in (DSTAT, PROGRESS, GROUPS):
        if all(name in line for name in known):
            return tuple(re.split(r"\s+(?=#)" if line.lstrip().startswith("#") else r"\s{2,}", line.strip()))
    if all(name in line.split() for name in KAFKA):
        return tuple(line.split())
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


def _cut(number: int, line: str, header: tuple[str, ...], titles: str) -> Row | None:
    """A line of Kafka's table whose names have blanks inside: each cell begins where its column's title does, but for
    the last one, which may stand behind a host that is longer than its column."""
    if header[-2:] != ("HOST", "CLIENT-ID"):
        return None
    begins = [found.start() for found in re.finditer(r"\S+", titles)]
    if len(line) <= begins[-2] or any(line[begin - 1] != " " or line[begin] == " " for begin in begins[1:-1]):
        return None
    cells = [line[begin:end].strip() for begin, end in itertools.pairwise(begins[:-1])]
    cells += line[begins[-2] :].split(maxsplit=1)
    return Row(number, line, dict(zip(header, cells, strict=True))) if len(cells) == len(header) else None


def _add(row: Row, header: tuple[str, ...], group: str, file: str, modified: int | None, found: Evidence) -> None:
    if header[0] == "Name":
        found.destinations.append(_destination(row, header, file, modified))
    elif header[0] == "#Group":
        clients = 0 if row.cells["#Version"] == "OFFLINE" else row.integer("#Count") or 0
        tps = row.integer("#TPS")
        found.groups.append(
            GroupState(file, modified, row.cells["#Group"], clients, row.integer("#Diff Total") or 0, tps)
        )
    elif "#Topic" in header:
        found.offsets.append(_progress(row, group, file, modified))
    else:
        found.offsets.append(_kafka(row, file, modified))


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


def _progress(row: Row, group: str, file: str, time: int | None) -> OffsetState:
    last = row.cells.get("#LastTime", "")
    client = row.cells.get("#Client IP")
    return OffsetState(
        file,
        time,
        "rocketmq",
        group,
        row.cells["#Topic"],
        row.cells.get("#Broker Name", ""),
        row.integer("#QID") or 0,
        row.integer("#Broker Offset"),
        row.integer("#Consumer Offset"),
        inflight=row.integer("#Inflight"),
        last_time=0 if last in ABSENT else _local_time(last),
        client=None if client is None else ("" if client in ABSENT else client),
    )


def _kafka(row: Row, file: str, time: int | None) -> OffsetState:
    client = row.cells.get("CONSUMER-ID")
    return OffsetState(
        file,
        time,
        "kafka",
        row.cells.get("GROUP", ""),
        row.cells["TOPIC"],
        "",
        row.integer("PARTITION") or 0,
        row.integer("LOG-END-OFFSET"),
        row.integer("CURRENT-OFFSET"),
        client=None if client is None else ("" if client in ABSENT else client),
    )


def _local_time(text: str) -> int:
    """The tools print the time of the machine they ran on; it is read as this machine's."""
    return int(clock.mktime(clock.strptime(text, "%Y-%m-%d %H:%M:%S"))) * 1000


def _group_in(text: str) -> str:
    """The group that a command line in the file, or the file's name, names: the table itself does not."""
    match = re.search(r"consumerProgress\b.*?\s-g\s+(\S+)", text)
    retry = re.search(r"^%RETRY%(\S+)", text, re.MULTILINE)
    return next((found.group(1) for found in (match, retry) if found), "")
