"""Abort strategies: what counts as slow, for how long, and who is spared."""

from __future__ import annotations

import pytest

from pyengine._engine.activemq.topic.abort_strategies import AbortSlowAckConsumer, AbortSlowConsumer
from pyengine.errors import ConfigurationError


def always(consumer: str) -> bool:
    return True


def test_defaults_are_the_brokers() -> None:
    strategy: AbortSlowAckConsumer[str] = AbortSlowAckConsumer()
    assert (strategy.max_slow_count, strategy.max_slow_duration, strategy.check_period) == (-1, 30_000, 30_000)
    assert (strategy.max_time_since_last_ack, strategy.ignore_idle_consumers) == (30_000, True)
    assert (strategy.abort_connection, strategy.ignore_network_consumers) == (False, True)
    with pytest.raises(ConfigurationError, match=r"abortSlowConsumerStrategy\.checkPeriod=soon"):
        AbortSlowConsumer(check_period="soon")  # type: ignore[arg-type]


def test_slow_for_as_many_checks_as_the_duration_has_periods() -> None:
    strategy: AbortSlowConsumer[str] = AbortSlowConsumer(check_period=200, max_slow_duration=400)
    assert strategy.slow("a")
    assert strategy.check(always) == []
    assert strategy.slow_consumers == {"a": (1, 1)}
    assert strategy.check(always) == ["a"]
    assert strategy.slow_consumers == {}
    strategy._check()


def test_slow_too_often() -> None:
    strategy: AbortSlowConsumer[str] = AbortSlowConsumer(max_slow_count=2, max_slow_duration=-1)
    strategy.slow("a")
    assert strategy.check(always) == []
    strategy.slow("a")
    assert strategy.check(always) == ["a"]


def test_one_that_is_no_longer_slow_starts_anew() -> None:
    strategy: AbortSlowConsumer[str] = AbortSlowConsumer(check_period=10, max_slow_duration=20)
    strategy.slow("a")
    assert strategy.check(lambda consumer: False) == []
    strategy.slow("a")
    assert strategy.check(always) == []


def test_no_limits_no_timer() -> None:
    strategy: AbortSlowConsumer[str] = AbortSlowConsumer(max_slow_count=-1, max_slow_duration=-1)
    assert not strategy.slow("a")
    assert strategy.check(always) == []


def test_bridges_are_spared_unless_told_otherwise() -> None:
    for ignore, aborted in ((True, []), (False, ["a"])):
        strategy: AbortSlowConsumer[str] = AbortSlowConsumer(
            check_period=10, max_slow_duration=10, ignore_network_consumers=ignore
        )
        strategy.slow("a")
        assert strategy.check(always, network_consumers=["a"]) == aborted


def test_an_old_acknowledgement_is_slow_at_once_and_aborted_later() -> None:
    strategy: AbortSlowAckConsumer[str] = AbortSlowAckConsumer(
        check_period=100, max_slow_duration=200, max_time_since_last_ack=150
    )
    flags: set[str] = set()
    rows = [("idle", 0, 0), ("prompt", 3, 90), ("late", 3, 0)]
    assert strategy.check_acknowledgements(flags.__contains__, rows, 100) == ([], [])
    assert strategy.check_acknowledgements(flags.__contains__, rows, 200) == (["late"], [])
    flags.add("late")
    assert strategy.check_acknowledgements(flags.__contains__, rows, 300) == (["prompt"], ["late"])
    strategy._check()


def test_idle_consumers_count_if_told_so() -> None:
    strategy: AbortSlowAckConsumer[str] = AbortSlowAckConsumer(
        check_period=100, max_slow_duration=100, max_time_since_last_ack=50, ignore_idle_consumers=False
    )
    assert strategy.check_acknowledgements(lambda _: False, [("idle", 0, 0)], 100) == (["idle"], ["idle"])


def test_a_negative_age_switches_the_acknowledgement_strategy_off() -> None:
    strategy: AbortSlowAckConsumer[str] = AbortSlowAckConsumer(max_time_since_last_ack=-1)
    assert strategy.check_acknowledgements(always, [("a", 1, 0)], 10**9) == ([], [])
    assert not strategy.slow("a")
