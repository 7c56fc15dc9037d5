"""outgoing: what a producer does to messages before it sends them: their ids, and whether they may be one batch."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf

from pyengine._engine.rocketmq.commands.message import (
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, RETRY_GROUP_TOPIC_PREFIX, Message,
)
from pyengine.errors import MQClientError

cdef str UNIQ_KEY = PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
cdef str WAIT = "WAIT"
cdef object message_type = Message


cdef class Outgoing:
    """Ids of one producer's messages (MessageClientIDSetter).

    prefix: of all of them. unusual: names of properties for which a message is looked at before it is sent.
    """
    cdef readonly str prefix
    cdef public object checked          # the topic of the last message that was looked at
    cdef frozenset unusual
    cdef int64_t number                 # of the next id

    def __init__(self, str prefix not None, frozenset unusual not None):
        self.prefix, self.unusual, self.checked, self.number = prefix, unusual | {UNIQ_KEY}, None, 0

    def __reduce__(self):
        raise TypeError("an Outgoing belongs to its producer: it cannot be pickled")

    cpdef identify(self, dict properties, int64_t now):
        """Give a message its id. now: ms."""
        cdef char digits[13]
        snprintf(digits, 13, b"%08X%04X", <unsigned int>(now & 0xFFFFFFFF), <unsigned int>(self.number & 0xFFFF))
        self.number += 1
        properties[UNIQ_KEY] = self.prefix + digits[:12].decode("ascii")

    cdef bint is_usual(self, message, Py_ssize_t most) except -1:
        cdef object properties, flag
        if not isinstance(message, message_type) or self.checked is None or message.topic is not self.checked:
            return False
        body, flag, properties = message.body, message.flag, message.properties
        return (
            type(body) is bytes and 0 < len(<bytes>body) <= most and type(flag) is int and flag == 0
            and type(properties) is dict and (not properties or self.unusual.isdisjoint(properties))
        )

    def prepare(self, message, int64_t now, Py_ssize_t most):
        """Whether there is nothing to look at in a message: then it has its id now. most: bytes of a body."""
        if not self.is_usual(message, most):
            return False
        self.identify(message.properties, now)
        return True

    def prepare_from(self, list messages not None, Py_ssize_t start, int64_t now, Py_ssize_t most):
        """The same for messages from ``start`` on, up to the first one that must be looked at: its place, or how many
        there are.
        """
        while start < len(messages) and self.is_usual(messages[start], most):
            self.identify((<object>messages[start]).properties, now)
            start += 1
        return start


def one_topic(messages):
    """The topic of a batch (MessageBatch.generateFromList). Raises MQClientError for what cannot be one batch."""
    if not messages:
        raise MQClientError("messages must not be empty")
    cdef object first = messages[0]
    topic, waits = first.topic, first.properties.get(WAIT, "true")
    for each in messages:
        properties, own = each.properties, each.topic
        if "DELAY" in properties and each.delay_time_level > 0:
            raise MQClientError("TimeDelayLevel is not supported for batching")
        if (each is first or own is not topic and own != topic) and own.startswith(RETRY_GROUP_TOPIC_PREFIX):
            raise MQClientError("Retry Group is not supported for batching")
        if own is not topic and own != topic:
            raise MQClientError("The topic of the messages in one batch should be the same")
        if properties.get(WAIT, "true") != waits:
            raise MQClientError("The waitStoreMsgOK of the messages in one batch should the same")
    return topic


def unique_ids(messages):
    """The ids that a batch's producer gave its messages, joined by commas."""
    return ",".join([each.properties.get(UNIQ_KEY, "") for each in messages])
