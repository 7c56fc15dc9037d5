"""``mqadmin consumerStatus -g GROUP`` without a client's id: the group's clients, and what the tool says of them.

The running info of each client lies in a file of its own that the table names; see
:mod:`pyengine.backlog.evidence.running_info`.
"""

from __future__ import annotations

import re

from pyengine._engine.rocketmq.client.consume_rates import Stuck
from pyengine.backlog.evidence.model import Evidence, GroupCheck, QueueProblem, Remark
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
_KNOWN = re.compile(r"Same subscription in the same group of consumer|Rebalance (OK|Failed)|.*\bconsumerStatus\b.*")


def recognises(text: str) -> bool:
    """True if the table's header is there."""
    return any(all(name in line for name in HEADER) for line in text.splitlines())


def read(text: str, file: str, modified: int | None) -> Evidence:
    """One check of a group for each table in the file."""
    found = Evidence()
    group = re.search(r"consumerStatus\b.*?\s-g\s+(\S+)", text)
    started = False
    for number, line in enumerate((line.strip() for line in text.splitlines()), 1):
        if all(name in line for name in HEADER):
            started = True
            found.checks.append(GroupCheck(file, modified, group[1] if group else ""))
        elif started and line and not _line(line, found.checks[-1]) and not _KNOWN.match(line):
            found.remarks.append(Remark(file, number, line, say("does not fit the table above it")))
    return found


def _line(line: str, check: GroupCheck) -> bool:
    """Take a line over; False if it is none of the tool's."""
    if client := _CLIENT.match(line):
        check.clients.append(client[1])
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
