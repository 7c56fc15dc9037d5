"""Subscriptions as a consumer states them: tags, or SQL92 over the properties (spec rocketmq 8.1)."""

from __future__ import annotations

from pyengine._engine.rocketmq.client.tags import parse_tags
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, NullArgumentError
from pyengine.rocketmq.remoting.mq_client_api import SubscriptionData, plain_text


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class MessageSelector:
    """What a consumer wants of a topic. expression_type: ``TAG`` or ``SQL92``; any other goes to the broker.

    Raises ConfigurationError for anything but a string.
    """

    expression: str | None
    expression_type: str | None = "TAG"

    def __post_init__(self) -> None:
        for name, text in (("expression", self.expression), ("expression_type", self.expression_type)):
            if text is not None and not isinstance(text, str):
                hint = 'give tags, as "A || B", or rocketmq.sql("price > 10")'
                raise ConfigurationError(name, repr(text), "a string is needed", hint)


def sql(expression: str) -> MessageSelector:
    """Select by properties, in RocketMQ's SQL92: ``consumer.subscribe("topic", rocketmq.sql("price > 10"))``."""
    return MessageSelector(expression, "SQL92")


def tag(expression: str) -> MessageSelector:
    """Select by tags, ``A || B``: what a plain text means too."""
    return MessageSelector(expression)


def build_subscription(topic: str, selector: MessageSelector | str | None, version: int = 0) -> SubscriptionData:
    """The subscription to one topic as a heartbeat has it. version: ms, the later one wins.

    A string and None are tags. Raises MQClientError for a string of nothing but ``||``, NullArgumentError for an empty
    expression of another type than ``TAG``, ConfigurationError for a topic or an expression that is not a string.
    Source: FilterAPI.
    """
    plain_text("topic", topic)
    if not isinstance(selector, MessageSelector):
        selector = MessageSelector(selector)
    if selector.expression_type in (None, "TAG"):
        stored, tags, codes = parse_tags(selector.expression)
        return SubscriptionData(topic, stored, tags, codes, "TAG", version)
    assert selector.expression_type is not None
    if not selector.expression:
        raise NullArgumentError("expression", f"Expression can't be null! {selector.expression_type}")
    return SubscriptionData(topic, selector.expression, expression_type=selector.expression_type, sub_version=version)
