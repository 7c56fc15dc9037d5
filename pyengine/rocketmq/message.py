"""RocketMQ's messages and the names that its topics and properties have (spec rocketmq 6.2, 8.1)."""

from __future__ import annotations

from pyengine._engine.rocketmq.commands.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    MAX_MESSAGE_SIZE,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_MAX_OFFSET,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_MIN_OFFSET,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RETRY_GROUP_TOPIC_PREFIX,
    Message,
    MessageExt,
    whole_property,
)
from pyengine.errors import ConfigurationError, shown

__all__ = [
    "DLQ_GROUP_TOPIC_PREFIX",
    "MAX_MESSAGE_SIZE",
    "PROPERTY_DELAY_TIME_LEVEL",
    "PROPERTY_KEYS",
    "PROPERTY_MAX_OFFSET",
    "PROPERTY_MAX_RECONSUME_TIMES",
    "PROPERTY_MIN_OFFSET",
    "PROPERTY_ORIGIN_MESSAGE_ID",
    "PROPERTY_REAL_QUEUE_ID",
    "PROPERTY_REAL_TOPIC",
    "PROPERTY_RECONSUME_TIME",
    "PROPERTY_RETRY_TOPIC",
    "PROPERTY_TAGS",
    "PROPERTY_TRANSACTION_PREPARED",
    "PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX",
    "RETRY_GROUP_TOPIC_PREFIX",
    "Message",
    "MessageExt",
    "dlq_topic",
    "plain_text",
    "retry_topic",
    "whole_property",
]


def plain_text(name: str, value: object) -> str:
    """A string, which Java's compiler demands. Raises ConfigurationError for anything else."""
    if isinstance(value, str):
        return value
    raise ConfigurationError(name, shown(value), "must be a string")


def retry_topic(group: str) -> str:
    """The topic that a group's failed messages come back through. Raises ConfigurationError for anything but a
    string."""
    plain_text("group", group)
    return RETRY_GROUP_TOPIC_PREFIX + group


def dlq_topic(group: str) -> str:
    """The topic of a group's dead letters. Raises ConfigurationError for anything but a string."""
    plain_text("group", group)
    return DLQ_GROUP_TOPIC_PREFIX + group
