"""rocketmq_client.log: the lines that say "so do flow control", one for each thousand pulls that the client skips."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Literal

from pyengine.backlog.evidence.model import Evidence, FlowControlState, Remark
from pyengine.backlog.findings import say

MARK = "so do flow control"
# The client's own logging set-up prints the time of this zone whatever the machine's is.
ZONE = timezone(timedelta(hours=8))
_STAMP = re.compile(r"^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_FIELD = re.compile(r"(\w+)=(-?\d+)")
_THRESHOLD = re.compile(r"exceeds the threshold (\d+)")
_QUEUE = re.compile(
    r"PullRequest \[consumerGroup=(?P<group>[^,]+), messageQueue=MessageQueue \[topic=(?P<topic>[^,]+), "
    r"brokerName=(?P<broker>[^,]+), queueId=(?P<queue>\d+)\]"
)
_CAUSES: tuple[tuple[str, Literal["count", "size", "span"]], ...] = (
    ("message count exceeds", "count"),
    ("message size exceeds", "size"),
    ("span too long", "span"),
)


# A line of the client, by the loggers of its releases.
_CLIENT = re.compile(
    r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S* +(?:DEBUG|INFO|WARN|ERROR) .*?"
    r"(?:Rocketmq(?:Client|Remoting|Common)|\bo\.a\.r\.c\.|org\.apache\.rocketmq\.client\.)",
    re.MULTILINE,
)


def recognises(text: str) -> bool:
    """True if a flow-control line is there, or a line of the client."""
    return MARK in text or _CLIENT.search(text) is not None


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Every flow-control line; the others belong to other questions and are passed over."""
    found = Evidence()
    for number, line in enumerate(text.splitlines(), 1):
        if MARK not in line:
            continue
        try:
            state = _line(line, number, file, modified)
        except ValueError:  # a date or a number that cannot be
            state = None
        if state is None:
            found.remarks.append(Remark(file, number, line.strip()[:200], say("a flow-control line of unknown form")))
        else:
            found.flow_controls.append(state)
    return found


def _line(line: str, number: int, file: str, modified: int | None) -> FlowControlState | None:
    cause = next((name for text, name in _CAUSES if text in line), None)
    place = _QUEUE.search(line)
    values = dict(_FIELD.findall(line))
    if cause is None or place is None or not {"minOffset", "maxOffset"} <= values.keys():
        return None
    threshold = _THRESHOLD.search(line)
    stamp = _STAMP.match(line)
    when = modified
    if stamp:
        when = int(datetime.fromisoformat(stamp[1]).replace(tzinfo=ZONE).timestamp()) * 1000
    return FlowControlState(
        file,
        when,
        number,
        cause,
        int(threshold[1]) if threshold else None,
        int(values["minOffset"]),
        int(values["maxOffset"]),
        place["group"],
        place["topic"],
        place["broker"],
        int(place["queue"]),
        int(values.get("flowControlTimes", 0)),
    )
