"""Spans and metrics of ActiveMQ's client, on the embedded broker and over OpenWire."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from opentelemetry.semconv._incubating.attributes import messaging_attributes as names
from opentelemetry.trace import SpanKind, StatusCode

from pyengine import ConfigurationError, IllegalStateError, Message, activemq
from pyengine.activemq import aio
from pyengine.activemq.client.consumer import MessageConsumer
from pyengine.activemq.client.producer import MessageProducer
from pyengine.activemq.telemetry import instrument
from pyengine.clock import ManualClock
from tests.telemetry.conftest import Exported, identity, linked, trace


def factory(broker: activemq.Broker, exported: Exported) -> activemq.ConnectionFactory:
    """One whose connections are traced."""
    made = activemq.ConnectionFactory(broker=broker)
    instrument(made, **exported.settings)
    return made


def test_a_listener_s_span_is_a_child_of_the_send_and_linked_to_it(exported: Exported) -> None:
    seen: list[Message] = []
    with activemq.Broker(clock=ManualClock()) as broker, factory(broker, exported).create_connection() as connection:
        session = connection.create_session()
        consumer = session.create_consumer("orders", listener=seen.append)
        assert consumer.message_listener == seen.append
        message = Message({"price": 3}, body="tea", correlation_id="c")
        session.create_producer("orders").send(message)
    send, process = exported.one("send orders"), exported.one("process orders")
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert process.parent is not None
    assert (process.parent.span_id, trace(process), linked(process)) == (identity(send), trace(send), [identity(send)])
    assert dict(send.attributes or {}) == {
        names.MESSAGING_SYSTEM: names.MessagingSystemValues.ACTIVEMQ.value,
        names.MESSAGING_OPERATION_NAME: "send",
        names.MESSAGING_OPERATION_TYPE: names.MessagingOperationTypeValues.SEND.value,
        names.MESSAGING_DESTINATION_NAME: "orders",
        names.MESSAGING_MESSAGE_ID: message.message_id,
        names.MESSAGING_MESSAGE_CONVERSATION_ID: "c",
        names.MESSAGING_MESSAGE_BODY_SIZE: 3,
    }
    assert process.attributes is not None
    assert process.attributes[names.MESSAGING_OPERATION_TYPE] == names.MessagingOperationTypeValues.PROCESS.value
    assert process.attributes[names.MESSAGING_MESSAGE_ID] == message.message_id
    assert seen[0].get_string_property("traceparent") == message.get_string_property("traceparent")
    assert exported.points() == {
        ("messaging.client.sent.messages", "send", ""): 1,
        ("messaging.client.operation.duration", "send", ""): 1,
        ("messaging.client.consumed.messages", "process", ""): 1,
        ("messaging.process.duration", "process", ""): 1,
    }


def test_a_listener_that_fails_is_recorded_and_its_message_comes_again(exported: Exported) -> None:
    fails = [True]

    def listen(message: Message) -> None:
        if fails.pop():
            fails.append(False)
            raise KeyError("price")

    with activemq.Broker(clock=(clock := ManualClock())) as broker:
        with factory(broker, exported).create_connection() as connection:
            session = connection.create_session()
            session.create_consumer("orders", listener=listen)
            session.create_producer("orders").send("tea")
            clock.advance(1_000)
        assert broker.view("orders").queue_size == 0
    first, second = (span for span in exported.spans if span.name == "process orders")
    assert first.status.status_code is StatusCode.ERROR
    assert first.attributes is not None
    assert first.attributes["error.type"] == "KeyError"
    assert [event.name for event in first.events] == ["exception"]
    assert second.status.status_code is StatusCode.UNSET
    assert exported.points()["messaging.process.duration", "process", "KeyError"] == 1


def test_what_is_received_is_linked_and_processed_where_the_program_says(exported: Exported) -> None:
    with (
        activemq.Broker(clock=ManualClock()) as broker,
        activemq.ConnectionFactory(broker=broker).create_connection() as connection,
    ):
        telemetry = instrument(connection, **exported.settings)
        session = connection.create_session()
        session.create_producer("orders").send(b"tea")
        consumer = session.create_consumer("orders")
        message = consumer.receive(timeout=1)
        assert message is not None
        with telemetry.process(message) as operation:
            operation.span.set_attribute("mine", 1)
        assert consumer.receive_no_wait() is None
    send, receive, process = exported.spans
    assert [span.name for span in exported.spans] == ["send orders", "receive orders", "process orders"]
    assert (receive.kind, receive.parent, linked(receive)) == (SpanKind.CLIENT, None, [identity(send)])
    assert (trace(process), linked(process)) == (trace(send), [identity(send)])
    assert process.attributes is not None
    assert process.attributes["mine"] == 1
    points = exported.points()
    assert points["messaging.client.consumed.messages", "receive", ""] == 1
    assert ("messaging.client.consumed.messages", "process", "") not in points


def test_a_batch_has_a_span_for_each_message_and_one_for_all(exported: Exported) -> None:
    with activemq.Broker(clock=ManualClock()) as broker, factory(broker, exported).create_connection() as connection:
        session = connection.create_session()
        assert session.create_producer("orders").send_batch(["a", Message(body="b"), b"c"]) == 3
        found = session.create_consumer("orders").receive_batch(10, timeout=1)
        assert [message.body for message in found] == ["a", "b", b"c"]
    *created, send, receive = exported.spans
    assert [span.name for span in created] == ["create orders"] * 3
    assert (send.name, send.kind, linked(send)) == ("send orders", SpanKind.CLIENT, [*map(identity, created)])
    assert linked(receive) == [*map(identity, created)]
    for span in (send, receive):
        assert span.attributes is not None
        assert span.attributes[names.MESSAGING_BATCH_MESSAGE_COUNT] == 3
    assert exported.points()["messaging.client.sent.messages", "send", ""] == 3


def test_a_batch_in_a_transaction_or_to_a_topic_is_sent_one_by_one(exported: Exported) -> None:
    with activemq.Broker(clock=ManualClock()) as broker, factory(broker, exported).create_connection() as connection:
        session = connection.create_session(activemq.SESSION_TRANSACTED)
        session.create_producer("orders").send_batch(["a"])
        session.commit()
        connection.create_session().create_producer("topic://prices").send_batch(["a"])
    assert [span.name for span in exported.spans] == ["send orders", "send prices"]


def test_what_cannot_be_sent_or_received_is_an_error_of_its_span(exported: Exported) -> None:
    with activemq.Broker(clock=ManualClock()) as broker, factory(broker, exported).create_connection() as connection:
        session = connection.create_session()
        producer, consumer = session.create_producer("orders"), session.create_consumer("orders")
        with pytest.raises(ConfigurationError):
            consumer.receive(timeout="soon")  # type: ignore[arg-type]
        session.close()
        with pytest.raises(IllegalStateError):
            producer.send("tea")
    (receive,) = exported.spans
    assert receive.attributes is not None
    assert receive.attributes["error.type"] == "ConfigurationError"


def test_a_program_of_tasks_is_traced_too(exported: Exported) -> None:
    async def main(broker: activemq.Broker) -> None:
        made = aio.ConnectionFactory(broker=broker)
        instrument(made, **exported.settings)
        async with made.create_connection() as connection:
            session = await connection.create_session()
            producer = await session.create_producer("orders")
            await producer.send("a")
            await producer.send_batch(["b", "c", "d"])
            consumer = await session.create_consumer("orders")
            assert await consumer.receive(timeout=0) is not None
            assert len(await consumer.receive_batch(1)) == 1
            assert len(await consumer.receive_batch(5, timeout=1)) == 2
            async for message in consumer:
                assert message.body == "e"
                break

    with activemq.Broker() as broker:
        other = activemq.ConnectionFactory(broker=broker).create_connection()
        with other:
            sender = other.create_session().create_producer("orders")

            async def both() -> None:
                task = asyncio.create_task(main(broker))
                await asyncio.sleep(0.05)
                sender.send("e")
                await task

            asyncio.run(asyncio.wait_for(both(), 20))
    received = [span for span in exported.spans if span.name == "receive orders"]
    assert [len(span.links) for span in received] == [1, 1, 2, 0]  # the last has an untraced sender


def test_the_context_crosses_the_network_and_the_server_is_named(exported: Exported) -> None:
    with activemq.Broker() as broker:
        port = broker.add_connector("tcp://127.0.0.1:0").port
        made = activemq.ConnectionFactory(f"tcp://127.0.0.1:{port}")
        instrument(made, **exported.settings)
        with made.create_connection("desk") as connection:
            session = connection.create_session()
            consumer = session.create_durable_subscriber("prices", "mine")
            session.create_producer("topic://prices").send("tea")
            assert consumer.receive(timeout=10) is not None
    send, receive = exported.spans
    assert linked(receive) == [identity(send)]
    assert receive.attributes is not None
    assert receive.attributes["server.address"] == "127.0.0.1"
    assert receive.attributes["server.port"] == port
    assert receive.attributes[names.MESSAGING_CLIENT_ID] == "desk"
    assert receive.attributes[names.MESSAGING_DESTINATION_SUBSCRIPTION_NAME] == "mine"


def test_a_header_that_is_no_identifier_travels_as_java_s_agent_writes_it(exported: Exported) -> None:
    from opentelemetry.propagators.textmap import TextMapPropagator

    class Dashes(TextMapPropagator):
        fields: ClassVar[set[str]] = {"x-trace"}

        def inject(self, carrier: Any, context: Any = None, setter: Any = None) -> None:
            setter.set(carrier, "x-trace", "7")

        def extract(self, carrier: Any, context: Any = None, getter: Any = None) -> Any:
            seen.append(getter.get(carrier, "x-trace"))
            return context

    seen: list[Any] = []
    made = activemq.ConnectionFactory(broker=(broker := activemq.Broker(clock=ManualClock())))
    instrument(made, **exported.settings | {"propagator": Dashes()})
    with broker, made.create_connection() as connection:
        session = connection.create_session()
        session.create_producer("orders").send("tea")
        message = session.create_consumer("orders").receive(timeout=0)
        assert message is not None
        assert message.get_string_property("x__dash__trace") == "7"
    assert seen == [["7"]]


def test_a_client_that_is_not_instrumented_runs_the_same_code_as_before() -> None:
    """Not one instruction more for a message: its classes know nothing of telemetry."""
    broker = activemq.Broker(clock=ManualClock())
    with broker, activemq.ConnectionFactory(broker=broker).create_connection() as connection:
        session = connection.create_session()
        listener = [].append
        consumer = session.create_consumer("orders", listener=listener)
        assert type(session.create_producer("orders")) is MessageProducer
        assert type(consumer) is MessageConsumer
        assert consumer._state.listener is listener
    with pytest.raises(ConfigurationError, match=r"^target=.*give a ConnectionFactory or a Connection"):
        instrument(broker)  # type: ignore[arg-type]
