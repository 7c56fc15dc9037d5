"""Messages on their way back to the brokers: for another try, or for the dead letters."""

from __future__ import annotations

from pyengine._engine.rocketmq.client.consume_concurrently import restored_topic
from pyengine._engine.rocketmq.client.namespaces import with_namespace, without_namespace
from pyengine._engine.rocketmq.commands import defaults
from pyengine.rocketmq.consumer.context import ConsumerContext, MemberContext
from pyengine.rocketmq.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TRANSACTION_PREPARED,
    Message,
    MessageExt,
    retry_topic,
)
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"


def restore_topic(context: MemberContext, messages: list[MessageExt]) -> None:
    """A retried message has the topic it was sent to again, without its namespace."""
    group, namespace = context.group, context.namespace
    for message in messages:
        sent_to = message.properties.get(PROPERTY_RETRY_TOPIC)
        if sent_to is not None:
            message.topic = restored_topic(message.topic, sent_to, retry_topic(group))
        if namespace:
            message.topic = without_namespace(message.topic, namespace)


def send_message_back(
    context: ConsumerContext, message: MessageExt, delay_level: int, queue: MessageQueue | None = None
) -> None:
    """Give a message back to the broker, as a message to the retry topic if that fails. Raises what that raises.

    queue: where it came from, for the log.
    """
    group, times = context.group, context.parameters.max_reconsume_times
    limit = defaults.MAX_RECONSUME_TIMES if times == -1 else times
    message.topic = with_namespace(context.namespace, message.topic)
    try:
        context.running.api.consumer_send_message_back(group, message, delay_level, limit)
    except Exception as error:
        log.error(
            "Failed to send message back, consumerGroup=%s, brokerName=%s, mq=%s, message=%s",
            group,
            message.broker_name,
            "null" if queue is None else queue,
            message,
            exc_info=error,
        )
        send_to_retry_topic(context, message, limit)
    finally:
        message.topic = without_namespace(message.topic, context.namespace)


def send_to_retry_topic(context: ConsumerContext, message: MessageExt, max_reconsume_times: int) -> None:
    """Send a copy of the message to the group's retry topic. Raises PyengineError if it cannot be stored.

    The copy's properties are the message's own, as in the real client: they stay with a message that is kept.
    """
    properties = message.properties
    if not properties.get(PROPERTY_ORIGIN_MESSAGE_ID, "").strip():
        properties[PROPERTY_ORIGIN_MESSAGE_ID] = message.msg_id
    properties[PROPERTY_RETRY_TOPIC] = message.topic
    properties[PROPERTY_RECONSUME_TIME] = str(message.reconsume_times + 1)
    properties[PROPERTY_MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    properties.pop(PROPERTY_TRANSACTION_PREPARED, None)
    properties[PROPERTY_DELAY_TIME_LEVEL] = str(3 + message.reconsume_times)
    copy = Message(retry_topic(context.group), message.body, properties=properties, flag=message.flag)
    context.running.api.send_message(INNER_PRODUCER_GROUP, copy)
