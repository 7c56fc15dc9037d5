"""What a consumer is doing, as mqadmin's consumerStatus shows it (ConsumerRunningInfo, spec rocketmq 9)."""

from __future__ import annotations

import sys
import threading
import traceback
from dataclasses import field
from typing import Any

from pyengine._engine.rocketmq.client.consume_rates import why_stuck
from pyengine._engine.rocketmq.client.lite_pull import AssignedQueues
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.rocketmq.consumer.consume_status import ConsumeStatus
from pyengine.rocketmq.consumer.context import ConsumerContext, MemberContext
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType
from pyengine.rocketmq.consumer.parameters import MemberParameters, java_name
from pyengine.rocketmq.remoting.mq_client_api import SubscriptionData, queue_key, queue_of, subscription_body
from pyengine.rocketmq.tables.allocation import MessageQueue, sort_queues

NO_FIELDS = ("broker", "clock", "local_offset_store_dir", "ssl_context")  # what the real consumer has no field for


@frozen
@dataclass(frozen=True, slots=True)
class ConsumerRunningInfo:
    """A consumer at one moment.

    properties: every parameter that is not None by its Java name, as text, and the real client's PROP_ entries.
    subscription_set: what it wants. mq_table: queue -> the real ProcessQueueInfo by its field names (``droped`` is
    spelled so there). status_table: topic -> rates. jstack: threads and their frames, where asked for. now: ms.
    """

    client_id: str
    now: int
    properties: dict[str, str]
    subscription_set: tuple[SubscriptionData, ...]
    mq_table: dict[MessageQueue, dict[str, int | bool]]
    status_table: dict[str, ConsumeStatus]
    user_consumer_info: dict[str, str] = field(default_factory=dict)
    jstack: str = ""

    def analyze_process_queue(self) -> list[str]:
        """A line for each queue that cannot be consumed or locked; none is good news."""
        orderly = self.properties.get("PROP_CONSUMEORDERLY") == "true"
        found = ((queue, why_stuck(info, self.now, orderly=orderly)) for queue, info in self.mq_table.items())
        return [f"{self.client_id} {queue} {problem}" for queue, problem in found if problem]


def running_info(consumer: ConsumerContext, threads: int, *, with_stacks: bool = False) -> ConsumerRunningInfo:
    """The state of one push consumer. threads: of its pool. with_stacks: with the stack of every thread there is."""
    added = {
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_CONSUMEORDERLY": str(consumer.orderly).lower(),
        "PROP_THREADPOOL_CORE_SIZE": str(threads),
    }
    with consumer.lock:
        queues = dict(consumer.process_queues)
    statuses = {topic: consumer.statistics.status(topic, consumer.group) for topic in sorted(consumer.subscriptions)}
    return _info(consumer, consumer.parameters, added, queues, statuses, with_stacks)


def lite_running_info(
    consumer: MemberContext, parameters: MemberParameters, assigned: AssignedQueues, *, with_stacks: bool = False
) -> ConsumerRunningInfo:
    """The state of one lite pull consumer, which keeps no rates."""
    with consumer.lock:
        found = {name: assigned.get(name) for name in assigned.names()}
    queues = {name: each.process_queue for name, each in found.items() if each is not None}
    return _info(consumer, parameters, {"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY"}, queues, {}, with_stacks)


def _info(
    consumer: MemberContext,
    parameters: MemberParameters,
    added: dict[str, str],
    queues: dict[MessageQueue, ProcessQueue],
    statuses: dict[str, ConsumeStatus],
    with_stacks: bool,
) -> ConsumerRunningInfo:
    properties = {
        java_name(name): _text(value)
        for name in type(parameters).__dataclass_fields__
        if name not in NO_FIELDS and (value := getattr(parameters, name)) is not None
    }
    properties |= added | {
        "PROP_NAMESERVER_ADDR": parameters.namesrv_addr or "",
        "PROP_CLIENT_VERSION": "V5_3_3",
        "PROP_CONSUMER_START_TIMESTAMP": str(consumer.start_timestamp),
    }
    with consumer.lock:
        infos = {queue: process_queue.info() for queue, process_queue in queues.items()}
    for queue, info in infos.items():
        info["commitOffset"] = consumer.store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE)
    return ConsumerRunningInfo(
        consumer.running.client_id,
        consumer.clock.now(),
        properties,
        tuple(consumer.subscriptions[topic] for topic in sorted(consumer.subscriptions)),
        {queue: infos[queue] for queue in sort_queues(list(infos))},
        statuses,
        jstack=_stacks() if with_stacks else "",
    )


def as_body(info: ConsumerRunningInfo) -> dict[str, Any]:
    """The fields of the wire's ConsumerRunningInfo."""
    return {
        "jstack": info.jstack or None,
        "mqTable": {queue_key(queue): found for queue, found in info.mq_table.items()},
        "properties": info.properties,
        "statusTable": {
            topic: {
                "consumeFailedMsgs": status.consume_failed_msgs,
                "consumeFailedTPS": status.consume_failed_tps,
                "consumeOKTPS": status.consume_ok_tps,
                "consumeRT": status.consume_rt,
                "pullRT": status.pull_rt,
                "pullTPS": status.pull_tps,
            }
            for topic, status in info.status_table.items()
        },
        "subscriptionSet": [subscription_body(each) for each in info.subscription_set],
        "userConsumerInfo": info.user_consumer_info,
    }


def from_body(client_id: str, now: int, body: dict[str, Any]) -> ConsumerRunningInfo:
    """What the wire's ConsumerRunningInfo says. now: when it was asked for, ms."""
    return ConsumerRunningInfo(
        client_id,
        now,
        dict(body["properties"] or {}),
        tuple(
            SubscriptionData(
                each["topic"] or "", each["subString"] or "", frozenset(each["tagsSet"] or ()),
                frozenset(each["codeSet"] or ()), each["expressionType"] or "TAG", each["subVersion"],
            )
            for each in sorted(body["subscriptionSet"] or (), key=lambda each: each["topic"] or "")
        ),
        {queue_of(queue): dict(each) for queue, each in (body["mqTable"] or {}).items() if each is not None},
        {
            topic: ConsumeStatus(
                each["pullRT"], each["pullTPS"], each["consumeRT"], each["consumeOKTPS"], each["consumeFailedTPS"],
                each["consumeFailedMsgs"],
            )
            for topic, each in (body["statusTable"] or {}).items()
            if each is not None
        },
        dict(body["userConsumerInfo"] or {}),
        body["jstack"] or "",
    )  # fmt: skip


def _text(value: object) -> str:
    """As Java prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(getattr(value, "name", value))


def _stacks() -> str:
    """Each thread, then a line a frame, innermost first, with the thread's name in front."""
    frames = sys._current_frames()
    lines = []
    for thread in threading.enumerate():
        lines.append(f"{thread.name:<40}TID: {thread.ident} STATE: {'ALIVE' if thread.is_alive() else 'TERMINATED'}")
        frame = frames.get(thread.ident or 0)
        for entry in reversed(traceback.extract_stack(frame) if frame else []):
            lines.append(f"{thread.name:<40}{entry.name}({entry.filename}:{entry.lineno})")
        lines.append("")
    return "\n".join(lines)
