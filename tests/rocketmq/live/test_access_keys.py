"""Access keys with the real broker 5.3.3, which authenticates. By ``make interop``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.contest import RivalMissingError
from pyengine import rocketmq
from tests.rocketmq.live.corners import PythonClient, until
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import start

pytestmark = pytest.mark.skipif("PYENGINE_INTEROP" not in os.environ, reason="run by make interop")


def test_signed_requests_are_served_and_others_refused(tmp_path: Path) -> None:
    try:
        jvm = Real(tmp_path)
    except RivalMissingError as reason:
        pytest.skip(str(reason))
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
