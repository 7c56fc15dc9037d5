"""Peers that mean harm: our brokers answer the others as before, and keep little for them."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.commands.headers import CODES, write_header
from pyengine._engine.wire.remoting import RemotingCommand, write_command
from pyengine.rocketmq.server import connections
from tests.bystander import latency, pairs_of_descriptors, processor_times, unnoticed
from tests.fuzz import fuzz_remoting
from tests.rocketmq.test_server import Peer, heartbeat, pull, send


@pytest.fixture(scope="module")
def broker() -> Iterator[rocketmq.Broker]:
    with rocketmq.Broker(listen="127.0.0.1:0") as made:
        made.create_topic("orders", 1)
        yield made


def connected(broker: rocketmq.Broker) -> socket.socket:
    host, _, port = broker.broker_addresses[0].rpartition(":")
    return socket.create_connection((host, int(port)), 10)


def sends(peer: Peer) -> Callable[[], None]:
    def ask() -> None:
        assert send(peer, "orders").code == 0

    return ask


def slow_readers(broker: rocketmq.Broker, stack: ExitStack) -> None:
    """Twenty that ask for a megabyte again and again, and read nothing."""
    with closing(Peer(broker.broker_addresses[0])) as peer:
        for _ in range(4):
            send(peer, "large", b"x" * 300_000)
    fields = write_header("PullMessageRequestHeader", {
        "consumerGroup": "g", "topic": "large", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4,
        "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0, "expressionType": "TAG",
    })  # fmt: skip
    for _ in range(20):
        each = stack.enter_context(closing(connected(broker)))
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        each.sendall(b"".join(write_command(RemotingCommand(11, opaque=n, ext_fields=fields)) for n in range(20)))


def half_frames(broker: rocketmq.Broker, stack: ExitStack) -> None:
    """A hundred that say a frame of 16 MB comes, and send three bytes of it."""
    for _ in range(100):
        each = stack.enter_context(closing(connected(broker)))
        each.sendall(struct.pack(">i", 16 * 1024 * 1024 - 4) + b"\0\0\0")


def huge_lengths(broker: rocketmq.Broker, stack: ExitStack) -> None:
    """A hundred whose frames say that they are longer than any may be, or shorter than nothing."""
    for number in range(100):
        each = stack.enter_context(closing(connected(broker)))
        each.sendall(struct.pack(">I", (0x7FFFFFFF, 0xFFFFFFFF, 16 * 1024 * 1024)[number % 3]))


def handshakes(broker: rocketmq.Broker, stack: ExitStack) -> None:
    """Connections one after the other, each gone as soon as it is there."""
    for _ in range(500):
        connected(broker).close()


def idle(broker: rocketmq.Broker, stack: ExitStack) -> None:
    """As many as the process may open that only connect, up to 5,000: both ends are here."""
    for _ in range(pairs_of_descriptors(5000, stack)):
        stack.enter_context(closing(connected(broker)))


def garbage(broker: rocketmq.Broker, stack: ExitStack) -> None:
    """Two hundred that speak another protocol."""
    for _ in range(200):
        each = stack.enter_context(closing(connected(broker)))
        each.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


@pytest.mark.parametrize("harm", [slow_readers, half_frames, huge_lengths, handshakes, idle, garbage])
def test_the_others_are_answered_as_before_and_memory_is_bounded(
    broker: rocketmq.Broker, harm: Callable[[rocketmq.Broker, ExitStack], None]
) -> None:
    # A slow reader may have 64 MiB waiting, which here 20 share; a connection costs a few KB.
    with closing(Peer(broker.broker_addresses[0])) as peer:
        unnoticed(sends(peer), partial(harm, broker))


def test_the_connection_that_holds_most_memory_ends_when_all_hold_too_much(
    broker: rocketmq.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_HELD", 3_000_000)
    with ExitStack() as stack:
        small, large = (stack.enter_context(closing(Peer(broker.broker_addresses[0]))) for _ in range(2))
        for peer, size in ((small, 1_000_000), (large, 2_500_000)):
            peer.socket.sendall(struct.pack(">i", 4_000_000) + bytes(size))
        assert large.ends()
        small.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            small.read()


def test_a_server_out_of_descriptors_waits_and_goes_on(broker: rocketmq.Broker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with closing(Peer(broker.broker_addresses[0])) as peer, ExitStack() as stack:
        assert send(peer, "orders").code == 0  # it is accepted
        stack.enter_context(closing(later := socket.socket()))
        host, _, port = broker.broker_addresses[0].rpartition(":")
        resource.setrlimit(resource.RLIMIT_NOFILE, (later.fileno() + 1, hard))
        try:
            later.connect((host, int(port)))
            spent = processor_times(0.3)
            assert spent["RemotingServer"] < 0.15, spent
            assert send(peer, "orders").code == 0
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        later.settimeout(5)
        later.sendall(write_command(RemotingCommand(31)))
        assert later.recv(4)


def test_a_group_of_a_thousand_pulls_that_wait_costs_a_send_nothing(broker: rocketmq.Broker) -> None:
    with closing(Peer(broker.broker_addresses[0])) as peer, closing(Peer(broker.broker_addresses[0])) as other:
        heartbeat(other, "c", "g", "elsewhere")
        send(peer, "elsewhere")
        before = latency(sends(peer))
        fields = write_header("PullMessageRequestHeader", {
            "consumerGroup": "g", "topic": "elsewhere", "queueId": 0, "queueOffset": 1, "maxMsgNums": 32, "sysFlag": 6,
            "commitOffset": 0, "suspendTimeoutMillis": 15000, "subscription": "*", "subVersion": 0,
            "expressionType": "TAG",
        })  # fmt: skip
        for number in range(1000):
            other.send(RemotingCommand(CODES["PullMessageRequestHeader"], opaque=number, ext_fields=fields))
        assert pull(peer, "g", "orders").code == 0
        assert latency(sends(peer)) < 5 * before + 0.002


def test_hostile_frames_are_read_or_refused_and_answered() -> None:
    counts = fuzz_remoting.run(2000, seed=1)
    for name in ("commands", "refused", "bodies refused", "headers refused", "answers"):
        assert counts[name] > 20, counts
