"""TLS on both ends: our clients and our cluster, permissive and enforcing, and what is refused."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from pyengine import rocketmq
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, RemotingError
from pyengine.rocketmq.remoting.tls import server_ssl_context
from pyengine.rocketmq.remoting.transport import parse_address
from pyengine.rocketmq.server import connections

CERTIFICATES = Path(__file__).parents[1] / "tls"
TRUSTED = {"tls.client.trustCertPath": str(CERTIFICATES / "ca.pem")}
OWN = {
    "tls.client.certPath": str(CERTIFICATES / "client.pem"),
    "tls.client.keyPath": str(CERTIFICATES / "client.key"),
}


def served_tls(trusted: Path | None = None) -> ssl.SSLContext:
    return server_ssl_context(CERTIFICATES / "server.pem", CERTIFICATES / "server.key", trusted)


@pytest.fixture
def permissive() -> Iterator[rocketmq.Broker]:
    with rocketmq.Broker(listen="127.0.0.1:0", ssl_context=served_tls()) as broker:
        yield broker


@pytest.fixture
def enforcing() -> Iterator[rocketmq.Broker]:
    with rocketmq.Broker(listen="127.0.0.1:0", ssl_context=served_tls(), tls_mode="enforcing") as broker:
        yield broker


def sends(broker: rocketmq.Broker, context: ssl.SSLContext | None) -> None:
    with rocketmq.Producer(namesrv_addr=broker.name_server_address, ssl_context=context) as producer:
        producer.send("T", b"tea" * 100_000)


def test_plain_clients_and_those_with_tls_share_a_port(permissive: rocketmq.Broker) -> None:
    sends(permissive, None)
    sends(permissive, rocketmq.client_ssl_context(TRUSTED))
    assert [len(message.body or b"") for message in permissive.messages("T")] == [300_000, 300_000]


def test_a_group_consumes_and_an_administrator_looks(enforcing: rocketmq.Broker) -> None:
    context, where = rocketmq.client_ssl_context(TRUSTED), enforcing.name_server_address
    sends(enforcing, context)
    seen: list[int] = []
    consumer = rocketmq.DefaultMQPushConsumer(
        "G", namesrv_addr=where, ssl_context=context, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer.subscribe("T")

    @consumer.register_message_listener
    def listen(messages: list[rocketmq.MessageExt], context: object) -> ConsumeConcurrentlyStatus:
        seen.extend(len(message.body or b"") for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with consumer:
        deadline = time.monotonic() + 20
        while not seen:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with rocketmq.ClusterAdmin(where, ssl_context=context) as admin:
            assert len(admin.consumer_connection("G").connections) == 1
    assert seen == [300_000]


def test_an_enforcing_cluster_refuses_plain_clients(enforcing: rocketmq.Broker) -> None:
    with pytest.raises(RemotingError):
        sends(enforcing, None)


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"tls.client.trustCertPath": str(CERTIFICATES / "other.pem")}, "TLS: .*certificate"),
        ({}, "TLS: .*certificate"),
    ],
)
def test_a_certificate_that_nobody_trusts_ends_the_connection(
    permissive: rocketmq.Broker, properties: Mapping[str, str], problem: str
) -> None:
    with pytest.raises(RemotingError, match=problem):
        sends(permissive, rocketmq.client_ssl_context(properties))


def test_every_server_is_trusted_where_that_was_said(permissive: rocketmq.Broker) -> None:
    sends(permissive, rocketmq.client_ssl_context({"tls.client.authServer": "false"}))
    assert len(permissive.messages("T")) == 1


def test_a_client_without_tls_there_is_told_so() -> None:
    with rocketmq.Broker(listen="127.0.0.1:0") as plain, pytest.raises(RemotingError, match="failed: TLS: "):
        sends(plain, rocketmq.client_ssl_context(TRUSTED))


def test_clients_show_a_certificate_where_the_server_wants_one() -> None:
    with rocketmq.Broker(listen="127.0.0.1:0", ssl_context=served_tls(CERTIFICATES / "ca.pem")) as broker:
        sends(broker, rocketmq.client_ssl_context(TRUSTED | OWN))
        with pytest.raises(RemotingError):
            sends(broker, rocketmq.client_ssl_context(TRUSTED))
        assert len(broker.messages("T")) == 1


def test_a_client_that_never_agrees_is_let_go(permissive: rocketmq.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_TIMEOUT", 0.1)
    with closing(socket.create_connection(parse_address("", permissive.name_server_address), 10)) as begun:
        begun.sendall(b"\x16\x03\x01")
        assert begun.recv(1) == b""
    with closing(socket.create_connection(parse_address("", permissive.name_server_address), 10)) as nonsense:
        nonsense.sendall(b"\x16" * 100)
        while nonsense.recv(100):
            pass
    sends(permissive, rocketmq.client_ssl_context(TRUSTED))  # the others notice nothing


def test_the_real_clients_file_is_read(permissive: rocketmq.Broker, tmp_path: Path) -> None:
    properties = tmp_path / "tls.properties"
    lines = [f"{name}={value}" for name, value in (TRUSTED | OWN | {"tls.server.mode": "permissive"}).items()]
    properties.write_text("# of the Java client\n\n" + "\n".join(lines) + "\n")
    sends(permissive, rocketmq.client_ssl_context(properties))
    assert len(permissive.messages("T")) == 1


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"tls.client.trustCertpath": "x"}, "did you mean 'tls.client.trustCertPath'"),
        ({"tls.client.trustCertPath": "nowhere.pem"}, "trustCertPath='nowhere.pem': .*No such file"),
        ({"tls.client.trustCertPath": __file__}, "trustCertPath"),
        ({"tls.client.keyPath": "x"}, "a key without tls.client.certPath"),
        (OWN | {"tls.client.keyPath": __file__}, "certPath"),
        ({"tls.client.authServer": "maybe"}, "true or false"),
        ({"tls.client.certPath": 1}, "a string is needed"),
        ("nowhere.properties", "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(properties: Mapping[str, str] | str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        rocketmq.client_ssl_context(properties)


def test_contexts_of_the_other_side_and_of_no_use_are_refused() -> None:
    for make in (
        lambda: rocketmq.Broker(listen="127.0.0.1:0", ssl_context=ssl.create_default_context()),
        lambda: rocketmq.Broker(ssl_context=served_tls()),
        lambda: rocketmq.Broker(listen="127.0.0.1:0", tls_mode="enforcing"),
        lambda: rocketmq.Broker(listen="127.0.0.1:0", ssl_context=served_tls(), tls_mode="strict"),  # type: ignore[arg-type]
        lambda: rocketmq.Producer(namesrv_addr="127.0.0.1:9", ssl_context=served_tls()),
        lambda: rocketmq.Producer(namesrv_addr="127.0.0.1:9", ssl_context="ca.pem"),  # type: ignore[arg-type]
        lambda: server_ssl_context("nowhere.pem", "nowhere.key"),
    ):
        with pytest.raises(ConfigurationError):
            make()


def test_the_command_line_serves_tls() -> None:
    command = [sys.executable, "-m", "pyengine", "serve", "rocketmq", "--listen", "127.0.0.1:0", "--tls-enforcing"]
    command += ["--tls-cert", str(CERTIFICATES / "server.pem"), "--tls-key", str(CERTIFICATES / "server.key")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            where = process.stdout.readline().split()[-1]
            context = rocketmq.client_ssl_context(TRUSTED)
            with rocketmq.Producer(namesrv_addr=where, ssl_context=context) as producer:
                assert producer.send("T", b"tea").status.name == "SEND_OK"
        finally:
            process.terminate()
