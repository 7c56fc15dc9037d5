"""rocketmq/flow_control: one turn of the real pull loop: state in, actions, log lines and counters out."""

from __future__ import annotations

import re
from typing import Any

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.pull_gate import PullRequest
from pyengine.errors import IllegalStateError, MQBrokerError, MQClientError
from tests.conformance.rocketmq_cluster import (
    GROUP,
    NOW,
    QUEUE,
    TOPIC,
    Cluster,
    Lines,
    RecordingStore,
    log_lines,
    message,
    started,
)
from tests.conformance.verdict import Verdict, compare, unsupported

# The recordings show what a line throws behind " !! class: "; here it stands on the next line.
THROWN = re.compile(r" !! [\w.$]+: ")
# What the offset store notes is not logged here (docs/differences.md).
NOT_LOGGED = ("INFO [persist]", "INFO remove unnecessary messageQueue offset")
FIXED = "INFO Fix Offset"


class Sized:
    """A body that is only long."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


class PullService:
    """Writes down what becomes of pull requests; runs tasks at once."""

    def __init__(self) -> None:
        self.actions: list[Any] = []

    def execute_pull_request_immediately(self, request: PullRequest) -> None:
        self.actions.append(["immediately"])

    def execute_pull_request_later(self, request: PullRequest, delay: int) -> None:
        self.actions.append(["later", delay])

    def execute_task(self, task: Any) -> None:
        task()

    def close(self) -> None:
        """Nothing runs."""


def prepared(count: int, size: int, smallest: int | None, largest: int | None) -> rocketmq.ProcessQueue:
    """A process queue with these counters and these ends of its cached offsets.

    Taken messages count and are not cached; messages made to be consumed again are cached and do not count.
    """
    queue = rocketmq.ProcessQueue(now=NOW)
    queue.locked = True
    beyond = [message(10_000_000 + number, 0) for number in range(max(count, 2 - count))]
    if count > 0 and size >= 0:
        beyond[0].body = Sized(size)  # type: ignore[assignment]
        queue.put_messages(beyond)
        queue.take_messages(len(beyond))
    elif count > 0:
        extra = [message(1, 0)]
        queue.put_messages(beyond + extra)
        extra[0].body = Sized(-size)  # type: ignore[assignment]
        queue.remove_messages(extra)
        queue.take_messages(len(beyond))
    else:
        # A commit subtracts what lies there now, not what was counted, and more than was counted.
        beyond[0].body = Sized(max(size, 0))  # type: ignore[assignment]
        queue.put_messages(beyond[:1])
        beyond[0].body = Sized(max(-size, 0))  # type: ignore[assignment]
        queue.make_message_to_consume_again(beyond)
        queue.take_messages(len(beyond))
        queue.commit()
        queue.put_messages([message(1, 0)])
        queue.take_messages(1)
    if smallest is not None and largest is not None:
        queue.make_message_to_consume_again([message(offset) for offset in {smallest, largest}])
    assert (queue.message_count, queue.message_size) == (count, size)
    return queue


def plain(line: str) -> str:
    """A line without what is attached to each of the real client's exceptions."""
    return THROWN.sub("\n", line).split("\nFor more information")[0]


def _pull(action: rocketmq.PullMessageRequest) -> dict[str, Any]:
    return {
        "pull": action.queue_offset,
        "subExpression": action.sub_expression,
        "expressionType": action.expression_type,
        "maxNums": action.max_nums,
        "maxSizeInBytes": action.max_bytes,
        "sysFlag": action.sys_flag,
        "commitOffset": action.commit_offset,
        "brokerSuspendMs": action.suspend_timeout,
        "timeoutMs": action.timeout_millis,
        "mode": "ASYNC",
    }


def _consumer_lines(lines: Lines) -> list[str]:
    """The lines of the pull loop; what the offset store and the consumer's start say is left out."""
    beginnings = (
        "the pull request[",
        "pullMessage exception",
        "consumer was paused",
        "the cached message",
        "the queue's messages",
        "pull message later",
        "Failed to compute pull offset",
        "the first time to pull",
        "[NOTIFYME]",
        "[BUG] pull message",
        "find the consumer's",
        "execute the pull request exception",
        "the subscription is not latest",
        "the pull request offset illegal",
        "fix the pull request offset",
        "Fix Offset",
        "pullKernelImpl exception",
    )
    return [plain(line) for line in lines.about(*beginnings)]


def _turn(case: dict[str, Any]) -> Verdict:
    state = case["in"]
    cluster = Cluster()
    cluster.highest = state["maxOffsetInBroker"]
    if state["storeOffset"] >= 0:
        cluster.stored[QUEUE] = state["storeOffset"]
    elif state["storeOffset"] < -1:
        cluster.unreachable.add(QUEUE)
    queue = prepared(state["msgCount"], state["msgSize"], state["treeMin"], state["treeMax"])
    queue.dropped, queue.locked = state["dropped"], state["locked"]
    request = PullRequest(GROUP, QUEUE, queue, state["nextOffset"])
    request.previously_locked = state["previouslyLocked"]
    handler: Any = lambda messages, context: None  # noqa: E731
    listener = rocketmq.MessageListenerOrderly(handler) if state["orderly"] else handler
    error = None
    with log_lines() as lines, started(cluster, listener) as consumer:
        member = consumer.default_mq_push_consumer_impl
        if state["memoryOffset"] != -1:
            member.context.store.update_offset(QUEUE, state["memoryOffset"])
        if not state["subscribed"]:
            consumer.unsubscribe(TOPIC)
        consumer.instance_name = "DEFAULT"
        consumer.pull_threshold_for_queue = state["pullThresholdForQueue"]
        consumer.pull_threshold_size_for_queue = state["pullThresholdSizeForQueue"]
        consumer.consume_concurrently_max_span = state["consumeConcurrentlyMaxSpan"]
        member.context.paused, member.context.service_state = state["pause"], state["serviceState"]
        service: Any = PullService()
        service, member.running.pull_service = member.running.pull_service, service
        actions = member.running.pull_service.actions  # type: ignore[attr-defined]
        try:
            member.pull_message(request)
        except IllegalStateError as problem:
            error = str(problem).split(":")[0]
        member.running.pull_service, member.context.service_state = service, "RUNNING"
        gate = member.pulling.gate
    expected_error = case["error"]["class"].split(".")[-1] if "error" in case else None
    return compare(
        str(state),
        (
            case["actions"],
            [plain(line) for line in case["log"]],
            case["nextOffsetAfter"],
            case["previouslyLockedAfter"],
            case["queueFlowControlTimes"],
            case["queueMaxSpanFlowControlTimes"],
            expected_error,
        ),
        (
            actions + [_pull(sent) for sent, _ in cluster.pulls],
            _consumer_lines(lines),
            request.next_offset,
            request.previously_locked,
            gate.queue_flow_control_times,
            gate.queue_max_span_flow_control_times,
            error,
        ),
    )


def _many(case: dict[str, Any]) -> Verdict:
    """2500 turns over a limit: when are there lines?"""
    cluster = Cluster()
    spans = "span" in case["note"] and "count" not in case["note"]
    logged = []
    with log_lines() as lines, started(cluster) as consumer:
        member = consumer.default_mq_push_consumer_impl
        member.running.pull_service = PullService()  # type: ignore[assignment]
        wide, full, large = prepared(2, 10, 0, 2001), prepared(1001, 100, 50, 60), prepared(10, 105906176, 50, 60)
        for turn in range(2500):
            queue = wide if spans else full if turn <= 1500 else large
            before = len(lines.lines)
            member.pull_message(PullRequest(GROUP, QUEUE, queue, 61))
            if len(lines.lines) > before:
                logged.append(turn)
    return compare(case["note"], case["loggedAt"], logged)


def _answered(case: dict[str, Any]) -> Verdict:
    """The answer of a pull, or its failure."""
    cluster = Cluster()
    store = RecordingStore(rocketmq.RemoteBrokerOffsetStore(cluster, GROUP))
    # A case that says where the request stood before shows it in its lines alone.
    shown = re.findall(r"prevRequestOffset: (\d+)", str(case["log"]))
    retried = "retry" in str(case.get("exception", "")).lower() or case.get("retryTopic", False)
    queue = rocketmq.MessageQueue(rocketmq.retry_topic(GROUP), "broker-a", 0) if retried else QUEUE
    cached = prepared(case.get("msgCountBefore", 0), 0, None, None)
    request = PullRequest(GROUP, queue, cached, int((shown or ["61"])[0]))
    first = re.findall(r"firstMsgOffset: (\d+)", str(case["log"]))
    offset = int(first[0]) if first else request.next_offset
    woken: list[str] = []
    submitted: list[list[int]] = []
    with log_lines() as lines, started(cluster, offset_store=store) as consumer:
        member = consumer.default_mq_push_consumer_impl
        consumer.pull_interval = case.get("pullInterval", 0)
        member.process_queues[queue] = request.process_queue
        service: Any = PullService()
        member.running.pull_service, service = service, member.running.pull_service
        actions = member.running.pull_service.actions  # type: ignore[attr-defined]
        member.running.rebalance_service.wakeup = lambda: woken.append("rebalanceImmediately")  # type: ignore[method-assign]
        member.consuming.submit = lambda messages, *rest: submitted.append(  # type: ignore[method-assign]
            [item.queue_offset for item in messages]
        )
        answer: Any
        if "exception" in case:
            code = re.findall(r"code (\d+)", case["exception"])
            answer = MQBrokerError(int(code[0]), "fc") if code else MQClientError("x")
        elif case["status"] not in rocketmq.PullStatus.__members__:
            answer = None
        else:
            found = tuple(message(offset + number) for number in range(case["found"]))
            ends = [int(end) for end in re.findall(r"(?:min|max)Offset=(\d+)", str(case["log"]))] or [0, 1000]
            status = rocketmq.PullStatus[case["status"]]
            answer = rocketmq.PullResult(status, case["nextBeginOffset"], ends[0], ends[1], found)
        member.pulling.answered(request, member.subscriptions[TOPIC], answer, NOW)
        dropped, in_table = request.process_queue.dropped, queue in member.process_queues
        member.running.pull_service = service
    recorded = [plain(line).split("\n")[0] for line in case["log"] if not line.startswith(NOT_LOGGED)]
    logged = [line.split("\n")[0] for line in _consumer_lines(lines)]
    if not any(line.startswith(FIXED) for line in recorded):
        # The rebalance's own line, where only the pull loop's were recorded.
        logged = [line for line in logged if not line.startswith(FIXED)]
    got = {
        "actions": actions,
        "submitted": bool(submitted) and len(submitted[0]) == case["found"],
        "offsetStoreCalls": store.calls,
        "factoryCalls": woken,
        "droppedAfter": dropped,
        "inTableAfter": in_table,
        "nextOffsetAfter": request.next_offset,
        "log": logged,
    }
    expected = {name: value for name, value in case.items() if name in got}
    expected["log"] = recorded
    if "submitted" in expected:
        expected["submitted"] = bool(case["submitted"])
    if "actions" in expected:
        expected["actions"] = [action for action in case["actions"] if action[0] in ("later", "immediately")]
    return compare(f"{case.get('status')} {case.get('exception')}", expected, {name: got[name] for name in expected})


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    if "in" in case:
        return _turn(case)
    if "loggedAt" in case:
        return _many(case)
    if case["note"] in ("pull result", "pull exception"):
        return _answered(case)
    return unsupported(case["note"])
