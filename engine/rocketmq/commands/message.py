"""RocketMQ's messages, and the names that their properties and topics have (spec rocketmq 6.2, 8.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Never, TypeVar

from pyengine._engine.java.numbers import parsed_long
from pyengine.errors import InvalidMessageError, UnknownNameError, unknown_arguments
from pyengine.whole_numbers import is_whole_number

Made = TypeVar("Made", bound=Callable[..., Any])

PROPERTY_KEYS = "KEYS"
PROPERTY_TAGS = "TAGS"
PROPERTY_DELAY_TIME_LEVEL = "DELAY"
PROPERTY_RETRY_TOPIC = "RETRY_TOPIC"
PROPERTY_REAL_TOPIC = "REAL_TOPIC"
PROPERTY_REAL_QUEUE_ID = "REAL_QID"
PROPERTY_MIN_OFFSET = "MIN_OFFSET"
PROPERTY_MAX_OFFSET = "MAX_OFFSET"
PROPERTY_ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
PROPERTY_RECONSUME_TIME = "RECONSUME_TIME"
PROPERTY_MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX = "UNIQ_KEY"
PROPERTY_TRANSACTION_PREPARED = "TRAN_MSG"

TEXTS = frozenset((PROPERTY_TAGS, PROPERTY_KEYS))
MAX_MESSAGE_SIZE = 4 * 1024 * 1024  # bytes of a body that producers send and brokers take, by default

RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"


def whole_property(properties: Mapping[str, str], name: str, default: int = 0) -> int:
    """A property as Java's Integer.parseInt reads it. Raises InvalidMessageError for other text."""
    text = properties.get(name)
    if text is None:
        return default
    try:
        number = parsed_long(name, text) if isinstance(text, str) else 2**31
    except ValueError:
        number = 2**31
    if not -(2**31) <= number < 2**31:
        raise InvalidMessageError(name, text, "no whole number of 32 bits")
    return number


def _no_such(kind: type[Message], given: Mapping[str, object]) -> UnknownNameError:
    """The error for what no constructor takes; a message is made too often to be looked at before."""
    return unknown_arguments(kind.__name__, given, list(signature(kind).parameters))


def _without_unknown(function: Made) -> Made:
    """Of a constructor: what refuses an unknown keyword is not shown as a parameter."""
    found = signature(function)
    known = [each for name, each in found.parameters.items() if name != "unknown"]
    function.__signature__ = found.replace(parameters=known)  # type: ignore[attr-defined]
    return function


class Message:
    """What a producer sends. topic: its name. body: bytes or None.

    properties: str -> str; the message keeps a dict of its own; tags and keys are properties too (``TAGS``, ``KEYS``).
    Raises InvalidMessageError for anything but a string, a body that is not bytes, properties that are not a mapping,
    and a flag that is not a number of 32 bits.
    """

    __slots__ = ("body", "flag", "properties", "topic", "transaction_id")

    @_without_unknown
    def __init__(
        self,
        topic: str,
        body: bytes | None = None,
        *,
        tags: str | None = None,
        keys: str | None = None,
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise _no_such(type(self), unknown)
        if properties is not None and not isinstance(properties, Mapping):
            raise InvalidMessageError("properties", properties, "no mapping of names to texts")
        self.topic = topic
        self.body = body
        self.flag = flag
        self.transaction_id: str | None = None
        self.properties: dict[str, str] = dict(properties or {})
        if tags is not None:
            self.properties[PROPERTY_TAGS] = tags
        if keys is not None:
            self.properties[PROPERTY_KEYS] = keys
        # Nothing to look at in what comes out of a log.
        if type(topic) is not str or type(body) is not bytes or flag != 0 or tags is not None or keys is not None:
            self.check()

    def check(self) -> None:
        """Raise InvalidMessageError for what no message can have; its attributes can be set to anything."""
        flag, texts = self.flag, type(self.topic) is str and type(self.body) is bytes
        if texts and type(flag) is int and flag == 0 and TEXTS.isdisjoint(self.properties):
            return  # as nearly always, at the cost of one look
        for field, text in (("topic", self.topic), ("tags", self.tags), ("keys", self.keys)):
            if text is not None and not isinstance(text, str):
                raise InvalidMessageError(field, text, "no text")
        if self.body is not None and not isinstance(self.body, (bytes, bytearray, memoryview)):
            raise InvalidMessageError("body", self.body, "not bytes", hint="encode a text: text.encode()")
        if (self.flag != 0 or type(self.flag) is not int) and not is_whole_number(self.flag, -(2**31), 2**31 - 1):
            raise InvalidMessageError("flag", self.flag, "no whole number of 32 bits")

    @property
    def tags(self) -> str | None:
        """The tag, None if it has none."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> str | None:
        """Keys for look-up, separated by blanks; None if it has none."""
        return self.properties.get(PROPERTY_KEYS)

    @property
    def delay_time_level(self) -> int:
        """1..18, 0 for none (spec rocketmq 6.2). Raises InvalidMessageError for a property that is not a number."""
        return whole_property(self.properties, PROPERTY_DELAY_TIME_LEVEL)

    @delay_time_level.setter
    def delay_time_level(self, level: int) -> None:
        self.properties[PROPERTY_DELAY_TIME_LEVEL] = str(level)

    def __str__(self) -> str:
        """As the real class prints itself: properties in their order, body as signed bytes."""
        pairs = ", ".join(f"{name}={value}" for name, value in self.properties.items())
        body = "null" if self.body is None else str([byte - 256 if byte > 127 else byte for byte in self.body])
        transaction_id = "null" if self.transaction_id is None else self.transaction_id
        return (
            f"Message{{topic='{self.topic}', flag={self.flag}, properties={{{pairs}}}, body={body}, "
            f"transactionId='{transaction_id}'}}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.topic!r}, {self.body!r}, properties={self.properties!r})"


class MessageExt(Message):
    """A stored message as a consumer gets it. Two are equal only if they are the same object, as in RocketMQ.

    queue_offset: its place in the queue. commit_log_offset: its place in the broker's log. born_timestamp,
    store_timestamp: ms since 1970. reconsume_times: how often it was given back. born_host, store_host: ``ip:port``.
    """

    __slots__ = (
        "body_crc",
        "born_host",
        "born_timestamp",
        "broker_name",
        "commit_log_offset",
        "msg_id",
        "prepared_transaction_offset",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_host",
        "store_size",
        "store_timestamp",
        "sys_flag",
    )

    @_without_unknown
    def __init__(
        self,
        topic: str,
        body: bytes | None = None,
        *,
        broker_name: str = "",
        queue_id: int = 0,
        queue_offset: int = 0,
        commit_log_offset: int = 0,
        msg_id: str = "",
        reconsume_times: int = 0,
        born_timestamp: int = 0,
        store_timestamp: int = 0,
        born_host: str = "127.0.0.1:0",
        store_host: str = "127.0.0.1:0",
        store_size: int = 0,
        tags: str | None = None,
        keys: str | None = None,
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise _no_such(type(self), unknown)
        super().__init__(topic, body, tags=tags, keys=keys, properties=properties, flag=flag)
        self.broker_name = broker_name
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.commit_log_offset = commit_log_offset
        self.msg_id = msg_id
        self.reconsume_times = reconsume_times
        self.born_timestamp = born_timestamp
        self.store_timestamp = store_timestamp
        self.born_host = born_host
        self.store_host = store_host
        self.store_size = store_size
        self.sys_flag = 0
        self.body_crc = 0
        self.prepared_transaction_offset = 0

    def __str__(self) -> str:
        return (
            f"MessageExt [brokerName={self.broker_name}, queueId={self.queue_id}, storeSize={self.store_size}, "
            f"queueOffset={self.queue_offset}, sysFlag={self.sys_flag}, bornTimestamp={self.born_timestamp}, "
            f"bornHost=/{self.born_host}, storeTimestamp={self.store_timestamp}, storeHost=/{self.store_host}, "
            f"msgId={self.msg_id}, commitLogOffset={self.commit_log_offset}, bodyCRC={self.body_crc}, "
            f"reconsumeTimes={self.reconsume_times}, preparedTransactionOffset={self.prepared_transaction_offset}, "
            f"toString()={super().__str__()}]"
        )
