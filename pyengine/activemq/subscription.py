"""A consumer as the broker knows it: where it takes messages from and what it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyengine import Selector
from pyengine._engine.message import Message
from pyengine.activemq.commands import ConnectionSink, ConsumerInfo, MessageDispatch
from pyengine.activemq.outbox import DispatchTask, Outbox
from pyengine.destinations import Destination
from pyengine.topology.policy import Policy

if TYPE_CHECKING:
    from pyengine.activemq.queues import QueueDestination
    from pyengine.activemq.transaction import Transaction


@dataclass(slots=True, eq=False)
class Connection:
    """A connection: its sink, consumers, temporary destinations and open transactions. lost: nothing reaches it."""

    connection_id: str
    client_id: str
    sink: ConnectionSink
    task: DispatchTask
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    temporary: dict[Destination, None] = field(default_factory=dict)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    lost: bool = False


@dataclass(slots=True, eq=False)
class Subscription:
    """One consumer.

    queues: its id in the core of every queue it consumes. topic: its id in the core's topics, None if it consumes
    queues. held: what it was given and has not acknowledged, by message id, in the order in which it was given: where
    it came from (a queue, or the topics) and its handle there. acknowledged: the newest message that a topic's consumer
    acknowledged, with its handle. spread: it may consume several destinations, with one
    prefetch for all.
    """

    info: ConsumerInfo
    connection: Connection
    patterns: tuple[Destination, ...]
    selector: Selector | None
    policy: Policy | None
    prefetch: int
    queues: dict[QueueDestination, int] = field(default_factory=dict)
    topic: int | None = None
    held: dict[str, tuple[Any, int]] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    last_acknowledged: int = 0
    slow: bool = False
    spread: bool = field(init=False)

    def __post_init__(self) -> None:
        self.spread = len(self.patterns) > 1 or self.patterns[0].is_pattern

    def covers(self, destination: Destination) -> bool:
        """True if it consumes ``destination``."""
        return any(pattern.matches(destination) for pattern in self.patterns)

    def dispatch(
        self, outbox: Outbox, destination: Destination | None, message: Message | None, redeliveries: int
    ) -> None:
        """Give it a message, or the null dispatch, once the present change is over; not over a lost connection."""
        if self.connection.lost:
            return
        call: Callable[[MessageDispatch], None]
        call = self.connection.task.add if self.info.dispatch_async else self.connection.sink.dispatch
        outbox.post(call, MessageDispatch(self.info.consumer_id, destination, message, redeliveries))
