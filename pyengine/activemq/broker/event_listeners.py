"""Callbacks of a broker's events, and the advisory messages that report the same to clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyengine._engine.activemq.region.queue_region import QueueRegion
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.broker.advisories import Advisories
from pyengine.activemq.broker.events import Event, NoConsumer, teller

E = TypeVar("E", bound=Event)


class EventListeners:
    """Reports each event of one broker to the callbacks that asked for its class, and to the advisories."""

    advisories: Advisories  # the broker sets them once it has a router

    def __init__(self, outbox: Outbox, region: QueueRegion) -> None:
        self._outbox = outbox
        self._region = region
        self._callbacks: dict[type[Event], list[Callable[[Any], object]]] = {}

    def add(self, event: type[E], callback: Callable[[E], object]) -> Callable[[], None]:
        """See ``Broker.on``."""
        if not (isinstance(event, type) and issubclass(event, Event)):
            raise TypeError(f"{event!r} is not a class of pyengine.activemq.broker.events")
        if not callable(callback):
            raise TypeError(f"a callback is a function of an event; not {callback!r}")
        callbacks = self._callbacks.setdefault(event, [])
        listener = teller(callback)
        callbacks.append(listener)
        self.update_region()
        return lambda: callbacks.remove(listener)

    def clear(self) -> None:
        """Forget every callback."""
        self._callbacks.clear()

    def update_region(self) -> None:
        """While no listener asks for messages without a consumer, the region takes them without a report."""
        asked = any(self._callbacks.get(kind) for kind in (NoConsumer, Event))
        self._region.reports_no_consumer = asked or self.advisories.listened

    def report(self, event: Event) -> None:
        """Post an event to its callbacks, and send the advisory message that a policy asks for."""
        for kind in (type(event), Event):
            for callback in self._callbacks.get(kind, ()):
                self._outbox.post(callback, event)
        self.advisories.fire(event)
