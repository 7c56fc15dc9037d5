"""Subscription recovery policies and the retained message of topics (spec activemq 3.7)."""

from collections import deque
from collections.abc import Mapping

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.topic.message_references cimport MessageReferences

from pyengine.errors import ConfigurationError
from pyengine.whole_numbers import whole_number_from

cdef str RETAIN = "ActiveMQ.Retain"
cdef str RETAINED = "ActiveMQ.Retained"


cdef bint wants_retain(object body) except -1:
    # java.lang.Boolean.parseBoolean of the property.
    if isinstance(body, Message):
        value = (<Message> body).own(RETAIN)
    elif type(body) is dict:
        value = (<dict> body).get(RETAIN)
    elif isinstance(body, Mapping):
        value = body.get(RETAIN)
    else:
        return False
    return value is not None and str(value).lower() == "true"


cdef object without_retain(object body):
    cdef object result = body.copy() if isinstance(body, Message) else dict(body)
    if isinstance(result, Message):
        result.set_property(RETAIN, None)
    else:
        del result[RETAIN]
    return result


cdef object retained(object body):
    # A mapping has no body; its key "body" is used instead.
    cdef object result
    if not (body.body if isinstance(body, Message) else body.get("body")):
        return None
    result = without_retain(body)
    if isinstance(result, Message):
        result.set_property(RETAINED, True)
    else:
        result[RETAINED] = True
    return result


cdef class Recovery:
    """Messages that a topic keeps for retroactive consumers; base class of the policies. A topic works with its own
    copy."""

    cdef int keep(self, int32_t message, int64_t now) except -1:
        return 0

    cdef list kept(self):
        return []

    cdef int tick(self, int64_t now) except -1:
        return 0

    cdef int clear(self) except -1:
        cdef int32_t message
        for message in self.kept():
            self.messages.release(message)
        return 0

    cdef Recovery fresh(self, MessageReferences messages, int64_t now):
        cdef Recovery result = type(self)(*self.arguments())
        result.messages = messages
        result.tick(now)
        return result

    def arguments(self):
        """Arguments of the constructor."""
        return ()

    def __reduce__(self):
        return type(self), self.arguments()


cdef class NoRecovery(Recovery):
    """noSubscriptionRecoveryPolicy: nothing."""


cdef class FixedCountRecovery(Recovery):
    """fixedCountSubscriptionRecoveryPolicy: the last ``maximum_size`` (100) messages."""

    def __cinit__(self, maximum_size=100):
        self.maximum_size = whole_number_from(
            "fixedCountSubscriptionRecoveryPolicy.maximumSize", maximum_size, 1, 2**31 - 1)
        self.ring = []

    def arguments(self):
        return (self.maximum_size,)

    cdef int keep(self, int32_t message, int64_t now) except -1:
        cdef int32_t old
        self.messages.at[message].holds += 1
        if len(self.ring) < self.maximum_size:
            self.ring.append(message)
        else:
            old = self.ring[self.tail]
            self.ring[self.tail] = message
            self.messages.release(old)
        self.tail = (self.tail + 1) % self.maximum_size
        return 0

    cdef list kept(self):
        if len(self.ring) < self.maximum_size:
            return list(self.ring)
        return self.ring[self.tail:] + self.ring[:self.tail]


cdef class FixedSizedRecovery(Recovery):
    """fixedSizedSubscriptionRecoveryPolicy: the newest messages of at most ``maximum_size`` (65536) bytes in all.

    A message counts with its size (see TopicRegion.send).
    """

    def __cinit__(self, maximum_size=65536):
        self.maximum_size = whole_number_from(
            "fixedSizedSubscriptionRecoveryPolicy.maximumSize", maximum_size, 0, 2**31 - 1)
        self.buffer = deque()

    def arguments(self):
        return (self.maximum_size,)

    cdef int keep(self, int32_t message, int64_t now) except -1:
        cdef int32_t old
        self.messages.at[message].holds += 1
        self.buffer.append(message)
        self.size += self.messages.at[message].size
        while self.size > self.maximum_size:
            old = self.buffer.popleft()
            self.size -= self.messages.at[old].size
            self.messages.release(old)
        return 0

    cdef list kept(self):
        return list(self.buffer)


cdef class LastImageRecovery(Recovery):
    """lastImageSubscriptionRecoveryPolicy: the last message."""

    def __cinit__(self):
        self.image = -1

    cdef int keep(self, int32_t message, int64_t now) except -1:
        cdef int32_t old = self.image
        self.messages.at[message].holds += 1
        self.image = message
        if old >= 0:
            self.messages.release(old)
        return 0

    cdef list kept(self):
        return [self.image] if self.image >= 0 else []


cdef class TimedRecovery(Recovery):
    """timedSubscriptionRecoveryPolicy: the messages of the last ``recover_duration`` ms (60000), exact to a second.

    A message has the time of the last tick before its arrival, and ticks (one a second, see ``TopicRegion.tick``) drop
    old ones; between ticks none is dropped.
    """

    def __cinit__(self, recover_duration=60000):
        self.recover_duration = whole_number_from(
            "timedSubscriptionRecoveryPolicy.recoverDuration", recover_duration, -(2**63), 2**63 - 1)
        self.buffer = deque()

    def arguments(self):
        return (self.recover_duration,)

    cdef int keep(self, int32_t message, int64_t now) except -1:
        self.messages.at[message].holds += 1
        self.buffer.append((message, self.last_tick))
        return 0

    cdef list kept(self):
        return [message for message, _ in self.buffer]

    cdef int tick(self, int64_t now) except -1:
        self.last_tick = now
        while self.buffer and now > self.buffer[0][1] + self.recover_duration:
            self.messages.release(self.buffer.popleft()[0])
        return 0


cdef class QueryRecovery(Recovery):
    """queryBasedSubscriptionRecoveryPolicy: new messages that a query makes for each retroactive consumer.

    query: a callable from the topic's name to the messages. validate_update: a callable from a sent message to bool;
    False keeps it from all subscriptions. None: everything passes.
    """

    def __cinit__(self, query, validate_update=None):
        if not callable(query):
            raise ConfigurationError("queryBasedSubscriptionRecoveryPolicy.query", query, "must be callable")
        if validate_update is not None and not callable(validate_update):
            raise ConfigurationError(
                "queryBasedSubscriptionRecoveryPolicy.validateUpdate", validate_update, "must be callable")
        self.query = query
        self.validate_update = validate_update

    def arguments(self):
        return self.query, self.validate_update
