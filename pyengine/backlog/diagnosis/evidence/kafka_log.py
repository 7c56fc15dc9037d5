"""The log of a Kafka client: its consumer leaves the group as poll() was called too late, or no node is reached."""

from __future__ import annotations

import re
from datetime import datetime

from pyengine.backlog.diagnosis.evidence.kafka_groups import DESCRIBE_TOO
from pyengine.backlog.diagnosis.evidence.model import ClientEvent, Evidence, Source

# Since 1.0; before that the lines of the coordinator name their group alone.
_CONSUMER = re.compile(r"\[Consumer (?:instanceId=\S+, )?clientId=(?P<client>[^,\]]*), groupId=(?P<group>[^\]]*)\]")
_OLD = re.compile(r"\b(?:Consumer|Abstract)Coordinator\b.*?\bgroup (?P<group>[^\s:,]+)")
_STAMP = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)")
_LATE = re.compile(
    r"(?<!due to )consumer poll timeout has expired|since the consumer is not part of an active group"
    r"|since the group has already rebalanced and assigned the partitions to another member"
)
# NetworkClient's lines and those of bootstrap.servers; since 0.11.
_UNREACHED = (
    re.compile(
        r"Connection to node -?\d+ (?:\((?:[^\s/)]*/)?(?P<address>[^\s/)]+)\) )?could not be established\. "
        r"(?:Broker|Node) may not be available"
    ),
    re.compile(r"Error connecting to node (?P<address>\S+:\d+) "),
    re.compile(r"Bootstrap broker (?P<address>\S+:\d+) .*disconnected"),
    re.compile(r"Couldn't resolve server (?P<address>\S+) from bootstrap\.servers"),
)


def recognises(text: str) -> bool:
    """True for a line that names a consumer and its group, or a node that a client does not reach."""
    return any(each.search(text) is not None for each in (_CONSUMER, _OLD, *_UNREACHED))


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Each line that reports a poll() later than max.poll.interval.ms; an exception counts at its log line."""
    found = Evidence()
    times: list[int] = []
    group, client, moment = "", "", modified
    for number, line in enumerate(text.splitlines(), 1):
        if stamp := _STAMP.search(line[:60]):
            try:
                moment = int(datetime.fromisoformat(f"{stamp['date']} {stamp['clock']}").timestamp() * 1000)
                times = [*times[:1], moment]
            except ValueError:  # a date that cannot be: the one before holds on
                pass
        if named := _CONSUMER.search(line):
            group, client = named["group"], named["client"]
        elif old := _OLD.search(line):
            group, client = old["group"], ""
        if node := next((match for each in _UNREACHED if (match := each.search(line))), None):
            found.events.append(
                ClientEvent(
                    file, moment, number, "node_unreached", group, label=node["address"] or "", words=line.strip()[:200]
                )
            )
        if _LATE.search(line):
            found.events.append(
                ClientEvent(file, moment, number, "poll_late", group, client_id=client, words=line.strip()[:200])
            )
    found.sources.append(Source(file, "Kafka consumer log", tuple(times), needs="" if found.events else DESCRIBE_TOO))
    return found
