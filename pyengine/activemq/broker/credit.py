"""The prefetch of a consumer of several queues: one counter, of which each queue is told what the others hold."""

from __future__ import annotations

from dataclasses import dataclass

from pyengine._engine.activemq.region.region_queue import RegionQueue


@dataclass(slots=True)
class _Part:
    """One queue's. number: the consumer's id there. held: what is counted of it. extension: what it was told."""

    number: int
    extension: int
    held: int = 0


class Credit:
    """What one consumer holds, and its prefetch extension, over all its queues.

    Every queue has the same extension; if one differs, it changed last. A queue counts by itself between two calls of
    ``share``: only the one that was told last can have changed since.
    """

    def __init__(self) -> None:
        self._parts: dict[RegionQueue, _Part] = {}
        self._held = 0
        self._extension = 0
        self._latest: RegionQueue | None = None

    def begin(self, queue: RegionQueue, number: int, *, shared: bool) -> None:
        """One more queue, where the consumer holds nothing yet. shared: it has others, or may get them."""
        self._parts[queue] = _Part(number, self._extension)
        if shared:
            queue.share_credit(number, self._held, self._extension)

    def end(self, queue: RegionQueue) -> None:
        """One queue less, with what the consumer holds of it."""
        self._held -= self._parts.pop(queue).held

    def share(self, queue: RegionQueue) -> None:
        """Tell a queue that changed, or is to make a round, what the others hold, and the prefetch extension."""
        if self._latest is not None and self._latest is not queue:
            self._read(self._latest)
        self._read(queue)
        self._latest = queue
        part = self._parts[queue]
        part.extension = self._extension
        queue.share_credit(part.number, self._held - part.held, self._extension)

    def extend(self, extension: int) -> None:
        """Set the prefetch extension of every queue."""
        for queue in self._parts:
            self._read(queue)
        self._extension = extension
        for queue in self._parts:
            self.share(queue)

    def _read(self, queue: RegionQueue) -> None:
        part = self._parts.get(queue)
        if part is None:
            return
        held, _, extension = queue.credit(part.number)
        self._held += held - part.held
        part.held = held
        if extension != part.extension:
            self._extension = part.extension = extension
