"""A broker's destinations as metrics, named after JMX's attributes of DestinationViewMBean and QueueViewMBean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyengine._engine.activemq.queue.hold_reasons import HoldReason
from pyengine.activemq.broker.views import DestinationView, QueueView, TopicView
from pyengine.metrics import Family, Metric, MetricKind

PREFIX = "pyengine_activemq_"
COUNTERS = (
    ("enqueued_total", "Messages sent to the destination", "enqueue_count"),
    ("dispatched_total", "Messages dispatched to consumers", "dispatch_count"),
    ("dequeued_total", "Messages acknowledged or removed", "dequeue_count"),
    ("expired_total", "Messages that expired", "expired_count"),
)
GAUGES = (
    ("queue_size", "Messages that wait or are not acknowledged", "queue_size"),
    ("in_flight", "Messages dispatched and not acknowledged", "in_flight_count"),
    ("consumers", "Consumers of the destination", "consumer_count"),
    ("producers", "Producers of the destination", "producer_count"),
    ("memory_bytes", "Size of the messages in memory, bytes", "memory_usage_byte_count"),
)
HELD = (PREFIX + "held", MetricKind.GAUGE, "Messages of a queue that no consumer has, by the reason")
DISCARDED = (PREFIX + "discarded_total", MetricKind.COUNTER, "Messages that a topic's subscriptions discarded")

FAMILIES: tuple[Family, ...] = (
    *((PREFIX + name, MetricKind.COUNTER, text) for name, text, _ in COUNTERS),
    *((PREFIX + name, MetricKind.GAUGE, text) for name, text, _ in GAUGES),
    HELD,
    DISCARDED,
)


def destination_metrics(broker: str, views: Iterable[DestinationView]) -> Iterator[Metric]:
    """The rows of a broker's destinations. broker: its name, a label of each row."""
    for view in views:
        kind = "queue" if isinstance(view, QueueView) else "topic"
        labels = {"broker": broker, "destination": view.name, "type": kind}
        for name, text, attribute in COUNTERS:
            yield Metric(PREFIX + name, MetricKind.COUNTER, text, float(getattr(view, attribute)), labels)
        for name, text, attribute in GAUGES:
            yield Metric(PREFIX + name, MetricKind.GAUGE, text, float(getattr(view, attribute)), labels)
        if isinstance(view, QueueView):
            for reason, messages in view.hold_reasons.items():
                if reason is not HoldReason.NOT_HELD:
                    yield Metric(*HELD, float(messages), {**labels, "reason": reason.name})
        elif isinstance(view, TopicView):
            yield Metric(*DISCARDED, float(view.discarded_count), labels)
