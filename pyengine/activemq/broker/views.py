"""What the broker tells about its destinations and subscriptions: JMX's attributes, in snake_case, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pyengine._engine.activemq.queue.hold_reasons import HoldReason
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination


@frozen
@dataclass(frozen=True, slots=True)
class DestinationView:
    """DestinationViewMBean: counts since the destination was made, and its size now.

    queue_size: messages of a queue; of a topic those that its durable subscriptions wait for: enqueue_count -
    dequeue_count is not its backlog. in_flight_count: dispatched and not acknowledged. Sizes are bytes of messages.
    """

    name: str
    destination: Destination
    queue_size: int
    enqueue_count: int
    dequeue_count: int
    dispatch_count: int
    in_flight_count: int
    expired_count: int
    consumer_count: int
    producer_count: int
    memory_usage_byte_count: int
    average_message_size: float
    always_retroactive: bool = False
    max_page_size: int | None = 200
    prioritized_messages: bool = False
    dlq: bool = False


@frozen
@dataclass(frozen=True, slots=True)
class QueueView(DestinationView):
    """QueueViewMBean.

    message_groups: owner (consumer id) of every group. cursor_size: messages that are not paged in. hold_reasons: why
    the messages that wait do so. selector_errors: how often a selector could not be evaluated.
    """

    paused: bool = False
    message_groups: Mapping[str, str] = field(default_factory=dict)
    message_group_type: str = "cached"
    cursor_size: int = 0
    exclusive_consumer: str | None = None
    hold_reasons: Mapping[HoldReason, int] = field(default_factory=dict)
    selector_errors: int = 0


@frozen
@dataclass(frozen=True, slots=True)
class TopicView(DestinationView):
    """TopicViewMBean. discarded_count: messages its subscriptions gave up."""

    discarded_count: int = 0


@frozen
@dataclass(frozen=True, slots=True)
class SubscriptionView:
    """SubscriptionViewMBean, TopicSubscriptionViewMBean and DurableSubscriptionViewMBean.

    pending_queue_size: matched messages that wait for it (0 for a queue's consumer, which keeps none).
    dispatched_queue_size, message_count_awaiting_acknowledge: given and not acknowledged. discarded_count, matched,
    maximum_pending_queue_size: of a topic's consumer; matched is JMX's name for what is pending, the limit is -1 if
    there is none. consumed_count: how often a topic's consumer acknowledged, with any kind; 0 for a queue's and a
    durable one, of which the broker does not count it. assigned_group_count: groups it owns, by destination. active:
    False for a durable subscription whose consumer is away.
    """

    consumer_id: str
    client_id: str
    connection_id: str
    destination_name: str
    destination: Destination
    selector: str | None
    active: bool
    pending_queue_size: int
    dispatched_queue_size: int
    message_count_awaiting_acknowledge: int
    enqueue_counter: int
    dispatched_counter: int
    dequeue_counter: int
    consumed_count: int
    prefetch_size: int
    priority: int
    retroactive: bool
    exclusive: bool
    durable: bool
    no_local: bool
    dispatch_async: bool
    browser: bool
    subscription_name: str
    slow_consumer: bool
    discarded_count: int = 0
    matched: int = 0
    maximum_pending_message_limit: int = 0
    maximum_pending_queue_size: int = -1
    assigned_group_count: Mapping[str, int] = field(default_factory=dict)


@frozen
@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message of a queue that no consumer has now, and why. blocked_by: the consumer the reason is about."""

    message_id: str
    reason: HoldReason
    blocked_by: str | None = None
