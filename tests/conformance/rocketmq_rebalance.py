"""rocketmq/rebalance: six runs of the real client's rebalance over changing queues, members, locks and offsets."""

from __future__ import annotations

import re
from typing import Any

from pyengine import rocketmq
from tests.conformance.rocketmq_cluster import (
    GROUP,
    NOW,
    TOPIC,
    Cluster,
    RecordingStore,
    log_lines,
    queue_of,
    started,
    text_of,
)
from tests.conformance.rocketmq_flow_control import PullService
from tests.conformance.verdict import Verdict, compare

RETRY_QUEUE = rocketmq.MessageQueue("%RETRY%GroupTest", "broker-a", 0)
STRATEGIES = {
    "AVG": rocketmq.AllocateMessageQueueAveragely,
    "AVG_BY_CIRCLE": rocketmq.AllocateMessageQueueAveragelyByCircle,
    "CONSISTENT_HASH": rocketmq.AllocateMessageQueueConsistentHash,
}
LINES = (
    "doRebalance, GroupTest, but the topic",
    "doRebalance, GroupTest TopicTest, get consumer",
    "doRebalance, GroupTest %RETRY%GroupTest, get consumer",
    "doRebalance, GroupTest, add new mq failed",
    "doRebalance, GroupTest, add a new mq failed",
    "Compute consume offset exception",
    "Compute consume offset from last offset exception",
    "[BUG]doRebalance",
    "allocate message queue exception",
    "rebalance Exception",
    "lockBatchMQ exception",
)


class _Brokers(Cluster):
    """The recorded store answers for a queue again once its offset was written."""

    def update_consumer_offset(
        self, group: str, queue: rocketmq.MessageQueue, offset: int, timeout: int = 5000
    ) -> None:
        self.unreachable.discard(queue)
        super().update_consumer_offset(group, queue, offset, timeout)


def _plain(line: str) -> str:
    """A line without the Java class of an exception and what is thrown."""
    return re.sub(r"java\.lang\.\w+: ", "", line.split(" !! ")[0].split("\n")[0])


def _set_up(cluster: Cluster, consumer: rocketmq.DefaultMQPushConsumer, step: dict[str, Any], number: int) -> None:
    member = consumer.default_mq_push_consumer_impl
    member.rebalancing.topic_queues = {RETRY_QUEUE.topic: {RETRY_QUEUE}} if number and member.context.clustering else {}
    if step["queues"] is not None:
        member.rebalancing.topic_queues[TOPIC] = {queue_of(text) for text in step["queues"]}
    cluster.client_ids = step["consumers"]
    cluster.locks_denied = {queue_of(text) for text in step["lockDenied"]}
    offsets = {queue_of(text): offset for text, offset in step["storeOffsets"].items()}
    cluster.stored = {queue: offset for queue, offset in offsets.items() if offset >= 0}
    cluster.unreachable = {queue for queue, offset in offsets.items() if offset < -1}
    for queue, process_queue in member.process_queues.items():
        expired = text_of(queue) in step["pullExpired"]
        process_queue.last_pull_timestamp = NOW - (120_001 if expired else 0)


def _observed(step: dict[str, Any]) -> dict[str, Any]:
    """The recorded answers of one step, without the order that Java's hash maps gave them."""
    return {
        "balanced": step["balanced"],
        "table": sorted(step["table"]),
        "offsetStoreCalls": sorted(step["offsetStoreCalls"]),
        "locks": sorted(step["locks"]),
        "pullRequestsDelayed": step["pullRequestsDelayed"],
        "pullActions": step["pullActions"],
        "heartbeats": sum("heartbeat" in str(call) for call in step["factoryCalls"]),
        "laterRuns": sum("rebalanceLater" in str(call) for call in step["factoryCalls"]),
        "pullThresholdForQueue": step["pullThresholdForQueue"],
        "pullThresholdSizeForQueue": step["pullThresholdSizeForQueue"],
        "errors": sorted(map(_plain, step["errors"])),
    }


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    cluster = _Brokers()
    cluster.highest = case["maxOffset"]
    store = RecordingStore(rocketmq.RemoteBrokerOffsetStore(cluster, GROUP))
    handler: Any = lambda messages, context: None  # noqa: E731
    parameters = {
        "offset_store": store,
        "message_model": rocketmq.MessageModel[case["messageModel"]],
        "allocate_message_queue_strategy": STRATEGIES[case["strategy"]](),
        "pull_threshold_for_topic": case["pullThresholdForTopic"],
        "pull_threshold_size_for_topic": case["pullThresholdSizeForTopic"],
        "consume_from_where": rocketmq.ConsumeFromWhere[case["consumeFromWhere"]],
    }
    listener = rocketmq.MessageListenerOrderly(handler) if case["orderly"] else handler
    with log_lines() as lines, started(cluster, listener, **parameters) as consumer:
        member = consumer.default_mq_push_consumer_impl
        member.running.client_id = case["me"]
        real, member.running.pull_service = member.running.pull_service, PullService()  # type: ignore[assignment]
        later: list[int] = []
        member.running.rebalance_service.wakeup_later = later.append  # type: ignore[method-assign]
        for number, step in enumerate(case["steps"]):
            _set_up(cluster, consumer, step, number)
            actions = member.running.pull_service.actions  # type: ignore[attr-defined]
            for record in (cluster.calls, store.calls, lines.lines, actions, later):
                record.clear()
            balanced = member.rebalancing.do_rebalance()
            got = {
                "balanced": balanced,
                "table": sorted(map(text_of, member.process_queues)),
                "offsetStoreCalls": sorted(store.calls),
                "locks": sorted([call[0], text_of(call[1]), call[2]] for call in cluster.named("lock", "unlock")),
                "pullRequestsDelayed": len(actions),
                "pullActions": actions[:1],
                "heartbeats": len(cluster.named("heartbeat")),
                "laterRuns": len(later),
                "pullThresholdForQueue": consumer.pull_threshold_for_queue,
                "pullThresholdSizeForQueue": consumer.pull_threshold_size_for_queue,
                "errors": sorted(map(_plain, lines.about(*LINES))),
            }
            verdict = compare(f"step {number}: {str(step)[:300]}", _observed(step), got)
            if verdict.kind != "agree":
                break
        member.running.pull_service = real
    return verdict
