"""A local transaction: what was sent and acknowledged in it, applied in that order at commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pyengine._engine.message import Message
from pyengine.destinations import Destination

if TYPE_CHECKING:
    from pyengine.activemq.queues import QueueDestination
    from pyengine.activemq.subscription import Subscription


@dataclass(frozen=True, slots=True)
class Sent:
    """A message to send at commit."""

    destination: Destination
    message: Message


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Messages that a queue's core keeps in flight, under ``key``, until the transaction ends."""

    queue: QueueDestination
    subscription: Subscription
    key: tuple[str, int]
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TopicAcknowledged:
    """Messages from topics that the core keeps unacknowledged, under ``key``, until the transaction ends."""

    subscription: Subscription
    key: tuple[str, int]


Step: TypeAlias = Sent | Acknowledged | TopicAcknowledged


@dataclass(slots=True, eq=False)
class Transaction:
    """The steps of a transaction of one connection, in order."""

    transaction_id: str
    connection_id: str
    steps: list[Step] = field(default_factory=list)

    def acknowledged(self, subscription: Subscription, message_id: str) -> int:
        """How many messages of this id the consumer has acknowledged in it."""
        return sum(
            message.message_id == message_id
            for step in self.steps
            if isinstance(step, Acknowledged) and step.subscription is subscription
            for message in step.messages
        )
