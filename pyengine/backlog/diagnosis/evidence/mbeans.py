"""ActiveMQ's MBeans: DestinationViewMBean and SubscriptionViewMBean, from any tool that prints their attributes."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from pyengine.backlog.diagnosis.evidence.model import DestinationState, Evidence, SubscriptionState
from pyengine.backlog.diagnosis.evidence.numbers import whole, whole_or_none
from pyengine.destinations import ADVISORY


def add_bean(keys: dict[str, str], values: dict[str, Any], file: str, time: int | None, found: Evidence) -> bool:
    """A destination or a subscription with the keys of its name and its attributes; False: neither, or an advisory
    topic. Raises ValueError for an attribute that is not a number where JMX has one."""
    broker = keys.get("brokerName", "")
    name = str(values.get("DestinationName") or values.get("Name") or keys.get("destinationName", ""))
    if name.startswith(ADVISORY):
        return False
    if "DestinationName" in values and "PrefetchSize" in values:
        found.subscriptions.append(_subscription(broker, values, file, time))
    elif "destinationName" in keys and "QueueSize" in values:
        found.destinations.append(_destination(broker, keys, values, file, time))
    else:
        return False
    return True


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
