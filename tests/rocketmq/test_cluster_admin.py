"""What administrators ask of a cluster over the network, and diagnose's look at a live one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyengine import rocketmq
from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import Evidence, live

ROOT = Path(__file__).parents[2]
SENT = 12


def cached(queue: dict[str, int | bool]) -> int:
    return int(queue["cachedMsgCount"])


@pytest.fixture(scope="module")
def stuck() -> Iterator[str]:
    """The name server of a cluster whose group "billing" has one member, which took one message and does not return."""
    go_on = threading.Event()

    def listen(messages: object, context: object) -> rocketmq.ConsumeConcurrentlyStatus:
        go_on.wait(60)
        return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        broker.create_topic("orders", 2)
        names = broker.name_server_address
        with rocketmq.Producer(namesrv_addr=names, group="shop") as producer:
            for number in range(SENT):
                producer.send("orders", f"m{number}".encode(), tags="A")
            for queue in broker.topic_subscribe_info("orders") or []:
                broker.update_consumer_offset("billing", queue, 1)
            consumer = rocketmq.DefaultMQPushConsumer(
                "billing", namesrv_addr=names, consume_thread_min=1, consume_thread_max=1,
                await_termination_millis_when_shutdown=0,
            )  # fmt: skip
            consumer.subscribe("orders", "A || B")
            consumer.register_message_listener(listen)
            consumer.start()
            deadline = time.monotonic() + 20
            while sum(map(cached, consumer.consumer_running_info().mq_table.values())) < SENT - 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield names
            go_on.set()
            consumer.shutdown()


def test_what_mqadmin_asks_comes_as_values(stuck: str) -> None:
    with rocketmq.ClusterAdmin(stuck) as admin:
        (broker,) = admin.cluster_list()
        assert (broker.cluster, broker.name, broker.broker_id, broker.version) == (
            "DefaultCluster", "broker-a", 0, "V5_3_3",
        )  # fmt: skip
        status = admin.topic_status("orders")
        assert [queue.queue_id for queue in status] == [0, 1]
        assert sum(each.max_offset for each in status.values()) == SENT
        members = admin.consumer_connection("billing")
        assert members is not None
        assert members.subscriptions["orders"] == "A || B"
        assert (members.message_model, members.consume_type) == ("CLUSTERING", "CONSUME_PASSIVELY")
        (member,) = members.connections
        assert (member.language, member.version) == ("PYTHON", 479)
        progress = admin.consumer_progress("billing")
        assert progress.stats.total_delay("orders") == SENT - 2
        assert set(progress.owners.values()) == {member.client_id}
        (info,) = admin.consumer_status("billing", with_stacks=True).values()
        assert info.properties["consumeThreadMin"] == "1"
        assert "test_cluster_admin.py" in info.jstack
        assert sum(map(cached, info.mq_table.values())) == SENT - 2
        with pytest.raises(rocketmq.MQClientError, match="No route info of this topic: %RETRY%nobody"):
            admin.consumer_progress("nobody")


def test_a_live_cluster_is_evidence(stuck: str) -> None:
    seen = Evidence()
    with rocketmq.ClusterAdmin(stuck) as admin:
        for _ in range(2):
            seen.add(live.of_cluster(admin, "billing", "a cluster"))
    assert [state.lag for state in seen.offsets if state.topic == "orders"] == [5, 5, 5, 5]
    assert all(state.client for state in seen.offsets)
    assert len(seen.clients) == 2
    diagnose(seen)


def test_diagnose_looks_twice(stuck: str) -> None:
    command = [sys.executable, "-m", "pyengine", "diagnose", "--json"]
    asked = [*command, "--namesrv", stuck, "--group", "billing", "--every-ms", "1000"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert [each["file"] for each in json.loads(done.stdout)["read"]] == [f"{stuck}, look 1", f"{stuck}, look 2"]
    for wrong, words in (
        (("--namesrv", stuck), "not all is there to look at"),
        (("--namesrv", stuck, "--group", "nobody"), "No route info of this topic"),
    ):
        done = subprocess.run([*command, *wrong], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr
