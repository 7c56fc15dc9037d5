"""Access keys with the real broker 5.3.3, which authenticates. By ``make interop``."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from pyengine import rocketmq
from pyengine.rocketmq.server.accounts import read_accounts
from tests.interop import INTEROP, started_or_skipped
from tests.rocketmq.live.corners import PythonClient
from tests.rocketmq.live.real import Older, Real
from tests.rocketmq.live.scripts import start
from tests.waiting import until

pytestmark = INTEROP


def test_signed_requests_are_served_and_others_refused(tmp_path: Path) -> None:
    jvm = started_or_skipped(lambda: Real(tmp_path))
    try:
        account = json.dumps({"key": "billing", "secret": "a long secret"})
        names = start(jvm, tmp_path, tmp_path / "store", account=account)
        keys = rocketmq.SessionCredentials("billing", "a long secret")
        client = PythonClient(tmp_path, rpc_hook=keys)
        client.names = names
        with rocketmq.Cluster(names, credentials=keys) as cluster:
            until(lambda: cluster.topic_subscribe_info("TBW102") is not None)
        client.send({"topic": "T", "body": b"m", "tags": "A"})
        client.consume("member", "G1", "T")
        until(lambda: [each["key"] for each in client.received("member")] == ["m"])
        client.close()
        for wrong in (None, rocketmq.SessionCredentials("billing", "another"), rocketmq.SessionCredentials("x", "y")):
            with (
                rocketmq.Producer(namesrv_addr=names, rpc_hook=wrong) as producer,
                pytest.raises(rocketmq.MQBrokerError) as caught,
            ):
                producer.send("T", b"refused")
            assert caught.value.code in (16, 1)
    finally:
        jvm.close()


PLAIN_ACL = """
accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    admin: true
"""
WRONG = (None, rocketmq.SessionCredentials("RocketMQ", "87654321"), rocketmq.SessionCredentials("nobody12", "12345678"))


def test_a_plain_acl_lets_in_the_same_clients_at_a_real_4_9_and_here(tmp_path: Path) -> None:
    file = tmp_path / "older" / "conf" / "plain_acl.yml"
    file.parent.mkdir(parents=True)
    file.write_text(PLAIN_ACL, encoding="utf-8")
    older = started_or_skipped(lambda: Older(tmp_path / "older", "1s 2s", 1000))
    refusals = []
    with (
        closing(older),
        rocketmq.Broker(listen="127.0.0.1:0", accounts=read_accounts(file).credentials) as ours,
    ):
        for names in (older.names, ours.name_server_address):
            keys = rocketmq.SessionCredentials("RocketMQ", "12345678")
            with rocketmq.Cluster(names, credentials=keys) as cluster:
                until(lambda cluster=cluster: cluster.topic_subscribe_info("TBW102") is not None)  # type: ignore[misc]
            client = PythonClient(tmp_path / names.replace(":", "-"), rpc_hook=keys)
            client.names = names
            client.send({"topic": "T", "body": b"m", "tags": "A"})
            client.consume("member", "G1", "T")
            until(lambda client=client: [each["key"] for each in client.received("member")] == ["m"])  # type: ignore[misc]
            client.close()
            refused = []
            for wrong in WRONG:
                with (
                    rocketmq.Producer(namesrv_addr=names, rpc_hook=wrong) as producer,
                    pytest.raises(rocketmq.MQBrokerError) as caught,
                ):
                    producer.send("T", b"refused")
                words = re.fullmatch(r"(?:[\w.]+AclException: )?([^,]+)(?:, .*)?", caught.value.problem)
                assert words is not None
                refused.append(words[1])
            refusals.append(refused)
    # The code is 1 in 4.9, whose exception is any other to it, and 16 in 5.x.
    assert refusals[0] == refusals[1]
