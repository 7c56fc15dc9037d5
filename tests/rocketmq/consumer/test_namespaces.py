"""Namespaces of topics and groups: the real class's names, and consumers and producers within one."""

from __future__ import annotations

from typing import Any

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.namespaces import with_namespace, without_namespace
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, Message, MessageQueue, MQClientError

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.mark.parametrize(
    ("namespace", "plain", "within"),
    [
        ("ns", "orders", "ns%orders"),
        ("ns", "%RETRY%billing", "%RETRY%ns%billing"),
        ("ns", "%DLQ%billing", "%DLQ%ns%billing"),
        ("ns", "other%orders", "ns%other%orders"),
        ("ns", "TBW102", "TBW102"),
        ("ns", "rmq_sys_x", "rmq_sys_x"),
        ("ns", "CID_RMQ_SYS_TRANS", "CID_RMQ_SYS_TRANS"),
        ("ns", "", ""),
        ("", "orders", "orders"),
        (None, "orders", "orders"),
    ],
)
def test_names(namespace: str | None, plain: str, within: str) -> None:
    assert with_namespace(namespace, plain) == within
    assert with_namespace(namespace, within) == within
    assert without_namespace(within, namespace) == plain


def test_another_namespace_stays() -> None:
    assert without_namespace("other%orders", "ns") == "other%orders"
    assert without_namespace("%RETRY%other%billing", "ns") == "%RETRY%other%billing"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=1_700_000_000_000)


@pytest.fixture
def broker(clock: ManualClock) -> rocketmq.Broker:
    made = rocketmq.Broker(clock=clock)
    made.create_topic("ns%orders", 2)
    made.create_topic("orders", 1)
    return made


def test_a_message_is_sent_and_retried_within_the_namespace(broker: rocketmq.Broker, clock: ManualClock) -> None:
    seen: list[tuple[str, str, int]] = []
    consumer = rocketmq.DefaultMQPushConsumer(
        "billing", broker=broker, namespace="ns", consume_from_where=FIRST, max_reconsume_times=1
    )
    consumer.subscribe("orders")

    @consumer.register_message_listener
    def listen(messages: list[rocketmq.MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        seen.extend((message.topic, context.message_queue.topic, message.reconsume_times) for message in messages)
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    consumer.start()
    clock.advance(3000)
    message = Message("orders", b"tea")
    result = rocketmq.Producer(broker, "senders", namespace="ns").send(message)
    assert result.queue.topic == message.topic == "orders"
    assert message.properties["INSTANCE_ID"] == "ns"
    clock.advance(120_000)
    assert seen == [("orders", "ns%orders", 0), ("orders", "%RETRY%ns%billing", 1)]
    assert consumer.consumer_group == "ns%billing"
    (dead,) = broker.messages("%DLQ%ns%billing")
    assert dead.properties["RETRY_TOPIC"] == "ns%orders"
    assert consumer.fetch_subscribe_message_queues("orders") == {MessageQueue("orders", "broker-a", n) for n in (0, 1)}
    assert sum(consumer.max_offset(MessageQueue("orders", "broker-a", number)) for number in (0, 1)) == 1
    assert broker.messages("orders") == []
    consumer.shutdown()


def test_queues_and_selectors_have_plain_names(broker: rocketmq.Broker) -> None:
    producer = rocketmq.Producer(broker, "senders", namespace="ns")
    seen: list[str] = []

    def choose(queues: Any, message: Message, number: int) -> MessageQueue:
        seen.extend((message.topic, *(queue.topic for queue in queues)))
        return queues[number]  # type: ignore[no-any-return]

    assert producer.send(Message("orders", b"1"), selector=choose, arg=1).queue == MessageQueue("orders", "broker-a", 1)
    producer.send(Message("orders", b"2"), queue=MessageQueue("orders", "broker-a", 0))
    producer.send_batch([Message("orders", b"3")], queue=MessageQueue("orders", "broker-a", 0))
    producer.send_one_way(Message("orders", b"4"), queue=MessageQueue("orders", "broker-a", 0))
    assert producer.send_async(Message("orders", b"5")).result(1).queue.topic == "orders"
    assert set(seen) == {"orders"}
    assert len(broker.messages("ns%orders")) == 5
    with pytest.raises(MQClientError, match="longer than topic max length"):
        producer.send(Message("x" * 126, b"1"))


def test_a_lite_pull_consumer_lives_in_a_namespace(broker: rocketmq.Broker, clock: ManualClock) -> None:
    rocketmq.Producer(broker, namespace="ns").send(
        Message("orders", b"tea"), queue=MessageQueue("orders", "broker-a", 1)
    )
    with rocketmq.DefaultLitePullConsumer(
        "audit", broker=broker, namespace="ns", consume_from_where=FIRST, auto_commit=False
    ) as consumer:
        queues = consumer.fetch_message_queues("orders")
        assert {queue.topic for queue in queues} == {"orders"}
        consumer.assign(queues)
        (message,) = consumer.poll(1000)
        assert (message.topic, message.queue_id) == ("orders", 1)
        consumer.commit(persist=True)
        consumer.commit({MessageQueue("orders", "broker-a", 1): 1}, persist=True)
        assert consumer.committed(MessageQueue("orders", "broker-a", 1)) == 1
        consumer.seek_to_begin(MessageQueue("orders", "broker-a", 1))
        assert len(consumer.poll(1000)) == 1
    assert broker.consumer_offsets("ns%audit", "ns%orders")[MessageQueue("ns%orders", "broker-a", 1)] == 1


def test_client_ids_have_instance_and_unit_and_requests_the_second_namespace() -> None:
    with (
        rocketmq.Broker(listen="127.0.0.1:0") as broker,
        rocketmq.Producer(
            namesrv_addr=broker.name_server_address, instance_name="one", unit_name="unit", namespace_v2="v2"
        ) as producer,
    ):
        producer.send(Message("orders", b"tea"))
        cluster = producer.broker
        assert isinstance(cluster, rocketmq.Cluster)
        assert cluster.client_id == "127.0.0.1@one@unit"
        fields = cluster._remoting.command(10, {"a": "b"}).ext_fields
        assert fields == {"a": "b", "nsd": "true", "ns": "v2"}


@pytest.mark.parametrize("name", ["namespace", "namespace_v2", "instance_name", "unit_name", "send_options"])
def test_what_is_none_is_named(broker: rocketmq.Broker, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        rocketmq.Producer(broker, **{name: 7})
