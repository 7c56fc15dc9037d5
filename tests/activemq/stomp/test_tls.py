"""STOMP over TLS: stomp.py over ``stomp+ssl://``, clients without a right to come in, and what is refused."""

from __future__ import annotations

import socket
import ssl
import time
from pathlib import Path

import pytest
import stomp
from stomp.listener import WaitingListener

from pyengine.activemq import Broker
from pyengine.destinations import Destination
from pyengine.errors import ConfigurationError
from tests.activemq.pem import certificate


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("pem"))


class Bodies(stomp.ConnectionListener):
    def __init__(self) -> None:
        self.bodies: list[str] = []

    def on_message(self, frame: stomp.utils.Frame) -> None:
        self.bodies.append(frame.body)


def client_of(port: int, **settings: object) -> stomp.Connection12:
    connection = stomp.Connection12([("127.0.0.1", port)], reconnect_attempts_max=1)
    connection.set_ssl([("127.0.0.1", port)], **settings)
    return connection


def test_stomp_py_speaks_tls(pem: tuple[Path, Path]) -> None:
    cert, key = pem
    uri = f"stomp+ssl://127.0.0.1:0?cert={cert}&key={key}&trusted={cert}&needClientAuth=true"
    with Broker(name="tls", transport_connectors=[uri]) as broker:
        port = broker.transport_connectors[0].port
        client = client_of(port, ca_certs=str(cert), cert_file=str(cert), key_file=str(key))
        client.set_listener("bodies", heard := Bodies())
        client.set_listener("sent", sent := WaitingListener("sent"))
        client.connect(wait=True)
        client.subscribe("/queue/Q", id="1")
        bodies = ["tea", "x" * 300_000, "y" * 17_000]  # more than a record of TLS
        for body in bodies:
            client.send("/queue/Q", body)
        client.send("/queue/other", "last", receipt="sent")
        sent.wait_on_receipt()
        for _ in range(200):
            if len(heard.bodies) == 3:
                break
            time.sleep(0.01)
        assert heard.bodies == bodies
        without = client_of(port, ca_certs=str(cert))
        with pytest.raises(stomp.exception.ConnectFailedException):
            without.connect(wait=True)
        plain = socket.create_connection(("127.0.0.1", port), timeout=5)
        plain.sendall(b"CONNECT\n\n\0" * 10)
        while plain.recv(4096):
            pass
        plain.close()
        client.disconnect()
        assert broker.view("other").queue_size == 1


def test_a_silent_client_of_tls_is_cut_and_others_go_on(pem: tuple[Path, Path]) -> None:
    cert, key = pem
    uri = f"stomp+ssl://127.0.0.1:0?cert={cert}&key={key}&transport.connectAttemptTimeout=100"
    with Broker(name="tls", transport_connectors=[uri]) as broker:
        port = broker.transport_connectors[0].port
        silent = socket.create_connection(("127.0.0.1", port), timeout=5)
        context = ssl.create_default_context(cafile=str(cert))
        with context.wrap_socket(
            socket.create_connection(("127.0.0.1", port), timeout=5), server_hostname="127.0.0.1"
        ) as tls:
            tls.sendall(b"CONNECT\naccept-version:1.2\n\n\0SEND\ndestination:/queue/Q\nreceipt:1\n\nx\0")
            assert tls.recv(4096).startswith(b"CONNECTED")
            assert silent.recv(10) == b""
            tls.sendall(b"SEND\ndestination:/queue/Q\nreceipt:2\n\nx\0")
            received = b""
            while b"receipt-id:2" not in received:
                received += tls.recv(4096)
        silent.close()
        assert broker.view(Destination("Q")).queue_size == 2


def test_what_cannot_be_used_is_refused(pem: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = pem
    for query, problem in (
        ("", "TLS needs a certificate"), (f"?cert={tmp_path}/none.pem", "cannot be used"),
        (f"?cert={cert}", "cannot be used"), (f"?cert={cert}&key={key}&trusted={key}x", "cannot be used"),
        ("?keyStore=broker.ks&keyStorePassword=x", "openssl pkcs12"),
        ("?transport.trustStore=broker.ts", "Java key stores are not read"),
        (f"?cert={cert}&ky=1", "did you mean 'key'"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=problem):
            Broker(name="tls", transport_connectors=[f"stomp+ssl://127.0.0.1:0{query}"])
    with pytest.raises(ConfigurationError, match="no such option"):
        Broker(name="tls", transport_connectors=[f"stomp://127.0.0.1:0?cert={cert}"])
