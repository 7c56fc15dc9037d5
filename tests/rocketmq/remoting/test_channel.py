"""A client's connections against peers that misbehave; what works is asked of the real cluster in live/test_network."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.commands.bodies import write_body
from pyengine._engine.wire.remoting import RESPONSE, RemotingCommand, RemotingReader, write_command
from pyengine.clock import ManualClock, SystemClock
from pyengine.errors import ConfigurationError, MQClientError, RemotingError, RemotingTimeoutError
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, MessageQueue
from pyengine.rocketmq.remoting.channel import MAX_IDLE, RemotingClient, Requested
from pyengine.rocketmq.remoting.cluster import HEART_BEAT
from pyengine.rocketmq.remoting.mq_client_api import TOPIC_NOT_EXIST, HeartbeatData, MessageModel
from pyengine.rocketmq.remoting.routes import ROUTE_AGE, name_servers
from pyengine.rocketmq.remoting.transport import parse_address
from tests.waiting import until

Answer = Callable[[socket.socket, RemotingCommand], None]


class Peer:
    """A server that answers each command as it is told; its connections in order."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections: list[socket.socket] = []
        self.commands: list[RemotingCommand] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        reader = RemotingReader()
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                reader.feed(data)
                for command in reader:
                    self.commands.append(command)
                    self.answer(connection, command)

    def close(self) -> None:
        for each in (self.listener, *self.connections):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # which wakes the thread that waits for it
            each.close()


def reply(connection: socket.socket, command: RemotingCommand, code: int = 0, body: bytes | None = None) -> None:
    connection.sendall(write_command(RemotingCommand(code, opaque=command.opaque, flag=RESPONSE, body=body)))


@contextmanager
def client_of(requested: Requested = lambda channel, command: None) -> Iterator[RemotingClient]:
    clock = SystemClock()
    client = RemotingClient(clock, requested, lambda channel: None)
    try:
        yield client
    finally:
        client.close()
        clock.close()


def test_an_answer_that_does_not_come_is_not_waited_for_and_a_late_one_not_taken() -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        if command.code == 1:
            late.append((connection, command))
        else:
            reply(*late.pop())
            reply(connection, command)

    late: list[tuple[socket.socket, RemotingCommand]] = []
    answers: list[object] = []
    with closing(Peer(answer)) as peer, client_of() as client:
        client.invoke_async(peer.address, client.command(1, None), 50, answers.append)
        until(lambda: answers)
        assert isinstance(answers[0], RemotingTimeoutError)
        assert re.fullmatch(r"wait response on the channel <127\.0\.0\.1:\d+> timeout, 50ms", answers[0].problem)
        assert client.invoke(peer.address, client.command(2, None), 5000).code == 0
        assert len(answers) == len(peer.connections) == 1


def test_a_connection_whose_answer_was_waited_for_in_vain_is_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        if command.code == 2:
            reply(connection, command)

    with closing(Peer(answer)) as peer, client_of() as client:
        with pytest.raises(RemotingTimeoutError, match="timeout, 50ms"):
            client.invoke(peer.address, client.command(1, None), 50)
        assert client.invoke(peer.address, client.command(2, None), 5000).code == 0
        assert len(peer.connections) == 2
    assert f"invokeSync: close socket because of timeout, 50ms, channel[addr={peer.address}, id=" in caplog.text


def test_a_connection_that_is_idle_is_ended(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert MAX_IDLE == 120_000
    monkeypatch.setattr("pyengine.rocketmq.remoting.channel.MAX_IDLE", 300)
    with closing(Peer(reply)) as peer, client_of() as client:
        channel = client.channel(peer.address)
        for _ in range(3):
            time.sleep(0.1)
            used = time.monotonic()
            assert client.invoke(peer.address, client.command(1, None), 5000).code == 0
        channel = client.channel(peer.address)
        until(lambda: not channel.is_open)
        assert time.monotonic() - used > 0.29
        ended = len(peer.connections)
        assert client.invoke(peer.address, client.command(1, None), 5000).code == 0
        assert len(peer.connections) == ended + 1
        assert f"NETTY CLIENT PIPELINE: IDLE exception channel[addr={peer.address}, id={channel.id}]" in caplog.text


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xff\xff\xff", b"\0\0\0\5\0\0\0\1}"])
def test_what_is_not_the_protocol_ends_the_connection_and_the_next_call_makes_another(garbage: bytes) -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        if command.code == 1:
            connection.sendall(garbage)
        else:
            reply(connection, command)

    with closing(Peer(answer)) as peer, client_of() as client:
        with pytest.raises(RemotingError, match="is not the remoting protocol"):
            client.invoke(peer.address, client.command(1, None), 5000)
        assert client.invoke(peer.address, client.command(2, None), 5000).code == 0
        assert len(peer.connections) == 2


def test_all_that_wait_are_told_when_the_connection_ends_within_a_frame() -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        if command.code == 2:
            connection.sendall(write_command(RemotingCommand(0, opaque=command.opaque, flag=RESPONSE))[:-3])
            connection.shutdown(socket.SHUT_RDWR)

    with closing(Peer(answer)) as peer, client_of() as client:
        answers: list[object] = []
        for code in (1, 1, 2):
            client.invoke_async(peer.address, client.command(code, None), 5000, answers.append)
        deadline = time.monotonic() + 5
        while len(answers) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [type(each) for each in answers] == [RemotingError] * 3


def test_an_address_that_nobody_listens_at_is_tried_again_after_a_while() -> None:
    with closing(Peer(reply)) as peer:
        address = peer.address
    with client_of() as client:
        with pytest.raises(RemotingError, match=f"connect to {address} failed: .*refused"):
            client.channel(address)
        with pytest.raises(RemotingError, match="is tried again in 100 ms"):
            client.channel(address)
        time.sleep(0.12)
        with pytest.raises(RemotingError, match="refused"):
            client.channel(address)
        with pytest.raises(RemotingError, match="is tried again in 200 ms"):
            client.channel(address)


def test_a_request_of_the_other_end_is_taken_and_one_that_is_unknown_answered_so() -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        if not command.is_response:
            connection.sendall(write_command(RemotingCommand(9999, opaque=7)))
            reply(connection, command)

    taken: list[int] = []
    with closing(Peer(answer)) as peer, client_of(lambda channel, command: taken.append(command.code)) as client:
        client.invoke(peer.address, client.command(1, None), 5000)
        deadline = time.monotonic() + 5
        while len(peer.commands) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        told = peer.commands[1]
        assert taken == [9999]
        assert (told.code, told.opaque, told.remark) == (3, 7, " request type 9999 not supported")


def test_a_client_that_is_closed_leaves_no_thread_and_says_so() -> None:
    with closing(Peer(reply)) as peer, client_of() as client:
        client.invoke(peer.address, client.command(1, None), 5000)
        client.close()
        with pytest.raises(RemotingError, match="the client is closed"):
            client.invoke(peer.address, client.command(1, None), 5000)
        name = f"RemotingClient {peer.address}"
        deadline = time.monotonic() + 5
        while any(thread.name == name for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_the_name_server_that_answers_is_asked_first_the_next_time() -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        route = {
            "brokerDatas": [{"brokerName": "b", "brokerAddrs": {0: "127.0.0.1:1", 1: "127.0.0.1:2"}}],
            "queueDatas": [
                {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 1, "perm": 6},
                {"brokerName": "a", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6},
                {"brokerName": "c", "readQueueNums": 1, "writeQueueNums": 1, "perm": 2},
            ],
        }
        reply(connection, command, body=write_body("TopicRouteData", route))

    with closing(Peer(reply)) as gone:
        nobody = gone.address
    with closing(Peer(answer)) as peer, rocketmq.Cluster(f"{nobody}; {peer.address};") as cluster:
        cluster.name_servers.sort(key=lambda each: each != nobody)
        queues = cluster.topic_subscribe_info("T")
        assert [(queue.broker_name, queue.queue_id) for queue in queues or []] == [("a", 0), ("b", 0), ("b", 1)]
        assert cluster.name_servers == [peer.address, nobody]
        # Of those that can be written to the ones with a master.
        assert [(queue.broker_name, queue.queue_id) for queue in cluster.publish_queues("T")] == [("b", 0)]
        peer.close()
        assert cluster.topic_subscribe_info("T") == queues
        for ask in (cluster.topic_subscribe_info, cluster.publish_queues):
            with pytest.raises(RemotingError, match=rf"no name server answers: .*{peer.address}.*; .*{nobody}"):
                ask("Other")


def route_to(*addresses: str) -> bytes:
    """Of a topic with a queue on a broker at each address, broker-0 and so on."""
    return write_body(
        "TopicRouteData",
        {
            "brokerDatas": [
                {"brokerName": f"broker-{place}", "brokerAddrs": {0: address}}
                for place, address in enumerate(addresses)
            ],
            "queueDatas": [
                {"brokerName": f"broker-{place}", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
                for place in range(len(addresses))
            ],
        },
    )


def test_a_name_server_that_starts_without_its_routes_takes_none_away(caplog: pytest.LogCaptureFixture) -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        topic = (command.ext_fields or {}).get("topic")
        known = routed and topic == "T"
        reply(connection, command, 0 if known else TOPIC_NOT_EXIST, route_to("127.0.0.1:1") if known else None)

    routed, clock = True, ManualClock()
    with closing(Peer(answer)) as peer, rocketmq.Cluster(peer.address, clock=clock) as cluster:
        queues = cluster.topic_subscribe_info("T")
        assert queues == cluster.publish_queues("T") == [MessageQueue("T", "broker-0", 0)]
        routed = False
        clock.advance(ROUTE_AGE)
        asked = len(peer.commands)
        for _ in range(3):
            assert cluster.publish_queues("T") == queues
        assert len(peer.commands) == asked + 1  # not with each send
        assert cluster.topic_subscribe_info("T") == queues
        assert "getTopicRouteInfoFromNameServer return null, Topic: T." in caplog.text
        assert cluster.topic_subscribe_info("Other") is None
        with pytest.raises(MQClientError, match="No route info of this topic: Other"):
            cluster.publish_queues("Other")


def test_a_broker_that_no_route_names_any_more_gets_no_heartbeat(caplog: pytest.LogCaptureFixture) -> None:
    def answer(connection: socket.socket, command: RemotingCommand) -> None:
        reply(connection, command, body=route_to(*brokers) if command.code != HEART_BEAT else None)

    caplog.set_level("INFO", "pyengine.rocketmq")
    with closing(Peer(answer)) as peer, closing(Peer(reply)) as first, closing(Peer(reply)) as second:
        brokers = [first.address, second.address]
        with rocketmq.Cluster(peer.address, "c") as cluster:
            cluster.topic_subscribe_info("T")
            heartbeat = HeartbeatData("c", "G", MessageModel.CLUSTERING, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ())
            cluster.send_heartbeat(heartbeat)
            assert [len(each.commands) for each in (first, second)] == [2, 2]  # the first of a connection goes ahead
            brokers.pop()
            cluster.topic_subscribe_info("T")
            cluster.send_heartbeat(heartbeat)
            assert [len(each.commands) for each in (first, second)] == [3, 2]
    said = [each.getMessage() for each in caplog.records]
    beats = [each for each in said if each.startswith("send heart beat to broker[broker-")]
    assert [each.partition(" 0 ")[2] for each in beats] == [f"{min(first.address, second.address)}] success"]
    assert f"the broker addr[broker-1 {second.address}] is offline, remove it" in said
    assert "the broker[broker-1] name's host is offline, remove it" in said


def test_a_broker_that_is_taken_for_a_name_server_is_named() -> None:
    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        address = broker.broker_addresses[0]
        with (
            rocketmq.Producer(namesrv_addr=address) as producer,
            pytest.raises(MQClientError, match=f"{address} is not a name server"),
        ):
            producer.send("T", b"x")


def test_an_endpoint_with_http_is_the_address_in_it() -> None:
    assert name_servers(" http://cloud/MQ_INST_1_2.names:80") == ["MQ_INST_1_2.names:80"]


@pytest.mark.parametrize(
    "text",
    ["", ";", "names", "names:", ":9876", "names:0", "names:65536", "a:1;b", "a:٣", "a:1,b:1", "a b:1", "a:000001"],
)
def test_an_address_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"namesrv_addr=.*give host:port"):
        rocketmq.Cluster(text)


def test_addresses_of_version_six_have_brackets() -> None:
    assert parse_address("a", "[::1]:9876") == ("::1", 9876)


def consumer_of(**parameters: object) -> rocketmq.DefaultMQPushConsumer:
    consumer = rocketmq.DefaultMQPushConsumer("billing", namesrv_addr="127.0.0.1:1", **parameters)  # type: ignore[arg-type]
    consumer.subscribe("T")
    consumer.register_message_listener(lambda messages, context: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    return consumer


def test_what_is_not_built_for_a_real_cluster_is_refused_by_name() -> None:
    for parameter in ({"socks_proxy_config": "x"}, {"use_heartbeat_v2": True}, {"enable_trace": True}):
        with pytest.raises(ConfigurationError, match=f"{next(iter(parameter))}=.*not built for namesrv_addr"):
            consumer_of(**parameter).start()
    with pytest.raises(ConfigurationError, match="a real cluster goes by the system's time"):
        consumer_of(clock=ManualClock()).start()
    with pytest.raises(ConfigurationError, match="credentials"):
        consumer_of(rpc_hook="key").start()
    with rocketmq.Cluster("127.0.0.1:1", "one") as cluster:
        with pytest.raises(ConfigurationError, match="the Cluster is that of 'one'"):
            cluster.register_client("two", rocketmq.remoting.ClientEvents())
        with pytest.raises(AttributeError, match="no 'messages' here: only an embedded"):
            cluster.messages("T")
    with rocketmq.Broker() as broker, pytest.raises(ConfigurationError, match="there is a broker too"):
        rocketmq.Producer(broker, namesrv_addr="127.0.0.1:1")
    with rocketmq.Broker() as broker, pytest.raises(ConfigurationError, match="there is a broker too"):
        consumer_of(broker=broker)
    with rocketmq.Producer(namesrv_addr="127.0.0.1:1") as producer, pytest.raises(RemotingError):
        producer.send("T", b"x")


def test_without_a_name_server_no_consumer_starts_and_no_thread_is_left_behind() -> None:
    before = set(threading.enumerate())
    with pytest.raises(RemotingError, match=r"connect to 127\.0\.0\.1:1 failed"):
        consumer_of().start()
    deadline = time.monotonic() + 5
    while left := set(threading.enumerate()) - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


# What rocketmq_client.log of the real client has of a consumer's life, without its numbers
LIFE = """\
the consumer [G] start beginning. messageModel=CLUSTERING, isUnitMode=false
createChannel: begin to connect remote host[
NETTY CLIENT PIPELINE: CONNECT  127.0.0.1 => 127.0.0.1:
NETTY CLIENT PIPELINE: ACTIVE, 127.0.0.1:
the client factory [C] start OK
send heart beat to broker[broker-a 0 127.0.0.1:
the consumer [G] start OK.
the topic[T] route info changed, old
topicRouteTable.put. Topic = T, TopicRouteData[
client rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=G, topic=T
the consumer [G] shutdown OK
unregister client[Producer: null Consumer: G] from broker[broker-a 0 127.0.0.1:
NETTY CLIENT PIPELINE: CLOSE channel[addr=127.0.0.1:
closeChannel: the channel[addr=127.0.0.1:
the client factory [C] shutdown OK
""".splitlines()


def test_the_log_has_the_life_of_a_consumer_in_the_real_clients_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pyengine.rocketmq")
    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        broker.create_topic("T", 1)
        consumer = rocketmq.DefaultMQPushConsumer("G", namesrv_addr=broker.name_server_address)
        consumer.subscribe("T")
        consumer.register_message_listener(lambda messages, context: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        consumer.start()
        deadline = time.monotonic() + 20
        while "client rebalanced result changed" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        consumer.shutdown()
        client_id = consumer.build_mq_client_id()
    said = [record.getMessage().replace(client_id, "C") for record in caplog.records]
    assert [each for each in LIFE if not any(line.startswith(each) for line in said)] == []


def test_a_client_that_speaks_tls_to_a_plain_server_is_named_so(caplog: pytest.LogCaptureFixture) -> None:
    with (
        rocketmq.Broker(listen="127.0.0.1:0") as broker,
        rocketmq.Producer(namesrv_addr=broker.name_server_address, use_tls=True) as producer,
        pytest.raises(RemotingError, match="perhaps because it does not speak TLS"),
    ):
        producer.send("T", b"x")
    assert "is not the remoting protocol: it speaks TLS, which needs a certificate here" in caplog.text
