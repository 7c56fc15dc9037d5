"""Spans and metrics of RocketMQ's clients, on the embedded cluster and over the network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import messaging_attributes as names
from opentelemetry.trace import SpanKind, StatusCode

from pyengine import ConfigurationError, IllegalStateError, rocketmq
from pyengine.clock import ManualClock
from pyengine.rocketmq import ConsumeConcurrentlyStatus, Message, MessageExt
from pyengine.rocketmq.telemetry import instrument
from tests.telemetry.conftest import Exported, identity, linked, trace

OK, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER


def push(broker: rocketmq.Broker, listener: Any, exported: Exported, **settings: Any) -> rocketmq.DefaultMQPushConsumer:
    """A consumer that is traced."""
    consumer = rocketmq.DefaultMQPushConsumer("billing", broker=broker, **settings)
    consumer.subscribe("orders")
    consumer.register_message_listener(listener)
    instrument(consumer, **exported.settings)
    return consumer


def test_a_listener_s_span_is_a_child_of_the_send_and_linked_to_it(exported: Exported) -> None:
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker, rocketmq.Producer(broker) as producer:
        broker.create_topic("orders", 1)
        with push(broker, lambda messages, context: OK, exported):
            clock.advance(3_000)
            instrument(producer, **exported.settings)
            message = Message("orders", b"tea", tags="hot", keys="a b")
            result = producer.send(message)
            clock.advance(1_000)
    send, process = exported.spans
    assert (send.name, send.kind) == ("send orders", SpanKind.PRODUCER)
    assert (process.name, process.kind) == ("process orders", SpanKind.CONSUMER)
    assert process.parent is not None
    assert (process.parent.span_id, trace(process), linked(process)) == (identity(send), trace(send), [identity(send)])
    of_message = {
        names.MESSAGING_SYSTEM: names.MessagingSystemValues.ROCKETMQ.value,
        names.MESSAGING_DESTINATION_NAME: "orders",
        names.MESSAGING_DESTINATION_PARTITION_ID: "broker-a/0",
        names.MESSAGING_MESSAGE_ID: result.msg_id,
        names.MESSAGING_MESSAGE_BODY_SIZE: 3,
        names.MESSAGING_ROCKETMQ_MESSAGE_TAG: "hot",
        names.MESSAGING_ROCKETMQ_MESSAGE_KEYS: ("a", "b"),
        names.MESSAGING_ROCKETMQ_MESSAGE_TYPE: names.MessagingRocketmqMessageTypeValues.NORMAL.value,
    }
    assert dict(send.attributes or {}) == of_message | {
        names.MESSAGING_OPERATION_NAME: "send",
        names.MESSAGING_OPERATION_TYPE: "send",
    }
    assert dict(process.attributes or {}) == of_message | {
        names.MESSAGING_OPERATION_NAME: "process",
        names.MESSAGING_OPERATION_TYPE: "process",
        names.MESSAGING_CONSUMER_GROUP_NAME: "billing",
        names.MESSAGING_ROCKETMQ_CONSUMPTION_MODEL: names.MessagingRocketmqConsumptionModelValues.CLUSTERING.value,
    }
    assert exported.points() == {
        ("messaging.client.sent.messages", "send", ""): 1,
        ("messaging.client.operation.duration", "send", ""): 1,
        ("messaging.client.consumed.messages", "process", ""): 1,
        ("messaging.process.duration", "process", ""): 1,
    }


@pytest.mark.parametrize(
    ("answer", "error"), [(LATER, "RECONSUME_LATER"), (None, "RETURNNULL"), (KeyError("x"), "KeyError")]
)
def test_a_message_that_is_to_come_again_is_an_error_of_its_span(exported: Exported, answer: Any, error: str) -> None:
    answers = [OK, answer]

    def listen(messages: Sequence[MessageExt], context: object) -> Any:
        found = answers.pop()
        if isinstance(found, Exception):
            raise found
        return found

    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker, push(broker, listen, exported):
        clock.advance(3_000)
        producer = rocketmq.Producer(broker)
        instrument(producer, **exported.settings)
        producer.send("orders", b"tea")
        clock.advance(60_000)
    send, first, second = exported.spans
    assert [first.status.status_code, second.status.status_code] == [StatusCode.ERROR, StatusCode.UNSET]
    assert first.attributes is not None
    assert first.attributes["error.type"] == error
    # A message of the retry topic still has its topic and its send.
    assert (second.name, linked(second), trace(second)) == ("process orders", [identity(send)], trace(send))


def test_a_batch_is_processed_in_one_span_linked_to_each_send(exported: Exported) -> None:
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker, rocketmq.Producer(broker) as producer:
        broker.create_topic("orders", 1)
        instrument(producer, **exported.settings)
        with push(broker, lambda messages, context: OK, exported, consume_message_batch_max_size=8):
            clock.advance(3_000)
            producer.send_batch([Message("orders", b"a"), Message("orders", b"b")])
            clock.advance(1_000)
    *created, send, process = exported.spans
    assert [span.name for span in created] == ["create orders"] * 2
    assert (send.kind, linked(send)) == (SpanKind.CLIENT, [*map(identity, created)])
    assert (process.parent, linked(process)) == (None, [*map(identity, created)])
    assert process.attributes is not None
    assert process.attributes[names.MESSAGING_BATCH_MESSAGE_COUNT] == 2
    assert exported.points()["messaging.client.sent.messages", "send", ""] == 2


def test_a_coroutine_s_span_ends_when_it_is_done(exported: Exported) -> None:
    clock, steps = ManualClock(), []

    async def listen(messages: Sequence[MessageExt], context: object) -> ConsumeConcurrentlyStatus:
        steps.append(len(exported.spans))
        await asyncio.sleep(5)
        return OK

    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("orders", 1)
        with push(broker, listen, exported):
            clock.advance(3_000)
            rocketmq.Producer(broker).send("orders", b"tea")
            clock.advance(1_000)
            assert (steps, exported.spans) == ([0], [])
            clock.advance(10_000)
            (process,) = exported.spans
    assert (process.status.status_code, linked(process)) == (StatusCode.UNSET, [])  # its sender is not traced


def test_what_is_sent_without_waiting_ends_with_its_answer(exported: Exported) -> None:
    with rocketmq.Broker(clock=ManualClock(), max_message_size=10) as broker, rocketmq.Producer(broker) as producer:
        instrument(producer, **exported.settings)
        producer.send_async(Message("orders", b"a")).result(timeout=5)
        producer.send_one_way(Message("orders", b"b"))
        with pytest.raises(rocketmq.MQBrokerError):
            producer.send_async(Message("orders", b"c" * 20)).result(timeout=5)
    assert [span.name for span in exported.spans] == ["send orders"] * 3
    assert [span.status.status_code for span in exported.spans] == [
        StatusCode.UNSET,
        StatusCode.UNSET,
        StatusCode.ERROR,
    ]
    assert exported.points()["messaging.client.sent.messages", "send", "MQBrokerError"] == 1


def test_what_is_polled_is_linked_and_processed_where_the_program_says(exported: Exported) -> None:
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker, rocketmq.Producer(broker) as producer:
        broker.create_topic("orders", 1)
        instrument(producer, **exported.settings)
        consumer = rocketmq.DefaultLitePullConsumer("billing", broker=broker)
        telemetry = instrument(consumer, **exported.settings)
        with consumer:
            consumer.subscribe("orders")
            clock.advance(3_000)
            producer.send("orders", b"a")
            producer.send("orders", b"b")
            found = consumer.poll(5_000) + consumer.poll(1_000)
            for message in found:
                with telemetry.process(message):
                    pass
            with pytest.raises(ConfigurationError):
                consumer.poll(-1)
        with pytest.raises(IllegalStateError, match="billing was started: instrument it before"):
            instrument(consumer)
    sends = [span for span in exported.spans if span.name == "send orders"]
    received = [span for span in exported.spans if span.name == "receive orders"]
    processed = [span for span in exported.spans if span.name == "process orders"]
    assert [each for span in received for each in linked(span)] == [*map(identity, sends)]
    assert [linked(span) for span in processed] == [[identity(span)] for span in sends]
    assert received[-1].status.status_code is StatusCode.ERROR


def test_the_context_crosses_the_network(exported: Exported) -> None:
    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        where: dict[str, Any] = {"namesrv_addr": broker.name_server_address}
        with rocketmq.Producer(namespace="blue", **where) as producer:
            instrument(producer, **exported.settings)
            producer.send("orders", b"tea")
        consumer = rocketmq.DefaultLitePullConsumer("billing", namespace="blue", **where)
        consumer.consume_from_where = rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        instrument(consumer, **exported.settings)
        consumer.subscribe("orders")
        with consumer:
            found: list[MessageExt] = []
            for _ in range(20):
                found += consumer.poll(500)
                if found:
                    break
    send, receive = exported.spans
    assert linked(receive) == [identity(send)]
    assert receive.attributes is not None
    assert receive.attributes[names.MESSAGING_ROCKETMQ_NAMESPACE] == "blue"


def test_a_client_that_is_not_instrumented_runs_the_same_code_as_before() -> None:
    """Not one instruction more for a message: its calls are the same."""
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker, rocketmq.Producer(broker) as producer:
        assert producer.broker is broker
        consumer = rocketmq.DefaultMQPushConsumer("billing", broker=broker)
        listener = [].append
        consumer.register_message_listener(listener)
        consumer.subscribe("orders")
        with consumer:
            assert consumer._member.consuming._listener._listener is listener
        with pytest.raises(ConfigurationError, match=r"^target=.*give a Producer"):
            instrument(broker)  # type: ignore[arg-type]
