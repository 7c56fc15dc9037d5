"""outgoing: what a producer does to messages before it sends them: their ids, and whether they may be one batch; and
the result of a send."""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject, PyObject_GenericSetAttr, PyTypeObject
from libc.stdint cimport int64_t

from pyengine._engine.rocketmq.commands.message import (
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, RETRY_GROUP_TOPIC_PREFIX, Message,
)
from pyengine._engine.rocketmq.commands.requests import SendResult
from pyengine._engine.rocketmq.commands.stored_message cimport is_ascii, put_ascii, put_hex
from pyengine.errors import MQClientError

cdef extern from "Python.h":
    str PyUnicode_New(Py_ssize_t size, Py_UCS4 largest)
    void* PyUnicode_DATA(object text) noexcept
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)

cdef extern from "lowlevel/slot_access.h":
    ctypedef struct Slot "pyengine_slot":
        pass
    object read_attribute "pyengine_read"(object item, object name, Slot* known)

cdef str UNIQ_KEY = PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
cdef str WAIT = "WAIT"
cdef str TRUE = "true"
cdef object message_type = Message
cdef object result_type = SendResult
cdef Slot TOPIC, BODY, FLAG, PROPERTIES         # of messages


cdef class Outgoing:
    """Ids of one producer's messages (MessageClientIDSetter).

    prefix: of all of them. unusual: names of properties for which a message is looked at before it is sent.
    """
    cdef readonly str prefix
    cdef public object checked          # the topic of the last message that was looked at
    cdef frozenset unusual
    cdef int64_t number                 # of the next id

    def __init__(self, str prefix not None, frozenset unusual not None):
        if not is_ascii(prefix):
            raise ValueError(f"prefix: {prefix!r} is not made of hex digits")
        self.prefix, self.unusual, self.checked, self.number = prefix, unusual | {UNIQ_KEY}, None, 0

    def __reduce__(self):
        raise TypeError("an Outgoing belongs to its producer: it cannot be pickled")

    cpdef identify(self, dict properties, int64_t now):
        """Give a message its id. now: ms."""
        cdef str identity = PyUnicode_New(len(self.prefix) + 12, 127)
        put_hex(put_hex(put_ascii(<unsigned char*>PyUnicode_DATA(identity), self.prefix), now, 8), self.number, 4)
        self.number += 1
        properties[UNIQ_KEY] = identity

    cdef bint is_usual(self, message, Py_ssize_t most) except -1:
        cdef object properties, flag
        if not isinstance(message, message_type) or self.checked is None:
            return False
        if read_attribute(message, "topic", &TOPIC) is not self.checked:
            return False
        body, flag = read_attribute(message, "body", &BODY), read_attribute(message, "flag", &FLAG)
        properties = read_attribute(message, "properties", &PROPERTIES)
        return (
            type(body) is bytes and 0 < len(<bytes>body) <= most and type(flag) is int and flag == 0
            and type(properties) is dict and (not properties or self.unusual.isdisjoint(properties))
        )

    def prepare(self, message, int64_t now, Py_ssize_t most):
        """Whether there is nothing to look at in a message: then it has its id now. most: bytes of a body."""
        if not self.is_usual(message, most):
            return False
        self.identify(read_attribute(message, "properties", &PROPERTIES), now)
        return True

    def prepare_from(self, list messages not None, Py_ssize_t start, int64_t now, Py_ssize_t most):
        """The same for messages from ``start`` on, up to the first one that must be looked at: its place, or how many
        there are.
        """
        while start < len(messages) and self.is_usual(messages[start], most):
            self.identify(read_attribute(messages[start], "properties", &PROPERTIES), now)
            start += 1
        return start


def one_topic(messages):
    """The topic of a batch (MessageBatch.generateFromList). Raises MQClientError for what cannot be one batch."""
    if not messages:
        raise MQClientError("messages must not be empty")
    cdef object first = messages[0]
    topic, waits = first.topic, waiting(first.properties)
    for each in messages:
        properties, own = read_attribute(each, "properties", &PROPERTIES), read_attribute(each, "topic", &TOPIC)
        if "DELAY" in properties and each.delay_time_level > 0:
            raise MQClientError("TimeDelayLevel is not supported for batching")
        if (each is first or own is not topic and own != topic) and own.startswith(RETRY_GROUP_TOPIC_PREFIX):
            raise MQClientError("Retry Group is not supported for batching")
        if own is not topic and own != topic:
            raise MQClientError("The topic of the messages in one batch should be the same")
        wanted = waiting(properties)
        if wanted is not waits and wanted != waits:
            raise MQClientError("The waitStoreMsgOK of the messages in one batch should the same")
    return topic


cdef waiting(properties):
    """Whether a message's producer waits until it is stored, as its property says."""
    return property_of(properties, WAIT, TRUE)


cdef property_of(properties, str name, str default):
    cdef PyObject* found
    if type(properties) is not dict:
        return properties.get(name, default)
    found = PyDict_GetItemWithError(properties, name)
    return default if found is NULL else <object>found


def body_bytes(messages):
    """Bytes of the bodies of several messages."""
    cdef Py_ssize_t total = 0
    for each in messages:
        body = read_attribute(each, "body", &BODY)
        total += 0 if body is None else len(body)
    return total


def unique_ids(messages):
    """The ids that a batch's producer gave its messages, joined by commas."""
    return ",".join([property_of(read_attribute(each, "properties", &PROPERTIES), UNIQ_KEY, "") for each in messages])


def send_result(status, msg_id, offset_msg_id, queue, queue_offset):
    """A SendResult; its own constructor looks at every field as at one that may not be changed."""
    result = PyType_GenericAlloc(<PyTypeObject*>result_type, 0)
    PyObject_GenericSetAttr(result, "status", status)
    PyObject_GenericSetAttr(result, "msg_id", msg_id)
    PyObject_GenericSetAttr(result, "offset_msg_id", offset_msg_id)
    PyObject_GenericSetAttr(result, "queue", queue)
    PyObject_GenericSetAttr(result, "queue_offset", queue_offset)
    return result
