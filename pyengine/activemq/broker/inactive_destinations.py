"""Removes destinations that no client uses: gcInactiveDestinations, inactiveTimeoutBeforeGC."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.broker.router import AnyDestination, Router
from pyengine.activemq.broker.services import BrokerServices
from pyengine.activemq.broker.topics import Topics
from pyengine.destinations import Destination


class InactiveDestinations:
    """The sweep of one broker (RegionBroker.purgeInactiveDestinations), every ``period`` ms; 0: never.

    A destination without consumers, producers and messages is marked at a sweep, and removed at the first one that is
    its inactive_timeout_before_gc later, unless something was sent to it or a client came meanwhile. producers: how
    many a destination has. remove: removes one.
    """

    def __init__(
        self,
        services: BrokerServices,
        router: Router,
        topics: Topics,
        period: int,
        *,
        producers: Callable[[Destination], int],
        remove: Callable[[Destination], None],
    ) -> None:
        self._services = services
        self._router = router
        self._topics = topics
        self._producers = producers
        self._remove = remove
        self._period = period
        # Since when a destination is marked, and how many messages and consumers it had seen by then.
        self._marked: WeakKeyDictionary[AnyDestination, tuple[int, tuple[int, int]]] = WeakKeyDictionary()
        if period > 0:
            services.call_at(services.clock.now() + period, self._sweep)

    def _sweep(self) -> None:
        now = self._services.clock.now()
        for destination in list(self._router.destinations.values()):
            policy, name = destination.policy, destination.destination
            if policy is None or not policy.gc_inactive_destinations or name.is_temporary:
                continue
            if not self._idle(destination):
                self._marked.pop(destination, None)
                continue
            activity = self._seen(destination)
            since, before = self._marked.get(destination, (now, activity))
            if before != activity:
                since = now
            self._marked[destination] = since, activity
            if 0 < policy.inactive_timeout_before_gc <= now - since:
                self._remove(name)
        self._services.call_at(now + self._period, self._sweep)

    def _idle(self, destination: AnyDestination) -> bool:
        if destination.consumers() or self._producers(destination.destination):
            return False
        if isinstance(destination, QueueDestination):
            return not destination.behind and not destination.core.statistics["size"]
        return not self._topics.durables.covers(destination)

    def _seen(self, destination: AnyDestination) -> tuple[int, int]:
        if isinstance(destination, QueueDestination):
            return destination.core.statistics["enqueues"], destination.came
        return self._topics.region.statistics(destination.number)["enqueues"], destination.came
