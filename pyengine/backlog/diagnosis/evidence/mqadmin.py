"""What ``mqadmin`` prints beside consumerProgress: topicStatus, statsAll, clusterList, consumerConnection, and
consumerStatus without a client's id. Formats are those of the commands' classes from 3.2 to 5.3 (tools/command)."""

from __future__ import annotations

import re
import time as clock

from pyengine.backlog.diagnosis.evidence import consumer_status
from pyengine.backlog.diagnosis.evidence.model import Evidence, GroupCheck, GroupState, QueueRange, Remark, Source
from pyengine.backlog.diagnosis.evidence.needs import PROGRESS_TOO
from pyengine.backlog.diagnosis.evidence.numbers import whole
from pyengine.backlog.diagnosis.evidence.transcript import Block, commands_in
from pyengine.backlog.findings import say

TOPIC_STATUS = ("#Min Offset", "#Max Offset")
STATS_ALL = ("#Topic", "#Consumer Group", "#InTPS")
CLUSTER_LIST = ("#Cluster Name", "#Broker Name")
CONNECTION = ("#ClientId", "#ClientAddr")
# Before 4.9.3 the list of connections has numbers in front and no header.
_NUMBERED = re.compile(r"^001\s+\S+\s+\S+:\d+\s+[A-Z_]+\s+\S+$")
_CLIENT = re.compile(r"^(?:\d{3}\s+)?(?P<id>\S+)\s+(?P<address>\S+:\d+)\s+[A-Z_]+\s+(?P<version>\S+)$")
_OFFLINE = re.compile(r"the consumer group ?\[(?P<group>[^\]]+)\] not online")
_FAILED = re.compile(r"^(?:\S+\.)?SubCommandException: (?P<what>.+)")
_CAUSE = re.compile(r"^Caused by: (?P<what>\S+(?:Exception|Error)\b.*)")
_VERSION = re.compile(r"^V\d+_\d+_\d+")
_NO_ROW = re.compile(r"Topic Put TPS:|[\[$#>].*[#$>]\s*$|\$\s|SLF4J|RocketMQLog:|Java HotSpot|OpenJDK|JAVA_")


def recognises(text: str) -> bool:
    """True if one of the commands is there, or one of the tables."""
    return bool(commands_in(text)) or any(begins(line) for line in text.splitlines())


def begins(line: str) -> bool:
    """True for the line with which one of the tables begins."""
    return (
        any(all(name in line for name in names) for names in (TOPIC_STATUS, STATS_ALL, CLUSTER_LIST, CONNECTION))
        or _NUMBERED.match(line.strip()) is not None
        or consumer_status.begins(line)
    )


def takes(block: Block) -> bool:
    """True for a block of one of these commands, and for one in which mqadmin reports an empty group."""
    return begins(block.lines[0]) or _OFFLINE.search(block.text) is not None


def read(block: Block, file: str, modified: int | None, found: Evidence) -> None:
    """Add what the block says."""
    time = modified if block.time is None else block.time
    head = block.lines[0]
    if consumer_status.begins(head):
        consumer_status.read(block, file, time, found)
    elif all(name in head for name in TOPIC_STATUS):
        _topic_status(block, file, time, found)
    elif all(name in head for name in STATS_ALL):
        _stats_all(block, file, time, found)
    elif all(name in head for name in CLUSTER_LIST):
        _cluster_list(block, file, time, found)
    elif begins(head):
        _connection(block, file, time, found)
    if offline := _OFFLINE.search(block.text):
        found.groups.append(GroupState(file, time, offline["group"], 0, 0))
        if not begins(head):
            _source(found, file, f"mqadmin {block.command or 'consumerConnection'}", time, needs=PROGRESS_TOO)


def failures(text: str, file: str) -> list[Remark]:
    """Commands that failed, each with the last cause that its stack names."""
    found: list[Remark] = []
    for number, line in enumerate((each.strip() for each in text.splitlines()), 1):
        failed = _FAILED.match(line)
        cause = _CAUSE.match(line) if found else None
        if match := failed or cause:
            why = say("the command failed and shows nothing of the group: {error}", error=match["what"][:200])
            remark = Remark(file, number, line, why)
            found[len(found) if failed else -1 :] = [remark]
    return found


def _source(found: Evidence, file: str, what: str, time: int | None, product: str = "", needs: str = "") -> None:
    found.sources.append(Source(file, what, () if time is None else (time,), product, needs))


def _misfit(found: Evidence, file: str, number: int, line: str) -> None:
    if not _NO_ROW.match(line.strip()):
        found.remarks.append(Remark(file, number, line.strip(), say("does not fit the table above it")))


def _rows(block: Block) -> list[tuple[int, str, list[str]]]:
    lines = enumerate(block.lines[1:], block.first + 1)
    return [(number, line, line.split()) for number, line in lines if line.strip()]


def _topic_status(block: Block, file: str, time: int | None, found: Evidence) -> None:
    for number, line, cells in _rows(block):
        try:
            updated = _updated(" ".join(cells[4:]))
            numbers = [whole(name, cell) for name, cell in zip(("QID", *TOPIC_STATUS), cells[1:4], strict=True)]
        except ValueError:
            _misfit(found, file, number, line)
            continue
        queue, oldest, newest = numbers
        found.ranges.append(QueueRange(file, time, block.topic, cells[0], queue, oldest, newest, updated))
    _source(found, file, "mqadmin topicStatus", time, needs=PROGRESS_TOO)


def _updated(text: str) -> int | None:
    """2020-06-30 10:00:11,123, in this machine's zone; empty for a queue without messages. Raises ValueError."""
    if not text:
        return None
    seconds, _, ms = text.partition(",")
    return int(clock.mktime(clock.strptime(seconds, "%Y-%m-%d %H:%M:%S"))) * 1000 + whole("#Last Updated", ms or 0)


def _stats_all(block: Block, file: str, time: int | None, found: Evidence) -> None:
    if "#Accumulation" not in block.lines[0]:  # 3.2 has rates alone
        _source(found, file, "mqadmin statsAll", time, needs=PROGRESS_TOO)
        return
    for number, line, cells in _rows(block):
        if cells[-1] == "NO_CONSUMER":  # a topic without a group: nothing waits for a consumer
            continue
        try:
            topic, group, waiting, in_tps, out_tps = cells[:-2]
            state = GroupState(
                file, time, group, None, whole("#Accumulation", waiting), _rate(out_tps), topic, _rate(in_tps)
            )
        except ValueError:
            _misfit(found, file, number, line)
            continue
        found.groups.append(state)
    _source(found, file, "mqadmin statsAll", time)


def _rate(text: str) -> float:
    return float(text.replace(",", "."))


def _cluster_list(block: Block, file: str, time: int | None, found: Evidence) -> None:
    versions = [cell for _, _, cells in _rows(block) for cell in cells[3:6] if _VERSION.match(cell)]
    product = ", ".join(f"RocketMQ {version}" for version in dict.fromkeys(versions))
    _source(found, file, "mqadmin clusterList", time, product, PROGRESS_TOO)


def _connection(block: Block, file: str, time: int | None, found: Evidence) -> None:
    check = GroupCheck(file, time, block.group, tool="consumerConnection")
    versions = []
    for line in (each.strip() for each in block.lines):
        if line.startswith("Below is subscription"):
            break
        if client := _CLIENT.match(line):
            check.clients.append(client["id"])
            check.addresses.append(client["address"])
            versions.append(client["version"])
    if model := re.search(r"^MessageModel: (\w+)", block.text, re.MULTILINE):
        check.model = model[1]
    found.checks.append(check)
    _source(found, file, "mqadmin consumerConnection", time, client_versions(versions), PROGRESS_TOO)


def client_versions(versions: list[str]) -> str:
    """The releases of the clients, each once."""
    return ", ".join(f"RocketMQ client {version}" for version in dict.fromkeys(versions))
