"""Clients that mean harm, or have gone without a word: the broker answers the others as before, and keeps little."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.activemq.test_stomp import Client, listening, until
from tests.bystander import latency, pairs_of_descriptors, processor_times, unnoticed

SUBSCRIBE = "SUBSCRIBE\nid:1\ndestination:/topic/prices\nack:{}\n\n"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with listening(name="hostile") as (_, port):
        yield port


def asks(client: Client) -> Callable[[], None]:
    """A message to a queue and its receipt."""

    def ask() -> None:
        client.send("SEND\ndestination:/queue/orders\nexpires:1\nreceipt:r\n\n", b"tea")
        assert client.frame() == "RECEIPT\nreceipt-id:r"

    return ask


def all_accepted(port: int) -> None:
    """Wait until a client is answered that comes behind the others."""
    with Client(port) as last:
        assert last.frame().startswith("CONNECTED")


def slow_readers(port: int, stack: ExitStack) -> None:
    """Twenty subscribers of a topic who read nothing, and a publisher of 20 MB."""
    for number in range(20):
        slow = stack.enter_context(Client(port, None))
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send("CONNECT\naccept-version:1.2\n\n")
        slow.send(SUBSCRIBE.format(("auto", "client")[number % 2]))
        assert slow.frame().startswith("CONNECTED")
    with Client(port) as publisher:
        publisher.frame()
        for _ in range(200):
            publisher.send("SEND\ndestination:/topic/prices\n\n", b"x" * 100_000)
        publisher.send("DISCONNECT\nreceipt:end\n\n")
        assert publisher.frame() == "RECEIPT\nreceipt-id:end"


def half_closed(port: int, stack: ExitStack) -> None:
    """A hundred subscribers that close their own direction, and go on reading."""
    for _ in range(100):
        gone = stack.enter_context(Client(port))
        gone.send(SUBSCRIBE.format("client"))
        assert gone.frame().startswith("CONNECTED")
        gone.socket.shutdown(socket.SHUT_WR)


def half_frames(port: int, stack: ExitStack) -> None:
    """A hundred that say a body of 100 MB comes, and send three bytes of it."""
    for _ in range(100):
        half = stack.enter_context(Client(port))
        half.socket.sendall(b"SEND\ndestination:/queue/a\ncontent-length:100000000\n\nxxx")
    all_accepted(port)


def half_handshakes(port: int, stack: ExitStack) -> None:
    """A thousand that begin a CONNECT and do not end it."""
    for _ in range(1000):
        stack.enter_context(Client(port, None)).socket.sendall(b"CONNECT\naccept-ver")
    all_accepted(port)


def handshakes(port: int, stack: ExitStack) -> None:
    """A thousand connections one after the other, each gone as soon as it has said CONNECT."""
    for _ in range(1000):
        Client(port).socket.close()
    all_accepted(port)


def idle(port: int, stack: ExitStack) -> None:
    """5,000 that come in, and say nothing more; or as many as the process may open."""
    clients = [stack.enter_context(Client(port)) for _ in range(pairs_of_descriptors(5000, stack))]
    assert all(client.frame().startswith("CONNECTED") for client in clients)


def endless_heart_beats(port: int, stack: ExitStack) -> None:
    """Fifty that send 64 KB of heart-beats each."""
    for _ in range(50):
        stack.enter_context(Client(port)).socket.sendall(b"\n" * 65536)
    all_accepted(port)


@pytest.mark.parametrize(
    "harm", [slow_readers, half_closed, half_frames, half_handshakes, handshakes, idle, endless_heart_beats]
)
def test_the_others_are_answered_as_before_and_memory_is_bounded(
    port: int, harm: Callable[[int, ExitStack], None]
) -> None:
    with Client(port) as client:
        client.frame()
        unnoticed(asks(client), partial(harm, port))


def test_who_floods_with_handshakes_takes_little_of_the_brokers_time_from_a_bystander() -> None:
    from tests.activemq.stomp.bystander import ALLOWED, meanwhile, serving

    with serving() as (process, port):
        _, during = meanwhile(process, port, "handshakes", 0.3)
    assert during.done
    assert during.spent_p50 < ALLOWED / 2, during


def test_a_connection_that_is_half_open_is_found_by_its_silence() -> None:
    with listening() as (broker, port), Client(port, "accept-version:1.2\nheart-beat:100,0") as gone:
        assert gone.frame().startswith("CONNECTED")
        gone.send("SUBSCRIBE\nid:1\ndestination:/queue/orders\nack:client\n\n")
        with Client(port) as client:
            client.frame()
            client.send("SEND\ndestination:/queue/orders\n\n", b"tea")
            until(lambda: broker.view("orders").in_flight_count == 1)
            until(lambda: broker.transport_connectors[0].connections == 1)
            assert broker.view("orders").in_flight_count == 0
            assert broker.view("orders").queue_size == 1


def test_a_broker_out_of_descriptors_waits_and_goes_on() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with listening() as (_, port), Client(port) as client, ExitStack() as stack:
        client.frame()
        later = stack.enter_context(socket.socket())
        later.settimeout(5)
        before = latency(asks(client))
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (later.fileno() + 1, hard))
            later.connect(("127.0.0.1", port))
            spent = processor_times(0.3)
            assert spent["ActiveMQ Transport Connectors[localhost]"] < 0.15, spent
            assert latency(asks(client)) < 5 * before + 0.002
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        later.sendall(b"CONNECT\naccept-version:1.2\n\n\0")
        assert later.recv(100).startswith(b"CONNECTED")
