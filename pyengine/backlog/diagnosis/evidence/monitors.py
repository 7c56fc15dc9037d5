"""JSON of monitoring tools: answers of the RocketMQ dashboard (and of rocketmq-console), and of Burrow's v2 and v3.

Several answers may stand in one file, with commands and dates between them, as ``curl`` leaves them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from pyengine.backlog.diagnosis.evidence.model import (
    ConsumerGroupState,
    Evidence,
    GroupState,
    OffsetState,
    QueueRange,
    Remark,
    Source,
)
from pyengine.backlog.diagnosis.evidence.needs import PROGRESS_TOO
from pyengine.backlog.diagnosis.evidence.numbers import object_of, whole, whole_or_none
from pyengine.backlog.diagnosis.evidence.transcript import moment_of
from pyengine.backlog.findings import say
from pyengine.dataclass import dataclass

RETRY = "%RETRY%"
DASHBOARD = "the RocketMQ dashboard's JSON"
BURROW = "Burrow's JSON"
LAG_TOO = say("give Burrow's answer to /v3/kafka/CLUSTER/consumer/GROUP/lag too")
_OF_DASHBOARD = re.compile(r'"(?:queueStatInfoList|diffTotal|errMsg)"\s*:')
_OF_BURROW = re.compile(r'"(?:current_lag|current-lag|partition_count|totallag)"\s*:|"url"\s*:\s*"/v[23]/kafka')
_OLD_BURROW = re.compile(r'"status"\s*:\s*\{\s*"cluster"\s*:')
_QUEUE = re.compile(r"MessageQueue \[topic=(?P<topic>.*), brokerName=(?P<broker>.*), queueId=(?P<queue>\d+)\]")
_ASKED = re.compile(r"[?&]consumerGroup=([^&\s'\"]+)")
_URL = re.compile(r"/kafka/[^/]+/(?:consumer|group)/([^/]+)")


def recognises(text: str) -> bool:
    """True for an answer of the dashboard or of Burrow."""
    return "{" in text and any(mark.search(text) for mark in (_OF_DASHBOARD, _OF_BURROW, _OLD_BURROW))


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Each answer in the text. Raises ValueError for what is not JSON, or not the fields of such an answer."""
    found = Evidence()
    answers = list(_documents(text, modified))
    if not answers:
        raise ValueError("not a JSON document")
    retries = set(re.findall(rf'"topic"\s*:\s*"{RETRY}([^"]+)"', text))
    for sight, (document, time, dated, before) in enumerate(answers):
        moment = () if time is None else (time,)
        if "queueStatInfoList" in document or ("group" in document and "diffTotal" in document):
            document = {"data": [document]}  # copied out of an answer
        if "errMsg" in document or "data" in document:
            only = next(iter(retries)) if len(retries) == 1 else ""
            answer = _Dashboard(document, file, time, found, sight, dated, only)
            needs = "" if answer.take(before) else PROGRESS_TOO
            found.sources.append(Source(file, DASHBOARD, moment, needs=needs))
        else:
            known = _Burrow(file, found, sight).take(document)
            found.sources.append(Source(file, BURROW, moment, needs="" if known else LAG_TOO))
    return found


def _documents(text: str, modified: int | None) -> Iterator[tuple[dict[str, Any], int | None, bool, str]]:
    """The JSON objects of a file, each with its moment, whether the file has that moment, and the lines before it."""
    decoder = json.JSONDecoder()
    place, time, dated = 0, modified, False
    while (start := text.find("{", place)) >= 0:
        before = text[place:start]
        for line in before.splitlines():
            if (moment := moment_of(line)) is not None:
                time, dated = moment, True
        try:
            document, place = decoder.raw_decode(text, start)
        except RecursionError as error:
            raise ValueError("its objects lie too deep in each other") from error
        yield document, time, dated, before


@dataclass(slots=True)
class _Dashboard:
    document: dict[str, Any]
    file: str
    time: int | None
    found: Evidence
    sight: int
    dated: bool
    only: str  # the group, if the text names but one retry topic

    def take(self, before: str) -> bool:
        """Take over the backlogs of an answer; False if it has none."""
        data = self.document.get("data")
        if error := self.document.get("errMsg"):
            why = say("the dashboard answered with an error: {error}", error=str(error)[:200])
            self.found.remarks.append(Remark(self.file, 0, "errMsg", why))
            return False
        if isinstance(data, dict) and isinstance(data.get("offsetTable"), dict):
            return self.ranges(data["offsetTable"])
        if isinstance(data, dict) and "diffTotal" in data and "group" in data:
            data = [data]
        rows = data.items() if isinstance(data, dict) else (("", row) for row in data or ())
        group_rows = [(group, row) for group, row in rows if isinstance(row, dict)]
        asked = _ASKED.search(before)
        retry = next(
            (str(row["topic"]).removeprefix(RETRY) for _, row in group_rows if str(row.get("topic")).startswith(RETRY)),
            "",
        )
        known = False
        for group, row in group_rows:
            if "queueStatInfoList" in row:
                self.queues(row, group or retry or (asked[1] if asked else self.only))
            elif "diffTotal" in row and "group" in row:
                self.group(row)
            else:
                continue
            known = True
        return known

    def ranges(self, table: dict[str, Any]) -> bool:
        """What the page of a topic's status shows."""
        for name, offsets in table.items():
            queue = _QUEUE.match(name)
            if queue is None:
                raise ValueError(f"offsetTable has {name[:60]}")
            self.found.ranges.append(
                QueueRange(
                    self.file,
                    self.time,
                    queue["topic"],
                    queue["broker"],
                    int(queue["queue"]),
                    whole("minOffset", offsets["minOffset"]),
                    whole("maxOffset", offsets["maxOffset"]),
                    whole_or_none("lastUpdateTimestamp", offsets.get("lastUpdateTimestamp")) or None,
                )
            )
        return False

    def queues(self, row: dict[str, Any], group: str) -> None:
        for queue in row["queueStatInfoList"]:
            try:
                reached = whole("consumerOffset", queue["consumerOffset"])
                state = OffsetState(
                    self.file,
                    self.time,
                    "rocketmq",
                    group,
                    str(row["topic"]),
                    str(queue["brokerName"]),
                    whole("queueId", queue["queueId"]),
                    whole("brokerOffset", queue["brokerOffset"]),
                    reached if reached >= 0 else None,
                    last_time=whole_or_none("lastTimestamp", queue.get("lastTimestamp")),
                    client=str(queue.get("clientInfo") or ""),
                    sight=self.sight,
                    dated=self.dated,
                )
            except (KeyError, TypeError) as error:
                raise ValueError(f"not the fields of a queue: {error!r}") from error
            self.found.offsets.append(state)

    def group(self, row: dict[str, Any]) -> None:
        diff, tps = whole("diffTotal", row["diffTotal"]), whole_or_none("consumeTps", row.get("consumeTps"))
        self.found.groups.append(
            GroupState(
                self.file,
                self.time,
                str(row["group"]),
                whole("count", row.get("count", 0)),
                max(diff, 0),  # -1: the dashboard could not ask
                tps,
                model=str(row.get("messageModel") or ""),
            )
        )


@dataclass(slots=True)
class _Commit:
    """A commit that Burrow keeps. behind: lag at that moment."""

    time: int
    offset: int
    behind: int


@dataclass(slots=True)
class _Burrow:
    """Burrow keeps a window of commits of each partition, and judges it."""

    file: str
    found: Evidence
    sight: int
    owners: set[str] = field(default_factory=set)
    well: int = 0  # partitions that /status does not list: it lists those that are not

    def take(self, document: dict[str, Any]) -> bool:
        """Take over the group of an answer; False if it has none."""
        if document.get("error") is True:
            why = say("Burrow answered with an error: {error}", error=str(document.get("message"))[:200])
            self.found.remarks.append(Remark(self.file, 0, "error", why))
            return False
        status, topics = document.get("status"), document.get("topics")
        try:
            if isinstance(status, dict) and "partitions" in status:
                partitions = list(status["partitions"] or [])
                if (
                    partitions
                    and (well := whole("partition_count", status.get("partition_count", 0)) - len(partitions)) > 0
                ):
                    self.well = well
                    self.found.consumer_groups.append(
                        ConsumerGroupState(self.file, None, str(status["group"]), well=well)
                    )
                if not partitions and status.get("maxlag"):
                    partitions = [status["maxlag"]]
                self.owners = {str(each.get("owner") or "") for each in partitions} - {""}
                for each in partitions:
                    self.partition(str(status["group"]), each)
                return bool(partitions) or status.get("status") == "OK"
            if isinstance(topics, dict):
                named = _URL.search(str(object_of("request", document.get("request", {})).get("url", "")))
                for topic, kept in topics.items():
                    for number, each in enumerate(kept):
                        commits = [_commit(commit) for commit in each["offsets"] if commit]
                        lag = whole_or_none("current-lag", each.get("current-lag"))
                        owner = str(each.get("owner") or "") or None
                        self.window(named[1] if named else "", topic, number, commits, lag, owner, "")
                return True
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not the fields of a group's status: {error!r}") from error
        return False

    def partition(self, group: str, reported: dict[str, Any]) -> None:
        commits = [_commit(reported[name]) for name in ("start", "end") if reported.get(name)]
        verdict, owner = str(reported["status"]), str(reported.get("owner") or "") or None
        if owner is None and verdict == "STOP" and not self.owners and not self.well:
            owner = ""  # no client commits, and Burrow knows of no member
        lag = whole_or_none("current_lag", reported.get("current_lag"))
        self.window(
            group, str(reported["topic"]), whole("partition", reported["partition"]), commits, lag, owner, verdict
        )

    def window(
        self,
        group: str,
        topic: str,
        number: int,
        commits: list[_Commit],
        lag: int | None,
        owner: str | None,
        verdict: str,
    ) -> None:
        """The first and the last commit; and of a partition without commits since, that nothing was committed for as
        long again as the window is: that is when Burrow says STOP."""
        if not commits:
            return
        first, last = commits[0], commits[-1]
        if lag is not None and verdict != "STOP":
            last = _Commit(last.time, last.offset, lag)
        sights = [first, last] if last.time > first.time else [last]
        if verdict == "STOP":
            quiet = max(last.time - first.time, 60_000)
            sights = [last, _Commit(last.time + quiet, last.offset, last.behind if lag is None else lag)]
        for commit in sights:
            self.found.offsets.append(
                OffsetState(
                    self.file,
                    commit.time,
                    "kafka",
                    group,
                    topic,
                    "",
                    number,
                    commit.offset + commit.behind,
                    commit.offset,
                    client=owner,
                    sight=self.sight,
                    dated=True,
                    verdict=verdict,
                )
            )


def _commit(reported: dict[str, Any]) -> _Commit:
    behind = whole_or_none("lag", reported.get("lag"))
    return _Commit(whole("timestamp", reported["timestamp"]), whole("offset", reported["offset"]), behind or 0)
