"""The last sequence id of each producer whose client fails over: what it sends again is known by it."""

from __future__ import annotations

from collections.abc import Iterable

PRODUCERS = 64  # that are kept, those that sent last (KahaDB's maxFailoverProducersToTrack)
NONE = -1


class ProducerSequenceIds:
    """Those of one broker (KahaDB's producerSequenceIdTracker). known: producer and sequence id, of a store."""

    def __init__(self, known: Iterable[tuple[str, int]] = ()) -> None:
        self._last = dict(known)

    def last_produced(self, producer: str) -> int:
        """The sequence id of a producer's last message; -1: none, or 64 other producers were there since."""
        return self._last.get(producer, NONE)

    def produced(self, producer: str, number: int) -> tuple[int, str | None]:
        """A message of a producer came. Returns its last sequence id, and the producer that is forgotten for it."""
        last = self._last[producer] = max(number, self._last.pop(producer, NONE))
        if len(self._last) <= PRODUCERS:
            return last, None
        eldest = next(iter(self._last))
        del self._last[eldest]
        return last, eldest
