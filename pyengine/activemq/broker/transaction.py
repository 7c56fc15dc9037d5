"""A local transaction: what was sent and acknowledged in it, applied in that order at commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pyengine._engine.message.message import Message
from pyengine.destinations import Destination

if TYPE_CHECKING:
    from pyengine.activemq.broker.queues import QueueDestination
    from pyengine.activemq.broker.router import AnyDestination
    from pyengine.activemq.broker.subscription import Subscription


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that its target gets at commit; where it goes was decided when it was sent."""

    target: AnyDestination
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


def in_order(steps: list[Step]) -> list[Step]:
    """The steps as a commit makes them: the first persistent message of a queue takes the others along, which the store
    has by then (Queue.doPendingCursorAdditions)."""
    together: dict[Destination, list[Step]] = {}
    found: list[list[Step]] = []
    for step in steps:
        if isinstance(step, Sent) and step.message.persistent and step.target.destination.kind == "queue":
            if step.target.destination in together:
                together[step.target.destination].append(step)
                continue
            first: list[Step] = [step]
            together[step.target.destination] = first
            found.append(first)
        else:
            found.append([step])
    return [step for part in found for step in part]


@dataclass(slots=True, eq=False)
class Transaction:
    """The steps of a transaction of one connection, in order. failed: why it can only be rolled back."""

    transaction_id: str
    connection_id: str
    steps: list[Step] = field(default_factory=list)
    failed: Exception | None = None

    def acknowledged(self, subscription: Subscription, message_id: str) -> int:
        """How many messages of this id the consumer has acknowledged in it."""
        return sum(
            message.message_id == message_id
            for step in self.steps
            if isinstance(step, Acknowledged) and step.subscription is subscription
            for message in step.messages
        )
