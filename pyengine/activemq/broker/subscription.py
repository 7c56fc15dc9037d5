"""A consumer as the broker knows it: where it takes messages from and what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyengine import Selector
from pyengine._engine.activemq.region.prefetch_subscription import PrefetchSubscription
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.dispatch_task import DispatchTask
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.transport.commands import ConnectionSink, ConsumerInfo, MessageDispatch
from pyengine.clock import Timer
from pyengine.destinations import Destination, overlap
from pyengine.topology.policy import Policy

if TYPE_CHECKING:
    from pyengine.activemq.broker.queues import QueueDestination
    from pyengine.activemq.broker.transaction import Transaction


@dataclass(slots=True, eq=False)
class Connection:
    """A connection: its sink, producers and where each sends, consumers, temporary destinations, open transactions."""

    connection_id: str
    client_id: str
    sink: ConnectionSink
    task: DispatchTask
    producers: dict[str, Destination | None] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    temporary: dict[Destination, None] = field(default_factory=dict)
    transactions: dict[str, Transaction] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Subscription(PrefetchSubscription):
    """One consumer; what it holds comes from a queue or from the topics.

    queues: its id in the core of every queue it consumes. topic: its id in the core's topics, None if it consumes
    queues. acknowledged: the newest message that a topic's consumer acknowledged, with its handle. spread: it has
    several queues, or is a wildcard or composite, which waits for destinations that others make; it has one prefetch
    for all, and one prefetch extension: every queue has the same, and where one differs, it changed last. asked: when
    the time of its last pull from several queues is over.
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
    asked: Timer | None = None
    spread: bool = field(init=False)
    _told: dict[QueueDestination, tuple[int, int]] = field(default_factory=dict)
    _held: int = 0
    _latest: QueueDestination | None = None

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

    def begin(self, queue: QueueDestination, number: int) -> None:
        """One more of its queues, where it holds nothing yet."""
        self.queues[queue] = number
        self._told[queue] = (0, self.extension)
        if self.spread:
            queue.core.share_credit(number, self._held, self.extension)

    def end(self, queue: QueueDestination) -> int:
        """One queue less; returns the number that it had there."""
        self._held -= self._told.pop(queue, (0, 0))[0]
        return self.queues.pop(queue)

    def share(self, queue: QueueDestination) -> None:
        """Tell a queue that changed, or is to make a round, what the others hold, and the prefetch extension."""
        if self._latest is not None and self._latest is not queue:
            self._read(self._latest)
        self._read(queue)
        self._latest = queue
        held, _ = self._told[queue]
        self._told[queue] = (held, self.extension)
        queue.core.share_credit(self.queues[queue], self._held - held, self.extension)

    def _read(self, queue: QueueDestination) -> None:
        # Only the queue that was told last can have changed since, and the one whose turn it is.
        if queue in self._told:
            before, told = self._told[queue]
            held, _, extension = queue.core.credit(self.queues[queue])
            self._held += held - before
            self._told[queue] = (held, told)
            if extension != told:
                self.extension = extension
                self._told[queue] = (held, extension)

    def extend(self, extension: int) -> None:
        """Set the prefetch extension of every queue."""
        for queue in self.queues:
            self._read(queue)
        self.extension = extension
        for queue in self.queues:
            self.share(queue)

    @property
    def browse_limit(self) -> int | None:
        """How many messages a browser may still be given by one more queue; 0 or None: any number, -1: none."""
        limit = None if self.policy is None else self.policy.max_browse_page_size
        return limit if not limit else limit - self.handed_out or -1

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
