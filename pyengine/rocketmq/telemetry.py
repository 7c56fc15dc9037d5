"""OpenTelemetry for RocketMQ's clients: spans and metrics of what they send, receive and process.

    telemetry = instrument(producer)
    telemetry = instrument(consumer)      # before it starts

Producers, push consumers and lite pull consumers are traced on an embedded cluster and on a real one alike. A push
consumer's listener runs in a span; around what a program does with messages that it has polled, it says
``with telemetry.process(*messages):`` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from functools import wraps
from inspect import iscoroutine
from time import time_ns
from typing import TYPE_CHECKING, Any

from pyengine.errors import ConfigurationError, IllegalStateError, PyengineError
from pyengine.rocketmq.consumer.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, MessageListener
from pyengine.rocketmq.consumer.lite_pull_consumer import DefaultLitePullConsumer
from pyengine.rocketmq.consumer.push_consumer import DefaultMQPushConsumer
from pyengine.rocketmq.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    Message,
    MessageExt,
)
from pyengine.rocketmq.remoting.mq_client_api import MQClientAPI, SendCallback, SendResult
from pyengine.rocketmq.remoting.producer import Producer
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.telemetry import Attributes, Operation, Subject, Telemetry

__all__ = ["instrument"]

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

FAILED: dict[object, str] = {
    None: "RETURNNULL",
    ConsumeConcurrentlyStatus.RECONSUME_LATER: "RECONSUME_LATER",
    ConsumeOrderlyStatus.ROLLBACK: "ROLLBACK",
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: "SUSPEND_CURRENT_QUEUE_A_MOMENT",
}


def instrument(
    target: Producer | DefaultMQPushConsumer | DefaultLitePullConsumer,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    propagator: TextMapPropagator | None = None,
) -> Telemetry[Message]:
    """Trace a producer from now on, or a consumer that has not been started yet.

    The providers and the propagator are the global ones unless given. Raises MissingExtraError without
    opentelemetry-api (extra ``opentelemetry``), ConfigurationError for what is none of these, IllegalStateError for a
    consumer that was started.
    """
    if not isinstance(target, (Producer, DefaultMQPushConsumer, DefaultLitePullConsumer)):
        raise ConfigurationError(
            "target",
            repr(target),
            "cannot be instrumented",
            "give a Producer, a DefaultMQPushConsumer or a DefaultLitePullConsumer",
        )
    group: Attributes = {}
    if not isinstance(target, Producer):
        if target._member.context.service_state != "CREATE_JUST":
            raise IllegalStateError(f"the consumer of {target.consumer_group} was started: instrument it before")
        group["messaging.consumer.group.name"] = target.consumer_group
        group["messaging.rocketmq.consumption_model"] = target.message_model.name.lower()
    if target.namespace:
        group["messaging.rocketmq.namespace"] = target.namespace
    telemetry = Telemetry(
        "rocketmq",
        lambda messages: _subject(messages, group),
        _write,
        _read,
        tracer_provider=tracer_provider,
        meter_provider=meter_provider,
        propagator=propagator,
    )
    if isinstance(target, Producer):
        vars(target)["broker"] = _TracedCluster(target.broker, telemetry, group)  # which its user cannot change
    elif isinstance(target, DefaultMQPushConsumer):
        target._member.context.around = lambda listener: _traced(listener, telemetry, group)
    else:
        _trace_polls(target, telemetry, group)
    return telemetry


def _write(message: Message, name: str, value: str) -> None:
    message.properties[name] = value


def _read(message: Message, name: str) -> str | None:
    return message.properties.get(name)


def _of(message: Message) -> Attributes:
    """The attributes of one message."""
    properties = message.properties
    found: Attributes = {"messaging.message.body.size": len(message.body or b"")}
    identity = properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or getattr(message, "msg_id", "")
    if identity:
        found["messaging.message.id"] = identity
    if message.tags:
        found["messaging.rocketmq.message.tag"] = message.tags
    if message.keys:
        found["messaging.rocketmq.message.keys"] = message.keys.split()
    kind = "normal"
    if PROPERTY_TRANSACTION_PREPARED in properties:
        kind = "transaction"
    elif PROPERTY_DELAY_TIME_LEVEL in properties:
        kind = "delay"
        if properties[PROPERTY_DELAY_TIME_LEVEL].isdecimal():
            found["messaging.rocketmq.message.delay_time_level"] = int(properties[PROPERTY_DELAY_TIME_LEVEL])
    found["messaging.rocketmq.message.type"] = kind
    if isinstance(message, MessageExt):
        found["messaging.destination.partition.id"] = f"{message.broker_name}/{message.queue_id}"
    return found


def _subject(messages: Sequence[Message], group: Attributes, topic: str = "unknown") -> Subject[Message]:
    named = messages[0].topic if messages else topic
    return Subject(named, group, {}, [(each, _of(each)) for each in messages])


class _TracedCluster:
    """The brokers as an instrumented producer sees them: those behind it, with spans around what is sent."""

    def __init__(self, cluster: MQClientAPI, telemetry: Telemetry[Message], group: Attributes) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._group = group

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def _sending(self, message: Message) -> Operation[Message]:
        return self._telemetry.sending(_subject([message], self._group))

    def send_message(self, group: str, message: Message, queue: MessageQueue | None = None) -> SendResult:
        """See MQClientAPI."""
        with self._sending(message) as operation:
            result = self._cluster.send_message(group, message, queue)
            _stored(operation, result)
            return result

    def send_message_async(
        self, group: str, message: Message, queue: MessageQueue | None, callback: SendCallback
    ) -> None:
        """See MQClientAPI."""
        operation = self._sending(message)

        def answered(found: SendResult | Exception) -> None:
            if isinstance(found, SendResult):
                _stored(operation, found)
                operation.end()
            else:
                operation.end(found)
            callback(found)

        try:
            with operation.current():
                self._cluster.send_message_async(group, message, queue, answered)
        except BaseException as error:
            operation.end(error)
            raise

    def send_message_one_way(self, group: str, message: Message, queue: MessageQueue | None = None) -> None:
        """See MQClientAPI."""
        with self._sending(message):
            self._cluster.send_message_one_way(group, message, queue)

    def send_batch(self, group: str, messages: Sequence[Message], queue: MessageQueue | None = None) -> SendResult:
        """See MQClientAPI."""
        topic = messages[0].topic if messages else "unknown"
        with self._telemetry.sending_batch(_subject([], self._group, topic)) as batch:
            for message in messages:
                self._telemetry.created(batch, _subject([message], self._group))
            result = self._cluster.send_batch(group, messages, queue)
            _stored(batch, result)
            return result


def _stored(operation: Operation[Message], result: SendResult) -> None:
    queue = result.queue
    operation.span.set_attribute("messaging.destination.partition.id", f"{queue.broker_name}/{queue.queue_id}")


def _traced(listener: MessageListener, telemetry: Telemetry[Message], group: Attributes) -> Callable[..., Any]:
    """The function that is called with messages in place of a listener's."""
    consume: Callable[..., Any] = listener.consume_message

    def judge(operation: Operation[Message], answer: object) -> None:
        if answer is None or isinstance(answer, Enum):
            failure = FAILED.get(answer)
            if failure is not None:
                operation.fail(failure)

    @wraps(consume, updated=())
    def process(messages: Sequence[MessageExt], context: object) -> object:
        operation = telemetry.processing(_subject(messages, group), delivers=True)
        try:
            with operation.current():
                answer = consume(messages, context)
        except BaseException as error:
            operation.end(error)
            raise
        if iscoroutine(answer):
            return finish(operation, answer)
        judge(operation, answer)
        operation.end()
        return answer

    async def finish(operation: Operation[Message], coroutine: Coroutine[Any, Any, Any]) -> object:
        with operation:
            answer = await coroutine
            judge(operation, answer)
            return answer

    return process


def _trace_polls(consumer: DefaultLitePullConsumer, telemetry: Telemetry[Message], group: Attributes) -> None:
    member = consumer._member
    poll = member.poll

    def polled(timeout: int) -> list[MessageExt]:
        began = time_ns()
        try:
            found = poll(timeout)
        except PyengineError as error:
            topic = ",".join(sorted(member.context.subscriptions)) or "unknown"
            telemetry.received(began, _subject([], group, topic), error)
            raise
        if found:
            telemetry.received(began, _subject(found, group))
        return found

    member.poll = polled  # type: ignore[method-assign]
