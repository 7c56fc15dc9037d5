"""Jolokia's answers to ``read`` requests for ActiveMQ's MBeans: one bean, a pattern, or a list of answers."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Literal

from pyengine.backlog.diagnosis.evidence.model import DestinationState, Evidence, Remark, SubscriptionState
from pyengine.backlog.diagnosis.evidence.numbers import whole, whole_or_none
from pyengine.backlog.findings import say
from pyengine.destinations import ADVISORY

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
                _bean(_keys(keys), attributes, file, time, found)
            except ValueError as error:
                found.remarks.append(Remark(file, 0, f"{name}: {error}", say("a number was expected")))
        else:
            found.remarks.append(Remark(file, 0, name, say("not a bean of ActiveMQ with its attributes")))


def _keys(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in text.split(","))


def _bean(keys: dict[str, str], values: dict[str, Any], file: str, time: int | None, found: Evidence) -> None:
    broker = keys.get("brokerName", "")
    name = str(values.get("DestinationName") or values.get("Name") or keys.get("destinationName", ""))
    if name.startswith(ADVISORY):
        return
    if "DestinationName" in values and "PrefetchSize" in values:
        found.subscriptions.append(_subscription(broker, values, file, time))
    elif "destinationName" in keys and "QueueSize" in values:
        found.destinations.append(_destination(broker, keys, values, file, time))


def _number(values: dict[str, Any], name: str) -> int | None:
    return whole_or_none(name, values.get(name))


def _destination(
    broker: str, keys: dict[str, str], values: dict[str, Any], file: str, time: int | None
) -> DestinationState:
    number = partial(_number, values)
    kind: Literal["queue", "topic"] = "topic" if "topic" in keys.get("destinationType", "").lower() else "queue"
    groups = values.get("MessageGroups")
    return DestinationState(
        file,
        time,
        broker,
        str(values.get("Name", keys["destinationName"])),
        kind,
        whole("QueueSize", values["QueueSize"]),
        whole("ConsumerCount", values.get("ConsumerCount", 0)),
        producer_count=number("ProducerCount"),
        enqueue_count=number("EnqueueCount"),
        dequeue_count=number("DequeueCount"),
        dispatch_count=number("DispatchCount"),
        expired_count=number("ExpiredCount"),
        in_flight_count=number("InFlightCount"),
        blocked_sends=number("BlockedSends"),
        memory_percent=number("MemoryPercentUsage"),
        max_page_size=number("MaxPageSize"),
        paused=bool(values.get("Paused", False)),
        dlq=bool(values.get("DLQ", False)),
        message_groups=tuple(sorted((str(k), str(v)) for k, v in groups.items())) if isinstance(groups, dict) else (),
    )


def _subscription(broker: str, values: dict[str, Any], file: str, time: int | None) -> SubscriptionState:
    number = partial(_number, values)
    connection, session = values.get("ConnectionId"), values.get("SessionId")
    consumer = f"{connection}:{session}:{values.get('SubscriptionId', '')}" if connection else ""
    return SubscriptionState(
        file,
        time,
        broker,
        str(values["DestinationName"]),
        "topic" if values.get("DestinationTopic") else "queue",
        str(values.get("ClientId") or ""),
        consumer,
        whole("PrefetchSize", values.get("PrefetchSize", 0)),
        selector=str(values.get("Selector") or ""),
        exclusive=bool(values.get("Exclusive", False)),
        active=bool(values.get("Active", True)),
        slow=bool(values.get("SlowConsumer", False)),
        # The view of one that is away has no ConsumerInfo to ask, and says false (SubscriptionView.isDurable).
        durable=bool(values.get("Durable") or values.get("SubscriptionName")),
        subscription_name=str(values.get("SubscriptionName") or ""),
        priority=whole("Priority", values.get("Priority", 0)),
        no_local=bool(values.get("NoLocal", False)),
        awaiting=number("MessageCountAwaitingAcknowledge"),
        pending=number("PendingQueueSize"),
        enqueue_counter=number("EnqueueCounter"),
        dequeue_counter=number("DequeueCounter"),
        dispatched_counter=number("DispatchedCounter"),
        discarded=whole_or_none("DiscardedCount", values.get("DiscardedCount", values.get("Discarded"))),
    )
