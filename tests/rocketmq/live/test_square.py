"""The real client's JVM on our brokers, and mqadmin on ours and on the real one. All by ``make interop``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyengine import rocketmq
from tests.interop import INTEROP, started_or_skipped
from tests.rocketmq.live.corners import JavaClient, PythonClient, RefusedError, our_broker, second_levels
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import start
from tests.waiting import until

pytestmark = INTEROP

# What differs between two clusters, or two moments: addresses, times, clients' numbers, rates and the disk's use.
CHANGING = (
    (re.compile(r"127\.0\.0\.1:\d+ *"), "ADDRESS "),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d{3})?"), "TIME"),
    (re.compile(r"\S+@corner-\d+-\d+ *"), "CLIENT "),
    (re.compile(r"\d{13}"), "MS"),
    (re.compile(r"(?m)^(DefaultCluster +broker-a .*ms\) .*?)\d+ +\S+ +\S+ +true$"), r"\1"),
    (re.compile(r"TPS: [\d.]+"), "TPS"),
    (re.compile(r" +\d+\.\d\d(?=[( ])"), " RATE"),
)


def still(text: str) -> list[str]:
    """The lines without what changes, in an order of their own: tables are printed as a HashMap walks them."""
    for found, instead in CHANGING:
        text = found.sub(instead, text)
    return sorted(line.rstrip() for line in text.splitlines())


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("square")


def commands(client: JavaClient, names: str) -> dict[str, list[str]]:
    """The twelve commands on a cluster with one topic and one group."""
    client.names = names
    found: dict[str, list[str]] = {}

    def admin(command: str, *arguments: str, title: str = "") -> str:
        said: str = client.ask("admin", arguments=[command, *arguments, "-n", names])
        found[title or command] = still(said)
        return said

    until(lambda: "broker-a" in admin("clusterList"))
    address = admin("clusterList").splitlines()[1].split()[3]
    admin("updateTopic", "-b", address, "-t", "Orders", "-r", "4", "-w", "4")
    admin("updateTopic", "-c", "DefaultCluster", "-t", "Closed", "-r", "2", "-w", "2", "-p", "4", title="by cluster")
    admin("updateSubGroup", "-b", address, "-g", "billing")
    for number in range(8):
        client.send({"topic": "Orders", "body": b"m", "tags": "A"}, queue=number % 4)
    client.consume("member", "billing", "Orders", "A || B")
    until(lambda: len(client.received("member")) == 8)

    def committed() -> bool:
        said = admin("consumerProgress", "-g", "billing")
        return "%RETRY%billing" in said and "Consume Diff Total: 0" in said

    until(committed)
    admin("topicList")
    admin("topicRoute", "-t", "Orders")
    admin("topicRoute", "-t", "Nowhere", title="topicRoute of nowhere")
    admin("topicStatus", "-t", "Orders")
    admin("consumerProgress", title="consumerProgress of all")
    admin("consumerProgress", "-g", "billing", "-s", "true", title="consumerProgress with clients")
    admin("consumerConnection", "-g", "billing")
    admin("consumerStatus", "-g", "billing")
    admin("brokerConsumeStats", "-b", address)
    # Counted every ten seconds.
    until(lambda: any(line.endswith(" 8              8") for line in admin("statsAll").splitlines()))
    admin("resetOffsetByTime", "-g", "billing", "-t", "Orders", "-s", "0")
    until(lambda: len(client.received("member")) == 16, 90)
    client.stop("member")
    time.sleep(1)
    admin("consumerConnection", "-g", "billing", title="consumerConnection of nobody")
    return found


def test_mqadmin_says_the_same_of_our_cluster_and_of_the_real_one(homes: Path) -> None:
    client = started_or_skipped(lambda: JavaClient("5.3.3", homes / "mqadmin"))
    jvm = started_or_skipped(lambda: Real(homes))
    try:
        real = commands(client, start(jvm, homes, homes / "store", second_levels(), timers=True))
    finally:
        jvm.close()
        client.close()
    ours = JavaClient("5.3.3", homes / "ours")
    try:
        with our_broker(message_delay_level=second_levels()) as broker:
            said = commands(ours, broker.name_server_address)
    finally:
        ours.close()
    assert list(said) == list(real)
    for command, lines in real.items():
        assert said[command] == lines, command


@pytest.fixture(params=["4.9.8", "5.3.3"])
def client(homes: Path, request: pytest.FixtureRequest) -> Iterator[JavaClient]:
    made = started_or_skipped(lambda: JavaClient(request.param, homes / request.param))
    yield made
    made.close()


def test_java_goes_on_when_our_cluster_was_away(client: JavaClient, tmp_path: Path) -> None:
    levels = second_levels()
    with our_broker(directory=tmp_path, message_delay_level=levels) as broker:
        client.names = where = broker.name_server_address
        client.send({"topic": "Away", "body": b"before", "tags": "A"})
        client.consume("member", "away", "Away")
        until(lambda: len(client.received("member")) == 1)
    with pytest.raises(RefusedError):
        client.send({"topic": "Away", "body": b"nobody there", "tags": "A"})
    with rocketmq.Broker(tmp_path, listen=where, message_delay_level=levels):
        until(lambda: sent(client))
        until(lambda: [each["key"] for each in client.received("member")][-1:] == ["after"], 90)
        client.stop("member")


def sent(client: JavaClient) -> bool:
    try:
        client.send({"topic": "Away", "body": b"after", "tags": "A"})
    except RefusedError:
        return False
    return True


def test_requests_are_answered_across_clients(homes: Path) -> None:
    old = started_or_skipped(lambda: JavaClient("4.9.8", homes / "asks"))
    new = started_or_skipped(lambda: JavaClient("5.3.3", homes / "answers"))
    ours = PythonClient(homes / "python")
    try:
        with our_broker() as broker:
            for each in (old, new, ours):
                each.names = broker.name_server_address
            for number, (asks, answers) in enumerate(((old, ours), (ours, new), (ours, old))):
                broker.create_topic(f"Questions{number}", 1)
                answers.consume(f"member-{number}", f"clerks-{number}", f"Questions{number}", answers="answer")
                reply = asks.request({"topic": f"Questions{number}", "body": b"question", "tags": "A"})
                assert reply["key"] == "answer"
                answers.stop(f"member-{number}")
    finally:
        for each in (old, new, ours):
            each.close()
