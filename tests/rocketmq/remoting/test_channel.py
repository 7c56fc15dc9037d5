"""A client's connections against peers that misbehave; what works is asked of the real cluster in live/test_network."""

from __future__ import annotations

import contextlib
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
from pyengine.rocketmq import ConsumeConcurrentlyStatus
from pyengine.rocketmq.remoting.channel import RemotingClient, Requested
from pyengine.rocketmq.remoting.cluster import name_servers
from pyengine.rocketmq.remoting.transport import parse_address

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
    with closing(Peer(answer)) as peer, client_of() as client:
        with pytest.raises(
            RemotingTimeoutError, match=r"wait response on the channel <127\.0\.0\.1:\d+> timeout, 50ms"
        ):
            client.invoke(peer.address, client.command(1, None), 50)
        assert client.invoke(peer.address, client.command(2, None), 5000).code == 0
        assert len(peer.connections) == 1


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
the client factory [C] start OK
the consumer [G] start OK.
the topic[T] route info changed, old
client rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=G, topic=T
the consumer [G] shutdown OK
unregister client[Producer: null Consumer: G] from broker
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
