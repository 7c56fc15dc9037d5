"""``mqadmin consumerStatus``: a RocketMQ client's parameters, subscriptions, process queues, rates and threads."""

from __future__ import annotations

import re
import time as clock

from pyengine.backlog.diagnosis.evidence import stacks
from pyengine.backlog.diagnosis.evidence.model import (
    ClientState,
    ConsumeRates,
    Evidence,
    ProcessQueueState,
    Remark,
    Source,
)
from pyengine.backlog.diagnosis.evidence.numbers import whole, whole_or_none
from pyengine.backlog.findings import say

SECTION = re.compile(r"^#(Consumer|User) ([A-Za-z&]+(?: [A-Za-z]+)?)#$", re.MULTILINE)
FIELD = re.compile(r"(\w+)=([^,\]]+)")
SUBSCRIPTION = re.compile(r"^\d{3} Topic: (\S+)\s+ClassFilter: \S+\s+SubExpression: (.*)$")
NUMBERS = (
    "pullThresholdForQueue", "pullThresholdSizeForQueue", "consumeConcurrentlyMaxSpan", "consumeThreadMin",
    "consumeTimeout", "PROP_CONSUMER_START_TIMESTAMP",
)  # fmt: skip
KNOWN = ("Properties", "Subscription", "Offset", "MQ Detail", "Pop Detail", "RT&TPS", "Consume Info", "jstack")


def recognises(text: str) -> bool:
    """True if the sections of a running info are there."""
    return "#Consumer Properties#" in text and "#Consumer MQ Detail#" in text


def read(text: str, file: str, modified: int | None) -> Evidence:
    """One client for each running info in the file; a stack listing in it becomes a thread dump."""
    found = Evidence()
    for part in re.split(r"(?=^#Consumer Properties#$)", text, flags=re.MULTILINE)[1:]:
        _client(part, file, found)
    for client in found.clients:
        version = client.get("PROP_CLIENT_VERSION")
        product = f"RocketMQ client {version}" if version else ""
        times = () if client.time is None else (client.time,)
        found.sources.append(Source(file, "mqadmin consumerStatus", times, product))
    if not found.count:
        found.remarks.append(Remark(file, 0, "#Consumer Properties#", say("does not stand on a line of its own")))
    return found


def _client(text: str, file: str, found: Evidence) -> None:
    pieces = SECTION.split(text)
    sections = {pieces[i + 1]: pieces[i + 2].strip("\n") for i in range(1, len(pieces) - 2, 3)}
    for name in sections:
        if name not in KNOWN:
            found.remarks.append(Remark(file, 0, f"#{name}#", say("a section this version does not know")))
    properties = dict(_properties(sections.get("Properties", "")))
    for name in NUMBERS:
        try:
            whole_or_none(name, properties.get(name))
        except ValueError as error:
            found.remarks.append(Remark(file, 0, str(error), say("a number was expected")))
            del properties[name]
    subscriptions = []
    for line in sections.get("Subscription", "").splitlines():
        if match := SUBSCRIPTION.match(line.strip()):
            subscriptions.append((match[1], match[2].strip()))
    client = properties.get("clientId") or _file_client(file)
    queues = _queues(sections.get("MQ Detail", ""), file, found)
    time = _moment(file, queues)
    found.clients.append(
        ClientState(
            file,
            time,
            client,
            properties.get("consumerGroup", ""),
            tuple(properties.items()),
            tuple(subscriptions),
            tuple(queues),
            tuple(_rates(sections.get("RT&TPS", ""), file, found)),
        )
    )
    if listing := sections.get("jstack", "").strip():
        found.dumps.append(stacks.rocketmq(listing, client, file, time))


def _file_client(file: str) -> str:
    """The tool writes one file for each client and names it after the client id; else the file stands for it."""
    name = file.replace("\\", "/").rsplit("/", 1)[-1]
    return name if "@" in name else file


def _moment(file: str, queues: list[ProcessQueueState]) -> int | None:
    """When it was taken: the tool's folder is named after the moment; else the newest moment that it speaks of.

    The file's own time would not do: a copy made later has a later one.
    """
    if match := re.search(r"(?:^|[/\\\\])(\d{13})[/\\\\][^/\\\\]+$", file):
        return int(match[1])
    moments = [moment for queue in queues for moment in (queue.last_pull, queue.last_consume, queue.last_lock)]
    return max(moments, default=0) or None


def _properties(text: str) -> list[tuple[str, str]]:
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _queues(text: str, file: str, found: Evidence) -> list[ProcessQueueState]:
    queues = []
    for line in text.splitlines():
        topic, _, rest = line.partition(" ")
        if topic.startswith("#") or "ProcessQueueInfo" not in line:
            continue
        broker, queue = rest.split()[:2]
        values = dict(FIELD.findall(rest))
        try:
            queues.append(_queue(topic, broker, whole("queueId", queue), values))
        except (KeyError, ValueError) as error:
            found.remarks.append(
                Remark(file, 0, line.strip(), say("not the fields of a ProcessQueueInfo: {error}", error=str(error)))
            )
    return queues


def _queue(topic: str, broker: str, queue: int, values: dict[str, str]) -> ProcessQueueState:
    return ProcessQueueState(
        topic,
        broker,
        queue,
        whole("commitOffset", values["commitOffset"]),
        whole("cachedMsgMinOffset", values["cachedMsgMinOffset"]),
        whole("cachedMsgMaxOffset", values["cachedMsgMaxOffset"]),
        whole("cachedMsgCount", values["cachedMsgCount"]),
        whole("cachedMsgSizeInMiB", values.get("cachedMsgSizeInMiB", 0)),
        values.get("locked") == "true",
        values.get("droped", values.get("dropped")) == "true",
        whole("tryUnlockTimes", values.get("tryUnlockTimes", 0)),
        stamp(values.get("lastLockTimestamp", "0")),
        stamp(values.get("lastPullTimestamp", "0")),
        stamp(values.get("lastConsumeTimestamp", "0")),
    )


def stamp(text: str) -> int:
    """Milliseconds, or the tool's yyyyMMddHHmmssSSS in this machine's time zone."""
    if re.fullmatch(r"(1970|1969)\d{13}", text):  # a moment of 0, in any zone
        return 0
    if re.fullmatch(r"\d{17}", text):
        return int(clock.mktime(clock.strptime(text[:14], "%Y%m%d%H%M%S"))) * 1000 + int(text[14:])
    return whole("a moment", text)


def _rates(text: str, file: str, found: Evidence) -> list[ConsumeRates]:
    rates = []
    for line in text.splitlines():
        cells = line.split()
        if len(cells) != 7 or line.startswith("#"):
            continue
        try:
            # The tool writes as its machine's language does: 0,25 in many.
            numbers = [float(cell.replace(",", ".")) for cell in cells[1:6]]
            failed = whole("ConsumeFailedMsgsInHour", cells[6])
        except ValueError as error:
            found.remarks.append(Remark(file, 0, f"{line.strip()[:200]}: {error}", say("a number was expected")))
            continue
        rates.append(ConsumeRates(cells[0], numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], failed))
    return rates
