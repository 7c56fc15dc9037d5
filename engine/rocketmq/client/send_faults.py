"""Which queue a producer sends to, and which brokers it avoids (MQFaultStrategy, LatencyFaultToleranceImpl)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyengine._engine.rocketmq.commands.message_queue import MessageQueue

# An answer that took so long, ms -> the broker is avoided so long, ms.
ISOLATIONS = ((15_000, 30_000), (5000, 10_000), (3000, 6000), (1800, 5000), (550, 2000), (100, 0), (50, 0))
ISOLATED_LATENCY = 10_000  # what a failure counts for
MOST_INDEX = 2**31 - 1


def isolation(latency: int) -> int:
    """ms for which a broker is avoided that took ``latency`` ms."""
    return next((duration for least, duration in ISOLATIONS if latency >= least), 0)


class _Fault:
    """The record of one broker. available_at, checked_at: ms."""

    __slots__ = ("available_at", "checked_at", "reachable")

    def __init__(self) -> None:
        self.available_at = 0
        self.checked_at = 0
        self.reachable = True


class SendFaults:
    """The brokers of one producer. enabled: slow and failing ones are avoided (sendLatencyFaultEnable); otherwise only
    the one that the try before went to. draw: function() that gives the number of a topic's first queue. Times are ms.
    """

    def __init__(self, draw: Callable[[], int], *, enabled: bool = False) -> None:
        self.enabled = enabled
        self._draw = draw
        self._faults: dict[str, _Fault] = {}
        self._turns: dict[str, int] = {}

    def update(self, broker: str, latency: int, now: int, *, isolated: bool, reachable: bool) -> list[str]:
        """A broker has answered after ``latency`` ms, or has not: isolated counts as ten seconds. Returns log lines."""
        if not self.enabled:
            return []
        duration = isolation(ISOLATED_LATENCY if isolated else latency)
        fault = self._faults.setdefault(broker, _Fault())
        lines = []
        if duration > 0 and now + duration > fault.available_at:
            fault.available_at = now + duration
            lines.append(f"{broker} will be isolated for {duration} ms.")
        fault.reachable = reachable
        if not reachable:
            lines.append(f"{broker} is unreachable, it will not be used until it's reachable")
        return lines

    def is_available(self, broker: str, now: int) -> bool:
        """False while a broker is avoided for being slow or for a failure."""
        fault = self._faults.get(broker)
        return fault is None or now >= fault.available_at

    def is_reachable(self, broker: str) -> bool:
        """False from a refusal, or from a lost connection under a detector, until it answers again."""
        fault = self._faults.get(broker)
        return fault is None or fault.reachable

    def select(self, topic: str, queues: Sequence[MessageQueue], last_broker: str | None, now: int) -> MessageQueue:
        """The next queue in turn, at another broker than the last, if there is one; with faults at one that is
        available, or else reachable. last_broker: of the try before, None for the first. queues: not empty.
        """
        if self.enabled and last_broker is not None:
            self._turns.pop(topic, None)  # resetIndex
        accepts: list[Callable[[str], bool]] = [lambda broker: True]
        if self.enabled:
            accepts = [lambda broker: self.is_available(broker, now), self.is_reachable]
        for accept in accepts:
            for _ in queues:
                chosen = queues[self._next(topic) % len(queues)]
                if chosen.broker_name != last_broker and accept(chosen.broker_name):
                    return chosen
        return queues[self._next(topic) % len(queues)]

    def _next(self, topic: str) -> int:
        """The index behind the last one of a topic; the first is drawn (ThreadLocalIndex)."""
        index = self._turns.get(topic)
        index = self._draw() if index is None else index
        self._turns[topic] = (index + 1) & MOST_INDEX
        return self._turns[topic]

    def due(self, now: int, interval: int) -> list[str]:
        """The brokers that a detector must ask now; each again after ``interval``."""
        found = [broker for broker, fault in self._faults.items() if now >= fault.checked_at]
        for broker in found:
            self._faults[broker].checked_at = now + interval
        return found

    def detected(self, broker: str, found: bool | None) -> list[str]:
        """What a detector has found out: it answers, it does not, or (None) it is unknown. Returns log lines."""
        fault = self._faults.get(broker)
        if found is None:
            self._faults.pop(broker, None)
        elif fault is not None and found and not fault.reachable:
            fault.reachable = True
            return [f"{broker} is reachable now, then it can be used."]
        return []
