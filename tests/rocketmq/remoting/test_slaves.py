"""Pulls go to the broker id that the last answer suggests, without a commit, and back when it says so."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, Message, MessageQueue
from pyengine.rocketmq.server import broker_requests, name_server

QUEUE = MessageQueue("T", "broker-a", 0)


def test_a_suggested_slave_is_pulled_from(monkeypatch: pytest.MonkeyPatch) -> None:
    suggested, flags = [1], {"master": set(), "slave": set()}  # type: ignore[var-annotated]
    with rocketmq.Broker(listen="127.0.0.1:0") as master, rocketmq.Broker(listen="127.0.0.1:0") as slave:
        for broker, bodies in ((master, [b"m0", b"m1", b"m2", b"m3", b"m4"]), (slave, [b"s0", b"s1", b"s2"])):
            broker.create_topic("T", 1)
            for body in bodies:
                rocketmq.Producer(broker).send(Message("T", body), queue=QUEUE)
        addresses = {0: master.broker_addresses[0], 1: slave.broker_addresses[0]}

        def described(self: Any, connection: Any, name: str) -> dict[str, Any]:
            return {"brokerAddrs": addresses, "brokerName": name, "cluster": "DefaultCluster"}

        real_answer, real_header = broker_requests._pull_answer, broker_requests.read_header

        def answers(*asked: Any) -> RemotingCommand:
            found = real_answer(*asked)
            if found.ext_fields:
                found.ext_fields["suggestWhichBrokerId"] = str(suggested[0])
            return found

        def read(name: str, fields: Any) -> Any:
            found = real_header(name, fields)
            if name == "PullMessageRequestHeader" and found["topic"] == "T":
                flags["master" if found["queueOffset"] == 0 else "slave"].add(found["sysFlag"])
            return found

        monkeypatch.setattr(name_server.NameServer, "_broker", described)
        monkeypatch.setattr(broker_requests, "_pull_answer", answers)
        monkeypatch.setattr(broker_requests, "read_header", read)
        consumer = rocketmq.DefaultMQPushConsumer(
            "G", namesrv_addr=master.name_server_address, persist_consumer_offset_interval=100, pull_batch_size=1,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )  # fmt: skip
        consumer.subscribe("T")
        seen: list[bytes | None] = []

        @consumer.register_message_listener
        def listen(messages: list[rocketmq.MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
            seen.extend(message.body for message in messages)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        def until(count: int) -> None:
            deadline = time.monotonic() + 20
            while len(seen) < count:
                assert time.monotonic() < deadline, seen
                time.sleep(0.01)

        with consumer:
            until(3)
            assert seen == [b"m0", b"s1", b"s2"]
            assert all(not flag & 1 for flag in flags["slave"])  # nothing is committed with a pull from a slave
            suggested[0] = 0
            rocketmq.Producer(slave).send(Message("T", b"s3"), queue=QUEUE)
            until(5)
        assert seen == [b"m0", b"s1", b"s2", b"s3", b"m4"]
        assert master.consumer_offsets("G", "T") == {QUEUE: 5}  # offsets are the master's
