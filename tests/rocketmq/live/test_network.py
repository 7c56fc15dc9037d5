"""Our consumer and producer over TCP on a real name server and broker 5.3.3. Smoke here; the rest by `make interop`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyengine import rocketmq
from pyengine.rocketmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    MessageExt,
    MessageQueue,
)
from tests.interop import INTEROP, INTEROP_ASKED, started_or_skipped
from tests.rocketmq.live.real import BUILD, Real, free_port
from tests.rocketmq.live.scripts import start
from tests.waiting import until

SECOND = " ".join(["1s"] * 18)  # each delay level
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not INTEROP_ASKED and not list((BUILD / "jars").glob("rocketmq-broker-*.jar")):
        pytest.skip("no RocketMQ in build/rocketmq: make interop brings it")
    home = tmp_path_factory.mktemp("network")
    jvm = started_or_skipped(lambda: Real(home))
    try:
        yield start(jvm, home, home / "store", SECOND)
    finally:
        jvm.close()


class Seen:
    """A listener that keeps what it gets. answer: of a message, by default success."""

    def __init__(self, answer: Callable[[MessageExt], ConsumeConcurrentlyStatus] | None = None) -> None:
        self.messages: list[MessageExt] = []
        self.answer = answer
        self.lock = threading.Lock()

    def __call__(self, messages: list[MessageExt], context: object) -> ConsumeConcurrentlyStatus:
        with self.lock:
            self.messages += messages
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS if self.answer is None else self.answer(messages[0])

    @property
    def bodies(self) -> list[bytes]:
        with self.lock:
            return [bytes(message.body or b"") for message in self.messages]


def consumer_of(
    names: str, group: str, topic: str, wanted: object, listener: Callable[..., object], **parameters: object
) -> rocketmq.DefaultMQPushConsumer:
    """A consumer that has started. It looks for new topics and commits every second."""
    consumer = rocketmq.DefaultMQPushConsumer(
        group,
        namesrv_addr=names,
        consume_from_where=FIRST,
        poll_name_server_interval=500,
        persist_consumer_offset_interval=500,
        **parameters,  # type: ignore[arg-type]
    )
    consumer.subscribe(topic, wanted)  # type: ignore[arg-type]
    consumer.register_message_listener(listener)
    consumer.start()
    return consumer


def send_all(names: str, topic: str, count: int, tags: tuple[str, ...] = ("A",), **properties: str) -> list[bytes]:
    """Send so many messages, with tags in turn; returns the bodies."""
    bodies = [f"{topic} {number}".encode() for number in range(count)]
    with rocketmq.Producer(namesrv_addr=names, group="senders") as producer:
        until(lambda: bool(queues_of(producer, topic)))
        for number, body in enumerate(bodies):
            result = producer.send(
                topic, body, tags=tags[number % len(tags)], properties={"n": str(number), **properties}
            )
            assert result.status is rocketmq.SendStatus.SEND_OK
    return bodies


def queues_of(producer: rocketmq.Producer, topic: str) -> list[MessageQueue]:
    """Where a topic can be sent to; [] until the broker has registered."""
    try:
        return producer.broker.publish_queues(topic)
    except rocketmq.MQClientError:
        return []


def test_consume_by_tag_share_the_queues_and_commit(names: str) -> None:
    bodies = send_all(names, "Tags", 40, ("A", "B"))
    one, two = Seen(), Seen()
    first = consumer_of(names, "tagged", "Tags", "A", one)
    second = consumer_of(names, "tagged", "Tags", "A", two)
    try:
        assert first.build_mq_client_id() != second.build_mq_client_id()
        until(lambda: sorted(one.bodies + two.bodies) == sorted(bodies[::2]))
        members = (first.default_mq_push_consumer_impl, second.default_mq_push_consumer_impl)
        until(lambda: [len([q for q in each.process_queues if q.topic == "Tags"]) for each in members] == [2, 2])
        late = send_all(names, "Tags", 40, ("A",))
        until(lambda: len(one.bodies) + len(two.bodies) >= 60)
        assert sorted(one.bodies + two.bodies) == sorted(bodies[::2] + late)
        message = one.messages[0]
        assert (message.tags, message.broker_name, message.properties["WAIT"]) == ("A", "broker-a", "true")
    finally:
        second.shutdown()
        first.shutdown()
    with rocketmq.Cluster(names) as cluster:
        queues = cluster.topic_subscribe_info("Tags") or []
        assert [cluster.query_consumer_offset("tagged", queue) for queue in queues] == [
            cluster.max_offset(queue) for queue in queues
        ]
        with pytest.raises(rocketmq.MQBrokerError, match="no consumer for this group, tagged"):
            cluster.get_consumer_id_list("Tags", "tagged")


@INTEROP
def test_a_message_comes_back_and_ends_as_a_dead_letter(names: str) -> None:
    (body,) = send_all(names, "Retried", 1)
    seen = Seen(lambda message: ConsumeConcurrentlyStatus.RECONSUME_LATER)
    consumer = consumer_of(names, "retrying", "Retried", "*", seen, max_reconsume_times=2)
    dead = Seen()
    try:
        until(lambda: len(seen.bodies) == 3)
        assert [message.reconsume_times for message in seen.messages] == [0, 1, 2]
        assert {message.topic for message in seen.messages} == {"Retried"}
        grave = consumer_of(names, "undertaker", "%DLQ%retrying", "*", dead)
        try:
            until(lambda: dead.bodies == [body])
        finally:
            grave.shutdown()
    finally:
        consumer.shutdown()


@INTEROP
def test_messages_of_one_queue_come_in_order_to_one_member(names: str) -> None:
    with rocketmq.Producer(namesrv_addr=names) as producer:
        until(lambda: bool(queues_of(producer, "Ordered")))
        for number in range(30):
            producer.send("Ordered", str(number).encode(), selector=lambda queues, _, arg: queues[arg % 4], arg=number)
    got: dict[int, list[int]] = {}

    def listen(messages: list[MessageExt], context: object) -> ConsumeOrderlyStatus:
        for message in messages:
            got.setdefault(message.queue_id, []).append(int(message.body or b""))
        return ConsumeOrderlyStatus.SUCCESS

    listener = rocketmq.MessageListenerOrderly(listen)
    members = [consumer_of(names, "ordering", "Ordered", "*", listener) for _ in range(2)]
    try:
        until(lambda: sum(map(len, got.values())) >= 30)
        assert {queue: sorted(numbers) for queue, numbers in got.items()} == got
        assert sorted(number for numbers in got.values() for number in numbers) == list(range(30))
    finally:
        for member in members:
            member.shutdown()


@INTEROP
def test_sql92_filters_at_the_broker_and_a_bad_expression_is_refused_at_start(names: str) -> None:
    send_all(names, "Filtered", 20)
    seen = Seen()
    consumer = consumer_of(names, "filtering", "Filtered", rocketmq.sql("n > 14"), seen)
    try:
        until(lambda: len(seen.bodies) >= 5)
        assert sorted(int(message.properties["n"]) for message in seen.messages) == [15, 16, 17, 18, 19]
    finally:
        consumer.shutdown()
    with pytest.raises(rocketmq.MQClientError, match="CODE: 23"):
        consumer_of(names, "filtering", "Filtered", rocketmq.sql("n >"), seen)


@INTEROP
def test_every_member_of_a_broadcast_gets_everything(names: str, tmp_path: Path) -> None:
    bodies = send_all(names, "Broadcast", 10)
    seen = [Seen(), Seen()]
    members = [
        consumer_of(
            names, "broadcast", "Broadcast", "*", each, message_model=rocketmq.MessageModel.BROADCASTING,
            instance_name=f"member-{number}", local_offset_store_dir=tmp_path,
        )
        for number, each in enumerate(seen)
    ]  # fmt: skip
    try:
        until(lambda: all(sorted(each.bodies) == sorted(bodies) for each in seen))
    finally:
        for member in members:
            member.shutdown()


@INTEROP
def test_large_bodies_are_compressed_and_odd_properties_come_back(names: str) -> None:
    odd = {"ключ": "值 🚀", "empty": "", "quote": "\"'\\\n"}
    seen = Seen()
    with rocketmq.Producer(namesrv_addr=names) as producer:
        until(lambda: bool(queues_of(producer, "Large")))
        producer.send("Large", b"large " * 200_000, properties=odd)
    consumer = consumer_of(names, "large", "Large", "*", seen)
    try:
        until(lambda: seen.bodies == [b"large " * 200_000])
        (message,) = seen.messages
        assert message.store_size < 20_000
        assert {name: message.properties.get(name) for name in odd} == {**odd, "empty": None}
    finally:
        consumer.shutdown()


@INTEROP
def test_the_next_name_server_is_asked_and_a_cut_connection_is_made_again(names: str) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    seen = Seen()
    bodies = send_all(names, "Cut", 10)
    consumer = consumer_of(f"{nobody};{names}", "cutting", "Cut", "*", seen)
    try:
        until(lambda: len(seen.bodies) == 10)
        api = consumer.default_mq_push_consumer_impl.running.api
        assert isinstance(api, rocketmq.Cluster)
        for channel in list(api._remoting._channels.values()):
            channel.close("cut by the test")
        bodies += send_all(names, "Cut", 10)
        until(lambda: len(seen.bodies) >= 20)
        assert sorted(seen.bodies) == sorted(bodies)
    finally:
        consumer.shutdown()


@INTEROP
def test_what_nobody_has_is_refused_in_the_real_words(names: str) -> None:
    with rocketmq.Cluster(names) as cluster:
        assert cluster.topic_subscribe_info("Nowhere") is None
        assert cluster.publish_queues("Nowhere") == [MessageQueue("Nowhere", "broker-a", i) for i in range(4)]
        queue = MessageQueue("Nowhere", "broker-x", 0)
        with pytest.raises(rocketmq.MQClientError, match=r"The broker\[broker-x\] not exist"):
            cluster.max_offset(queue)
        with pytest.raises(rocketmq.OffsetNotFoundError, match="CODE: 22"):
            cluster.query_consumer_offset("nobody", MessageQueue("%RETRY%nobody", "broker-a", 0))
