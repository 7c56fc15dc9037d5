"""``failover:`` over sockets: options, other brokers, what is restored, and what the program hears of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyengine import ConfigurationError, JMSError, Message, TransactionRolledBackError
from pyengine.activemq import (
    CLIENT_ACKNOWLEDGE,
    SESSION_TRANSACTED,
    Broker,
    Connection,
    ConnectionFactory,
    UnknownOptions,
    aio,
)
from pyengine.activemq.options import broker_url
from pyengine.activemq.transport.failover_channel import FailoverChannel
from pyengine.activemq.transport.failover_options import failover_options
from tests.activemq.openwire.relay import Relay

LISTEN = ["tcp://127.0.0.1:0"]


def address(broker: Broker) -> str:
    return f"tcp://127.0.0.1:{broker.transport_connectors[0].port}"


def until(ready: Callable[[], object], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.005)


def channel_of(connection: Connection) -> FailoverChannel:
    found: FailoverChannel = connection.transport._channel  # type: ignore[attr-defined]
    return found


@pytest.fixture
def two() -> Iterator[tuple[Broker, Broker]]:
    with (
        Broker(name="one", transport_connectors=LISTEN) as one,
        Broker(name="two", transport_connectors=LISTEN) as other,
    ):
        yield one, other


def over(*brokers: Broker, options: str = "randomize=false") -> ConnectionFactory:
    return ConnectionFactory(f"failover:({','.join(map(address, brokers))})?{options}")


@pytest.mark.parametrize(
    ("text", "components", "options"),
    [
        ("failover:(tcp://a:1,ssl://b:2)?randomize=false", ("tcp://a:1", "ssl://b:2"), {"randomize": "false"}),
        ("failover://(tcp://a:1?keepAlive=true,tcp://b)", ("tcp://a:1?keepAlive=true", "tcp://b"), {}),
        ("failover:tcp://a:1?keepAlive=true", ("tcp://a:1?keepAlive=true",), {}),
        ("failover:tcp://a:1,tcp://b:2", ("tcp://a:1", "tcp://b:2"), {}),
        ("failover:(tcp://a:1)?jms.useAsyncSend=true&timeout=5", ("tcp://a:1",), {"timeout": "5"}),
    ],
)
def test_the_forms_of_its_url(text: str, components: tuple[str, ...], options: dict[str, str]) -> None:
    found = broker_url(text)
    assert (found.scheme, found.components, found.transport) == ("failover", components, options)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("failover:(tcp://a:1)?maxReconnectDelays=5", "maxReconnectDelay"),
        ("failover:(tcp://a:1)?maxReconnectAttempts=many", "maxReconnectAttempts"),
        ("failover:(tcp://a:1?jms.useAsyncSend=true)", "jms.useAsyncSend=true"),
        ("failover:(tcp://a:1)?nested.keepAlives=true", "keepAlive"),
        ("failover:(vm://a)", "tcp://host:61616"),
        ("failover:(failover:(tcp://a:1))", "tcp://host:61616"),
        ("failover:()", "no address"),
        ("failover:(tcp://a:1", "bracket"),
        ("failover:(tcp://a:1)?updateURIsURL=http://a/b", "file"),
        ("failover:(tcp://a:1)x?timeout=1", "behind the brackets"),
    ],
)
def test_what_is_wrong_is_named(url: str, named: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ConnectionFactory(url)
    assert named in str(refused.value)


def test_every_option_of_the_real_one_is_read_and_unknown_ones_may_be_ignored() -> None:
    numbers = dict.fromkeys(
        (
            "initialReconnectDelay", "maxReconnectDelay", "reconnectDelay", "reconnectDelayExponent",
            "backOffMultiplier", "maxReconnectAttempts", "startupMaxReconnectAttempts", "timeout", "backupPoolSize",
            "maxCacheSize", "warnAfterReconnectAttempts",
        ),
        "7",
    )  # fmt: skip
    flags = dict.fromkeys(
        (
            "randomize", "useExponentialBackOff", "backup", "priorityBackup", "trackMessages",
            "trackTransactionProducers", "updateURIsSupported", "rebalanceUpdateURIs", "reconnectSupported",
        ),
        "false",
    )  # fmt: skip
    found = failover_options({**numbers, **flags, "priorityURIs": "tcp://a:1,tcp://b:2", "nested.keepAlive": "true"})
    assert (found.back_off_multiplier, found.max_cache_size, found.randomize) == (7.0, 7, False)
    assert (found.priority_uris, found.nested) == (("tcp://a:1", "tcp://b:2"), "keepAlive=true")
    ConnectionFactory("failover:(tcp://a:1)?madeUp=1", unknown_options=UnknownOptions.IGNORE)


def test_what_the_first_broker_knew_the_second_one_is_told(two: tuple[Broker, Broker]) -> None:
    one, other = two
    heard: list[str] = []
    with over(one, other).create_connection() as connection:
        remove = connection.add_transport_listener(
            interrupted=lambda: heard.append("interrupted"), resumed=lambda: heard.append("resumed")
        )
        session = connection.create_session()
        producer, consumer = session.create_producer("orders"), session.create_consumer("orders")
        temporary = session.create_temporary_queue()
        replies = session.create_consumer(temporary)
        transacted = connection.create_session(SESSION_TRANSACTED)
        transacted.create_producer("moved").send(Message(body="before"))
        producer.send(Message(body="first"))
        assert consumer.receive(5.0) is not None
        one.close()
        producer.send(Message(body="second"))
        found = consumer.receive(5.0)
        assert found is not None
        assert found.body == "second"
        session.create_producer(temporary).send(Message(body="reply"))
        assert replies.receive(5.0) is not None
        transacted.create_producer("moved").send(Message(body="after"))
        transacted.commit()
        assert heard == ["interrupted", "resumed"]
        remove()
    assert [each.body for each in other.browse("moved")] == ["before", "after"]


def test_messages_that_were_delivered_in_a_transaction_come_again_or_roll_it_back(tmp_path: Path) -> None:
    with Broker(tmp_path, name="one", transport_connectors=LISTEN) as broker:
        relay = Relay(broker.transport_connectors[0].port)
        url = f"failover:(tcp://127.0.0.1:{relay.port})?maxReconnectDelay=50"
        with ConnectionFactory(url).create_connection() as connection:
            session = connection.create_session(SESSION_TRANSACTED)
            producer, consumer = session.create_producer("orders"), session.create_consumer("orders")
            producer.send(Message(body="x"))
            session.commit()
            found = consumer.receive(5.0)
            assert found is not None
            assert not found.redelivered
            relay.cut()
            until(lambda: channel_of(connection).address is None)
            until(lambda: channel_of(connection).address is not None)
            with pytest.raises(TransactionRolledBackError):
                session.commit()
            found = consumer.receive(5.0)
            assert found is not None
            assert found.redelivered
            session.commit()
        relay.close()
        assert not broker.browse("orders")


def test_messages_of_client_acknowledge_come_again_marked(two: tuple[Broker, Broker]) -> None:
    relay = Relay(two[0].transport_connectors[0].port)
    with ConnectionFactory(f"failover:(tcp://127.0.0.1:{relay.port})").create_connection() as connection:
        session = connection.create_session(CLIENT_ACKNOWLEDGE)
        consumer = session.create_consumer("orders")
        session.create_producer("orders").send(Message(body="x"))
        assert consumer.receive(5.0) is not None
        relay.cut()
        found = consumer.receive(5.0)
        assert found is not None
        assert found.redelivered
        found.acknowledge()
    relay.close()
    assert not two[0].browse("orders")


def test_attempts_and_time_have_limits(two: tuple[Broker, Broker]) -> None:
    nowhere = "tcp://127.0.0.1:1"
    with pytest.raises(JMSError, match="refused"):
        ConnectionFactory(f"failover:({nowhere})?startupMaxReconnectAttempts=2").create_connection()
    with pytest.raises(JMSError, match="refused"):
        ConnectionFactory(f"failover:({nowhere})?maxReconnectAttempts=0").create_connection()
    one, _ = two
    errors: list[Exception] = []
    failed = threading.Event()
    connection = over(one, options="maxReconnectAttempts=2&initialReconnectDelay=1").create_connection()
    connection.exception_listener = lambda error: (errors.append(error), failed.set())
    producer = connection.create_session().create_producer("q")
    waiting = over(one, options="timeout=50").create_connection()
    patient = waiting.create_session().create_producer("q")
    one.close()
    with pytest.raises(JMSError):
        producer.send(Message(body="x"))
    assert failed.wait(5)
    assert "refused" in str(errors[0])
    with pytest.raises(JMSError, match="Failover timeout of 50 ms reached"):
        patient.send(Message(body="x"))
    connection.close()
    waiting.close()


def test_a_backup_stands_ready_and_the_first_broker_is_gone_back_to() -> None:
    with Broker(name="other", transport_connectors=LISTEN) as other:
        with Broker(name="one", transport_connectors=LISTEN) as one:
            port = one.transport_connectors[0].port
            factory = over(one, other, options="randomize=false&priorityBackup=true&maxReconnectDelay=20")
            connection = factory.create_connection()
            until(lambda: channel_of(connection).address == address(one))
            with over(one, other, options="randomize=false&backup=true").create_connection() as backed:
                until(lambda: len(channel_of(backed)._backups) == 1)
        until(lambda: channel_of(connection).address == address(other))
        with Broker(name="one", transport_connectors=[f"tcp://127.0.0.1:{port}"]) as one:
            until(lambda: channel_of(connection).address == address(one))
            connection.start()
            session = connection.create_session()
            session.create_producer("q").send(Message(body="back"))
            assert session.create_consumer("q").receive(5.0) is not None
            connection.close()


def test_a_file_names_other_brokers(two: tuple[Broker, Broker], tmp_path: Path) -> None:
    (tmp_path / "brokers").write_text(address(two[1]))
    url = f"failover:(tcp://127.0.0.1:1)?updateURIsURL={tmp_path / 'brokers'}&maxReconnectDelay=10"
    with ConnectionFactory(url).create_connection() as connection:
        assert channel_of(connection).address == address(two[1])


def test_closing_while_no_broker_is_there_does_not_wait(two: tuple[Broker, Broker]) -> None:
    connection = over(two[0]).create_connection()
    session = connection.create_session()
    consumer = session.create_consumer("q")
    two[0].close()
    until(lambda: channel_of(connection).address is None)
    before = time.monotonic()
    consumer.close()
    connection.close()
    assert time.monotonic() - before < 5
    with pytest.raises(JMSError):
        over(two[0], options="startupMaxReconnectAttempts=1").create_connection()


def test_tasks_go_on_while_a_send_waits_for_a_broker(two: tuple[Broker, Broker]) -> None:
    one, other = two

    async def script() -> None:
        url = f"failover:({address(one)},{address(other)})?randomize=false&initialReconnectDelay=200"
        factory = aio.ConnectionFactory(url)
        async with await asyncio.to_thread(factory.create_connection) as connection:
            resumed = asyncio.Event()
            loop = asyncio.get_running_loop()
            connection.add_transport_listener(resumed=lambda: loop.call_soon_threadsafe(resumed.set))
            session = await connection.create_session()
            producer = await session.create_producer("q")
            consumer = await session.create_consumer("q")
            await asyncio.to_thread(one.close)
            sending = asyncio.create_task(producer.send("x"))
            steps = 0
            while not sending.done():
                await asyncio.sleep(0.01)
                steps += 1
            assert steps > 5
            assert (await consumer.receive(5)) is not None
            await asyncio.wait_for(resumed.wait(), 5)

    asyncio.run(script())
