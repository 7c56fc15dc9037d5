"""Requests and their replies over TCP, and messages looked up by key and by id, on both kinds of broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, Message, MQBrokerError, MQClientError
from tests.waiting import until

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture
def broker() -> Iterator[rocketmq.Broker]:
    with rocketmq.Broker(listen="127.0.0.1:0") as made:
        made.create_topic("questions", 1)
        yield made


@contextmanager
def answering(broker: rocketmq.Broker, answer: Callable[[rocketmq.MessageExt], Message | None]) -> Iterator[None]:
    """A consumer that replies."""
    where = broker.name_server_address
    with rocketmq.Producer(namesrv_addr=where, group="answers") as producer:
        consumer = rocketmq.DefaultMQPushConsumer("clerks", namesrv_addr=where, consume_from_where=FIRST)
        consumer.subscribe("questions")

        @consumer.register_message_listener
        def listen(messages: list[rocketmq.MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
            for message in messages:
                reply = answer(message)
                if reply is not None:
                    producer.send(reply)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        with consumer:
            yield


def test_a_request_gets_its_reply(broker: rocketmq.Broker) -> None:
    with (
        answering(broker, lambda message: rocketmq.create_reply_message(message, (message.body or b"")[::-1] * 1000)),
        rocketmq.Producer(namesrv_addr=broker.name_server_address) as producer,
    ):
        message = Message("questions", b"abc")
        reply = producer.request(message, 20_000)
        assert reply.body == b"cba" * 1000
        assert reply.topic == "DefaultCluster_REPLY_TOPIC"
        assert reply.properties["CORRELATION_ID"] == message.properties["CORRELATION_ID"]
        assert {"PUSH_REPLY_TIME", "ARRIVE_TIME", "TTL", "REPLY_TO_CLIENT"} <= set(reply.properties)

        async def asks() -> list[bytes | None]:
            futures = [producer.request_async(Message("questions", b"%d1" % number), 20_000) for number in range(5)]
            return [each.body[:2] for each in await asyncio.gather(*map(asyncio.wrap_future, futures))]

        assert asyncio.run(asks()) == [b"10", b"11", b"12", b"13", b"14"]
        # They are stored, as by the real broker; the last one when its asker has confirmed it.
        until(lambda: len(broker.messages("DefaultCluster_REPLY_TOPIC")) == 6)


def test_a_request_that_nobody_answers_fails_in_time(broker: rocketmq.Broker) -> None:
    with rocketmq.Producer(namesrv_addr=broker.name_server_address) as producer:
        with pytest.raises(MQClientError, match="OK, but wait reply message timeout, 200 ms") as caught:
            producer.request(Message("questions", b"?"), 200)
        assert caught.value.code == 10006
        pending = producer.request_async(Message("questions", b"?"), 60_000)
    with pytest.raises(MQClientError, match="shut down before the reply"):
        pending.result(1)


def test_a_reply_to_a_client_that_is_gone_is_refused(broker: rocketmq.Broker) -> None:
    with rocketmq.Producer(namesrv_addr=broker.name_server_address) as producer:
        for asked_by, problem in (("nobody", "channel of <nobody> not found"), (None, "REPLY_TO_CLIENT. is null")):
            properties = {"CLUSTER": "DefaultCluster"} | ({"REPLY_TO_CLIENT": asked_by} if asked_by else {})
            reply = rocketmq.create_reply_message(Message("questions", b"?", properties=properties), b"!")
            with pytest.raises(MQBrokerError, match=problem):
                producer.send(reply)


def test_what_cannot_be_asked_or_answered_is_named(broker: rocketmq.Broker) -> None:
    with pytest.raises(MQClientError, match=r"property\[CLUSTER\] is null"):
        rocketmq.create_reply_message(Message("questions", b"?"), b"!")
    with pytest.raises(ConfigurationError, match="request"):
        rocketmq.create_reply_message("questions", b"!")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a request needs namesrv_addr"):
        rocketmq.Producer(broker).request(Message("questions", b"?"))


@pytest.fixture(params=["embedded", "network"])
def producer(broker: rocketmq.Broker, request: pytest.FixtureRequest) -> Iterator[rocketmq.Producer]:
    where: dict[str, Any] = (
        {"broker": broker} if request.param == "embedded" else {"namesrv_addr": broker.name_server_address}
    )
    with rocketmq.Producer(**where) as made:
        yield made


def test_messages_are_found_by_key_and_by_id(producer: rocketmq.Producer) -> None:
    one = producer.send(Message("questions", b"1", keys="a b"))
    two = producer.send(Message("questions", b"2" * 5000, keys="b"))
    producer.send(Message("other", b"3", keys="b"))
    assert [message.body for message in producer.query_message("questions", "b")] == [b"1", b"2" * 5000]
    assert [message.body for message in producer.query_message("questions", "a")] == [b"1"]
    assert [message.msg_id for message in producer.query_message("questions", "b", 1)] == [two.msg_id]
    producer.send(Message("questions", b"4", keys="a"))
    assert [message.body for message in producer.query_message("questions", "a")] == [b"1", b"4"]
    assert producer.view_message("questions", one.msg_id).body == b"1"
    assert producer.view_message("questions", two.offset_msg_id).body == b"2" * 5000
    for key, most in (("c", 32), ("a", 0)):
        with pytest.raises(MQClientError, match="query message by key finished, but no message") as caught:
            producer.query_message("questions", key, most)
        assert caught.value.code == 208
    with pytest.raises(MQClientError, match="no message"):
        producer.view_message("questions", "7F00000100002A9F00000000FFFFFFFF")


def test_times_bound_a_query_and_what_was_deleted_is_not_found() -> None:
    clock = ManualClock(now=1_700_000_000_000)
    broker = rocketmq.Broker(clock=clock)
    broker.create_topic("T", 1)
    producer = rocketmq.Producer(broker, namespace="")
    for number in range(70):
        producer.send(Message("T", b"%d" % number, keys="k"))
        clock.advance(1000)
    assert len(producer.query_message("T", "k", 1000)) == 64  # maxMsgsNumBatch
    begin = 1_700_000_000_000 + 5000
    found = producer.query_message("T", "k", begin=begin, end=begin + 2000)
    assert [message.body for message in found] == [b"5", b"6", b"7"]
    broker.delete_below(rocketmq.MessageQueue("T", "broker-a", 0), 69)
    assert producer.query_message("T", "k")[-1].body == b"69"
