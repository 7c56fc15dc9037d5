"""The embedded brokers on the network: what clients of any language send, and what nobody should."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.rocketmq.commands.headers import CODES, write_header
from pyengine._engine.rocketmq.commands.stored_message import decode_stored, encode_client_message, properties_text
from pyengine._engine.wire.remoting import ONE_WAY, RemotingCommand, RemotingReader, write_command
from pyengine.clock import ManualClock, SystemClock
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidSourceError
from pyengine.rocketmq.server import broker_requests, connections
from pyengine.rocketmq.server.connections import Connection, RemotingServer, answer, listening_socket
from tests.waiting import until

PATIENCE = 10.0


class Peer:
    """A client by hand."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), PATIENCE)
        self.socket.settimeout(PATIENCE)
        self._reader = RemotingReader()
        self._opaque = 0

    def close(self) -> None:
        self.socket.close()

    def send(self, command: RemotingCommand) -> None:
        self.socket.sendall(write_command(command))

    def read(self) -> RemotingCommand:
        """The next command. EOFError where the other end has closed."""
        while True:
            for command in self._reader:
                return command
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._reader.feed(data)

    def ask(
        self, code: int, fields: dict[str, str] | None = None, body: bytes | None = None, **about: Any
    ) -> RemotingCommand:
        self._opaque += 1
        self.send(RemotingCommand(code, opaque=self._opaque, ext_fields=fields, body=body, **{"version": 479, **about}))
        found = self.read()
        while not found.is_response:
            found = self.read()
        assert found.opaque == self._opaque
        return found

    def header(self, name: str, body: bytes | None = None, **fields: Any) -> RemotingCommand:
        return self.ask(CODES[name], write_header(name, fields), body)

    def ends(self) -> bool:
        """Whether the other end closes the connection."""
        try:
            self.read()
        except (EOFError, ConnectionError):
            return True
        return False


@pytest.fixture
def broker() -> Iterator[rocketmq.Broker]:
    with rocketmq.Broker(listen="127.0.0.1:0") as made:
        yield made


@pytest.fixture
def names(broker: rocketmq.Broker) -> Iterator[Peer]:
    with closing(Peer(broker.name_server_address)) as peer:
        yield peer


@pytest.fixture
def peer(broker: rocketmq.Broker) -> Iterator[Peer]:
    with closing(Peer(broker.broker_addresses[0])) as made:
        yield made


def send_fields(topic: str, queue_id: int = 0, **other: Any) -> dict[str, Any]:
    return {
        "a": "senders", "b": topic, "c": "TBW102", "d": 4, "e": queue_id, "f": 0, "g": 1_700_000_000_000, "h": 0,
        "i": properties_text({"TAGS": "A"}), "j": 0, "k": False, "m": False, **other,
    }  # fmt: skip


def send(peer: Peer, topic: str, body: bytes = b"tea", **other: Any) -> RemotingCommand:
    return peer.header("SendMessageRequestHeaderV2", body, **send_fields(topic, **other))


def pull(peer: Peer, group: str, topic: str, offset: int = 0, sys_flag: int = 4, **other: Any) -> RemotingCommand:
    fields = {
        "consumerGroup": group, "topic": topic, "queueId": 0, "queueOffset": offset, "maxMsgNums": 32,
        "sysFlag": sys_flag, "commitOffset": 0, "suspendTimeoutMillis": 15000, "subscription": "*", "subVersion": 0,
        "expressionType": "TAG", **other,
    }  # fmt: skip
    return peer.header("PullMessageRequestHeader", **fields)


def heartbeat(peer: Peer, client_id: str, group: str, topic: str = "orders") -> RemotingCommand:
    subscription = {"topic": topic, "subString": "*", "subVersion": 1}
    data = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet": [subscription],
    }  # fmt: skip
    return peer.ask(34, {}, write_body("HeartbeatData", {"clientID": client_id, "consumerDataSet": [data]}))


# The whole way


def test_our_own_client_consumes_with_a_retry_from_our_own_server() -> None:
    seen: list[tuple[bytes, int]] = []

    def listen(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
        message = messages[0]
        seen.append((bytes(message.body or b""), message.reconsume_times))
        status = rocketmq.ConsumeConcurrentlyStatus
        return status.CONSUME_SUCCESS if message.reconsume_times else status.RECONSUME_LATER

    with rocketmq.Broker(listen="127.0.0.1:0", message_delay_level=" ".join(["1s"] * 18)) as broker:
        where = broker.name_server_address
        with rocketmq.Producer(namesrv_addr=where) as producer:
            bodies = [f"m{number}".encode() for number in range(4)]
            for body in bodies:
                producer.send("orders", body, tags="A")
            producer.send("orders", b"x" * 100_000, tags="B")
            consumer = rocketmq.DefaultMQPushConsumer(
                "billing",
                namesrv_addr=where,
                consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                poll_name_server_interval=100,
            )
            consumer.subscribe("orders", "A")
            consumer.register_message_listener(listen)
            consumer.start()
            try:
                until(lambda: len(seen) == 8)
                assert sorted(seen) == sorted((body, times) for body in bodies for times in (0, 1))
            finally:
                consumer.shutdown()
        # A client of this process reads what came compressed.
        assert [len(message.body or b"") for message in broker.messages("orders") if message.tags == "B"] == [100_000]


def test_an_administrator_has_a_message_consumed_by_one_member(broker: rocketmq.Broker, peer: Peer) -> None:
    seen: list[str] = []
    answers = iter(
        (rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS, rocketmq.ConsumeConcurrentlyStatus.RECONSUME_LATER)
    )

    def listen(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
        seen.append(messages[0].msg_id)
        answered = next(answers, None)
        if answered is None:
            raise ZeroDivisionError
        return answered

    sent = send(peer, "other", i=properties_text({"UNIQ_KEY": "u"}))
    offset_id = (sent.ext_fields or {})["msgId"]
    broker.create_topic("orders", 1)
    consumer = rocketmq.DefaultMQPushConsumer("billing", namesrv_addr=broker.name_server_address)
    consumer.subscribe("orders", "*")
    consumer.register_message_listener(listen)
    consumer.start()
    try:
        listed: list[str] = []

        def joined() -> bool:
            body = peer.ask(38, {"consumerGroup": "billing"}).body
            listed[:] = (read_body("GetConsumerListByGroupResponseBody", body or b"") or {}).get("consumerIdList") or []
            return bool(listed)

        until(joined)
        results = []
        for _ in range(3):
            fields = {"consumerGroup": "billing", "clientId": listed[0], "msgId": offset_id, "topic": "other"}
            found = read_body("ConsumeMessageDirectlyResult", peer.ask(309, fields).body or b"")
            assert found is not None
            results.append(found["consumeResult"])
        assert results == ["CR_SUCCESS", "CR_LATER", "CR_THROW_EXCEPTION"]
        assert seen == ["u"] * 3
        unknown = peer.ask(309, {**fields, "clientId": "nobody"})
        assert unknown.remark == "The Consumer <billing> <nobody> not online"
    finally:
        consumer.shutdown()


def test_it_answers_as_soon_as_it_is_made() -> None:
    begun = time.monotonic()
    with rocketmq.Broker(listen="127.0.0.1:0") as broker, closing(Peer(broker.name_server_address)) as peer:
        assert peer.ask(105, {"topic": "TBW102"}).code == 0
    assert time.monotonic() - begun < 2


def test_several_brokers_are_one_cluster() -> None:
    with rocketmq.Broker(listen="127.0.0.1:0", names=["a", "b"]) as broker:
        broker.create_topic("orders", 2)
        with rocketmq.Producer(namesrv_addr=broker.name_server_address) as producer:
            sent = [producer.send("orders", b"tea").queue for _ in range(8)]
        assert {queue.broker_name for queue in sent} == {"a", "b"}
        assert len(broker.messages("orders")) == 8


# What the name server says


def test_a_route_is_json_for_new_clients_and_fastjson_for_old_ones(names: Peer, broker: rocketmq.Broker) -> None:
    broker.create_topic("orders", 2)
    address = broker.broker_addresses[0]
    rest = (
        '"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},'
        '"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":2,"topicSysFlag":0,"writeQueueNums":2}]}'
    )
    for version, key in ((479, '"0"'), (401, '"0"'), (399, "0"), (317, "0")):
        found = names.ask(105, {"topic": "orders"}, version=version)
        assert (found.body or b"").decode() == f'{{"brokerDatas":[{{"brokerAddrs":{{{key}:"{address}"}},{rest}'
        assert (found.code, found.ext_fields, found.remark) == (0, None, None)
    standard = names.ask(105, {"topic": "orders", "acceptStandardJsonOnly": "true"}, version=317)
    assert b'{"0":' in (standard.body or b"")


def test_a_binary_request_is_answered_in_json(names: Peer) -> None:
    found = names.ask(105, {"topic": "nowhere"}, serialize_type="ROCKETMQ")
    assert (found.code, found.serialize_type) == (17, "JSON")
    assert (found.remark or "").startswith("No topic route info in name server for the topic: nowhere")


def test_settings_are_kept(names: Peer) -> None:
    fields = {"namespace": "n", "key": "k"}
    assert names.ask(101, fields).code == 22
    assert names.ask(100, {**fields, "value": "v"}).code == 0
    assert names.ask(101, fields).ext_fields == {"value": "v"}
    assert names.ask(102, fields).code == 0
    assert names.ask(101, fields).code == 22


def test_what_it_does_not_know_is_refused_in_the_real_words(names: Peer, peer: Peer) -> None:
    for each in (names, peer):
        found = each.ask(9999)
        assert (found.code, found.remark) == (3, " request type 9999 not supported")


# What a broker says


def test_a_send_makes_the_topic_and_names_the_message(peer: Peer, broker: rocketmq.Broker) -> None:
    found = send(peer, "orders")
    fields = found.ext_fields or {}
    assert (found.code, found.remark) == (0, None)
    assert (fields["queueId"], fields["queueOffset"], fields["MSG_REGION"], fields["TRACE_ON"]) == (
        "0", "0", "DefaultRegion", "true",
    )  # fmt: skip
    (message,) = broker.messages("orders")
    assert message.properties == {
        "TAGS": "A", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "UNIQ_KEY": fields["transactionId"],
        "CLUSTER": "DefaultCluster",
    }  # fmt: skip
    assert message.born_timestamp == 1_700_000_000_000
    assert broker.topics() == {"orders": 4}
    # Names of the fields in full, as Go's client writes them.
    full = {
        "producerGroup": "senders", "topic": "orders", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4",
        "queueId": "0", "sysFlag": "0", "bornTimestamp": "1", "flag": "7", "properties": "", "reconsumeTimes": "0",
    }  # fmt: skip
    assert peer.ask(10, full, b"go").code == 0
    assert [each.flag for each in broker.messages("orders")] == [0, 7]


def test_sends_that_are_refused_keep_the_headers_of_a_send(peer: Peer, broker: rocketmq.Broker) -> None:
    broker.create_topic("orders", 2)
    for found, code, remark in (
        (
            send(peer, "orders", e=9),
            29,
            "request queueId[9] is illegal, TopicConfig [topicName=orders, readQueueNums=2",
        ),
        (send(peer, "or ders"), 29, "The specified topic[or ders] contains illegal characters"),
        (send(peer, "new", c="other"), 17, "topic[new] not exist, apply first please!"),
        (
            send(peer, "orders", b"x" * (4 * 1024 * 1024 + 1)),
            13,
            "the message is illegal, maybe msg body or properties",
        ),
        (send(peer, "SCHEDULE_TOPIC_XXXX"), 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
    ):
        assert found.code == code
        assert (found.remark or "").startswith(remark)
        assert found.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def test_a_batch_goes_into_one_queue(peer: Peer, broker: rocketmq.Broker) -> None:
    body = b"".join(encode_client_message(f"m{i}".encode(), {"TAGS": "A"}, i) for i in range(3))
    found = peer.ask(320, write_header("SendMessageRequestHeaderV2", send_fields("orders", m=True)), body)
    assert len((found.ext_fields or {})["msgId"].split(",")) == 3
    assert [(each.body, each.flag, each.queue_offset) for each in broker.messages("orders")] == [
        (b"m0", 0, 0), (b"m1", 1, 1), (b"m2", 2, 2),
    ]  # fmt: skip
    assert peer.ask(320, write_header("SendMessageRequestHeaderV2", send_fields("orders", m=True)), b"\0\1").code == 13


def test_pulls_find_wait_and_are_told_where_to_go(peer: Peer, broker: rocketmq.Broker) -> None:
    send(peer, "orders")
    found = pull(peer, "g", "orders")
    assert (found.code, found.remark) == (0, "FOUND")
    assert {name: (found.ext_fields or {})[name] for name in ("nextBeginOffset", "minOffset", "maxOffset")} == {
        "nextBeginOffset": "1", "minOffset": "0", "maxOffset": "1",
    }  # fmt: skip
    assert decode_stored(found.body or b"", 0)[0][1] == b"tea"
    for offset, code, remark in ((1, 19, "OFFSET_OVERFLOW_ONE"), (5, 21, "OFFSET_OVERFLOW_BADLY")):
        found = pull(peer, "g", "orders", offset)
        assert (found.code, found.remark, found.body) == (code, remark, None)
    assert pull(peer, "g", "orders", sys_flag=0).code == 24
    assert pull(peer, "g", "orders", queueId=9).code == 29
    assert pull(peer, "g", "nowhere").code == 17
    # One that waits is answered by the next message.
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(pull(peer, "g", "orders", 1, sys_flag=6)))
    waiting.start()
    with closing(Peer(broker.broker_addresses[0])) as other:
        send(other, "orders", b"late")
    waiting.join(PATIENCE)
    assert decode_stored(answers[0].body or b"", 0)[0][1] == b"late"


def test_a_pull_brings_256_kib_and_at_least_one_message(peer: Peer) -> None:
    for size in (300_000, 100_000, 100_000, 100_000):
        send(peer, "orders", b"x" * size)
    offset, counts = 0, []
    while offset < 4:
        found = pull(peer, "g", "orders", offset)
        following = int((found.ext_fields or {})["nextBeginOffset"])
        counts.append(following - offset)
        offset = following
    assert counts == [1, 2, 1]


def test_offsets_and_locks(peer: Peer) -> None:
    send(peer, "orders")
    where = {"consumerGroup": "g", "topic": "orders", "queueId": 0}
    unknown = peer.header("UpdateConsumerOffsetRequestHeader", commitOffset=1, **where)
    assert (unknown.code, unknown.remark) == (26, "Group g not exist!")
    assert peer.header("QueryConsumerOffsetRequestHeader", **where).ext_fields == {"offset": "0"}
    assert peer.header("QueryConsumerOffsetRequestHeader", setZeroIfNotFound=False, **where).code == 22
    assert heartbeat(peer, "c1", "g").ext_fields == {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
    assert peer.header("UpdateConsumerOffsetRequestHeader", commitOffset=100, **where).code == 0
    assert peer.header("QueryConsumerOffsetRequestHeader", **where).ext_fields == {"offset": "100"}
    for code, offset, remark in ((30, "1", None), (31, "0", "")):
        found = peer.ask(code, {"topic": "orders", "queueId": "0"})
        assert (found.ext_fields, found.remark) == ({"offset": offset}, remark)
    queue = {"topic": "orders", "brokerName": "broker-a", "queueId": 0}
    for client_id, held in (("c1", 1), ("c2", 0)):
        body = write_body("LockBatchRequestBody", {"consumerGroup": "g", "clientId": client_id, "mqSet": [queue]})
        found = read_body("LockBatchResponseBody", peer.ask(41, {}, body).body or b"")
        assert found is not None
        assert len(found["lockOKMQSet"]) == held


def test_members_hear_of_a_join_and_of_a_connection_that_ends(peer: Peer, broker: rocketmq.Broker) -> None:
    heartbeat(peer, "c1", "g")
    other = Peer(broker.broker_addresses[0])
    heartbeat(other, "c2", "g")
    told = peer.read()
    assert (told.code, told.flag, told.ext_fields, told.body) == (40, ONE_WAY, {"consumerGroup": "g"}, None)
    listed = read_body("GetConsumerListByGroupResponseBody", peer.ask(38, {"consumerGroup": "g"}).body or b"")
    assert listed == {"consumerIdList": ["c1", "c2"]}
    other.close()
    assert peer.read().code == 40
    listed = read_body("GetConsumerListByGroupResponseBody", peer.ask(38, {"consumerGroup": "g"}).body or b"")
    assert listed == {"consumerIdList": ["c1"]}
    peer.ask(35, {"clientID": "c1", "consumerGroup": "g"})
    nobody = peer.ask(38, {"consumerGroup": "g"})
    assert (nobody.code, nobody.remark, nobody.ext_fields) == (1, "no consumer for this group, g", {})


def test_an_old_connection_that_ends_does_not_take_a_client_that_came_back(peer: Peer, broker: rocketmq.Broker) -> None:
    heartbeat(peer, "c1", "g")
    with closing(Peer(broker.broker_addresses[0])) as again:
        heartbeat(again, "c1", "g")
        peer.close()
        until(lambda: broker._listening().server.connections == 1)
        assert again.ask(38, {"consumerGroup": "g"}).code == 0


def test_a_topic_that_is_not_all_open(peer: Peer, broker: rocketmq.Broker) -> None:
    fields = {
        "topic": "orders", "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 2, "perm": 6,
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False,
    }  # fmt: skip
    made = peer.header("CreateTopicRequestHeader", **fields)
    assert (made.code, made.remark) == (0, "not set any response code")
    assert len(broker.topic_subscribe_info("orders") or []) == 4
    assert len(broker.publish_queues("orders")) == 2
    peer.header("CreateTopicRequestHeader", **{**fields, "perm": 2})
    assert broker.topic_subscribe_info("orders") == []
    assert pull(peer, "g", "orders").code == 16
    peer.header("CreateTopicRequestHeader", **{**fields, "perm": 4})
    with pytest.raises(rocketmq.MQClientError, match="No route info of this topic"):
        broker.publish_queues("orders")


def test_a_reset_offset_reaches_the_next_pull_and_outlives_commits(peer: Peer) -> None:
    for _ in range(3):
        send(peer, "orders")
    heartbeat(peer, "c1", "g")
    where = {"consumerGroup": "g", "topic": "orders", "queueId": 0}
    peer.header("UpdateConsumerOffsetRequestHeader", commitOffset=3, **where)
    body = peer.header("ResetOffsetRequestHeader", topic="orders", group="g", timestamp=0, isForce=True).body
    assert set((read_body("ResetOffsetBody", body or b"") or {})["offsetTable"].values()) == {0}
    peer.header("UpdateConsumerOffsetRequestHeader", commitOffset=3, **where)
    assert peer.header("QueryConsumerOffsetRequestHeader", **where).ext_fields == {"offset": "0"}
    found = pull(peer, "g", "orders", 3, sys_flag=0)
    assert (found.code, found.remark, (found.ext_fields or {})["nextBeginOffset"]) == (21, "OFFSET_RESET", "0")
    peer.header("UpdateConsumerOffsetRequestHeader", commitOffset=2, **where)
    assert peer.header("QueryConsumerOffsetRequestHeader", **where).ext_fields == {"offset": "2"}
    assert peer.header("ResetOffsetRequestHeader", topic="no", group="g", timestamp=0, isForce=True).code == 17
    assert peer.header("ResetOffsetRequestHeader", topic="orders", group="x", timestamp=0, isForce=True).code == 26


# Half messages and timers, which outlive the process


def test_half_messages_and_timers_survive_a_restart(tmp_path: Path) -> None:
    half = properties_text({"TRAN_MSG": "true", "PGROUP": "P", "UNIQ_KEY": "u"})
    with rocketmq.Broker(tmp_path, listen="127.0.0.1:0") as broker, closing(Peer(broker.broker_addresses[0])) as peer:
        kept = [send(peer, "orders", body, i=half) for body in (b"commit", b"roll back", b"later")]
        send(peer, "orders", b"timer", i=properties_text({"TIMER_DELAY_MS": "1500"}))
        assert b"commit" not in [message.body for message in broker.messages("orders")]
        ends = [((found.ext_fields or {})["queueOffset"], (found.ext_fields or {})["msgId"]) for found in kept]
        for (offset, offset_id), outcome in zip(ends[:2], ("8", "12"), strict=True):
            fields = {
                "producerGroup": "P", "tranStateTableOffset": offset, "commitOrRollback": outcome,
                "commitLogOffset": str(int(offset_id[16:], 16)), "msgId": "u",
            }  # fmt: skip
            assert peer.ask(37, fields).code == 0
        assert peer.ask(37, fields).code == 1  # it is decided already
    with rocketmq.Broker(tmp_path, listen="127.0.0.1:0") as broker:
        assert set(broker.topics()) == {"orders"}
        with closing(Peer(broker.broker_addresses[0])) as peer:
            offset, offset_id = ends[2]
            fields = {
                "producerGroup": "other", "tranStateTableOffset": offset, "commitOrRollback": "8",
                "commitLogOffset": str(int(offset_id[16:], 16)),
            }  # fmt: skip
            assert peer.ask(37, fields).remark == "The producer group wrong"
            assert peer.ask(37, {**fields, "producerGroup": "P"}).code == 0
            assert peer.ask(37, {**fields, "commitLogOffset": "77"}).code == 1
        until(lambda: len(broker.messages("orders")) == 3)
        flags = {bytes(message.body or b""): message.sys_flag for message in broker.messages("orders")}
        assert flags == {b"commit": 8, b"later": 8, b"timer": 0}


def test_a_topics_permissions_survive_a_restart(tmp_path: Path) -> None:
    for listening in (True, False):
        with rocketmq.Broker(tmp_path, listen="127.0.0.1:0" if listening else None) as broker:
            if listening:
                with closing(Peer(broker.broker_addresses[0])) as peer:
                    peer.header(
                        "CreateTopicRequestHeader", topic="orders", defaultTopic="TBW102", readQueueNums=4,
                        writeQueueNums=2, perm=4, topicFilterType="SINGLE_TAG", topicSysFlag=0, order=False,
                    )  # fmt: skip
            config = broker.nodes["broker-a"].topic_config("orders")
            assert config is not None
            assert (config.read_queues, config.write_queues, config.perm) == (4, 2, 4)


def test_a_groups_settings_survive_a_restart_and_count(tmp_path: Path) -> None:
    with rocketmq.Broker(tmp_path, listen="127.0.0.1:0") as broker, closing(Peer(broker.broker_addresses[0])) as peer:
        send(peer, "orders")
        config = {"groupName": "g", "retryMaxTimes": 0}
        assert peer.ask(200, {}, write_body("SubscriptionGroupConfig", config)).code == 0
        closed = {"groupName": "closed", "consumeEnable": False}
        assert peer.ask(200, {}, write_body("SubscriptionGroupConfig", closed)).code == 0
    with rocketmq.Broker(tmp_path, listen="127.0.0.1:0") as broker, closing(Peer(broker.broker_addresses[0])) as peer:
        refused = pull(peer, "closed", "orders")
        assert (refused.code, refused.remark) == (16, "subscription group no permission, closed")
        back = peer.header("ConsumerSendMsgBackRequestHeader", group="g", originTopic="orders", offset=0, delayLevel=0)
        assert back.code == 0
        assert [message.body for message in broker.messages("%DLQ%g")] == [b"tea"]


# Who may


def test_it_listens_beyond_the_loopback_only_if_told_so() -> None:
    with pytest.raises(ConfigurationError, match="everybody in the network could send and read"):
        rocketmq.Broker(listen="0.0.0.0:0")
    with rocketmq.Broker(listen="0.0.0.0:0", allow_anonymous=True) as broker:
        port = broker.name_server_address.rpartition(":")[2]
        with closing(Peer(f"127.0.0.1:{port}")) as peer:
            assert peer.ask(106).code == 0
            # Clients are led to the address that they came to.
            assert b'{0:"127.0.0.1:' in (peer.ask(106).body or b"")


@pytest.mark.parametrize("wrong", ["", "9876", "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", 9876])
def test_addresses_that_are_none(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="listen"):
        rocketmq.Broker(listen=wrong)


def test_an_address_that_is_taken(broker: rocketmq.Broker) -> None:
    with pytest.raises(InvalidSourceError, match="another program has it"):
        rocketmq.Broker(listen=broker.name_server_address)


def test_a_broker_that_does_not_listen_says_so() -> None:
    with rocketmq.Broker() as broker, pytest.raises(IllegalStateError, match="does not listen"):
        _ = broker.name_server_address


def test_with_accounts_only_signed_requests_are_served() -> None:
    key = rocketmq.SessionCredentials("access", "secret")
    with rocketmq.Broker(listen="127.0.0.1:0", accounts=[key]) as broker:
        where = broker.name_server_address
        with closing(Peer(where)) as peer:
            assert peer.ask(106).code == 16
        with rocketmq.Producer(namesrv_addr=where, rpc_hook=key) as producer:
            assert producer.send("orders", b"tea").status is rocketmq.SendStatus.SEND_OK
        wrong = rocketmq.SessionCredentials("access", "guess")
        with (
            rocketmq.Producer(namesrv_addr=where, rpc_hook=wrong) as producer,
            pytest.raises(rocketmq.MQBrokerError, match="Check signature failed"),
        ):
            producer.send("orders", b"tea")
    with pytest.raises(ConfigurationError, match="accounts"):
        rocketmq.Broker(listen="127.0.0.1:0", accounts=["access"])  # type: ignore[list-item]


# Peers that do no good

FRAME = write_command(RemotingCommand(105, version=479, ext_fields={"topic": "TBW102"}))
HOSTILE = {
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
    "negative length": struct.pack(">i", -5) + b"x" * 20,
    "huge length": struct.pack(">i", 2**31 - 1),
    "header longer than the frame": struct.pack(">ii", 10, 0xFFFFFF) + b"x" * 20,
    "no JSON": struct.pack(">ii", 8, 4) + b"nope",
    "unknown kind": struct.pack(">ii", 8, 9 << 24 | 4) + b"nope",
    "a good frame, then garbage": FRAME + b"\xff" * 40,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_peer_is_cut_and_others_notice_nothing(broker: rocketmq.Broker, peer: Peer, data: bytes) -> None:
    with closing(Peer(broker.broker_addresses[0])) as hostile:
        hostile.socket.sendall(data)
        if data.startswith(FRAME):
            assert hostile.read().code == 3
        assert hostile.ends()
    assert send(peer, "orders").code == 0


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (34, {}, b"{"),
        (34, {}, None),
        (34, {}, b'{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[null]}]}'),
        (41, {}, b"[]"),
        (310, {}, b"x"),
        (310, {"e": "x", "b": "t"}, b"x"),
        (11, {"queueOffset": "many"}, None),
        (11, {}, None),
        (36, {"group": "g", "offset": "9999999999"}, None),
        (36, {"group": "g", "offset": "-1"}, None),
        (37, {"commitOrRollback": "8"}, None),
        (14, {}, None),
        (15, {"consumerGroup": "g", "topic": "t", "queueId": "99999999999999999999"}, None),
        (17, {"topic": "x", "topicFilterType": "SINGLE_TAG"}, None),
        (33, {"offset": "1"}, None),
        (200, {}, b'{"groupName":"a b"}'),
        (222, {"topic": "t"}, None),
        (307, {"consumerGroup": "g", "clientId": "nobody"}, None),
    ],
)
def test_requests_without_sense_get_an_error(peer: Peer, code: int, fields: dict[str, str], body: bytes | None) -> None:
    found = peer.ask(code, fields, body)
    assert found.code != 0 or code in (14, 34)
    assert found.remark is not None or found.code == 0
    assert peer.ask(30, {"topic": "t", "queueId": "0"}).code == 0


def test_a_connection_has_so_many_pulls_waiting(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_requests, "MAX_PULLS", 3)
    send(peer, "orders")
    fields = {
        "consumerGroup": "g", "topic": "orders", "queueId": "0", "queueOffset": "1", "maxMsgNums": "1",
        "sysFlag": "6", "commitOffset": "0", "suspendTimeoutMillis": "9223372036854775807", "subscription": "*",
        "subVersion": "0",
    }  # fmt: skip
    for opaque in range(100, 104):
        peer.send(RemotingCommand(11, opaque=opaque, ext_fields=fields))
    refused = peer.read()
    assert (refused.opaque, refused.code) == (103, 2)
    with closing(Peer(":".join(map(str, peer.socket.getpeername()[:2])))) as other:
        send(other, "orders")
    assert {peer.read().opaque for _ in range(3)} == {100, 101, 102}
    peer.send(RemotingCommand(11, opaque=104, ext_fields={**fields, "queueOffset": "0"}))
    assert peer.read().code == 0


class Echo:
    """A service that answers everything."""

    def __init__(self) -> None:
        self.gone: list[Connection] = []

    def requested(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        if request.code == 1:
            raise ZeroDivisionError
        return answer(request, body=request.body)

    def closed(self, connection: Connection) -> None:
        self.gone.append(connection)


@contextmanager
def serving(**limits: Any) -> Iterator[tuple[str, Echo, RemotingServer]]:
    clock, service, listener = SystemClock(), Echo(), listening_socket("127.0.0.1", 0)
    server = RemotingServer(clock, **limits)
    server.listen(listener, service)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", service, server
    finally:
        server.stop()
        thread.join()
        clock.close()


def test_connections_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TICK", 0.02)
    with serving(max_connections=2, idle_timeout=0.2, max_frame_size=1000) as (address, service, server):
        first, second, third = Peer(address), Peer(address), Peer(address)
        with closing(first), closing(second), closing(third):
            assert third.ends()
            assert first.ask(5, body=b"x" * 500).body == b"x" * 500
            second.socket.sendall(struct.pack(">i", 1001))
            assert second.ends()
            assert first.ends()  # it was idle
        until(lambda: len(service.gone) == 2)
        assert server.connections == 0


def test_a_failure_of_ours_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as (address, _, _), closing(Peer(address)) as peer:
        found = peer.ask(1)
        assert (found.code, found.remark) == (1, "ZeroDivisionError: ")
        assert peer.ask(2).code == 0
    assert "process request exception" in caplog.text


def test_a_peer_that_does_not_read_is_dropped_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_UNSENT", 1_000_000)
    with serving() as (address, service, _), closing(Peer(address)) as slow, closing(Peer(address)) as other:
        request = RemotingCommand(5, body=b"x" * 200_000)
        with contextlib.suppress(ConnectionError):
            while not service.gone:
                slow.send(request)
        assert other.ask(5).code == 0
        until(lambda: len(service.gone) == 1)


def test_a_slow_reader_gets_everything() -> None:
    with serving() as (address, _, _), closing(Peer(address)) as slow:
        for _ in range(20):
            slow.send(RemotingCommand(5, body=b"x" * 500_000))
        assert [len(slow.read().body or b"") for _ in range(20)] == [500_000] * 20


def test_a_client_that_does_not_answer_is_a_timeout_and_one_that_goes_an_error() -> None:
    found: list[object] = []
    asked: list[Connection] = []

    class Asker(Echo):
        def requested(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
            asked.append(connection)
            connection.request(307, {}, timeout=50, answered=found.append)
            connection.request(308, {}, timeout=60_000, answered=found.append)
            return answer(request)

    clock, listener = SystemClock(), listening_socket("127.0.0.1", 0)
    server = RemotingServer(clock)
    server.listen(listener, Asker())
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with closing(Peer(f"127.0.0.1:{listener.getsockname()[1]}")) as peer:
            peer.ask(5)
            until(lambda: len(found) == 1)
            assert isinstance(found[0], rocketmq.RemotingTimeoutError)
        until(lambda: len(found) == 2)
        assert isinstance(found[1], rocketmq.RemotingError)
        asked[0].request(309, {}, timeout=50, answered=found.append)
        assert isinstance(found[2], rocketmq.RemotingError)
    finally:
        server.stop()
        thread.join()
        clock.close()


def test_a_manual_clock_is_served_by_its_owner() -> None:
    clock = ManualClock()
    with rocketmq.Broker(listen="127.0.0.1:0", clock=clock) as broker:
        address, seen = broker.broker_addresses[0], []

        def program() -> None:
            with closing(Peer(address)) as peer:
                send(peer, "orders", i=properties_text({"DELAY": "3"}))
                for step in (9_999, 1):
                    moved = threading.Event()
                    broker.call(lambda step=step, moved=moved: (clock.advance(step), moved.set()))  # type: ignore[misc]
                    moved.wait(PATIENCE)
                    seen.append(len(pull(peer, "g", "orders").body or b"") > 0)
            broker.stop_serving()

        thread = threading.Thread(target=program)
        thread.start()
        broker.serve()
        thread.join()
        assert seen == [False, True]
