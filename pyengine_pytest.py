"""Fixtures for tests of programs that use ActiveMQ or RocketMQ; pytest finds them where pyengine is installed.

pytest imports this module in every test run of the environment: it stands outside the package, whose import takes 0.4
seconds, and imports nothing of it before a fixture is used.

``activemq_clock`` is a time that the test moves, ``activemq_broker`` a broker in memory that lives by it, and
``activemq_connection`` a started connection to it. A test that wants policies makes its broker with
``activemq_make_broker(policies=[...])``; one that wants real threads passes ``clock=SystemClock()``.

``rocketmq_clock``, ``rocketmq_broker`` and ``rocketmq_make_broker(default_queues=1)`` are the same for RocketMQ.

``activemq_stomp`` is a port for STOMP clients of any language, with the same clock, ``activemq_stomp_memory`` the same
without a port for what stomp.py's connections do in this process. If a test fails, its report has the messages
that wait in these brokers' queues, and why.
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
    from pyengine.activemq.transport.client_connection import TransportConnector
    from pyengine.clock import ManualClock


@pytest.fixture
def activemq_clock() -> ManualClock:
    """A pyengine.clock.ManualClock: ``activemq_clock.advance(1000)`` lets a second pass."""
    from pyengine.clock import ManualClock

    return ManualClock()


_MADE: pytest.StashKey[list[Broker]] = pytest.StashKey()
_CLUSTERS: pytest.StashKey[list[rocketmq.Broker]] = pytest.StashKey()
MOST_SHOWN = 20  # messages of a queue in a report


@pytest.fixture
def activemq_make_broker(
    request: pytest.FixtureRequest, activemq_clock: ManualClock
) -> Iterator[Callable[..., Broker]]:
    """Makes brokers, with the settings of pyengine.activemq.Broker; they are closed after the test."""
    from pyengine.activemq.broker.broker import Broker

    made: list[Broker] = []
    request.node.stash[_MADE] = made

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
def rocketmq_make_broker(
    request: pytest.FixtureRequest, rocketmq_clock: ManualClock
) -> Iterator[Callable[..., rocketmq.Broker]]:
    """Makes clusters, with the settings of pyengine.rocketmq.Broker; they are closed after the test."""
    from pyengine import rocketmq

    made: list[rocketmq.Broker] = []
    request.node.stash[_CLUSTERS] = made

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


@pytest.fixture
def activemq_stomp(activemq_broker: Broker) -> TransportConnector:
    """A free port of 127.0.0.1 where ``activemq_broker`` listens for STOMP clients: ``activemq_stomp.port``, ``.url``.

    Its time is ``activemq_clock``; heart-beats are real.
    """
    return activemq_broker.add_connector("stomp://127.0.0.1:0")


@pytest.fixture
def activemq_stomp_memory(activemq_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """``activemq_broker``; every stomp.py connection made in the test leads to it, on the test's own thread, without a
    port: what a call causes has reached the listeners when it returns."""
    from pyengine.activemq.transport.stomp_memory import memory_transport

    monkeypatch.setattr("stomp.connect.Transport", memory_transport(activemq_broker))
    return activemq_broker


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """If a test fails, report which messages wait in its brokers, and why."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for broker in item.stash.get(_MADE, []):
            lines = [line for queue in broker.destinations() if queue.kind == "queue" for line in _held(broker, queue)]
            if lines:
                report.sections.append((f"messages that wait in broker {broker.name!r}", "\n".join(lines)))
        for cluster in item.stash.get(_CLUSTERS, []):
            lines = list(_not_consumed(cluster))
            if lines:
                report.sections.append(
                    (f"messages that wait in the brokers {', '.join(cluster.nodes)}", "\n".join(lines))
                )


def _held(broker: Broker, queue: Any) -> Iterator[str]:
    held = broker.held(queue)
    for each in held[:MOST_SHOWN]:
        behind = f", by {each.blocked_by}" if each.blocked_by else ""
        yield f"{queue.name}: {each.message_id}: {each.reason.name}{behind}"
    if len(held) > MOST_SHOWN:
        yield f"{queue.name}: and {len(held) - MOST_SHOWN} more"


def _not_consumed(cluster: rocketmq.Broker) -> Iterator[str]:
    held = cluster.held()
    for each in held[:MOST_SHOWN]:
        place = "" if each.offset < 0 else f" offset {each.offset}"
        group = "" if each.group is None else f" for group {each.group}"
        due = "" if each.due is None else f", in {each.due - cluster.clock.now()} ms"
        queue = each.queue
        where = f"{queue.topic} {queue.broker_name}/{queue.queue_id}"
        yield f"{where}{place}: {each.msg_id}: {each.reason.name}{group}: {each.reason.value}{due}"
    if len(held) > MOST_SHOWN:
        yield f"and {len(held) - MOST_SHOWN} more"
