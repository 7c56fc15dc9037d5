"""Logs of clients that do not reach a name server or a broker: the whole set of causes, and what to check."""

from __future__ import annotations

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose, judged_healthy, to_bring
from pyengine.backlog.diagnosis.evidence import Evidence, read_text
from pyengine.backlog.findings import Severity

AT = "2023-05-04 10:{:02}:02,123 {}\n"
CONNECT = "org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to {} failed"
CREATE = (
    "WARN RocketmqRemoting - createChannel: connect remote host[{0}] failed, AbstractBootstrap$PendingRegistration"
    "Promise@1b(failure: java.net.ConnectException: Connection refused: /{0})"
)
HEARTBEAT = "WARN RocketmqClient - send heart beat to broker[broker-a 0 {}] failed"
BEATS = "INFO RocketmqClient - send heart beat to broker[broker-a 0 {}] success"
CLOSE = "INFO RocketmqRemoting - closeChannel: close the connection to remote address[{}] result: true"
IDLE = "WARN RocketmqRemoting - NETTY CLIENT PIPELINE: IDLE exception [{}]"
COMMIT = (
    "INFO RocketmqClient - [persistAll] Group: billing ClientId: 10.0.0.4@1 updateConsumeOffsetToBroker MessageQueue "
    "[topic=orders, brokerName=broker-a, queueId=2] 41000"
)
BROKER, NAME_SERVER = "192.168.1.5:10911", "192.168.1.5:9876"


def log(*lines: str) -> str:
    """A line a minute; an exception has no time of its own."""
    return "".join(
        f"{line}\n" if line.startswith(("org.", "com.", "\tat ", "Caused")) else AT.format(minute, line)
        for minute, line in enumerate(lines)
    )


# The text, the causes, and a word of the advice or of what is shown.
CASES: dict[str, tuple[str, set[str], str]] = {
    "a broker": (log(CREATE.format(BROKER), CLOSE.format(BROKER), HEARTBEAT.format(BROKER)),
                 {"broker_unreachable"}, "brokerIP1"),
    "an exception of 3.x alone": (
        f"com.alibaba.rocketmq.remoting.exception.RemotingConnectException: connect to <{BROKER}> failed\n"
        "\tat com.alibaba.rocketmq.remoting.netty.NettyRemotingClient.invokeSync(NettyRemotingClient.java:641)\n",
        {"broker_unreachable"}, BROKER),
    "an exception of a program's own log": (
        "10:31:02.123 [main] ERROR c.e.Producer - send failed\n" + CONNECT.format(BROKER),
        {"broker_unreachable"}, BROKER),
    "an address of a container": (log(CREATE.format("172.17.0.3:10911")), {"broker_unreachable"}, "own machine"),
    "the second port": (log(CREATE.format("10.0.0.5:10909")), {"broker_unreachable"}, "vipChannelEnabled"),
    "no name server": (CONNECT.format("null"), {"name_server_unreachable"}, "namesrvAddr"),
    "no name server of 3.x": (CONNECT.format("<null>"), {"name_server_unreachable"}, "namesrvAddr"),
    "a name server": (
        log(CREATE.format(NAME_SERVER), CONNECT.format("null")), {"name_server_unreachable"}, NAME_SERVER),
    "no address at all": (
        "org.apache.rocketmq.client.exception.MQClientException: No name server address, please set it.",
        {"name_server_unreachable"}, "NAMESRV_ADDR"),
    "both": (log(CREATE.format(NAME_SERVER), HEARTBEAT.format(BROKER)),
             {"name_server_unreachable", "broker_unreachable"}, BROKER),
    "a send that takes too long": (
        "org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException: sendDefaultImpl call timeout",
        {"no_answer_in_time"}, "sendMsgTimeout"),
    "a send that takes too long to a broker that is not there": (
        log(CREATE.format(BROKER),
            "org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException: sendDefaultImpl call timeout"),
        {"broker_unreachable"}, BROKER),
    "no answer": (
        "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel "
        f"<{BROKER}> timeout, 3000(ms)", {"no_answer_in_time"}, BROKER),
    "a request that is not sent": (
        f"org.apache.rocketmq.remoting.exception.RemotingSendRequestException: send request to <{BROKER}> failed",
        {"broker_unreachable"}, BROKER),
    "the client of gRPC": (
        log("WARN RocketmqClient - Exception raised") +
        "Caused by: io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: localhost/127.0.0.1"
        ":8081\n", {"broker_unreachable"}, "127.0.0.1:8081"),
    "no route": ("org.apache.rocketmq.client.exception.MQClientException: No route info of this topic: orders\nSee "
                 "http://rocketmq.apache.org/docs/faq/ for further details.", {"no_route"}, "updateTopic"),
    "no route in the words of 4.2": (
        "org.apache.rocketmq.client.exception.MQClientException: No route info of this topic, orders",
        {"no_route"}, "topic orders"),
    "connections that are closed again and again": (log(*[CLOSE.format(BROKER)] * 3), {"connections_close"}, BROKER),
    "connections that were idle": (log(*[IDLE.format(BROKER), CLOSE.format(BROKER)] * 3), set(), ""),
    "a shutdown": (log(CLOSE.format(BROKER), CLOSE.format(NAME_SERVER)), set(), ""),
    "a bootstrap server of Kafka": (
        "[2023-05-04 10:31:02,123] WARN [Consumer clientId=consumer-1, groupId=billing] Connection to node -1 "
        "(localhost/127.0.0.1:9092) could not be established. Broker may not be available. "
        "(org.apache.kafka.clients.NetworkClient)", {"broker_unreachable"}, "advertised.listeners"),
    "a bootstrap server of Kafka, in the words of an admin client of 4.x": (
        "[2025-05-04 10:31:02,123] WARN [AdminClient clientId=adminclient-1] Connection to node -1 "
        "(kafka/10.0.0.7:9092) could not be established. Node may not be available. "
        "(org.apache.kafka.clients.NetworkClient)", {"broker_unreachable"}, "10.0.0.7:9092"),
    "a node of Kafka whose name nobody knows": (
        "[2023-05-04 10:31:02,123] WARN [Consumer clientId=consumer-1, groupId=billing] Error connecting to node "
        "kafka-0:9092 (id: 1001 rack: null) (org.apache.kafka.clients.NetworkClient)\n"
        "java.net.UnknownHostException: kafka-0\n", {"broker_unreachable"}, "kafka-0:9092"),
}  # fmt: skip


def read(text: str) -> Evidence:
    found = read_text(text, "client.log")
    assert found.remarks == []
    return found


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_reached_is_named(case: str) -> None:
    text, want, word = CASES[case]
    found = read(text)
    findings = diagnose(found)
    assert {each.code for each in findings} == want
    assert any(word in " ".join((each.where, *each.evidence, each.advice)) for each in findings) == bool(want)
    assert not judged_healthy(found)
    assert bool(want) or to_bring(found)


@pytest.mark.parametrize(
    "after", [[BEATS.format(BROKER)], [COMMIT, COMMIT, COMMIT, COMMIT]], ids=["reached again", "the log goes on"]
)
def test_a_broker_that_was_away_is_no_error(after: list[str]) -> None:
    (finding,) = diagnose(read(log(CREATE.format(BROKER), HEARTBEAT.format(BROKER), *after)))
    assert (finding.code, finding.severity) == ("broker_unreachable", Severity.INFO)


def test_each_address_is_judged_by_itself() -> None:
    other = "192.168.1.6:10911"
    (finding,) = diagnose(read(log(CREATE.format(BROKER), CREATE.format(other), BEATS.format(BROKER))))
    assert finding.severity == Severity.ERROR
    assert [BROKER in line or other in line for line in finding.evidence] == [True, True]
