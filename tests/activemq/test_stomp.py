"""The STOMP connector: addresses and who may come in, limits, slow and hostile peers, time by hand, kills."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stomp

from pyengine.activemq import Broker, ConnectionFactory, HoldReason
from pyengine.activemq.transport.connectors import connector_uri
from pyengine.activemq.transport.stomp_memory import connection
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError
from tests.fuzz import fuzz_stomp

KILLS = int(os.environ.get("PYENGINE_KILLS", "1"))
ROOT = Path(__file__).parents[2]
NULL = b"\0"


class Client:
    """A bare socket that speaks STOMP."""

    def __init__(self, port: int, connect: str | None = "accept-version:1.2") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(5)
        self.buffer = b""
        if connect is not None:
            self.send(f"CONNECT\n{connect}\n\n")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *unused: object) -> None:
        self.socket.close()

    def send(self, frame: str, body: bytes = b"") -> None:
        self.socket.sendall(frame.encode() + body + NULL)

    def frame(self) -> str:
        """The next frame; empty where the broker has closed the connection."""
        while NULL not in self.buffer:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                return ""
            self.buffer += data
        found, _, self.buffer = self.buffer.partition(NULL)
        return found.decode().strip("\n")

    def closed(self) -> bool:
        """Whether the broker closes the connection, whatever it still writes."""
        try:
            while data := self.socket.recv(1 << 16):
                self.buffer += data
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True


def until(reached: Callable[[], object], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextlib.contextmanager
def listening(options: str = "", **settings: Any) -> Iterator[tuple[Broker, int]]:
    with Broker(transport_connectors=[f"stomp://127.0.0.1:0{options}"], **settings) as broker:
        yield broker, broker.transport_connectors[0].port


# Addresses


def test_it_listens_where_it_is_told_and_no_longer() -> None:
    before = threading.active_count()
    with Broker(transport_connectors=["stomp://127.0.0.1:0", "stomp+nio://localhost:0"]) as broker:
        first, second = broker.transport_connectors
        assert first.url == f"stomp://127.0.0.1:{first.port}"
        assert second.url == f"stomp+nio://localhost:{second.port}"
        third = broker.add_connector("stomp://127.0.0.1:0")
        clients = [Client(each.port) for each in (first, second, third)]
        assert all(client.frame().startswith("CONNECTED") for client in clients)
        assert [each.connections for each in broker.transport_connectors] == [1, 1, 1]
        with pytest.raises(ConfigurationError, match=f"127.0.0.1:{third.port}.*cannot be listened on"):
            broker.add_connector(third.url)
    for client in clients:
        with client:
            assert client.closed()
    with pytest.raises(ConnectionRefusedError):
        Client(first.port)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("amqp://127.0.0.1:0", "no connector here speaks amqp; there are tcp, nio, ssl, nio\\+ssl, stomp, stomp\\+nio"),
        ("127.0.0.1:61613", "not an address to listen on"),
        ("stomp://127.0.0.1:70000", "a port is 65535 at most"),
        ("stomp://127.0.0.1:0?maximumConnection=1", "did you mean 'maximumConnections'"),
        ("stomp://127.0.0.1:0?maximumConnections=x", "not a whole number"),
        ("stomp://127.0.0.1:0?wireFormat.maxFrameSize=-1", "must not be negative"),
        ("stomp://0.0.0.0:0", "other machines reach this address, and the broker has no users"),
        ("stomp://[::]:0", "other machines reach this address"),
    ],
)
def test_an_address_that_cannot_be_is_refused(uri: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Broker(transport_connectors=[uri])


def test_an_address_without_a_host_is_this_machine_alone() -> None:
    assert connector_uri("stomp://:61613").host == "127.0.0.1"
    assert [connector_uri(f"stomp://{host}:1").loopback for host in ("127.8.9.1", "LocalHost", "[::1]")] == [True] * 3
    assert not connector_uri("stomp://example.com:1").loopback


def test_other_machines_need_users_or_the_word_of_the_owner() -> None:
    for settings in ({"allow_anonymous": True}, {"users": {"ann": "secret"}}):
        Broker(transport_connectors=["stomp://0.0.0.0:0"], **settings).close()  # type: ignore[arg-type]


def test_users_come_in_with_their_password() -> None:
    with listening(users={"ann": "secret"}) as (_, port):
        for given in (
            "",
            "login:ann",
            "login:ann\npasscode:",
            "login:ann\npasscode:secreT",
            "login:bob\npasscode:secret",
        ):
            with Client(port, f"accept-version:1.2\n{given}".rstrip("\n")) as client:
                name = given.partition("\n")[0].removeprefix("login:") or "null"
                assert client.frame() == (
                    f"ERROR\ncontent-type:text/plain\nmessage:User name [{name}] or password is invalid.\n\n"
                    f"User name [{name}] or password is invalid."
                )
                assert client.closed()
        with Client(port, "accept-version:1.2\nlogin:ann\npasscode:secret") as client:
            assert client.frame().startswith("CONNECTED")
    with listening(users={"ann": "secret"}, allow_anonymous=True) as (_, port):
        with Client(port) as client:
            assert client.frame().startswith("CONNECTED")
        with Client(port, "accept-version:1.2\nlogin:ann\npasscode:wrong") as client:
            assert client.frame().startswith("ERROR")


CONNECTORS = """<broker xmlns="http://activemq.apache.org/schema/core" persistent="false" brokerName="xml">
<transportConnectors>
<transportConnector name="stomp" uri="stomp://127.0.0.1:0?maximumConnections=7&amp;wireFormat.maxFrameSize=1000"/>
<transportConnector name="amqp" uri="amqp://127.0.0.1:0"/>
<transportConnector name="open" uri="stomp://0.0.0.0:0"/>
<transportConnector name="odd" uri="stomp://127.0.0.1:0?transport.odd=1"/>
</transportConnectors></broker>"""


def test_the_connectors_of_a_configuration_are_listened_on() -> None:
    with pytest.warns(UserWarning, match="3 things"):
        broker = Broker.from_xml(CONNECTORS)
    with broker:
        (connector,) = broker.transport_connectors
        assert (connector.uri.maximum_connections, connector.uri.max_frame_size) == (7, 1000)
        reasons = [part.reason for part in broker.left_out]
        assert [(part.line, part.element, part.name) for part in broker.left_out] == [
            (4, 'transportConnector name="amqp"', "uri"),
            (5, 'transportConnector name="open"', "uri"),
            (6, 'transportConnector name="odd"', "uri"),
        ]
        assert "others do not" in reasons[0]
        assert "the broker has no users" in reasons[1]
        assert "no such option" in reasons[2]
    with pytest.warns(UserWarning, match="2 things"):
        broker = Broker.from_xml(CONNECTORS, allow_anonymous=True)
    with broker:
        assert len(broker.transport_connectors) == 2
    with pytest.warns(UserWarning, match="1 thing"):
        broker = Broker.from_xml(CONNECTORS, transport_connectors=())
    with broker:
        assert broker.transport_connectors == ()


# Limits


def test_more_connections_than_may_be_are_closed() -> None:
    with listening("?maximumConnections=2") as (_, port), Client(port) as first, Client(port) as second:
        assert first.frame().startswith("CONNECTED")
        assert second.frame().startswith("CONNECTED")
        with Client(port, None) as third:
            assert third.closed()
        second.send("DISCONNECT\n\n")
        assert second.closed()
        with Client(port) as fourth:
            assert fourth.frame().startswith("CONNECTED")


def test_a_frame_that_is_too_large_is_an_error_and_the_end() -> None:
    with listening("?wireFormat.maxFrameSize=1000&wireFormat.maxDataLength=500") as (_, port):
        for frame, problem in (
            ("SEND\ndestination:/queue/a\ncontent-length:501\n\n", "The maximum data length was exceeded"),
            (
                "SEND\ndestination:/queue/a\n" + "x" * 600 + ":\ncontent-length:450\n\n",
                "The maximum frame size was exceeded",
            ),
        ):
            with Client(port) as client:
                client.frame()
                client.send(frame, b"x" * 100)
                assert f"\nmessage:{problem}\n" in client.frame()
                assert client.closed()


def test_who_says_nothing_is_cut_off() -> None:
    with (
        listening("?transport.connectAttemptTimeout=100") as (broker, port),
        Client(port, None) as silent,
        Client(port) as talking,
    ):
        assert talking.frame().startswith("CONNECTED")
        silent.socket.sendall(b"CONN")
        assert silent.closed()
        talking.send("SEND\ndestination:/queue/a\nreceipt:r\n\n")
        assert talking.frame() == "RECEIPT\nreceipt-id:r"
        assert broker.transport_connectors[0].connections == 1
    with listening("?transport.soTimeout=100") as (_, port), Client(port) as client:
        assert client.closed()


def test_heart_beats_are_sent_and_missed() -> None:
    with listening() as (_, port):
        with Client(port, "accept-version:1.2\nheart-beat:0,30") as client:
            assert "\nheart-beat:30,0\n" in client.frame() + "\n"
            client.buffer = b""
            beats = client.socket.recv(1) + client.socket.recv(1) + client.socket.recv(1)
            assert beats.strip(b"\n") == b""
        with Client(port, "accept-version:1.2\nheart-beat:60,0") as silent:
            begun = time.monotonic()
            assert silent.closed()
            assert 0.05 < time.monotonic() - begun < 2
        with Client(port, "accept-version:1.2\nheart-beat:150,0") as client:
            client.frame()
            for _ in range(8):
                time.sleep(0.05)
                client.socket.sendall(b"\n")
            client.send("SEND\ndestination:/queue/a\nreceipt:r\n\n")
            assert client.frame() == "RECEIPT\nreceipt-id:r"


def test_who_reads_nothing_is_dropped_and_nobody_else_notices() -> None:
    with (
        listening("?transport.maximumPendingSize=300000") as (broker, port),
        Client(port) as slow,
        Client(port) as other,
    ):
        slow.frame()
        other.frame()
        slow.send("SUBSCRIBE\nid:1\ndestination:/queue/big\nack:client\nactivemq.prefetchSize:100\n\n")
        for _ in range(100):
            other.send("SEND\ndestination:/queue/big\n\n", b"x" * 100_000)
        for number in range(50):
            other.send(f"SEND\ndestination:/queue/small\nreceipt:{number}\n\n")
            assert other.frame() == f"RECEIPT\nreceipt-id:{number}"
        until(lambda: broker.transport_connectors[0].connections == 1)
        until(lambda: broker.view("big").consumer_count == 0)
        assert broker.view("big").queue_size == 100


def test_a_subscriber_is_given_what_its_socket_takes() -> None:
    # Acknowledged is what went into the socket: a backlog does not move into memory, and its reader is not slow.
    with listening() as (broker, port), Client(port) as client:
        client.frame()
        with ConnectionFactory(broker=broker).create_connection() as own:
            own.create_session().create_producer("big").send_batch(["x" * 20_000 for _ in range(2000)])
        client.send("SUBSCRIBE\nid:1\ndestination:/queue/big\n\n")
        until(lambda: broker.view("big").queue_size < 2000)
        time.sleep(0.2)
        assert broker.view("big").queue_size > 1000
        assert broker.view("big").in_flight_count == 1000
        for _ in range(2000):
            assert client.frame().endswith("x" * 20_000)
        until(lambda: broker.view("big").queue_size == 0)


def test_garbage_ends_one_connection_and_no_other() -> None:
    chance = random.Random(7)
    with listening() as (broker, port), Client(port) as other:
        other.frame()
        for number in range(60):
            with (
                contextlib.suppress(ConnectionError),
                Client(port, None if number % 2 else "accept-version:1.2") as hostile,
            ):
                verb = chance.choice(
                    ["", "SEND\n", "ACK\nid:x\n", "SUBSCRIBE\ndestination:,\n", "CONNECT\n", "BEGIN\n"]
                )
                hostile.socket.sendall(verb.encode() + chance.randbytes(chance.randrange(400)) + NULL)
        other.send("SEND\ndestination:/queue/a\nreceipt:r\n\n")
        assert other.frame() == "RECEIPT\nreceipt-id:r"
        until(lambda: broker.transport_connectors[0].connections == 1)


def test_hostile_frames_are_read_alike_in_any_pieces_and_leave_nothing() -> None:
    counts = fuzz_stomp.run(4000, seed=1)
    assert counts["frames"] > 3000
    assert counts["refused"] > 10
    assert counts["answers"] > 200


def test_idle_connections_cost_no_threads() -> None:
    with listening() as (broker, port):
        before = threading.active_count()
        with contextlib.ExitStack() as open_ones:
            clients = [open_ones.enter_context(Client(port)) for _ in range(300)]
            assert all(client.frame().startswith("CONNECTED") for client in clients)
            assert threading.active_count() == before
            assert broker.transport_connectors[0].connections == 300
        until(lambda: broker.transport_connectors[0].connections == 0)


# Time by hand


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.bodies: list[str] = []

    def on_message(self, frame: Any) -> None:
        self.bodies.append(frame.body)


def test_a_test_moves_the_time_of_a_broker_with_a_port(
    activemq_clock: ManualClock, activemq_stomp: Any, activemq_broker: Broker
) -> None:
    listener = Listener()
    client = stomp.Connection12([("127.0.0.1", activemq_stomp.port)])
    client.set_listener("", listener)
    client.connect(wait=True)
    client.subscribe("/queue/ActiveMQ.DLQ", id="dead")
    client.send("/queue/orders", "late", persistent="true", expires=str(activemq_clock.now() + 60_000))
    until(lambda: "orders" in [each.name for each in activemq_broker.destinations()])
    until(lambda: activemq_broker.view("orders").queue_size == 1)
    activemq_clock.advance(59_000)
    assert listener.bodies == []
    activemq_clock.advance(31_000)  # the broker looks for expired messages every 30 s
    until(lambda: listener.bodies == ["late"])
    client.disconnect()


def test_clients_on_threads_of_their_own_share_a_manual_clock(activemq_stomp: Any, activemq_broker: Broker) -> None:
    clock = activemq_broker.clock
    assert isinstance(clock, ManualClock)
    sent = 300

    def send(number: int) -> None:
        with Client(activemq_stomp.port) as client:
            client.frame()
            for each in range(sent):
                client.send(f"SEND\ndestination:/queue/both\nreceipt:{each}\n\n", b"x")
                client.frame()

    senders = [threading.Thread(target=send, args=(number,)) for number in range(3)]
    heard: list[Any] = []
    with ConnectionFactory(broker=activemq_broker).create_connection() as own:
        own.create_session().create_consumer("heard", listener=heard.append)
        session = own.create_session()
        consumer, producer = session.create_consumer("both"), session.create_producer("heard")
        for sender in senders:
            sender.start()
        got = moved = 0
        while got < 3 * sent:
            got += consumer.receive(timeout=0.05) is not None
            producer.send("z")
            clock.advance(10)
            moved += 1
        for sender in senders:
            sender.join()
    assert len(heard) == moved


def test_in_memory_everything_has_happened_when_a_call_returns(
    activemq_clock: ManualClock, activemq_stomp_memory: Broker
) -> None:
    threads = threading.active_count()
    listener = Listener()
    with stomp.Connection12([("broker.example.com", 61613)]) as client:  # as the program has it
        client.set_listener("", listener)
        client.connect("ann", "secret", wait=True)
        client.subscribe("/queue/orders", id="1", ack="client-individual", headers={"selector": "price > 100"})
        client.send("/queue/orders", "tea", headers={"price": "150"})
        client.send("/queue/orders", "milk", headers={"price": "50"})
        assert listener.bodies == ["tea"]
        (held,) = activemq_stomp_memory.held("orders")
        assert held.reason is HoldReason.SELECTOR
        assert threading.active_count() == threads
    assert activemq_stomp_memory.view("orders").consumer_count == 0


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_connection_in_memory_of_each_version(version: str, activemq_broker: Broker) -> None:
    listener, client = Listener(), connection(activemq_broker, version)
    client.set_listener("", listener)
    client.connect(wait=True)
    client.subscribe("/queue/a", id="1")
    client.send("/queue/a", "x")
    assert listener.bodies == ["x"]
    client.disconnect(receipt="bye")
    assert not client.is_connected()


FAILING = """
import stomp

def test_it(activemq_stomp_memory):
    client = stomp.Connection12()
    client.connect(wait=True)
    client.send("/queue/orders", "tea")
    assert False
"""


def test_a_failing_test_says_why_messages_wait(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pyengine_pytest", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "messages that wait in broker 'localhost'" in done.stdout
    assert re.search(r"^orders: ID:memory-\S+: NO_CONSUMER$", done.stdout, re.MULTILINE)


# A process of its own


@contextlib.contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pyengine", "serve", "activemq", "--listen", "stomp://127.0.0.1:0", *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on stomp://127.0.0.1:")
        yield process, int(line.rpartition(":")[2])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def test_serve_with_a_clock_on_standard_input() -> None:
    with served("--manual-clock") as (process, port), Client(port) as client:
        assert process.stdin is not None
        assert process.stdout is not None
        client.frame()
        client.send("SEND\ndestination:/queue/a\nexpires:1000000060000\nreceipt:r\n\n")
        client.frame()
        for command, answer in (
            ("now", "now 1000000000000"),
            ("held a", None),
            ("advance 90000", "now 1000000090000"),
            ("held a", "[]"),
            ("advance", "error advance : say how many ms, a whole number"),
            ("held b", "error there is no destination queue://b; did you mean 'queue://a'?"),
            ("stop", "error stop: say advance MS, now, held"),
        ):
            process.stdin.write(command + "\n")
            process.stdin.flush()
            line = process.stdout.readline().strip()
            if answer is None:
                assert [each["reason"] for each in json.loads(line)] == ["NO_CONSUMER"]
            else:
                assert line == answer
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert client.closed()


def test_a_kill_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    chance = random.Random(3)
    confirmed: list[str] = []
    for number in range(KILLS):
        with served("--data", str(tmp_path / "store")) as (process, port), Client(port) as client:
            client.frame()
            client.send("SEND\ndestination:/queue/a\npersistent:true\nreceipt:first\n\n", f"{number}.first".encode())
            assert client.frame() == "RECEIPT\nreceipt-id:first"
            confirmed.append(f"{number}.first")
            threading.Timer(chance.uniform(0.02, 0.3), process.kill).start()
            with contextlib.suppress(ConnectionError):
                for each in range(100_000):
                    body = f"{number}.{each}"
                    client.send(f"SEND\ndestination:/queue/a\npersistent:true\nreceipt:{body}\n\n", body.encode())
                    if client.frame() != f"RECEIPT\nreceipt-id:{body}":
                        break
                    confirmed.append(body)
    with Broker(tmp_path / "store") as broker:
        kept = [message.body for message in broker.browse("a")]
    known = set(confirmed)
    assert [body for body in kept if body in known] == confirmed
    assert len(kept) <= len(confirmed) + KILLS
