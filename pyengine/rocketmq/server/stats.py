"""How many messages came and went of late, by RocketMQ's own names and windows (StatsItem, BrokerStatsManager)."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

SECOND = 1000
# Window of the answer -> ms between two samples, and how many are kept.
WINDOWS = {
    "statsMinute": (10 * SECOND, 7),
    "statsHour": (600 * SECOND, 7),
    "statsDay": (3600 * SECOND, 25),
}


class _Window:
    """Samples of a count. A sample is due every ``interval`` ms from ``start`` on; they are made up when they are
    needed, as the count stands still in between.
    """

    def __init__(self, start: int, now: int, interval: int, kept: int) -> None:
        self._start = start
        self._interval = interval
        self._samples: deque[tuple[int, int, int]] = deque(maxlen=kept)  # when, calls, messages
        self._ticks = (now - start) // interval

    def sample(self, now: int, calls: int, messages: int) -> None:
        """Take the samples that were due until now; nothing was counted since the last."""
        due = (now - self._start) // self._interval
        if due <= self._ticks:
            return
        for tick in range(max(self._ticks, due - (self._samples.maxlen or 0)) + 1, due + 1):
            when = self._start + tick * self._interval
            if not self._samples:
                self._samples.append((when - self._interval, 0, 0))
            self._samples.append((when, calls, messages))
        self._ticks = due

    def data(self) -> dict[str, Any]:
        """BrokerStatsItem."""
        if not self._samples:
            return {"sum": 0, "tps": 0.0, "avgpt": 0.0}
        first, last = self._samples[0], self._samples[-1]
        total, calls, elapsed = last[2] - first[2], last[1] - first[1], last[0] - first[0]
        return {
            "sum": total,
            "tps": total * 1000 / elapsed if elapsed > 0 else 0.0,
            "avgpt": total / calls if calls > 0 else 0.0,
        }


class Stats:
    """Counts by name and key, as ``TOPIC_PUT_NUMS`` of a topic; safe from any thread. start: of the broker, ms."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._windows: dict[tuple[str, str], dict[str, _Window]] = {}

    def add(self, name: str, key: str, now: int, messages: int = 1) -> None:
        """One call brought so many messages."""
        with self._lock:
            counts = self._counts.setdefault((name, key), [0, 0])
            windows = self._windows.get((name, key))
            if windows is None:
                windows = {title: _Window(self._start, now, *shape) for title, shape in WINDOWS.items()}
                self._windows[name, key] = windows
            for window in windows.values():
                window.sample(now, *counts)
            counts[0] += 1
            counts[1] += messages

    def data(self, name: str, key: str, now: int) -> dict[str, Any] | None:
        """BrokerStatsData, None if nothing was counted."""
        with self._lock:
            windows = self._windows.get((name, key))
            if windows is None:
                return None
            for window in windows.values():
                window.sample(now, *self._counts[name, key])
            return {title: window.data() for title, window in windows.items()}

    def tps(self, name: str, key: str, now: int) -> float:
        """Messages a second over the last minute."""
        found = self.data(name, key, now)
        return 0.0 if found is None else float(found["statsMinute"]["tps"])
