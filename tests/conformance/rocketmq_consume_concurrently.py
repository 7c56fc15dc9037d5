"""rocketmq/consume_concurrently: one batch through the real concurrent service; and how batches are cut."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.consume_concurrently import ConsumeRequest
from pyengine.errors import MQClientError
from pyengine.rocketmq.consumer import concurrent_service
from pyengine.rocketmq.consumer.concurrent_service import ConsumeMessageConcurrentlyService
from tests.conformance.rocketmq_cluster import GROUP, NOW, QUEUE, Cluster, RecordingStore, log_lines, message, started
from tests.conformance.rocketmq_flow_control import plain
from tests.conformance.verdict import Verdict, compare

# What Java says of an exception, and when the message was given to the listener.
DESCRIPTION = re.compile(r"(consumeMessage exception: ).*?( Group: )")
STAMP = re.compile(r"CONSUME_START_TIME=\d+")
LINES = (
    "the message queue not be able",
    "consumeMessage exception",
    "consumeMessage return null",
    "BROADCASTING",
    "Message is not found",
    "sendMessageBack exception",
    "processQueue is dropped",
)


def described(line: str) -> str:
    """A line without the exception's own text and the clock's."""
    return STAMP.sub("CONSUME_START_TIME=", DESCRIPTION.sub(r"\1\2", plain(line).split(" !! ")[0].split("\n")[0]))


class ListenerError(Exception):
    """What a listener of the recordings raises."""


class _Listener:
    """Answers as the case says; may lose the queue meanwhile."""

    def __init__(self, case: dict[str, Any], queue: rocketmq.ProcessQueue) -> None:
        self.case = case
        self.queue = queue

    def __call__(self, messages: Any, context: rocketmq.ConsumeConcurrentlyContext) -> Any:
        case = self.case
        context.delay_level_when_next_consume = case["delayLevelWhenNextConsume"]
        if case["ackIndex"] is not None:
            context.ack_index = case["ackIndex"]
        if case["droppedDuring"]:
            self.queue.dropped = True
        if case["listenerReturns"] in ("throw", "error"):
            raise ListenerError("boom")
        name = case["listenerReturns"]
        return None if name == "null" else rocketmq.ConsumeConcurrentlyStatus[name]


def _service(consumer: rocketmq.DefaultMQPushConsumer) -> ConsumeMessageConcurrentlyService:
    service = consumer.default_mq_push_consumer_impl.consuming
    assert isinstance(service, ConsumeMessageConcurrentlyService)
    return service


def _later(service: ConsumeMessageConcurrentlyService) -> list[int]:
    """Delays of what comes to be consumed later."""
    return sorted(moment - NOW for moment in service.delayed.moments)


def _batch(case: dict[str, Any]) -> Verdict:
    cluster = Cluster()
    store = RecordingStore(rocketmq.RemoteBrokerOffsetStore(cluster, GROUP))
    queue = rocketmq.ProcessQueue(now=NOW)
    cached = {offset: message(offset) for offset in case["alsoCached"]}
    queue.put_messages(cached.values())
    if case["alreadyRemoved"] is not None:
        queue.remove_messages([cached[case["alreadyRemoved"]]])
    queue.dropped = case["droppedBefore"]
    messages = [cached[offset] for offset in case["msgs"]]
    request = ConsumeRequest(list(messages), queue, QUEUE)
    error = None
    model = rocketmq.MessageModel[case["messageModel"]]
    with (
        log_lines() as lines,
        started(cluster, _Listener(case, queue), offset_store=store, message_model=model) as consumer,
    ):
        backs: list[list[Any]] = []

        def send_message_back(_: object, item: rocketmq.MessageExt, level: int, source: rocketmq.MessageQueue) -> None:
            """The recordings replaced the real one, its way through the retry topic too."""
            fails = item.queue_offset in case["sendBackFailsFor"]
            backs.append([item.queue_offset, level, "failed" if fails else "ok"])
            if fails:
                raise MQClientError("x")

        service = _service(consumer)
        with patch.object(concurrent_service, "send_message_back", send_message_back):
            try:
                service.run(request)
            except IndexError as problem:
                error = str(problem)
        later = _later(service)
    return compare(
        str({name: value for name, value in case.items() if name != "log"})[:600],
        (
            case["sendMessageBack"],
            case["offsetStoreCalls"],
            case["resubmitDelaysMs"],
            case["cachedAfter"],
            case["requestMsgsAfter"],
            case["reconsumeTimesAfter"],
            [described(line) for line in case["log"]],
            case.get("error", {}).get("message"),
        ),
        (
            backs,
            store.calls,
            later,
            queue.cached_offsets,
            [item.queue_offset for item in request.messages],
            [item.reconsume_times for item in messages],
            [described(line) for line in lines.about(*LINES)],
            error,
        ),
    )


def _cut(case: dict[str, Any]) -> Verdict:
    """How many messages go where, when the pool takes so many batches."""
    cluster = Cluster()
    batches: list[list[int]] = []

    class Pool:
        def submit(self, tasks: Any) -> int:
            for taken, task in enumerate(tasks):
                if len(batches) == case["poolRejectsAfter"]:
                    return taken
                batches.append([])
                task()
            return len(tasks)

    def run(request: ConsumeRequest) -> None:
        batches[-1] = [item.queue_offset for item in request.messages]

    with log_lines(), started(cluster, consume_message_batch_max_size=case["consumeMessageBatchMaxSize"]) as consumer:
        service = _service(consumer)
        pool, service._pool = service._pool, Pool()  # type: ignore[assignment]
        service.run = run  # type: ignore[method-assign]
        service.submit([message(offset) for offset in range(case["msgs"])], rocketmq.ProcessQueue(), QUEUE, True)
        later = _later(service)
        service._pool = pool
    return compare(str(case)[:200], (case["batches"], case["laterDelaysMs"]), (batches, later))


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    return _cut(case) if case.get("note") == "submitConsumeRequest" else _batch(case)
