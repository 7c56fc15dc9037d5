"""ActiveMQ's web console: ``/admin/xml/queues.jsp``, ``topics.jsp`` and ``subscribers.jsp``, and its pages of queues
and topics copied as text."""

from __future__ import annotations

import re
from typing import Literal
from xml.etree import ElementTree

from pyengine.backlog.diagnosis.evidence.model import (
    DestinationState,
    Evidence,
    Remark,
    Source,
    SubscriptionState,
)
from pyengine.backlog.diagnosis.evidence.numbers import whole
from pyengine.backlog.diagnosis.evidence.transcript import moment_of
from pyengine.backlog.findings import say
from pyengine.destinations import ADVISORY

# Pages of the console have no document type, and so no entities of their own.
_PAGE = re.compile(r"<(?P<page>queues|topics|subscribers)>.*?</(?P=page)>", re.DOTALL)
_QUEUES = re.compile(
    r"\s*Name\W+Number Of Pending Messages\W+Number Of Consumers\W+Messages Enqueued\W+Messages Dequeued\b", re.I
)
_TOPICS = re.compile(r"\s*Name\W+Number Of Consumers\W+Messages Enqueued\W+Messages Dequeued\b", re.I)
_QUEUE = re.compile(r"\s*(?P<name>\S(?:.*?\S)?)\s+(?P<size>\d+)\s+(?P<consumers>\d+)\s+(?P<in>\d+)\s+(?P<out>\d+)\b.*")
_TOPIC = re.compile(r"\s*(?P<name>\S(?:.*?\S)?)\s+(?P<consumers>\d+)\s+(?P<in>\d+)\s+(?P<out>\d+)\b.*")


def recognises(text: str) -> bool:
    """True for one of the pages with something in it, or the titles of a copied one."""
    return any(page["page"] == "subscribers" or "<stats" in page[0] for page in _PAGE.finditer(text)) or any(
        _QUEUES.match(line) or _TOPICS.match(line) for line in text.splitlines()
    )


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Destinations and durable subscriptions, without a broker's name, which no page has."""
    found = Evidence()
    times: list[int] = []
    time, past = modified, 0
    for page in _PAGE.finditer(text):
        moments = [moment for line in text[past : page.start()].splitlines() if (moment := moment_of(line)) is not None]
        time, past = (moments[-1] if moments else time), page.end()
        line = text.count("\n", 0, page.start()) + 1
        try:
            _page(page[0], file, time, found)
        except ElementTree.ParseError as error:
            why = say("not XML: {error}", error=str(error))
            found.remarks.append(Remark(file, line, page["page"], why))
        except ValueError as error:
            found.remarks.append(Remark(file, line, str(error), say("a number was expected")))
        if time is not None and time not in times:
            times.append(time)
    if not past:
        _copied(text, file, modified, found)
        times = sorted({each.time for each in found.destinations if each.time is not None})
    found.sources.append(Source(file, "ActiveMQ's web console", tuple(times)))
    return found


def _page(text: str, file: str, time: int | None, found: Evidence) -> None:
    for element in ElementTree.fromstring(text):
        stats = element.find("stats")
        numbers = {} if stats is None else stats.attrib
        if element.tag == "subscriber":
            found.subscriptions.append(_durable(element.attrib, numbers, file, time))
            continue
        name = element.get("name", "").strip()
        if not name.startswith(ADVISORY):
            kind: Literal["queue", "topic"] = "topic" if element.tag == "topic" else "queue"
            found.destinations.append(
                DestinationState(
                    file,
                    time,
                    "",
                    name,
                    kind,
                    whole("size", numbers.get("size")),
                    whole("consumerCount", numbers.get("consumerCount")),
                    enqueue_count=whole("enqueueCount", numbers.get("enqueueCount")),
                    dequeue_count=whole("dequeueCount", numbers.get("dequeueCount")),
                )
            )


def _durable(values: dict[str, str], numbers: dict[str, str], file: str, time: int | None) -> SubscriptionState:
    """The page has durable subscriptions alone, and not their prefetch."""
    return SubscriptionState(
        file,
        time,
        "",
        values.get("destinationName", "").strip(),
        "topic",
        values.get("clientId", "").strip(),
        "",
        0,
        selector=values.get("selector", ""),
        active=values.get("active", "").strip() != "no",
        durable=True,
        subscription_name=values.get("subscriptionName", "").strip(),
        awaiting=whole("dispatchedQueueSize", numbers.get("dispatchedQueueSize")),
        pending=whole("pendingQueueSize", numbers.get("pendingQueueSize")),
        enqueue_counter=whole("enqueueCounter", numbers.get("enqueueCounter")),
        dequeue_counter=whole("dequeueCounter", numbers.get("dequeueCounter")),
        dispatched_counter=whole("dispatchedCounter", numbers.get("dispatchedCounter")),
    )


def _copied(text: str, file: str, modified: int | None, found: Evidence) -> None:
    """What a browser copies of queues.jsp and topics.jsp: a line a destination, and lines of links between them."""
    time = modified
    kind: Literal["queue", "topic"] | None = None
    for line in text.splitlines():
        if (moment := moment_of(line)) is not None:
            time = moment
        elif _QUEUES.match(line):
            kind = "queue"
        elif _TOPICS.match(line):
            kind = "topic"
        elif kind is None or not (row := (_QUEUE if kind == "queue" else _TOPIC).fullmatch(line)):
            continue
        elif not row["name"].startswith(ADVISORY):
            found.destinations.append(
                DestinationState(
                    file,
                    time,
                    "",
                    row["name"],
                    kind,
                    whole("size", row["size"]) if kind == "queue" else 0,
                    whole("consumers", row["consumers"]),
                    enqueue_count=whole("enqueued", row["in"]),
                    dequeue_count=whole("dequeued", row["out"]),
                )
            )
