"""OpenWire over TLS: our client and the Java one on our broker, ours on the real one, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pyengine import Message
from pyengine.activemq import Broker, ConnectionFactory
from pyengine.errors import ConfigurationError, JMSError
from tests.activemq.openwire.real import RealBroker, RealClient
from tests.activemq.openwire.test_clients import RECORDED
from tests.activemq.pem import certificate, java_properties, key_store, trust_store
from tests.interop import INTEROP, INTEROP_ASKED, started_or_skipped


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("pem"))


@pytest.fixture(scope="module")
def stores(pem: tuple[Path, Path]) -> dict[str, str]:
    """The same for Java, as it is told of them."""
    if shutil.which("keytool") is None:
        pytest.skip("no keytool on PATH makes a store for Java")
    return java_properties(key_store(*pem), trust_store(pem[0]))


def exchanged(url: str) -> list[object]:
    """What comes back of three messages."""
    with ConnectionFactory(url).create_connection() as connection:
        session = connection.create_session()
        producer, consumer = session.create_producer("q"), session.create_consumer("q")
        for body in ("tea", "x" * 300_000, b"y" * 17_000):  # more than a record of TLS
            producer.send(Message(body=body))
        received = [consumer.receive(10.0) for _ in range(3)]
    return [None if each is None else each.body for each in received]


EXCHANGED = ["tea", "x" * 300_000, b"y" * 17_000]


@pytest.mark.parametrize("scheme", ["ssl", "nio+ssl"])
def test_our_client_on_our_broker_each_with_a_certificate(pem: tuple[Path, Path], scheme: str) -> None:
    cert, key = pem
    own = f"cert={cert}&key={key}&trusted={cert}"
    with Broker(transport_connectors=[f"{scheme}://127.0.0.1:0?{own}&needClientAuth=true"]) as broker:
        url = broker.transport_connectors[0].url
        assert url.startswith(f"{scheme}://")
        assert exchanged(f"{url}?{own}&socket.enabledProtocols=TLSv1.2&transport.soTimeout=20000") == EXCHANGED
        assert exchanged(f"{url}?{own}&enabledProtocols=TLSv1.3&socket.keepAlive=true") == EXCHANGED
        for options in (f"trusted={cert}", f"trusted={cert}&enabledProtocols=TLSv1.2"):
            with pytest.raises(JMSError):
                ConnectionFactory(f"{url}?{options}").create_connection()
        with pytest.raises(JMSError):
            ConnectionFactory(f"{url.replace(scheme, 'tcp')}?connectionTimeout=3000").create_connection()
        assert exchanged(f"{url}?{own}") == EXCHANGED


def test_a_broker_that_is_not_trusted_is_not_connected_to(pem: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = pem
    other, _ = certificate(tmp_path, "other")
    with Broker(transport_connectors=[f"ssl://127.0.0.1:0?cert={cert}&key={key}", "tcp://127.0.0.1:0"]) as broker:
        port = broker.transport_connectors[0].port
        for url, problem in (
            (f"ssl://127.0.0.1:{port}", "self-signed certificate|self signed certificate"),
            (f"ssl://127.0.0.1:{port}?trusted={other}", "certificate"),
            (f"ssl://localhost:{port}?trusted={cert}", "Hostname mismatch|not valid for 'localhost'"),
        ):
            with pytest.raises(JMSError, match=f"Could not connect to broker URL: ssl://.*TLS: .*({problem})"):
                ConnectionFactory(url).create_connection()
        for prefix in ("", "socket.", "transport."):
            assert exchanged(f"ssl://localhost:{port}?trusted={cert}&{prefix}verifyHostName=false") == EXCHANGED
        plain = broker.transport_connectors[1].port
        with pytest.raises(JMSError, match="TLS: "):
            ConnectionFactory(f"ssl://127.0.0.1:{plain}?trusted={cert}").create_connection()


def test_what_cannot_be_used_is_refused(pem: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = pem
    for query, problem in (
        (f"cert={tmp_path}/none.pem", "cert=.*cannot be used"), (f"cert={cert}", "cert=.*cannot be used"),
        (f"key={key}", "a key without cert"), (f"trusted={tmp_path}/none.pem", "trusted=.*cannot be used"),
        ("socket.keyStore=client.ks", "keyStore=client.ks: Java key stores are not read.*openssl pkcs12"),
        ("trustStorePassword=x", "Java key stores are not read"),
        ("socket.enabledCipherSuites=TLS_AES_128_GCM_SHA256", "names of cipher suites are not read"),
        ("enabledProtocols=TLSv1.1", "not spoken here; there are TLSv1.2 and TLSv1.3"),
        (f"trustd={cert}", "did you mean 'trusted'"), ("needClientAuth=true", "no such option"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=problem):
            ConnectionFactory(f"ssl://127.0.0.1?{query}")
    with pytest.raises(ConfigurationError, match="no such option"):
        ConnectionFactory(f"tcp://127.0.0.1?trusted={cert}")
    for uri, problem in (
        ("ssl://127.0.0.1:0", "TLS needs a certificate"),
        ("nio+ssl://127.0.0.1:0?transport.keyStore=broker.ks", "Java key stores are not read"),
        (f"ssl://127.0.0.1:0?cert={cert}&key={key}&transport.enabledCipherSuites=x", "are not read"),
        (f"tcp://127.0.0.1:0?cert={cert}", "no such option"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            Broker(name="tls", transport_connectors=[uri])


def test_connectors_of_an_activemq_xml(pem: tuple[Path, Path]) -> None:
    """Those with PEM files are there; those whose certificate is in a key store are left out, with the reason."""
    cert, key = pem
    text = f"""<broker xmlns="http://activemq.apache.org/schema/core" persistent="false">
        <sslContext><sslContext keyStore="broker.ks" keyStorePassword="x"/></sslContext>
        <transportConnectors>
            <transportConnector uri="ssl://127.0.0.1:0?needClientAuth=true"/>
            <transportConnector uri="ssl://127.0.0.1:0?cert={cert}&amp;key={key}"/>
        </transportConnectors></broker>"""
    with pytest.warns(UserWarning, match="2 things that the file says are not done"):
        broker = Broker.from_xml(text)
    with broker:
        (connector,) = broker.transport_connectors
        assert exchanged(f"{connector.url}?trusted={cert}") == EXCHANGED
        context, left_out = broker.left_out
    assert (context.name, left_out.line) == ("sslContext", 4)
    assert "Java key stores are not read" in context.reason
    assert "TLS needs a certificate" in left_out.reason


def test_the_java_client_on_our_broker(pem: tuple[Path, Path], stores: dict[str, str], tmp_path: Path) -> None:
    """Its scenarios' transcripts are those without TLS."""
    cert, key = pem
    client = started_or_skipped(lambda: RealClient("5.18.6", tmp_path / "client.log", stores))
    own = f"cert={cert}&key={key}&trusted={cert}&needClientAuth=true"
    try:
        for name in ("bodies", "transactions") if INTEROP_ASKED else ("bodies",):
            with Broker(transport_connectors=[f"ssl://127.0.0.1:0?{own}"]) as broker:
                url = broker.transport_connectors[0].url
                assert client.play(url, name) == json.loads(RECORDED.read_text("utf-8"))[name]
    finally:
        client.close()


@INTEROP
def test_our_client_on_the_real_broker(pem: tuple[Path, Path], stores: dict[str, str], tmp_path: Path) -> None:
    cert, key = pem
    properties = {**stores, "connector": "ssl://127.0.0.1:0?needClientAuth=true"}
    real = started_or_skipped(lambda: RealBroker("5.18.6", tmp_path / "broker.log", properties=properties))
    try:
        url = f"ssl://127.0.0.1:{real.port}?trusted={cert}"
        assert exchanged(f"{url}&cert={cert}&key={key}") == EXCHANGED
        with pytest.raises(JMSError):
            ConnectionFactory(url).create_connection()
    finally:
        real.close()
