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


def test_a_message_that_is_received_needs_no_thread_besides_its_sender_s() -> None:
    with (
        activemq.Broker(name="alone") as broker,
        ConnectionFactory("vm://alone", broker=broker).create_connection() as connection,
    ):
        session = connection.create_session()
        consumer, producer = session.create_consumer("q"), session.create_producer("q")
        threads = set(threading.enumerate())
        for number in range(100):
            producer.send(str(number))
        for number in range(100):
            message = consumer.receive_no_wait()  # it is there as soon as ``send`` returns
            assert message is not None
            assert message.body == str(number)
        assert set(threading.enumerate()) == threads


def test_listeners_keep_their_thread_beside_receivers_of_their_connection() -> None:
    heard: list[tuple[str, int]] = []
    done = threading.Event()
    with (
        activemq.Broker(name="both") as broker,
        ConnectionFactory("vm://both", broker=broker).create_connection() as connection,
    ):
        listening, receiving = connection.create_session(), connection.create_session()
        listener, consumer = listening.create_consumer("heard"), receiving.create_consumer("received")
        producer = receiving.create_producer()

        def listen(message: Message) -> None:
            heard.append((str(message.body), threading.get_ident()))
            if len(heard) == MESSAGES:
                done.set()

        listener.message_listener = listen
        for number in range(MESSAGES):
            producer.send(str(number), "heard")
            producer.send(str(number), "received")
            received = consumer.receive(60)
            assert received is not None
            assert received.body == str(number)
        assert done.wait(60)
    assert [body for body, _ in heard] == [str(number) for number in range(MESSAGES)]
    assert threading.get_ident() not in {thread for _, thread in heard}


@pytest.mark.parametrize("options", ["", "jms.alwaysSessionAsync=false"])
def test_a_listener_that_comes_between_messages_gets_all_in_order(options: str) -> None:
    got: list[str] = []
    done = threading.Event()
    with (
        activemq.Broker(name="later") as broker,
        ConnectionFactory(f"vm://later?{options}", broker=broker).create_connection() as connection,
    ):
        session = connection.create_session()
        consumer, producer = session.create_consumer("q"), session.create_producer("q")

        def send() -> None:
            with ConnectionFactory("vm://later", broker=broker).create_connection() as other:
                to = other.create_session().create_producer("q")
                for number in range(MESSAGES, 2 * MESSAGES):
                    to.send(str(number))

        def listen(message: Message) -> None:
            got.append(str(message.body))
            if len(got) == 2 * MESSAGES:
                done.set()

        for number in range(MESSAGES):
            producer.send(str(number))
        sender = threading.Thread(target=send)
        sender.start()
        consumer.message_listener = listen
        sender.join(60)
        assert done.wait(60)
    assert got == [str(number) for number in range(2 * MESSAGES)]
