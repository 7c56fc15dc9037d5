"""What a broker refuses to store of what it is sent (SendMessageProcessor, HookUtils)."""

from __future__ import annotations

from pyengine._engine.rocketmq.client.validators import SYSTEM_TOPICS
from pyengine.errors import MQBrokerError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.remoting.mq_client_api import MESSAGE_ILLEGAL, NO_PERMISSION, SYSTEM_ERROR

TIMER_PROPERTIES = ("TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS")
PROPERTY_TIMER_OUT_MS = "TIMER_OUT_MS"  # of a message whose timer has run
PROPERTY_INNER_NUM = "INNER_NUM"
# A message with none of them is stored as it is, in the queue that it is sent to.
SPECIAL = frozenset(
    (names.PROPERTY_DELAY_TIME_LEVEL, names.PROPERTY_TRANSACTION_PREPARED, PROPERTY_INNER_NUM, *TIMER_PROPERTIES)
)


def check_sent_topic(topic: str) -> None:
    """Raise MQBrokerError for a topic that brokers write themselves."""
    if topic in SYSTEM_TOPICS:
        raise MQBrokerError(NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")


def check_sent_message(
    body: bytes | None,
    properties: dict[str, str],
    reconsume_times: int,
    max_message_size: int,
    *,
    remote: bool = False,
) -> None:
    """Raise MQBrokerError for a message that is not stored; a delay level takes timers out of the properties.

    max_message_size: bytes of a body. remote: from a client on the network; for one of this process the rest is as with
    ``rejectTransactionMessage=true, timerWheelEnable=false``.
    """
    if SPECIAL.isdisjoint(properties):
        check_size(body, max_message_size)
        return
    level = names.whole_property(properties, names.PROPERTY_DELAY_TIME_LEVEL)
    if is_half(properties, reconsume_times) and not remote:
        raise MQBrokerError(NO_PERMISSION, "the broker[127.0.0.1] sending transaction message is forbidden")
    if PROPERTY_INNER_NUM in properties:
        raise illegal_message(max_message_size)
    timers = [name for name in TIMER_PROPERTIES if name in properties]
    if level > 0:
        for name in timers:
            del properties[name]
    elif timers and PROPERTY_TIMER_OUT_MS not in properties and not remote:
        problem = MQBrokerError(SYSTEM_ERROR, "accurate timer message is not enabled, timerWheelEnable is false")
        problem.add_note(f"the message has the property {timers[0]}; use a delay level (delay_time_level)")
        raise problem
    check_size(body, max_message_size)


def check_size(body: bytes | None, max_message_size: int) -> None:
    """Raise MQBrokerError for a body of more bytes than a broker stores."""
    if body is not None and len(body) > max_message_size:
        raise illegal_message(max_message_size)


def is_half(properties: dict[str, str], reconsume_times: int) -> bool:
    """Whether a message is the first half of a transaction."""
    if names.PROPERTY_TRANSACTION_PREPARED not in properties:
        return False
    level = names.whole_property(properties, names.PROPERTY_DELAY_TIME_LEVEL)
    prepared = properties.get(names.PROPERTY_TRANSACTION_PREPARED, "").lower() == "true"
    return prepared and not (reconsume_times > 0 and level > 0)


def illegal_message(max_message_size: int) -> MQBrokerError:
    """The error of a message that a broker cannot store."""
    return MQBrokerError(
        MESSAGE_ILLEGAL,
        "the message is illegal, maybe msg body or properties length not matched. "
        f"msg body length limit {max_message_size}B, msg properties length limit 32KB.",
    )
