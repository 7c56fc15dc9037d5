"""What becomes of a broker, its clients and its folder when the disk or a user's function fails."""

from __future__ import annotations

import asyncio
from threading import current_thread
from typing import Any

import pytest

from pyengine.activemq import Broker, ConnectionFactory
from pyengine.activemq.events import DeadLetter, SlowConsumer
from pyengine.clock import ManualClock
from tests.activemq.wire import Wire, bodies, until


class Stop(BaseException):
    """What is no Exception."""


@pytest.mark.parametrize("error", [ValueError, Stop, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("manual", [False, True])
def test_a_callback_that_raises_takes_nothing_from_anybody(
    caplog: pytest.LogCaptureFixture, error: type[BaseException], manual: bool
) -> None:
    def fail(event: object) -> None:
        raise error("of the callback")

    def listen(message: Any) -> None:
        if message.body == "bad":
            raise ValueError
        heard.append(message.body)

    heard: list[Any] = []
    clock = ManualClock() if manual else None
    url = "vm://localhost?jms.redeliveryPolicy.maximumRedeliveries=0"
    with Broker(clock=clock) as broker, ConnectionFactory(url, broker=broker).create_connection() as connection:
        broker.on(DeadLetter, fail)
        broker.on(SlowConsumer, fail)
        connection.create_session().create_consumer("listened", listener=listen)
        producer = connection.create_session().create_producer(None)
        for body in ("bad", "good"):
            producer.send(body, "listened")
        if not manual:
            until(lambda: heard)
        consumer = connection.create_session().create_consumer("received?consumer.prefetchSize=1")
        for body in "abc":
            producer.send(body, "received")
        assert bodies(consumer) == ["a", "b", "c"]
    assert heard == ["good"]
    told = {record.getMessage() for record in caplog.records if "callback" in record.getMessage()}
    assert told == {
        "a callback failed on DeadLetter of queue://listened",
        "a callback failed on SlowConsumer of queue://received",
    }


def test_ctrl_c_within_a_callback_is_the_users_own() -> None:
    def stop(event: object) -> None:
        raise KeyboardInterrupt(current_thread().name)

    with Broker(clock=ManualClock()) as broker:
        wire = Wire(broker)
        wire.consume("a", "q", prefetch=1)
        end = broker.on(SlowConsumer, stop)
        with pytest.raises(KeyboardInterrupt, match="MainThread"):
            wire.send("q", "x", "y")
        end()
