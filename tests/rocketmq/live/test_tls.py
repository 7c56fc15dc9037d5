"""TLS with the real software at the other end. By ``make interop``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyengine import rocketmq
from pyengine.rocketmq.remoting.tls import server_ssl_context
from tests.interop import INTEROP, started_or_skipped
from tests.rocketmq.live.corners import FIRST, JavaClient, PythonClient, RefusedError, our_broker
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import start
from tests.waiting import until

pytestmark = INTEROP

CERTIFICATES = Path(__file__).parents[1] / "tls"
CLIENT = {
    "tls.client.trustCertPath": str(CERTIFICATES / "ca.pem"),
    "tls.client.certPath": str(CERTIFICATES / "client.pem"),
    "tls.client.keyPath": str(CERTIFICATES / "client.key"),
    "tls.client.authServer": "true",
}
SERVER = {
    "tls.server.mode": "enforcing",
    "tls.server.certPath": str(CERTIFICATES / "server.pem"),
    "tls.server.keyPath": str(CERTIFICATES / "server.key"),
    "tls.server.trustCertPath": str(CERTIFICATES / "ca.pem"),
    "tls.server.authClient": "true",
    "tls.server.need.client.auth": "require",
}


def properties(**kinds: dict[str, str]) -> list[str]:
    found = {"tls.enable": "true", "tls.test.mode.enable": "false"}
    for each in kinds.values():
        found |= each
    return [f"{name}={value}" for name, value in found.items()]


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_the_real_client_talks_tls_to_our_cluster(release: str, tmp_path: Path) -> None:
    client = started_or_skipped(lambda: JavaClient(release, tmp_path / "tls", properties(client=CLIENT)))
    plain = started_or_skipped(lambda: JavaClient(release, tmp_path / "plain"))
    context = server_ssl_context(CERTIFICATES / "server.pem", CERTIFICATES / "server.key", CERTIFICATES / "ca.pem")
    try:
        with our_broker(ssl_context=context, tls_mode="enforcing") as broker:
            client.names = plain.names = broker.name_server_address
            client.send({"topic": "T", "body": b"m", "tags": "A"})
            client.consume("member", "G", "T", **{"from": FIRST})
            until(lambda: [each["key"] for each in client.received("member")] == ["m"])
            with pytest.raises(RefusedError):
                plain.send({"topic": "T", "body": b"plain", "tags": "A"})
            assert len(broker.messages("T")) == 1
            client.stop("member")
    finally:
        client.close()
        plain.close()


def test_our_client_talks_tls_to_the_real_cluster(tmp_path: Path) -> None:
    jvm = started_or_skipped(lambda: Real(tmp_path, properties(client=CLIENT, server=SERVER)))
    try:
        names = start(jvm, tmp_path, tmp_path / "store")
        context = rocketmq.client_ssl_context(CLIENT)
        client = PythonClient(tmp_path, ssl_context=context)
        client.names = names
        with rocketmq.Cluster(names, ssl_context=context) as cluster:
            until(lambda: cluster.topic_subscribe_info("TBW102") is not None)
        client.send({"topic": "T", "body": b"m", "tags": "A"})
        client.consume("member", "G1", "T")
        until(lambda: [each["key"] for each in client.received("member")] == ["m"])
        client.close()
        with rocketmq.Cluster(names) as plain, pytest.raises(rocketmq.RemotingError):
            plain.cluster_info()
    finally:
        jvm.close()
