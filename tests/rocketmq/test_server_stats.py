"""Counts of messages in the real broker's windows: samples every ten seconds, ten minutes and hour."""

from __future__ import annotations

from pyengine.rocketmq.server.stats import Stats

START = 1_000_000
NAME = "TOPIC_PUT_NUMS"


def test_nothing_was_counted() -> None:
    assert Stats(START).data(NAME, "orders", START) is None
    assert Stats(START).tps(NAME, "orders", START) == 0.0


def test_a_count_shows_with_the_next_sample_and_leaves_after_a_minute() -> None:
    stats = Stats(START)
    for _ in range(4):
        stats.add(NAME, "orders", START + 3_000, 2)
    seen = {}
    for second in (9, 10, 25, 59, 60, 70, 80, 600, 4_000, 90_000, 90_001):
        data = stats.data(NAME, "orders", START + second * 1000)
        assert data is not None
        seen[second] = tuple(data[window]["sum"] for window in ("statsMinute", "statsHour", "statsDay"))
    # Seven samples: the oldest is a minute older than the newest.
    assert seen == {
        9: (0, 0, 0), 10: (8, 0, 0), 25: (8, 0, 0), 59: (8, 0, 0), 60: (8, 0, 0), 70: (0, 0, 0), 80: (0, 0, 0),
        600: (0, 8, 0), 4_000: (0, 8, 8), 90_000: (0, 0, 0), 90_001: (0, 0, 0),
    }  # fmt: skip


def test_rates_are_over_the_time_between_the_samples() -> None:
    stats = Stats(START)
    stats.add(NAME, "orders", START, 8)
    assert stats.tps(NAME, "orders", START + 10_000) == 0.8
    stats.add(NAME, "orders", START + 15_000, 8)
    data = stats.data(NAME, "orders", START + 20_000)
    assert data is not None
    assert data["statsMinute"] == {"sum": 16, "tps": 0.8, "avgpt": 8.0}
    assert stats.data(NAME, "other", START + 20_000) is None
