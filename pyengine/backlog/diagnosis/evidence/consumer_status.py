"""``mqadmin consumerStatus -g GROUP`` without a client's id: the group's clients, and the tool's own verdicts.

The running info of each client lies in a file of its own that the table names; see
:mod:`pyengine.backlog.diagnosis.evidence.running_info`. Before 4.9.4 the table has no header and
its numbers are 001, 002 ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyengine._engine.rocketmq.client.consume_rates import Stuck
from pyengine.backlog.diagnosis.evidence.model import Evidence, GroupCheck, QueueProblem, Remark, Source
from pyengine.backlog.diagnosis.evidence.needs import PROGRESS_TOO
from pyengine.backlog.diagnosis.evidence.transcript import Block
from pyengine.backlog.findings import say

HEADER = ("#Index", "#ClientId", "#ConsumerRunningInfoFile")
_CLIENT = re.compile(r"^\d+\s+(\S+)\s+(\S+)\s+((\d{13})/\S+)$")
_PROBLEM = re.compile(
    r"^(?P<client>\S+) MessageQueue \[topic=(?P<topic>[^,]+), brokerName=(?P<broker>[^,]+), queueId=(?P<queue>\d+)\] "
    r"(?P<words>.+)$"
)
_WORDS = (
    (re.compile(r"can't consume for a while"), Stuck.NOT_CONSUMING),
    (re.compile(r"can't lock for a while"), Stuck.NOT_LOCKED),
    (re.compile(r"unlock \d+ times, still failed"), Stuck.NOT_UNLOCKED),
)
_BEGUN = re.compile(r"^\d+\s+\S+\s+V\d+_\w+\s+\d{1,13}(?:/|$)")
_ENDS = re.compile(r"\d+ms\s*$|still failed\s*$")
_KNOWN = re.compile(r"Same subscription in the same group of consumer|Rebalance (OK|Failed)|[\[$#>].*[#$>]\s*$|\$\s")


def begins(line: str) -> bool:
    """True for the table's header, and for its first client where it has none."""
    text = line.strip()
    return all(name in text for name in HEADER) or (text.startswith("001 ") and _BEGUN.match(text) is not None)


def read(block: Block, file: str, time: int | None, found: Evidence) -> None:
    """Add the check of a group that the table is."""
    check = GroupCheck(file, time, block.group)
    versions: list[str] = []
    for number, line in _whole(block):
        if not line or all(name in line for name in HEADER):
            continue
        if not _line(line, check, versions) and not _KNOWN.match(line):
            found.remarks.append(Remark(file, number, line, say("does not fit the table above it")))
    found.checks.append(check)
    product = ", ".join(f"RocketMQ client {version}" for version in dict.fromkeys(versions))
    found.sources.append(
        Source(file, "mqadmin consumerStatus", () if check.time is None else (check.time,), product, PROGRESS_TOO)
    )


def _whole(block: Block) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; complaints of a queue that a terminal cut are put together again."""
    lines = [each.strip("\n") for each in block.lines]
    at = 0
    while at < len(lines):
        line, first = lines[at], at
        while _is_cut(line) and at + 1 < len(lines) and lines[at + 1].strip():
            at += 1
            line += lines[at]
        yield block.first + first, line.strip()
        at += 1


def _is_cut(line: str) -> bool:
    if " MessageQueue [" in line:
        return not _ENDS.search(line)
    return _BEGUN.match(line) is not None and not _CLIENT.match(line)


def _line(line: str, check: GroupCheck, versions: list[str]) -> bool:
    """Take a line over; False if it is none of the tool's."""
    if client := _CLIENT.match(line):
        check.clients.append(client[1])
        versions.append(client[2])
        check.time = int(client[4])
    elif problem := _PROBLEM.match(line):
        cause = next((cause for words, cause in _WORDS if words.match(problem["words"])), None)
        if cause is None:
            return False
        place = f"{problem['topic']}/{problem['broker']}/{problem['queue']}"
        check.problems.append(QueueProblem(problem["client"], place, cause, problem["words"]))
    elif line.startswith("WARN: Different subscription"):
        check.different = line
    else:
        return False
    return True
