"""Which destinations there are, and where a message goes that is sent to one: composites and virtual destinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from pyengine import Selector
from pyengine._engine.activemq.region.queue_region import QueueRegion, Way
from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine._engine.activemq.region.virtual_destinations import Forwarding, consumer_queues, feeds, lets_in, maps
from pyengine._engine.message.message import Message
from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.broker.services import BrokerServices
from pyengine.activemq.broker.topic_destination import TopicDestination
from pyengine.activemq.broker.transaction import Transaction
from pyengine.dataclass import dataclass
from pyengine.destinations import ANY_REST, Destination, composite_parts, overlap, parse_destination
from pyengine.errors import ConfigurationError, InvalidDestinationError, JMSError
from pyengine.topology.policy import (
    CompositeQueue,
    CompositeTopic,
    FilteredDestination,
    Policy,
    VirtualDestination,
    VirtualTopic,
)

AnyDestination: TypeAlias = QueueDestination | TopicDestination
WAYS_KEPT = 4096


class _Composite:
    """A composite queue or topic: its forwarding rule and where the copies go."""

    def __init__(self, given: CompositeQueue) -> None:
        self.targets: list[tuple[Destination, ...]] = []
        filters: list[Selector | None] = []
        for target in given.forward_to:
            filtered = isinstance(target, FilteredDestination)
            text = target.destination if isinstance(target, FilteredDestination) else target
            selector = target.selector if isinstance(target, FilteredDestination) else ""
            if filtered and not selector.strip():
                continue
            self.targets.append(parse_destination(text))
            filters.append(Selector(selector) if filtered else None)
        self.rule = Forwarding(
            filters, forward_only=given.forward_only, send_when_not_matched=given.send_when_not_matched
        )


@dataclass(slots=True, eq=False)
class Sent:
    """A step of a transaction: a message that its target gets at commit; where it goes was decided when it was sent."""

    router: Router
    target: AnyDestination
    message: Message

    @property
    def together(self) -> Destination | None:
        """Its queue, if it is persistent."""
        queue = self.message.persistent and self.target.destination.kind == "queue"
        return self.target.destination if queue else None

    def commit(self) -> QueueDestination | None:
        """The target gets it."""
        return self.router.commit(self)

    def rollback(self) -> None:
        """It goes nowhere."""


class SingleWay(Way):
    """To one destination, and to what its interceptors feed."""

    def __init__(
        self,
        destination: Destination,
        text: str,
        queue: RegionQueue | None,
        router: Router,
        target: AnyDestination,
        interceptors: tuple[VirtualTopic | _Composite, ...],
    ) -> None:
        self._router = router
        self.target = target
        self.interceptors = interceptors

    def send(self, message: Message, now: int, within: Transaction | None) -> None:
        """See Way."""
        self._router.send(self.target, self.interceptors, message, now, within)


class CompositeWay(Way):
    """To each part of a composite, which may be made or removed from one message to the next."""

    def __init__(self, destination: Destination, text: str, queue: None, router: Router) -> None:
        self._router = router

    def send(self, message: Message, now: int, within: Transaction | None) -> None:
        """See Way."""
        self._router.send_parts(self.destination, message, now, within)


class Router:
    """The destinations of a broker, made on first use. make: makes one. attach: called with each that was made."""

    def __init__(
        self,
        services: BrokerServices,
        region: QueueRegion,
        virtual_destinations: Iterable[VirtualDestination],
        *,
        make: Callable[[Destination, Policy | None], AnyDestination],
        attach: Callable[[AnyDestination], None],
    ) -> None:
        self._services = services
        self._region = region
        self._make = make
        self._attach = attach
        self.creator: str | None = None  # the connection whose command makes destinations now
        self.destinations: dict[Destination, AnyDestination] = {}
        self._wild = 0  # how many of them have a wildcard's name
        self._virtual: list[tuple[Destination, VirtualTopic | _Composite]] = []
        self._interceptors: dict[Destination, tuple[VirtualTopic | _Composite, ...]] = {}
        self._fed: dict[tuple[Destination, str], tuple[QueueDestination, ...]] = {}
        self._mapped: set[Destination] = set()  # queues that virtual topics feed
        self._forwarding: list[tuple[_Composite, Destination]] = []  # whose copies are under way
        for given in virtual_destinations:
            if not isinstance(given, VirtualDestination):
                hint = "give VirtualTopic, CompositeQueue or CompositeTopic of pyengine.topology.policy"
                raise ConfigurationError("virtual_destinations", repr(given), "is not a virtual destination", hint)
            kind = "topic" if isinstance(given, (VirtualTopic, CompositeTopic)) else "queue"
            virtual = given if isinstance(given, VirtualTopic) else _Composite(given)
            for pattern in parse_destination(given.name, kind):
                self._virtual.append((pattern, virtual))

    @contextmanager
    def on_behalf_of(self, connection_id: str) -> Iterator[None]:
        """Destinations made meanwhile are made by a command of that connection."""
        before, self.creator = self.creator, connection_id
        try:
            yield
        finally:
            self.creator = before

    def find(self, destination: Destination, *, create_temporary: bool = False) -> AnyDestination:
        """The destination of that name, made if it is not there. Raises InvalidDestinationError for a temporary one
        that does not exist."""
        found = self.destinations.get(destination)
        if found is not None:
            return found
        if destination.is_temporary and not create_temporary:
            raise InvalidDestinationError(f"the destination {destination} does not exist")
        name = Destination(destination.name, destination.kind) if destination.options else destination
        found = self._make(name, self._services.policies.policy_of(name))
        if isinstance(found, QueueDestination) and self._is_mapped(found):
            self._mapped.add(name)
        self.destinations[name] = found
        self._wild += name.is_pattern
        self._forget_fed(name)
        self._attach(found)
        return found

    def candidates(self, patterns: tuple[Destination, ...]) -> Iterable[tuple[Destination, AnyDestination]]:
        """The destinations that a consumer of these may meet, in the order in which they were made."""
        if len(patterns) > 1 or patterns[0].is_pattern or self._wild:
            return self.destinations.items()
        name = Destination(patterns[0].name, patterns[0].kind)
        found = self.destinations.get(name)
        return () if found is None else ((name, found),)

    def _is_mapped(self, queue: QueueDestination) -> bool:
        name = queue.destination.name
        if queue.destination.kind != "queue" or self._interceptors_of(queue):
            return False
        return any(
            overlap(consumer_queues(virtual.prefix, pattern.name, virtual.postfix), name)
            and maps(virtual.prefix, name, virtual.postfix)
            for pattern, virtual in self._virtual
            if isinstance(virtual, VirtualTopic)
        )

    def lets_in(self, asked: Destination, destination: Destination) -> bool:
        """Whether a consumer of ``asked``, which covers the destination, is attached to it."""
        return destination not in self._mapped or lets_in(
            asked.name, asked.is_pattern, destination.name, destination.is_pattern
        )

    def make_wildcard(self, pattern: Destination) -> None:
        """A consumer of a wildcard comes: where a virtual topic's prefix covers it, there is a queue of that very name,
        which the topic feeds (VirtualTopic.create)."""
        topics = (virtual for _, virtual in self._virtual if isinstance(virtual, VirtualTopic))
        if pattern.kind == "queue" and any(Destination(each.prefix + ANY_REST).matches(pattern) for each in topics):
            self.find(pattern)

    def remove(self, destination: Destination) -> None:
        """Forget a destination without consumers."""
        found = self.destinations.pop(destination, None)
        self._wild -= found is not None and destination.is_pattern
        self._mapped.discard(destination)
        self._interceptors.pop(destination, None)
        self._forget_fed(destination)
        self._region.ways.clear()
        if found is not None:
            found.dispose()

    def _forget_fed(self, changed: Destination) -> None:
        if not changed.is_temporary:  # virtual topics have no part in those
            self._fed.clear()

    def route(self, destination: Destination, message: Message, now: int, within: Transaction | None = None) -> None:
        """Send a message to every destination that ``destination`` names; within a transaction they get it when that is
        committed."""
        region = self._region
        region.sent += 1
        way = region.way(destination) or self.way(destination)
        message.received(way.text, region.sent, now)
        way.send(message, now, within)

    def way(self, destination: Destination) -> Way:
        """Where messages for ``destination`` go. Raises InvalidDestinationError for a temporary one that does not
        exist."""
        way: Way
        if "," in destination.name:
            way = CompositeWay(destination, str(destination), None, self)
        else:
            way = self._single_way(destination, self.find(destination))
        if len(self._region.ways) >= WAYS_KEPT:
            self._region.ways.clear()
        self._region.lead(way)
        return way

    def _single_way(self, destination: Destination, target: AnyDestination) -> SingleWay:
        interceptors = self._interceptors_of(target)
        queue = target.core if isinstance(target, QueueDestination) and not interceptors else None
        return SingleWay(destination, str(destination), queue, self, target, interceptors)

    def commit(self, step: Sent) -> QueueDestination | None:
        """The transaction of a message is committed. A temporary destination that was removed meanwhile takes it along;
        another one is created. Returns the queue whose round is the caller's to run."""
        target = step.target
        if self.destinations.get(target.destination) is not target:
            if target.destination.is_temporary:
                return None
            target = self.find(target.destination)
        if isinstance(target, QueueDestination):
            target.append(step.message)
            return target
        target.put(step.message, self._services.clock.now())
        return None

    def route_all(self, destination: Destination, messages: list[Message], connection_id: str, now: int) -> None:
        """``route`` for many messages of one connection, in order."""
        way = self._region.way(destination)
        if isinstance(way, SingleWay) and isinstance(way.target, QueueDestination) and not way.interceptors:
            first = self._region.sent + 1
            if way.target.put_all(messages, way.text, connection_id, first, now):
                self._region.sent += len(messages)
                return
        for message in messages:
            message.connection_id = connection_id
            self.route(destination, message, now)

    def _interceptors_of(self, target: AnyDestination) -> tuple[VirtualTopic | _Composite, ...]:
        interceptors = self._interceptors.get(target.destination)
        if interceptors is None:
            name = target.destination
            interceptors = self._interceptors[name] = tuple(
                virtual
                for pattern, virtual in self._virtual
                if pattern.matches(name)
                or (name.is_pattern and pattern.kind == name.kind and overlap(pattern.name, name.name))
            )
        return interceptors

    def resend(self, message: Message, destination: Destination) -> None:
        """Send a message of the broker itself that comes from another destination."""
        message.original_destination = message.destination
        message.redelivery_counter = 0
        self.route(destination, message, self._services.clock.now())

    def send(
        self,
        target: AnyDestination,
        interceptors: tuple[VirtualTopic | _Composite, ...],
        message: Message,
        now: int,
        within: Transaction | None,
    ) -> None:
        """Bring a message to a destination, past its interceptors; see Way.send."""
        if not interceptors:
            self._put(target, message, now, within)
            return
        for virtual in interceptors:
            if isinstance(virtual, VirtualTopic):
                self._feed(virtual, target, message, now, within)
                self._put(target, message.copy() if len(interceptors) > 1 else message, now, within)
            elif self._forward(virtual, target, message, now, within):
                self._put(target, message.copy(), now, within)

    def send_parts(self, destination: Destination, message: Message, now: int, within: Transaction | None) -> None:
        """Bring a message to each part of a composite, the last of which gets the message itself."""
        parts = composite_parts(destination)
        for index, part in enumerate(parts):
            own = message if index == len(parts) - 1 else message.copy()
            own.original_destination = str(destination)
            own.received(str(part), self._region.sent, now)
            target = self.find(part)
            self.send(target, self._interceptors_of(target), own, now, within)

    def _put(self, target: AnyDestination, message: Message, now: int, within: Transaction | None) -> None:
        if within is None:
            target.put(message, now)
        else:
            within.steps.append(Sent(self, target, message))

    def _feed(
        self, virtual: VirtualTopic, topic: AnyDestination, message: Message, now: int, within: Transaction | None
    ) -> None:
        """Copies for the consumer queues of a virtual topic, in the order in which the queues were made."""
        if virtual.local and message.broker_path is not None:
            return
        name = topic.destination.name
        key = (topic.destination, virtual.prefix + "\0" + virtual.postfix)
        queues = self._fed.get(key)
        if queues is None:
            pattern = consumer_queues(virtual.prefix, name, virtual.postfix)
            queues = self._fed[key] = tuple(
                queue
                for queue in self.destinations.values()
                if isinstance(queue, QueueDestination)
                and queue.destination.kind == "queue"
                and overlap(pattern, queue.destination.name)
                and feeds(virtual.prefix, queue.destination.name)
            )
        for queue in queues:
            if virtual.selector_aware and not queue.core.wanted(message):
                continue
            own = message.copy()
            if virtual.set_original_destination:
                own.original_destination = message.destination
                own.destination = str(queue.destination)
            self.send(queue, self._interceptors_of(queue), own, now, within)

    def _forward(
        self, composite: _Composite, source: AnyDestination, message: Message, now: int, within: Transaction | None
    ) -> bool:
        """Copies for what a composite forwards to; True if the message goes on to the destination itself. Raises
        JMSError if a copy comes back to the composite."""
        matching, goes_on = composite.rule.route(message)
        way = (composite, source.destination)
        if way in self._forwarding:
            names = " -> ".join(str(name) for _, name in (*self._forwarding[self._forwarding.index(way) :], way))
            raise JMSError(f"a composite destination forwards to itself: {names}; take one of them out of forward_to")
        self._forwarding.append(way)
        try:
            for index in matching:
                for part in composite.targets[index]:
                    own = message.copy()
                    own.original_destination = message.destination
                    self.route(part, own, now, within)
        finally:
            self._forwarding.pop()
        return goes_on
