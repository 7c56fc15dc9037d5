"""What ``activemq-admin query`` and ``bstat`` print: an attribute a line, a blank line between two MBeans."""

from __future__ import annotations

import re
from typing import Any

from pyengine.backlog.diagnosis.evidence.mbeans import add_bean
from pyengine.backlog.diagnosis.evidence.model import Evidence, Remark, Source
from pyengine.backlog.diagnosis.evidence.needs import JOLOKIA_TOO
from pyengine.backlog.diagnosis.evidence.transcript import moment_of
from pyengine.backlog.findings import say

_ATTRIBUTE = re.compile(r"\s*(?P<name>[A-Za-z]\w*) = ?(?P<value>.*)")
_KEYS = ("type", "brokerName", "destinationType", "destinationName", "endpoint")
_GROUPS = re.compile(r"(?:^\{|, )(?P<group>[^=]*)=(?P<owner>ID:[^,}]*)")


def recognises(text: str) -> bool:
    """True if the attributes of a destination stand, one a line."""
    return re.search(r"^\s*(?:destinationName|QueueSize|BrokerName) = ", text, re.MULTILINE) is not None


def read(text: str, file: str, modified: int | None) -> Evidence:
    """The destinations and subscriptions; of a date in front of them they are of that moment."""
    found = Evidence()
    time, first, partly = modified, 0, False
    attributes: dict[str, str] = {}

    def end() -> None:
        nonlocal partly
        if not attributes:
            return
        values = {name: _value(name, value) for name, value in attributes.items()}
        keys = {name: attributes[name] for name in _KEYS if name in attributes}
        try:
            known = add_bean(keys, values, file, time, found)
        except ValueError as error:
            found.remarks.append(Remark(file, first, str(error), say("a number was expected")))
            known = True
        partly |= not known
        attributes.clear()

    times: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        moment = moment_of(line)
        if moment is not None or not line.strip():
            end()
            time = time if moment is None else moment
        elif match := _ATTRIBUTE.fullmatch(line):
            if match["name"] in attributes:  # the blank line between two is gone
                end()
            first = first if attributes else number
            attributes[match["name"]] = match["value"].strip()
            times = [*times[:1], *([] if time is None or time in times else [time])]
    end()
    # bstat has no QueueSize, and --view leaves out what it does not name.
    alone = not found.count and partly
    what = "activemq-admin bstat" if "connectorName = " in text else "activemq-admin query"
    found.sources.append(Source(file, what, tuple(times), needs=JOLOKIA_TOO if alone else ""))
    return found


def _value(name: str, text: str) -> Any:
    if name == "MessageGroups":
        return {match["group"]: match["owner"] for match in _GROUPS.finditer(text)}
    return {"true": True, "false": False}.get(text, text)
