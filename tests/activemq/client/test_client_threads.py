"""Real threads: nothing is lost or doubled, nothing hangs."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from pyengine import Message, activemq
from pyengine.activemq import ConnectionFactory
from pyengine.errors import JMSError

MESSAGES = 300


def run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), f"{thread.name} hangs"


@pytest.mark.parametrize("options", ["", "jms.dispatchAsync=false", "jms.alwaysSessionAsync=false"])
@pytest.mark.parametrize("mode", list(activemq.AcknowledgeMode))
def test_every_message_is_received_once(options: str, mode: activemq.AcknowledgeMode) -> None:
    got: list[str] = []
    with activemq.Broker(name="crowd") as broker:
        factory = ConnectionFactory(f"vm://crowd?jms.prefetchPolicy.all=7&{options}", broker=broker)

        def produce(name: str) -> None:
            with factory.create_connection() as connection:
                producer = connection.create_session().create_producer("q")
                producer.delivery_mode = activemq.NON_PERSISTENT
                for number in range(MESSAGES):
                    producer.send(f"{name}{number}")

        def consume() -> None:
            with factory.create_connection() as connection:
                session = connection.create_session(mode)
                consumer = session.create_consumer("q")
                while len(got) < 2 * MESSAGES:
                    if (message := consumer.receive(0.1)) is None:
                        continue
                    got.append(str(message.body))
                    if session.transacted:
                        session.commit()
                    else:
                        message.acknowledge()

        run(
            [threading.Thread(target=produce, args=(name,), name=name) for name in "ab"]
            + [threading.Thread(target=consume, name=f"consumer {number}") for number in range(2)]
        )
        left = broker.view("q").queue_size
    assert not [body for body, times in Counter(got).items() if times > 1]
    assert len(got) == 2 * MESSAGES
    assert left == 0


@pytest.mark.parametrize("options", ["", "jms.dispatchAsync=false", "jms.useDedicatedTaskRunner=true"])
def test_listeners_that_come_and_go_lose_nothing(options: str) -> None:
    got: list[str] = []
    done = threading.Event()
    with activemq.Broker(name="turnstile") as broker:
        factory = ConnectionFactory(f"vm://turnstile?jms.prefetchPolicy.all=5&{options}", broker=broker)

        def listener(message: Message) -> None:
            got.append(str(message.body))
            if len(set(got)) == MESSAGES:
                done.set()

        def come_and_go() -> None:
            while not done.is_set():
                with factory.create_connection() as connection:
                    connection.create_session().create_consumer("q", listener=listener)
                    done.wait(0.01)

        def produce() -> None:
            with factory.create_connection() as connection:
                producer = connection.create_session().create_producer("q")
                for number in range(MESSAGES):
                    producer.send(str(number), delivery_mode="NON_PERSISTENT")

        crowd = [threading.Thread(target=come_and_go, name=f"listener {number}") for number in range(2)]
        run([*crowd, threading.Thread(target=produce)])
        assert broker.view("q").queue_size == 0
    # Automatic acknowledgement follows the listener, so a message is heard once or, where its consumer closed, again.
    assert set(got) == {str(number) for number in range(MESSAGES)}


def test_what_is_reported_after_the_end_is_logged_without_a_thread(caplog: pytest.LogCaptureFixture) -> None:
    with activemq.Broker() as broker:
        connection = activemq.ConnectionFactory(broker=broker).create_connection()
        told: list[Exception] = []
        connection.exception_listener = told.append
        connection.close()
        before = threading.active_count()
        connection.report(JMSError("too late"))
        assert threading.active_count() == before
        assert not told
    assert "too late" in caplog.text
