"""A cluster's numbers as metrics: what each queue holds, and how far each group is behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyengine._engine.rocketmq.client.validators import SYSTEM_TOPICS
from pyengine.metrics import Family, Metric, MetricKind
from pyengine.rocketmq.broker.broker_node import BrokerNode

PREFIX = "pyengine_rocketmq_broker_"
PUT = (PREFIX + "messages_put_total", MetricKind.COUNTER, "Messages that a queue was given (its largest offset)")
STORED = (PREFIX + "messages_stored", MetricKind.GAUGE, "Messages that a queue still has")
LAG = (PREFIX + "consumer_lag_messages", MetricKind.GAUGE, "Messages between a group's committed offset and the end")
MEMBERS = (PREFIX + "consumer_members", MetricKind.GAUGE, "Consumers of a group that are connected")
FAMILIES: tuple[Family, ...] = (PUT, STORED, LAG, MEMBERS)


def broker_metrics(nodes: Iterable[BrokerNode]) -> Iterator[Metric]:
    """The rows of a cluster's brokers. A queue that a group has committed nothing of has no row of lag; an
    empty one of a system topic has none."""
    for node in nodes:
        with node.lock:
            committed, members = node.offsets.dump(), node.groups.count_members()
        ends = {}
        for topic, queues in sorted(node.topics.items()):
            for queue in range(queues):
                labels = {"broker": node.name, "topic": topic, "queue": str(queue)}
                ends[topic, queue] = end = node.max_offset(topic, queue)
                if not end and topic in SYSTEM_TOPICS:
                    continue
                yield Metric(*PUT, float(end), labels)
                yield Metric(*STORED, float(end - node.min_offset(topic, queue)), labels)
        for key, offsets in sorted(committed.items()):
            topic, _, group = key.partition("@")
            for queue, offset in sorted(offsets.items()):
                if (topic, queue) in ends:
                    labels = {"group": group, "broker": node.name, "topic": topic, "queue": str(queue)}
                    yield Metric(*LAG, float(ends[topic, queue] - offset), labels)
        for group, number in sorted(members.items()):
            yield Metric(*MEMBERS, float(number), {"group": group, "broker": node.name})
