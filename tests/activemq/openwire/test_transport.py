"""What the network adds to a connection: options, refusals, a broker that goes, silent and hostile peers."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Self

import pytest

from pyengine import Message
from pyengine._engine.wire.data_structure import DataStructure
from pyengine._engine.wire.openwire import OpenWireReader, OpenWireWriter
from pyengine._engine.wire.openwire_types import TYPES
from pyengine.activemq import Broker, ConnectionFactory
from pyengine.activemq.transport.openwire_format import WireFormat
from pyengine.errors import AuthenticationError, ConfigurationError, InvalidClientIDError, JMSError
from tests.activemq.openwire.relay import Relay


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(transport_connectors=["tcp://127.0.0.1:0"]) as started:
        yield started


def url(broker: Broker, options: str = "") -> str:
    return broker.transport_connectors[0].url + options


class Peer:
    """A client without a client library. Its frames are loose and without cache."""

    def __init__(self, port: int, **wire_format: object) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self._reader, self._writer = OpenWireReader(), OpenWireWriter()
        settings = {"tight_encoding_enabled": False, "cache_enabled": False, "stack_trace_enabled": False}
        self.send(WireFormat(**{**settings, **wire_format}).command())  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, command: DataStructure) -> None:
        self.socket.sendall(self._writer.write(command))

    def receive(self) -> DataStructure | None:
        """The next command; None: the connection is closed."""
        while True:
            for command in self._reader:
                return command
            data = self.socket.recv(4096)
            if not data:
                return None
            self._reader.feed(data)

    def received(self) -> list[str]:
        """The names of all commands until the end."""
        found = []
        while (command := self.receive()) is not None:
            found.append(command.kind.name)
        return found


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("?wireFormat.cacheEnabld=true", "did you mean 'wireFormat.cacheEnabled'"),
        ("?soTimeot=1", "did you mean 'soTimeout'"),
        ("?soTimeout=x", "soTimeout=x: not a whole number"),
        ("?wireFormat.version=8", "OpenWire is spoken here from version 9 on"),
        ("?wireFormat.cacheSize=16", "must be 128 to 16383"),
        ("?wireFormat.sizePrefixDisabled=true", "not supported over tcp"),
        ("?jms.producerWindowSize=1024", "not supported over tcp"),
        ("?jms.useCompression=true", "not supported over tcp"),
        ("?jms.prefetchPolicy.queuePrefetsch=1", "no such option"),
        ("?broker.persistent=true", "is not made by a URL"),
    ],
)
def test_options_that_do_not_exist_or_are_not_done_are_refused_by_name(options: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        ConnectionFactory(f"tcp://localhost:61616{options}")


@pytest.mark.parametrize("address", ["discovery:(multicast://default)", "http://a", "stomp://a:61613"])
def test_other_transports_are_refused_by_name(address: str) -> None:
    with pytest.raises(ConfigurationError, match=address.partition(":")[0]) as refused:
        ConnectionFactory(address)
    assert "tcp://host:61616" in refused.value.hint


@pytest.mark.parametrize(
    "options",
    [
        "",
        "?wireFormat.tightEncodingEnabled=false",
        "?wireFormat.cacheEnabled=false&wireFormat.version=9",
        "?wireFormat.version=10&wireFormat.stackTraceEnabled=false&wireFormat.cacheSize=128",
        "?soTimeout=5000&keepAlive=true&tcpNoDelay=false&useInactivityMonitor=false&connectionTimeout=2000",
        "?jms.watchTopicAdvisories=false&jms.sendTimeout=4000&jms.closeTimeout=2000&jms.alwaysSyncSend=true",
        "?jms.alwaysSessionAsync=false&jms.useAsyncSend=true",
    ],
)
def test_a_message_passes_with_every_option(broker: Broker, options: str) -> None:
    with ConnectionFactory(url(broker, options)).create_connection() as connection:
        session = connection.create_session()
        heard = threading.Event()
        session.create_consumer("q").message_listener = lambda message: heard.set()
        connection.create_session().create_producer("q").send(Message(body="é"))
        assert heard.wait(5)


def test_a_broker_that_is_not_there_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(JMSError, match=f"Could not connect to broker URL: tcp://127.0.0.1:{port}"):
            ConnectionFactory(f"tcp://127.0.0.1:{port}").create_connection()


def test_what_listens_there_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(JMSError, match="the connection failed: a frame of 1213486160 bytes is longer"):
            ConnectionFactory(f"tcp://127.0.0.1:{server.getsockname()[1]}").create_connection()


def test_users_and_client_ids_are_the_broker_s() -> None:
    with Broker(transport_connectors=["tcp://127.0.0.1:0"], users={"me": "secret"}) as broker:
        with pytest.raises(AuthenticationError, match=r"User name \[null\] or password is invalid"):
            ConnectionFactory(url(broker)).create_connection()
        with pytest.raises(AuthenticationError, match=r"User name \[me\] or password is invalid"):
            ConnectionFactory(url(broker, "?jms.userName=me&jms.password=wrong")).create_connection()
        factory = ConnectionFactory(url(broker), user_name="me", password="secret")
        with factory.create_connection("one"), pytest.raises(InvalidClientIDError, match="Client: one already"):
            factory.create_connection("one")


def test_a_broker_that_goes_ends_the_connection(broker: Broker) -> None:
    connection = ConnectionFactory(url(broker)).create_connection()
    failures: list[Exception] = []
    failed = threading.Event()
    connection.exception_listener = lambda error: (failures.append(error), failed.set())
    connection.start()
    session = connection.create_session()
    waiting: list[object] = []
    receiver = threading.Thread(target=lambda: waiting.append(session.create_consumer("q").receive(10.0)))
    receiver.start()
    time.sleep(0.1)
    broker.close()
    assert failed.wait(5)
    receiver.join(5)
    assert waiting == [None]
    assert isinstance(failures[0], JMSError)
    with pytest.raises(JMSError, match="the connection failed: the broker has closed the connection"):
        connection.create_session()
    connection.close()


def test_quiet_connections_stay_and_silent_peers_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    short = "wireFormat.maxInactivityDuration=1200&wireFormat.maxInactivityDurationInitalDelay=50"
    with (
        Broker(transport_connectors=[f"tcp://127.0.0.1:0?{short}"]) as broker,
        Peer(broker.transport_connectors[0].port) as peer,
        ConnectionFactory(broker.transport_connectors[0].url).create_connection() as connection,
        caplog.at_level(logging.WARNING),
    ):
        consumer = connection.create_session().create_consumer("q")
        names = peer.received()  # until the broker has closed it
        assert not connection.closed
        connection.create_session().create_producer("q").send(Message(body="there"))
        assert consumer.receive(5.0) is not None
    assert names[:2] == ["WireFormatInfo", "BrokerInfo"]
    assert set(names[2:]) == {"KeepAliveInfo"}
    assert "nothing came within 1200 ms" in caplog.text


def test_a_broker_that_falls_silent_ends_the_connection_which_then_closes_at_once(broker: Broker) -> None:
    relay = Relay(broker.transport_connectors[0].port)
    short = "wireFormat.maxInactivityDuration=600&wireFormat.maxInactivityDurationInitalDelay=50"
    connection = ConnectionFactory(f"tcp://127.0.0.1:{relay.port}?{short}").create_connection()
    failures: list[Exception] = []
    failed = threading.Event()
    connection.exception_listener = lambda error: (failures.append(error), failed.set())
    producer = connection.create_session().create_producer("q")
    relay.passing.clear()
    with pytest.raises(JMSError, match="Channel was inactive for too"):
        producer.send(Message(body="x"))
    assert failed.wait(5)
    before = time.monotonic()
    connection.close()
    ending = [each for each in threading.enumerate() if f":{relay.port}" in each.name]
    for each in ending:
        each.join(2)
    assert time.monotonic() - before < 2
    assert not any(each.is_alive() for each in ending)
    relay.close()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "bytes is longer than"),
        ((6).to_bytes(4) + b"\x0a" + bytes(5), "KeepAliveInfo before the WireFormatInfo"),
        ((14).to_bytes(4) + b"\x01ActiveMX" + (12).to_bytes(4) + b"\0", "does not speak OpenWire"),
        ((14).to_bytes(4) + b"\x01ActiveMQ" + (8).to_bytes(4) + b"\0", "version 8 of OpenWire is not spoken here"),
    ],
)
def test_a_peer_that_does_not_speak_openwire_is_closed_and_others_notice_nothing(
    broker: Broker, data: bytes, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ConnectionFactory(url(broker)).create_connection() as connection, caplog.at_level(logging.WARNING):
        with socket.create_connection(("127.0.0.1", broker.transport_connectors[0].port), timeout=5) as peer:
            peer.sendall(data)
            while peer.recv(4096):
                pass
        assert problem in caplog.text
        session = connection.create_session()
        session.create_producer("q").send(Message(body="on"))
        assert session.create_consumer("q").receive(5.0) is not None


def test_commands_that_no_client_sends_end_the_connection(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for command, problem in (
            (TYPES["MessageDispatch"](), "a MessageDispatch is not what a client sends"),
            (TYPES["WireFormatInfo"](magic=b"ActiveMQ", version=12), "a second WireFormatInfo"),
        ):
            with Peer(broker.transport_connectors[0].port) as peer:
                peer.send(command)
                peer.received()
            assert problem in caplog.text


def test_a_command_before_the_connection_is_answered_with_an_exception(broker: Broker) -> None:
    identity = TYPES["ConsumerId"](connection_id="c", session_id=1, value=1)
    with Peer(broker.transport_connectors[0].port) as peer:
        peer.send(TYPES["ConsumerInfo"](command_id=7, response_required=True, consumer_id=identity))
        command = peer.receive()
        while command is not None and command.kind.name != "ExceptionResponse":
            command = peer.receive()
    assert command is not None
    assert (command.correlation_id, command.exception.message) == (7, "a command before the ConnectionInfo")


def test_an_xa_transaction_commits_in_one_phase_and_its_prepare_is_refused_and_rolled_back(broker: Broker) -> None:
    connection, producer = TYPES["ConnectionId"](value="ID:xa-1:1"), TYPES["ProducerId"](connection_id="ID:xa-1:1")
    queue = TYPES["ActiveMQQueue"](physical_name="XA")

    def answer(peer: Peer, command: DataStructure) -> DataStructure:
        peer.send(command.replace(command_id=9, response_required=True))
        while True:
            found = peer.receive()
            assert found is not None
            if found.kind.name.endswith("Response"):
                return found

    def work(peer: Peer, branch: int) -> DataStructure:
        """Start and end of a branch, with a message sent in it; a transaction command of it."""
        identity = TYPES["XATransactionId"](format_id=1, global_transaction_id=b"\1", branch_qualifier=bytes([branch]))
        info = TYPES["TransactionInfo"](connection_id=connection, transaction_id=identity)
        message = TYPES["MessageId"](producer_id=producer, producer_sequence_id=branch)
        sent = TYPES["ActiveMQTextMessage"](
            producer_id=producer, destination=queue, transaction_id=identity, message_id=message, persistent=True
        )
        for command in (info, sent, info.replace(type=7)):
            assert answer(peer, command).kind.name == "Response"
        return info

    with Peer(broker.transport_connectors[0].port) as peer:
        answer(peer, TYPES["ConnectionInfo"](connection_id=connection, client_id="xa"))
        assert answer(peer, work(peer, 1).replace(type=2)).kind.name == "Response"
        assert broker.view("XA").queue_size == 1
        two = work(peer, 2)
        refused = answer(peer, two.replace(type=1)).exception
        assert refused.class_name == "javax.transaction.xa.XAException"
        assert refused.message == (
            "XID:[1,globalId=01,branchId=02]: rolled back: this broker commits in one phase only, XA's prepare is not "
            "supported xaErrorCode:104"
        )
        assert "has not been started" in answer(peer, two.replace(type=3)).exception.message
        assert answer(peer, TYPES["TransactionInfo"](connection_id=connection, type=5)).data == []
    assert broker.view("XA").queue_size == 1
