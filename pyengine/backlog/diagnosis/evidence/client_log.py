"""rocketmq_client.log, and the broker's own log: the lines that tell why a group waits.

The client writes one flow-control line for each thousand pulls that it skips, in words that changed from release to
release (DefaultMQPushConsumerImpl, DefaultLitePullConsumerImpl); pulls that the broker answered with another offset or
refused; what it commits (once a minute), and the members of the group at each rebalance.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from pyengine.backlog.diagnosis.evidence import connections
from pyengine.backlog.diagnosis.evidence.model import (
    ClientEvent,
    EventKind,
    Evidence,
    FlowControlState,
    OffsetMove,
    OffsetState,
    Remark,
    Source,
)
from pyengine.backlog.diagnosis.evidence.needs import PROGRESS_TOO
from pyengine.backlog.findings import say
from pyengine.dataclass import dataclass

MARK = "so do flow control"
# The client's own logging set-up prints the time of this zone, regardless of the machine's.
ZONE = timezone(timedelta(hours=8))
_STAMP = re.compile(r"^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_FIELD = re.compile(r"(\w+)=(-?\d+)")
_THRESHOLD = re.compile(r"exceeds (?:the )?threshold (\d+)")
_GROUP = re.compile(r"consumerGroup=(?P<group>[^,\]]+)")
_QUEUE = re.compile(
    r"(?:MessageQueue|mq) ?\[topic=(?P<topic>[^,]+), brokerName=(?P<broker>[^,]+), queueId=(?P<queue>-?\d+)\]"
)
_CAUSES: tuple[tuple[str, Literal["count", "size", "span", "ack", "requests"]], ...] = (
    ("message count exceeds", "count"),
    ("message buffer is full", "count"),  # 3.x to 4.1
    ("message size exceeds", "size"),
    ("span too long", "span"),
    ("waiting to ack exceeds", "ack"),
    ("consume request count exceeds", "requests"),
)
_ILLEGAL = "pull request offset illegal"
_MOVED = re.compile(
    r"PULL_OFFSET_MOVED:correction offset\. topic=(?P<topic>[^,]+), groupId=(?P<group>[^,]+), "
    r"requestOffset=(?P<asked>-?\d+), newOffset=(?P<given>-?\d+)"
)
_TOO_SMALL = re.compile(
    r"the request offset too small\. group=(?P<group>[^,]+), topic=(?P<topic>[^,]+), "
    r"requestOffset=(?P<asked>-?\d+), brokerMinOffset=(?P<lowest>-?\d+)"
)
_NO_QUEUE = re.compile(
    r"the broker stores? no queue data, fix the request offset (?P<asked>-?\d+) to (?P<given>-?\d+), "
    r"Topic: (?P<topic>\S+) QueueId: (?P<queue>\d+) Consumer Group: (?P<group>\S+)"
)
_OVERFLOW = re.compile(
    r"the request offset: (?P<asked>-?\d+) over flow badly, (?:fix to (?P<given>-?\d+), )?"
    r"broker max offset: (?P<highest>-?\d+)"
)
_PAUSED = re.compile(r"consumer was paused, execute pull request later\. instanceName=[^,]*, group=(?P<group>\S+)")
_RESUMED = re.compile(r"resume this consumer, (?P<group>\S+)")
_CODE = re.compile(r"CODE: (?P<code>\d+)  ?DESC: (?P<words>.*)")
_FORBIDDEN = re.compile(r"subscription group no permission, (?P<group>[^\s,]+)")
_NOT_LATEST = (
    re.compile(r"the subscription is not latest, group=(?P<group>[^,]+)"),
    re.compile(r"the consumer's subscription not exist, group: (?P<group>[^,\s]+), topic: ?(?P<topic>\S+)"),
    re.compile(r"The broker's subscription is not latest, group: (?P<group>\S+)"),
)
_PULL_FAILED = re.compile(r"execute the pull request exception(?:, group=(?P<group>[^,]+))?")
_COMMITTED = re.compile(
    r"\[persist(?:All)?\] Group: (?P<group>\S+) ClientId: (?P<client>\S+) updateConsumeOffsetToBroker "
    r"MessageQueue \[topic=(?P<topic>[^,]+), brokerName=(?P<broker>[^,]+), queueId=(?P<queue>\d+)\] (?P<offset>\d+)"
)
_REBALANCED = re.compile(
    r"rebalanced result changed\. allocateMessageQueueStrategyName=[^,]*, group=(?P<group>[^,]+), "
    r"topic=(?P<topic>[^,]+), clientId=(?P<client>[^,]+), mqAllSize=(?P<queues>\d+), cidAllSize=(?P<members>\d+), "
    r"rebalanceResultSize=(?P<owned>\d+)"
)
_GROUP_WORD = re.compile(r"\bGroup: (?P<group>[^\s,]+)")
_DO_REBALANCE = re.compile(r"doRebalance, (?P<group>[^,]+), ")
_OWN_WORDS: tuple[tuple[re.Pattern[str], EventKind], ...] = (
    (re.compile(r"because (?:pull|pop) is pause, so try to fixed it"), "pull_expired"),
    (re.compile(r"pull message later because not locked in broker|message queue locked Failed"), "not_locked"),
    (re.compile(r"the message queue (?:not locked|lock expired), so consume later|because lock failed"), "not_locked"),
    (re.compile(r"message queue locked OK|message queue lock OK"), "locked"),
    (re.compile(r"mq is consuming, so can not unlock it"), "not_unlocked"),
    (re.compile(r"send expire msg back\. topic=(?P<topic>[^,]+)"), "expired"),
    (re.compile(r"consumeMessage (?:exception: |return null|Orderly return not OK)"), "failed"),
)
# What the broker answers pulls with when it has another subscription: SUBSCRIPTION_NOT_EXIST, SUBSCRIPTION_NOT_LATEST.
SUBSCRIPTION_CODES = ("24", "25")
NO_PERMISSION = "16"

# A word of each line that is looked at: logs have millions of others.
_TELLING = (
    MARK, "ffset illegal", "PULL_OFFSET_MOVED", "he request offset", "updateConsumeOffsetToBroker", "rebalanced result",
    "consumer was paused", "resume this consumer", "CODE: ", "not latest", "subscription not exist",
    "execute the pull request", "is pause, so", "not locked", "lock expired", " locked ", "lock OK", "lock failed",
    "can not unlock", "expire msg back", "consumeMessage ", *connections.TELLING,
)  # fmt: skip

# A line of the client or the broker, by the loggers of its releases.
_CLIENT = re.compile(
    r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S* +(?:DEBUG|INFO|WARN|ERROR) .*?"
    r"(?:Rocketmq(?:Client|Remoting|Common|Broker)|\bo\.a\.r\.c\.|org\.apache\.rocketmq\.client\.|PullMessageThread_\d)",
    re.MULTILINE,
)
_BROKER = re.compile("PULL_OFFSET_MOVED:|over flow badly, |the request offset too small")


def recognises(text: str) -> bool:
    """True if a flow-control line is there, or another line of the client or of the broker's pulls."""
    return MARK in text or _CLIENT.search(text) is not None or _BROKER.search(text) is not None


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Every line that tells why a group waits; the others belong to other questions and are passed over."""
    log = _Log(file, modified)
    for number, line in enumerate(text.splitlines(), 1):
        try:
            log.line(number, line)
        except ValueError:  # a date or a number that cannot be
            log.unknown(number, line)
    return log.whole()


def _first(patterns: tuple[re.Pattern[str], ...], line: str) -> re.Match[str] | None:
    return next((match for each in patterns if (match := each.search(line))), None)


@dataclass(slots=True)
class _Log:
    file: str
    modified: int | None
    found: Evidence = field(default_factory=Evidence)
    commits: list[OffsetState] = field(default_factory=list)
    first: str = ""  # the date of the first line that has one
    last: str = ""  # and of the last one so far: an exception has none of its own
    failed: str = ""  # the group of the pull whose exception follows

    def line(self, number: int, line: str) -> None:
        if stamp := _STAMP.match(line):
            self.last = stamp[1]
            self.first = self.first or stamp[1]
        if not any(word in line for word in _TELLING):
            return
        if MARK in line:
            self.flow_control(number, line)
        elif _ILLEGAL in line.lower():
            self.illegal(number, line)
        elif match := _first((_MOVED, _TOO_SMALL, _NO_QUEUE, _OVERFLOW), line):
            self.moved(number, match.groupdict())
        elif match := _COMMITTED.search(line):
            self.committed(match)
        else:
            self.event(number, line)

    def unknown(self, number: int, line: str) -> None:
        self.found.remarks.append(
            Remark(self.file, number, line.strip()[:200], say("a flow-control line of unknown form"))
        )

    @property
    def moment(self) -> int | None:
        return _time(self.last) if self.last else self.modified

    def flow_control(self, number: int, line: str) -> None:
        cause = next((name for text, name in _CAUSES if text in line), None)
        if cause is None:
            self.unknown(number, line)
            return
        group, place = _GROUP.search(line), _QUEUE.search(line)
        values = dict(_FIELD.findall(line))
        threshold = _THRESHOLD.search(line)
        lowest, highest = (int(values[name]) if name in values else None for name in ("minOffset", "maxOffset"))
        state = FlowControlState(
            self.file,
            self.moment,
            number,
            cause,
            int(threshold[1]) if threshold else None,
            lowest,
            highest,
            group["group"] if group else "",
            place["topic"] if place else "",
            place["broker"] if place else "",
            int(place["queue"]) if place else 0,
            int(values.get("flowControlTimes", 0)),
        )
        self.found.flow_controls.append(state)

    def illegal(self, number: int, line: str) -> None:
        """The client's line: what it asked for, and what the broker answered."""
        group, place = _GROUP.search(line), _QUEUE.search(line)
        values = dict(_FIELD.findall(line))
        # A lite pull consumer shows the answer alone.
        asked = values.get("nextOffset")
        if "nextBeginOffset" not in values:
            return
        self.found.offset_moves.append(
            OffsetMove(
                self.file,
                self.moment,
                number,
                group["group"] if group else "",
                place["topic"] if place else "",
                place["broker"] if place else "",
                int(place["queue"]) if place else None,
                None if asked is None else int(asked),
                int(values["nextBeginOffset"]),
                int(values["minOffset"]) if "minOffset" in values else None,
                int(values["maxOffset"]) if "maxOffset" in values else None,
            )
        )

    def moved(self, number: int, parts: dict[str, str | None]) -> None:
        """The broker's lines: one has the request of a pull, another one its answer."""

        def whole(name: str) -> int | None:
            text = parts.get(name)
            return None if text is None else int(text)

        self.found.offset_moves.append(
            OffsetMove(
                self.file,
                self.moment,
                number,
                parts.get("group") or "",
                parts.get("topic") or "",
                "",
                whole("queue"),
                whole("asked"),
                whole("given") if parts.get("given") else whole("lowest"),
                whole("lowest"),
                whole("highest"),
            )
        )

    def committed(self, match: re.Match[str]) -> None:
        self.commits.append(
            OffsetState(
                self.file,
                self.moment,
                "rocketmq",
                match["group"],
                match["topic"],
                match["broker"],
                int(match["queue"]),
                None,
                int(match["offset"]),
                client=match["client"],
                dated=bool(self.last),
            )
        )

    def event(self, number: int, line: str) -> None:
        if match := _REBALANCED.search(line):
            self.add(number, "rebalanced", match["group"], line, topic=match["topic"], client_id=match["client"],
                     members=int(match["members"]), queues=int(match["queues"]), owned=int(match["owned"]))  # fmt: skip
        elif match := _PAUSED.search(line):
            self.add(number, "paused", match["group"], line)
        elif match := _RESUMED.search(line):
            self.add(number, "resumed", match["group"], line)
        elif kind := next((kind for words, kind in _OWN_WORDS if words.search(line)), None):
            self.own_words(number, kind, line)
        elif match := _first(_NOT_LATEST, line):
            self.add(number, "subscription", match["group"], line, topic=match.groupdict().get("topic") or "")
        elif connection := connections.connection_in(line):
            topic = connection.address if connection.kind == "no_route" else ""
            self.add(number, connection.kind, "", line, topic=topic, label=connection.address)
        elif match := _CODE.search(line):
            forbidden = _FORBIDDEN.search(line)
            if match["code"] in SUBSCRIPTION_CODES:
                self.add(number, "subscription", self.failed, match[0])
            elif match["code"] == NO_PERMISSION and forbidden:
                self.add(number, "forbidden", forbidden["group"], match[0])
        elif match := _PULL_FAILED.search(line):
            self.failed = match["group"] or ""

    def own_words(self, number: int, kind: EventKind, line: str) -> None:
        """A line whose group and queue stand where its words put them."""
        group, place = _first((_GROUP, _GROUP_WORD, _DO_REBALANCE), line), _QUEUE.search(line)
        expired = re.search(r"topic=([^,\]]+)", line)
        topic = place["topic"] if place else expired[1] if expired else ""
        label = f"{topic}/{place['broker']}/{place['queue']}" if place else ""
        self.add(number, kind, group["group"] if group else "", line, topic=topic, label=label)

    def add(self, number: int, kind: EventKind, group: str, line: str, **more: Any) -> None:
        """more: other fields of a ClientEvent."""
        words = line.strip()[:200]
        self.found.events.append(ClientEvent(self.file, self.moment, number, kind, group, words=words, **more))

    def whole(self) -> Evidence:
        """With the group of lines that name none, if the log is of one group; and what was committed."""
        found = self.found
        named = {each.group for each in found.flow_controls} | {each.group for each in found.offset_moves}
        named |= {each.group for each in found.events} | {each.group for each in self.commits}
        named.discard("")
        if len(named) == 1:
            group = next(iter(named))
            found.events = [replace(each, group=each.group or group) for each in found.events]
            found.offset_moves = [replace(each, group=each.group or group) for each in found.offset_moves]
            found.flow_controls = [replace(each, group=each.group or group) for each in found.flow_controls]
        found.offsets.extend(self.commits)
        times = []
        for text in dict.fromkeys((self.first, self.last)):
            with suppress(ValueError):  # a date that cannot be
                times.append(_time(text))
        telling = [each for each in found.events if each.kind in ("unreached", "unanswered", "no_route")]
        needs = "" if found.flow_controls or found.offset_moves or telling else PROGRESS_TOO
        found.sources.append(Source(self.file, "RocketMQ log", tuple(times), needs=needs))
        return found


def _time(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZONE).timestamp()) * 1000
