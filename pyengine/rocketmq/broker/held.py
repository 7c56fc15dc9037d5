"""Why messages of a cluster wait: each message that a group has not consumed, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from pyengine._engine.rocketmq.client.validators import SYSTEM_TOPICS
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.broker_node import BrokerNode
from pyengine.rocketmq.broker.filter import Filter
from pyengine.rocketmq.broker.message_store import SCHEDULE_TOPIC
from pyengine.rocketmq.remoting.mq_client_api import ClientEvents
from pyengine.rocketmq.tables.allocation import MessageQueue


class HeldReason(Enum):
    """Why a group has not consumed a message.

    NO_GROUP: no group has ever consumed the topic. NO_MEMBER: the group has no consumer that is connected.
    NOT_SUBSCRIBED: its consumers do not want the topic. FILTERED: their expression passes the message over. NOT_PULLED:
    no member has pulled it yet: a rebalance or a pull will do, or the consumer is suspended or held back by flow
    control. NOT_CONSUMED: a consumer has it, and its listener has not finished it, or one before it. DELAYED: it waits
    for its delay level, or for its next try. DEAD_LETTER: its tries are used up.
    """

    NO_GROUP = "no group consumes the topic"
    NO_MEMBER = "the group has no member"
    NOT_SUBSCRIBED = "no member subscribes to the topic"
    FILTERED = "the subscription does not match"
    NOT_PULLED = "no member has pulled it"
    NOT_CONSUMED = "a member has it and has not finished"
    DELAYED = "it waits for its time"
    DEAD_LETTER = "its tries are used up"


@frozen
@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message that a group has not consumed, and why. group: None without one. due: ms since 1970, of a delayed
    one. queue, offset: where it lies; the destination of a delayed one, with offset -1."""

    msg_id: str
    queue: MessageQueue
    offset: int
    group: str | None
    reason: HeldReason
    due: int | None = None


def held_messages(
    nodes: Iterable[BrokerNode], events: Mapping[str, ClientEvents], wanted: str | None
) -> Iterator[HeldMessage]:
    """The messages of a cluster that wait. events: how its clients are asked. wanted: the topic; None: every one."""
    for node in nodes:
        with node.lock:
            groups = _groups(node)
            topics = dict(node.topics)
        for topic, queues in sorted(topics.items()):
            if wanted in (None, topic) and topic not in SYSTEM_TOPICS:
                for queue_id in range(queues):
                    queue = MessageQueue(topic, node.name, queue_id)
                    yield from _of_queue(node, queue, groups.get(topic, ()), events)
        yield from _delayed(node, wanted)


def _groups(node: BrokerNode) -> dict[str, list[str]]:
    """Topic -> the groups that consume it, or have."""
    found: dict[str, set[str]] = {}
    for key in node.offsets.dump():
        topic, _, group = key.partition("@")
        found.setdefault(topic, set()).add(group)
    for group in node.groups.count_members():
        for topic in node.topics:
            if node.groups.subscription(group, topic) is not None:
                found.setdefault(topic, set()).add(group)
    return {topic: sorted(groups) for topic, groups in found.items()}


def _of_queue(
    node: BrokerNode, queue: MessageQueue, groups: Iterable[str], events: Mapping[str, ClientEvents]
) -> Iterator[HeldMessage]:
    topic, queue_id = queue.topic, queue.queue_id
    first, end = node.min_offset(topic, queue_id), node.max_offset(topic, queue_id)
    if first == end:
        return
    if topic.startswith(names.DLQ_GROUP_TOPIC_PREFIX):
        group = topic.removeprefix(names.DLQ_GROUP_TOPIC_PREFIX)
        yield from (_held(node, queue, offset, group, HeldReason.DEAD_LETTER) for offset in range(first, end))
    elif not groups:
        yield from (_held(node, queue, offset, None, HeldReason.NO_GROUP) for offset in range(first, end))
    for group in groups:
        with node.lock:
            members = node.groups.members(group)
            known = node.groups.subscription(group, topic)
            done = node.offsets.committed(group, topic, queue_id)
        pulled = node.pulled_at(group, topic, queue_id)
        asked = [events[member].offsets(group, topic) for member in members if member in events]
        done = max([done, *(offsets.get(queue, -1) for offsets in asked)])
        for offset in range(first, end):
            if members and known is not None and not _matches(node, queue, offset, known[1]):
                yield _held(node, queue, offset, group, HeldReason.FILTERED)
            elif offset >= done:
                reason = HeldReason.NOT_CONSUMED if offset < pulled else HeldReason.NOT_PULLED
                if not members:
                    reason = HeldReason.NO_MEMBER
                elif known is None:
                    reason = HeldReason.NOT_SUBSCRIBED
                yield _held(node, queue, offset, group, reason)


def _matches(node: BrokerNode, queue: MessageQueue, offset: int, wanted: object) -> bool:
    """Whether a group's subscription lets a message through; one that is an error excludes no message."""
    if not isinstance(wanted, Filter):
        return True
    if wanted.codes is not None:
        with node.lock:
            return node.store.consume_queue(queue.topic, queue.queue_id).tags_code(offset) in wanted.codes
    message = node.message(queue.topic, queue.queue_id, offset)
    return message is None or wanted.matches(message.properties)


def _held(node: BrokerNode, queue: MessageQueue, offset: int, group: str | None, reason: HeldReason) -> HeldMessage:
    message = node.message(queue.topic, queue.queue_id, offset)
    return HeldMessage("" if message is None else message.msg_id, queue, offset, group, reason)


def _delayed(node: BrokerNode, wanted: str | None) -> Iterator[HeldMessage]:
    for level in range(1, node.delay_levels + 1):
        with node.lock:
            queue = node.store.consume_queue(SCHEDULE_TOPIC, level - 1)
            following = max(node.store.delivered[level], queue.min_offset)
            waiting = [(offset, queue.tags_code(offset)) for offset in range(following, queue.max_offset)]
        for offset, due in waiting:
            message = node.message(SCHEDULE_TOPIC, level - 1, offset)
            if message is not None:
                topic = message.properties.get(names.PROPERTY_REAL_TOPIC, "")
                number = int(message.properties.get(names.PROPERTY_REAL_QUEUE_ID, "0"))
                retried = topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX)
                group = topic.removeprefix(names.RETRY_GROUP_TOPIC_PREFIX) if retried else None
                of_topic = message.properties.get(names.PROPERTY_RETRY_TOPIC, topic) if retried else topic
                if wanted in (None, topic, of_topic):
                    where = MessageQueue(of_topic, node.name, number)
                    yield HeldMessage(message.msg_id, where, -1, group, HeldReason.DELAYED, due)
