"""How fast a consumer pulls and consumes, topic by topic (ConsumerStatsManager, spec rocketmq 9)."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import field

from pyengine._engine.rocketmq.client.consume_rates import Rate
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass


@frozen
@dataclass(frozen=True, slots=True)
class ConsumeStatus:
    """Rates of one topic. RT: ms a call, over the last minute; consume_rt over the last hour if that has none.

    TPS: messages a second over the last minute. consume_failed_msgs: failed messages of the last hour.
    """

    pull_rt: float = 0.0
    pull_tps: float = 0.0
    consume_rt: float = 0.0
    consume_ok_tps: float = 0.0
    consume_failed_tps: float = 0.0
    consume_failed_msgs: int = 0


@dataclass(slots=True)
class _Rates:
    pull_rt: Rate = field(default_factory=Rate)
    pull_tps: Rate = field(default_factory=Rate)
    consume_rt: Rate = field(default_factory=Rate)
    consume_ok_tps: Rate = field(default_factory=Rate)
    consume_failed_tps: Rate = field(default_factory=Rate)

    def all(self) -> tuple[Rate, ...]:
        return self.pull_rt, self.pull_tps, self.consume_rt, self.consume_ok_tps, self.consume_failed_tps


class ConsumeStatistics:
    """The rates of one consumer by topic and group; thread-safe.

    returns: how often a listener ended in each way (SUCCESS, FAILED, TIME_OUT, EXCEPTION, RETURNNULL).
    """

    def __init__(self) -> None:
        self.returns: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._rates: dict[tuple[str, str], _Rates] = {}

    def pulled(self, topic: str, group: str, elapsed: int, messages: int) -> None:
        """A pull found messages after ``elapsed`` ms; ``messages`` are left by the client's filter."""
        with self._lock:
            rates = self._of(topic, group)
            rates.pull_rt.add(elapsed)
            if messages:
                rates.pull_tps.add(messages)

    def consumed(self, topic: str, group: str, elapsed: int, kind: str) -> None:
        """A listener returned after ``elapsed`` ms."""
        with self._lock:
            self.returns[kind] += 1
            self._of(topic, group).consume_rt.add(elapsed)

    def settled(self, topic: str, group: str, ok: int, failed: int) -> None:
        """A batch was settled."""
        with self._lock:
            rates = self._of(topic, group)
            rates.consume_ok_tps.add(ok)
            rates.consume_failed_tps.add(failed)

    def sample(self, now: int) -> None:
        """Take a sample of everything. now: ms."""
        with self._lock:
            for rates in self._rates.values():
                for rate in rates.all():
                    rate.sample(now)

    def status(self, topic: str, group: str) -> ConsumeStatus:
        """The rates of one topic; all 0 if nothing was counted."""
        with self._lock:
            rates = self._rates.get((topic, group), _Rates())
            consumed = rates.consume_rt.in_minute()
            if not consumed.sum:
                consumed = rates.consume_rt.in_hour()
            return ConsumeStatus(
                rates.pull_rt.in_minute().average,
                rates.pull_tps.in_minute().tps,
                consumed.average,
                rates.consume_ok_tps.in_minute().tps,
                rates.consume_failed_tps.in_minute().tps,
                rates.consume_failed_tps.in_hour().sum,
            )

    def _of(self, topic: str, group: str) -> _Rates:
        rates = self._rates.get((topic, group))
        if rates is None:
            rates = self._rates[topic, group] = _Rates()
        return rates
