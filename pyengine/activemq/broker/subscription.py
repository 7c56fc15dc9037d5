"""A consumer as the broker knows it: where it takes messages from and what it holds."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from pyengine import Selector
from pyengine._engine.activemq.region.prefetch_subscription import PrefetchSubscription
from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine._engine.activemq.region.shared_credit import SharedCredit
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.dispatch_task import DispatchTask
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.broker.transaction import Transaction
from pyengine.activemq.transport.commands import ConnectionSink, ConsumerInfo, MessageAck, MessageDispatch, MessagePull
from pyengine.clock import Timer
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination, overlap
from pyengine.topology.policy import Policy


class Source(Protocol):
    """A queue, as what happens to one of its consumers uses it (queues.QueueDestination)."""

    @property
    def destination(self) -> Destination:
        """Its name."""

    @property
    def core(self) -> RegionQueue:
        """What decides."""

    def remove(self, subscription: Subscription, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """Detach a consumer."""

    def acknowledge(
        self, subscription: Subscription, ack: MessageAck, transaction: Transaction | None, now: int
    ) -> None:
        """A consumer acknowledges messages."""

    def pull(self, subscription: Subscription, pull: MessagePull) -> None:
        """A consumer with prefetch 0 asks for a message."""

    def offer(self, subscription: Subscription) -> None:
        """A consumer of several queues with prefetch 0 asks for a message."""

    def run(self, now: int | None = None) -> None:
        """Make the rounds that were asked for."""

    def wake(self) -> None:
        """Ask for a round and make it."""


@dataclass(slots=True, eq=False)
class Connection:
    """A connection: its sink, consumers and temporary destinations."""

    connection_id: str
    client_id: str
    sink: ConnectionSink
    task: DispatchTask
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    temporary: dict[Destination, None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Subscription(PrefetchSubscription):
    """One consumer; what it holds comes from a queue or from the topics.

    queues: its id in the core of every queue it consumes. topic: its id in the core's topics, None if it consumes
    queues. acknowledged: the newest message that a topic's consumer acknowledged, with its handle. spread: it has
    several queues, or is a wildcard or composite, which waits for destinations that others make; it has one prefetch
    for all, the ``credit``. asked: when the time of its last pull from several queues is over.
    """

    info: ConsumerInfo
    connection: Connection
    patterns: tuple[Destination, ...]
    selector: Selector | None
    policy: Policy | None
    prefetch: int
    queues: dict[Source, int] = field(default_factory=dict)
    topic: int | None = None
    acknowledged: dict[str, int] = field(default_factory=dict)
    asked: Timer | None = None
    spread: bool = field(init=False)

    def __post_init__(self) -> None:
        self.spread = "," in self.info.destination.name or self.patterns[0].is_pattern
        self.consumer_id = self.info.consumer_id
        self.browser = self.info.browser
        sink = self.connection.sink
        self.route = self.connection.task if self.info.dispatch_async and not sink.queued else sink.dispatch

    def covers(self, destination: Destination) -> bool:
        """True if it consumes ``destination``."""
        return any(pattern.matches(destination) for pattern in self.patterns)

    def meets(self, destination: Destination) -> bool:
        """The same where the destination's own name may be a wildcard, which covers what the consumer asks for."""
        return any(part.kind == destination.kind and overlap(part.name, destination.name) for part in self.patterns)

    def begin(self, queue: Source, number: int) -> None:
        """Add a queue of which it holds nothing yet."""
        self.queues[queue] = number
        if self.spread:
            if self.credit is None:
                self.credit = SharedCredit(self.prefetch)
            queue.core.spread(number, self.credit)

    def end(self, queue: Source) -> int:
        """One queue less; returns the number that it had there."""
        return self.queues.pop(queue)

    def wake(self, besides: Source) -> None:
        """It has room again, in all its queues: each of them makes a round, but one that has, and those where a round
        would change nothing."""
        if self.credit is not None:
            for queue in self.credit.wakes(besides.core):
                queue.owner.wake()

    @property
    def browse_limit(self) -> int | None:
        """How many messages a browser may still be given by one more queue; 0 or None: any number, -1: none."""
        limit = None if self.policy is None else self.policy.max_browse_page_size
        return limit if not limit else limit - self.given or -1

    def dispatch(
        self, outbox: Outbox, destination: Destination | None, message: Message | None, redeliveries: int
    ) -> None:
        """Give it a message, or the null dispatch, once the present change is over; not over a lost connection."""
        if self.route is not None:
            outbox.post(self.route, MessageDispatch(self.info.consumer_id, destination, message, redeliveries))
