"""Jolokia's answers to ``read`` requests for ActiveMQ's MBeans: one bean, a pattern, or a list of answers."""

from __future__ import annotations

import json
from typing import Any

from pyengine.backlog.diagnosis.evidence.mbeans import add_bean
from pyengine.backlog.diagnosis.evidence.model import Evidence, Remark
from pyengine.backlog.findings import say

DOMAIN = "org.apache.activemq"


def recognises(text: str) -> bool:
    """True for a JSON document that Jolokia wrote."""
    head = text.lstrip()[:1]
    return head in ("{", "[") and '"mbean"' in text and '"value"' in text and '"status"' in text


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Destinations and subscriptions. Advisory topics and beans of other kinds are passed over."""
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    found = Evidence()
    for answer in document if isinstance(document, list) else [document]:
        if isinstance(answer, dict):
            _answer(answer, file, modified, found)
        else:
            found.remarks.append(Remark(file, 0, str(answer)[:200], say("not a bean of ActiveMQ with its attributes")))
    if not found.count and not found.remarks:
        why = say("no destination and no subscription in it; read org.apache.activemq:type=Broker,*")
        found.remarks.append(Remark(file, 0, "", why))
    return found


def _answer(answer: dict[str, Any], file: str, modified: int | None, found: Evidence) -> None:
    request = answer.get("request")
    request = request if isinstance(request, dict) else {}
    if answer.get("status") != 200:
        why = say(
            "the agent answered {status}: {error}",
            status=answer.get("status"),
            error=answer.get("error") or say("no reason given"),
        )
        found.remarks.append(Remark(file, 0, str(request.get("mbean", "")), why))
        return
    stamp = answer.get("timestamp")
    time = stamp * 1000 if type(stamp) is int and 0 <= stamp < 2**53 else modified
    value = answer.get("value")
    asked = str(request.get("mbean", ""))
    beans = value if isinstance(value, dict) and all(":" in name for name in value) and value else {asked: value}
    for name, attributes in beans.items():
        domain, _, keys = name.partition(":")
        if domain == DOMAIN and isinstance(attributes, dict):
            try:
                add_bean(_keys(keys), attributes, file, time, found)
            except ValueError as error:
                found.remarks.append(Remark(file, 0, f"{name}: {error}", say("a number was expected")))
        else:
            found.remarks.append(Remark(file, 0, name, say("not a bean of ActiveMQ with its attributes")))


def _keys(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in text.split(","))
