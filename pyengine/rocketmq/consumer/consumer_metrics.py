"""A push consumer's numbers as metrics, named after RocketMQ's own ProcessQueueInfo and ConsumeStatus."""

from __future__ import annotations

from collections.abc import Iterator

from pyengine._engine.rocketmq.client.pull_gate import PullGate
from pyengine.metrics import Metric, MetricKind
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.running_info import ConsumerRunningInfo

QUEUE_GAUGES = (
    ("cached_messages", "Messages pulled and not yet consumed", "cachedMsgCount"),
    ("cached_mebibytes", "Size of their bodies, MiB", "cachedMsgSizeInMiB"),
    ("cached_offset_min", "Smallest offset that is not finished", "cachedMsgMinOffset"),
    ("cached_offset_max", "Largest cached offset", "cachedMsgMaxOffset"),
    ("taken_messages", "Messages taken in order and not committed", "transactionMsgCount"),
    ("commit_offset", "Next offset to consume after a restart", "commitOffset"),
    ("locked", "1 while the broker's lock is ours", "locked"),
    ("last_pull_timestamp_ms", "Last pull, ms since 1970", "lastPullTimestamp"),
    ("last_consume_timestamp_ms", "Last consumption, ms since 1970", "lastConsumeTimestamp"),
)
TOPIC_GAUGES = (
    ("pull_rt_ms", "Time of a pull that found messages, ms, last minute", "pull_rt"),
    ("pull_tps", "Messages pulled a second, last minute", "pull_tps"),
    ("consume_rt_ms", "Time of a listener's call, ms, last minute", "consume_rt"),
    ("consume_ok_tps", "Messages consumed a second, last minute", "consume_ok_tps"),
    ("consume_failed_tps", "Messages failed a second, last minute", "consume_failed_tps"),
    ("consume_failed_messages_in_hour", "Messages failed in the last hour", "consume_failed_msgs"),
)
PREFIX = "pyengine_rocketmq_"


def consumer_metrics(
    consumer: ConsumerContext, info: ConsumerRunningInfo, gate: PullGate, threads: int
) -> Iterator[Metric]:
    """The rows of one consumer. info: its state at this moment. gate: of its pulls. threads: of its pool."""
    group = {"group": consumer.group}
    for queue, state in info.mq_table.items():
        labels = {**group, "topic": queue.topic, "broker": queue.broker_name, "queue": str(queue.queue_id)}
        for name, text, key in QUEUE_GAUGES:
            yield Metric(PREFIX + name, MetricKind.GAUGE, text, float(state[key]), labels)
    for topic, status in info.status_table.items():
        labels = {**group, "topic": topic}
        for name, text, key in TOPIC_GAUGES:
            yield Metric(PREFIX + name, MetricKind.GAUGE, text, float(getattr(status, key)), labels)
    yield Metric(PREFIX + "consume_threads", MetricKind.GAUGE, "Threads the listener may run on", float(threads), group)
    for limit, times in (
        ("cache", gate.queue_flow_control_times),
        ("span", gate.queue_max_span_flow_control_times),
    ):
        yield Metric(
            PREFIX + "flow_control_total",
            MetricKind.COUNTER,
            "Pulls held back by flow control",
            float(times),
            {**group, "limit": limit},
        )
    for result, times in sorted(consumer.statistics.returns.items()):
        yield Metric(
            PREFIX + "listener_returns_total",
            MetricKind.COUNTER,
            "Calls of the listener by how they ended",
            float(times),
            {**group, "result": result},
        )
