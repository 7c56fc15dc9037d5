"""A consumer as the broker knows it: where it takes messages from and what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyengine import Selector
from pyengine._engine.message import Message
from pyengine._engine.prefetch_subscription import PrefetchSubscription
from pyengine._runtime.dispatch_task import DispatchTask
from pyengine._runtime.outbox import Outbox
from pyengine.activemq.commands import ConnectionSink, ConsumerInfo, MessageDispatch
from pyengine.destinations import Destination, overlap
from pyengine.topology.policy import Policy

if TYPE_CHECKING:
    from pyengine.activemq.queues import QueueDestination
    from pyengine.activemq.transaction import Transaction


@dataclass(slots=True, eq=False)
class Connection:
    """A connection: its sink, consumers, temporary destinations and open transactions."""

    connection_id: str
    client_id: str
    sink: ConnectionSink
    task: DispatchTask
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    temporary: dict[Destination, None] = field(default_factory=dict)
    transactions: dict[str, Transaction] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Subscription(PrefetchSubscription):
    """One consumer; what it holds comes from a queue or from the topics.

    queues: its id in the core of every queue it consumes. topic: its id in the core's topics, None if it consumes
    queues. acknowledged: the newest message that a topic's consumer acknowledged, with its handle. spread: it has
    several queues, or is a wildcard or composite, which waits for destinations that others make; it has one prefetch
    for all, and one prefetch extension: every queue has the same, and where one differs, it changed last.
    """

    info: ConsumerInfo
    connection: Connection
    patterns: tuple[Destination, ...]
    selector: Selector | None
    policy: Policy | None
    prefetch: int
    queues: dict[QueueDestination, int] = field(default_factory=dict)
    topic: int | None = None
    acknowledged: dict[str, int] = field(default_factory=dict)
    extension: int = 0
    spread: bool = field(init=False)

    def __post_init__(self) -> None:
        self.spread = "," in self.info.destination.name or self.patterns[0].is_pattern
        self.consumer_id = self.info.consumer_id
        self.browser = self.info.browser
        self.route = self.connection.task if self.info.dispatch_async else self.connection.sink.dispatch

    def covers(self, destination: Destination) -> bool:
        """True if it consumes ``destination``."""
        return any(pattern.matches(destination) for pattern in self.patterns)

    def meets(self, destination: Destination) -> bool:
        """The same where the destination's own name may be a wildcard, which covers what the consumer asks for."""
        return any(part.kind == destination.kind and overlap(part.name, destination.name) for part in self.patterns)

    def share(self) -> None:
        """Tell every queue what the others hold, and the prefetch extension."""
        credit = [(queue, number, *queue.core.credit(number)) for queue, number in self.queues.items()]
        total = sum(held for _, _, held, _, _ in credit)
        self.extension = next((changed for *_, changed in credit if changed != self.extension), self.extension)
        for queue, number, held, _, _ in credit:
            queue.core.share_credit(number, total - held, self.extension)

    def extend(self, extension: int) -> None:
        """Set the prefetch extension of every queue."""
        self.extension = extension
        for queue, number in self.queues.items():
            queue.core.share_credit(number, queue.core.credit(number)[1], extension)

    @property
    def handed_out(self) -> int:
        """How many messages its queues gave it."""
        return sum(queue.core.counters_of(number)["dispatched"] for queue, number in self.queues.items())

    def dispatch(
        self, outbox: Outbox, destination: Destination | None, message: Message | None, redeliveries: int
    ) -> None:
        """Give it a message, or the null dispatch, once the present change is over; not over a lost connection."""
        if self.route is not None:
            outbox.post(self.route, MessageDispatch(self.info.consumer_id, destination, message, redeliveries))
