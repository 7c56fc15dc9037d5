"""Fixtures for tests of programs that use ActiveMQ or RocketMQ; pytest finds them where pyengine is installed.

pytest imports this module in every test run of the environment: it stands outside the package, whose import takes 0.4
seconds, and imports nothing of it before a fixture is used.

``activemq_clock`` is a time that the test moves, ``activemq_broker`` a broker in memory that lives by it, and
``activemq_connection`` a started connection to it. A test that wants policies makes its broker with
``activemq_make_broker(policies=[...])``; one that wants real threads passes ``clock=SystemClock()``.

``rocketmq_clock``, ``rocketmq_broker`` and ``rocketmq_make_broker(default_queues=1)`` are the same for RocketMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyengine import rocketmq
    from pyengine.activemq.broker.broker import Broker
    from pyengine.activemq.client.connection import Connection
    from pyengine.clock import ManualClock


@pytest.fixture
def activemq_clock() -> ManualClock:
    """A pyengine.clock.ManualClock: ``activemq_clock.advance(1000)`` lets a second pass."""
    from pyengine.clock import ManualClock

    return ManualClock()


@pytest.fixture
def activemq_make_broker(activemq_clock: ManualClock) -> Iterator[Callable[..., Broker]]:
    """Makes brokers, with the settings of pyengine.activemq.Broker; they are closed after the test."""
    from pyengine.activemq.broker.broker import Broker

    made: list[Broker] = []

    def make(directory: str | Path | None = None, **settings: Any) -> Broker:
        made.append(Broker(directory, **{"clock": activemq_clock, **settings}))
        return made[-1]

    yield make
    for broker in reversed(made):
        broker.close()


@pytest.fixture
def activemq_broker(activemq_make_broker: Callable[..., Broker]) -> Broker:
    """The broker ``vm://localhost``, in memory, without policies, by ``activemq_clock``."""
    return activemq_make_broker()


@pytest.fixture
def activemq_connection(activemq_broker: Broker) -> Iterator[Connection]:
    """A started connection to ``activemq_broker``, closed after the test."""
    from pyengine.activemq.client.connection_factory import ConnectionFactory

    with ConnectionFactory(broker=activemq_broker).create_connection() as connection:
        yield connection


@pytest.fixture
def rocketmq_clock() -> ManualClock:
    """A pyengine.clock.ManualClock: ``rocketmq_clock.advance(30_000)`` lets half a minute pass."""
    from pyengine.clock import ManualClock

    return ManualClock()


@pytest.fixture
def rocketmq_make_broker(rocketmq_clock: ManualClock) -> Iterator[Callable[..., rocketmq.Broker]]:
    """Makes clusters, with the settings of pyengine.rocketmq.Broker; they are closed after the test."""
    from pyengine import rocketmq

    made: list[rocketmq.Broker] = []

    def make(directory: str | Path | None = None, **settings: Any) -> rocketmq.Broker:
        made.append(rocketmq.Broker(directory, **{"clock": rocketmq_clock, **settings}))
        return made[-1]

    yield make
    for broker in reversed(made):
        broker.close()


@pytest.fixture
def rocketmq_broker(rocketmq_make_broker: Callable[..., rocketmq.Broker]) -> rocketmq.Broker:
    """A cluster of one broker in memory, ``broker-a``, by ``rocketmq_clock``."""
    return rocketmq_make_broker()
