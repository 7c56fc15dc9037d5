"""rocketmq/consume_orderly: one run of the real ordered service over a queue."""

from __future__ import annotations

from typing import Any

from pyengine import rocketmq
from pyengine.rocketmq.consumer.orderly_service import ConsumeMessageOrderlyService
from tests.conformance.rocketmq_cluster import GROUP, NOW, QUEUE, Cluster, RecordingStore, log_lines, message, started
from tests.conformance.rocketmq_consume_concurrently import ListenerError, described
from tests.conformance.verdict import Verdict, compare

BODY = 4
LINES = (
    "run, the message queue",
    "the message queue not",
    "the message queue lock expired",
    "the message queue consume result",
    "consumeMessage, the message queue",
    "consumeMessage exception",
    "consumeMessage Orderly",
)


class _Listener:
    """Answers by the case's plan, one entry a call; the queue may be lost at one of them."""

    def __init__(self, case: dict[str, Any], queue: rocketmq.ProcessQueue) -> None:
        self.case = case
        self.queue = queue
        self.calls: list[list[Any]] = []

    def __call__(self, messages: Any, context: rocketmq.ConsumeOrderlyContext) -> Any:
        case, turn = self.case, len(self.calls)
        context.auto_commit = case["autoCommit"]
        context.suspend_current_queue_time_millis = case["contextSuspendMs"]
        answer = case["plan"][turn % len(case["plan"])]
        self.calls.append([[item.queue_offset for item in messages], answer])
        if turn == case["droppedAtCall"]:
            self.queue.dropped = True
        if answer == "throw":
            raise ListenerError("boom")
        return None if answer == "null" else rocketmq.ConsumeOrderlyStatus[answer]


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    cluster = Cluster()
    cluster.send_back_fails = lambda offset: case["sendMessageBackFails"]
    store = RecordingStore(rocketmq.RemoteBrokerOffsetStore(cluster, GROUP))
    queue = rocketmq.ProcessQueue(now=NOW)
    messages = [message(offset, BODY, case["reconsumeTimesAtStart"]) for offset in case["cached"]]
    queue.put_messages(messages)
    queue.locked, queue.dropped = case["locked"], case["dropped"]
    queue.last_lock_timestamp = NOW - (30_001 if case["lockExpired"] else 0)
    listener = _Listener(case, queue)
    parameters = {
        "offset_store": store,
        "message_model": rocketmq.MessageModel[case["messageModel"]],
        "consume_message_batch_max_size": case["consumeMessageBatchMaxSize"],
        "max_reconsume_times": case["maxReconsumeTimes"],
        "suspend_current_queue_time_millis": case["configSuspendMs"],
    }
    with log_lines() as lines, started(cluster, rocketmq.MessageListenerOrderly(listener), **parameters) as consumer:
        service = consumer.default_mq_push_consumer_impl.consuming
        assert isinstance(service, ConsumeMessageOrderlyService)
        service.run(queue, QUEUE)
        scheduled = [moment - NOW for moment in service.delayed.moments]
    return compare(
        str({name: value for name, value in case.items() if name != "log"})[:600],
        (
            case["listenerCalls"],
            case["sendMessageBack"],
            case["offsetStoreCalls"],
            case["scheduledDelaysMs"],
            case["treeAfter"],
            case["consumingTreeAfter"],
            case["consumingFlagAfter"],
            case["msgCountAfter"],
            case["msgSizeAfter"],
            case["reconsumeTimesAfter"],
            [described(line) for line in case["log"]],
        ),
        (
            listener.calls,
            [list(call[1:]) for call in cluster.named("send")],
            store.calls,
            scheduled,
            queue.cached_offsets,
            queue.taken_offsets,
            queue.consuming,
            queue.message_count,
            queue.message_size,
            [item.reconsume_times for item in messages],
            [described(line) for line in lines.about(*LINES)],
        ),
    )
