"""ActiveMQ's broker log, activemq.log, or a client's with the broker's words: which producers may not send, and why.

The sentences are those of Queue, Topic and BrokerService of 5.3 to 6.x.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal, cast

from pyengine.backlog.diagnosis.evidence.model import Evidence, Source, UsageLimit
from pyengine.backlog.diagnosis.evidence.needs import JOLOKIA_TOO

_STAMP = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)")
_LOG = re.compile(r"\borg\.apache\.activemq\.(?:broker|store|transport|network|usage|util|plugin)\b")
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR)\b")
_MEMORY = re.compile(r"Usage Manager [Mm]emory(?: [Uu]sage)? [Ll]imit")
_STORE = re.compile(r"(?P<usage>Persistent store|Temp Store|Job Scheduler Store) is Full")
_TOO_SMALL = re.compile(r"Store limit is (?P<limit>\d+) mb, whilst the max journal file size for the store is \d+ mb")
# In front of the sentence the usage is named with its destination, within the sentence the destination itself.
_DESTINATION = re.compile(
    r"\b(?P<kind>queue|topic)://(?P<name>.+?)(?=:(?:memory|store|temp)\)|\. See |, size |[.,]?\s|$)"
)
_LIMIT = (
    re.compile(r"[Ll]imit \((?P<limit>\d+)\)"),
    re.compile(r"% of (?P<limit>\d+)"),
    re.compile(r"\blimit=(?P<limit>\d+)"),
)
_BLOCKING = re.compile(r"\(blocking for: (?P<seconds>\d+)s\)")
_USAGES = {"Persistent store": "store", "Temp Store": "temp", "Job Scheduler Store": "job_scheduler"}


def recognises(text: str) -> bool:
    """True for a sentence about a limit, or a line of one of the broker's loggers."""
    return (
        _MEMORY.search(text) is not None
        or _STORE.search(text) is not None
        or any(_LEVEL.search(line) and _LOG.search(line) for line in text.splitlines())
    )


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Each line that says that producers wait, or that the store takes nothing."""
    found = Evidence()
    times: list[int] = []
    moment = modified
    for number, line in enumerate(text.splitlines(), 1):
        if stamp := _STAMP.search(line[:60]):
            try:
                moment = int(datetime.fromisoformat(f"{stamp['date']} {stamp['clock']}").timestamp() * 1000)
                times = [*times[:1], moment]
            except ValueError:  # a date that cannot be: the one before holds on
                pass
        if limit := _limit(line, file, number, moment):
            found.usage_limits.append(limit)
    found.sources.append(Source(file, "ActiveMQ's log", tuple(times), needs="" if found.usage_limits else JOLOKIA_TOO))
    return found


def _limit(line: str, file: str, number: int, time: int | None) -> UsageLimit | None:
    if small := _TOO_SMALL.search(line):
        return UsageLimit(file, time, number, "journal", limit=int(small["limit"]) << 20, words=line.strip()[:300])
    store = _STORE.search(line)
    if store is None and _MEMORY.search(line) is None:
        return None
    usage = cast("Literal['memory', 'store', 'temp', 'job_scheduler']", _USAGES[store["usage"]] if store else "memory")
    place, blocking = _DESTINATION.search(line), _BLOCKING.search(line)
    limit = next((match for each in _LIMIT if (match := each.search(line))), None)
    return UsageLimit(
        file,
        time,
        number,
        usage,
        kind=cast("Literal['queue', 'topic']", place["kind"]) if place else None,
        destination=place["name"] if place else "",
        limit=int(limit["limit"]) if limit else None,
        blocked=int(blocking["seconds"]) if blocking else None,
        words=line.strip()[:300],
    )
