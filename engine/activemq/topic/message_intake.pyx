"""A sent message becomes a slot; see message_intake.pxd."""

from collections.abc import Mapping

from cython cimport final
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t

from pyengine._engine.message.envelope cimport Envelope
from pyengine._engine.message.header cimport ABSENT, header_in, header_number, is_persistent
from pyengine._engine.activemq.topic.message_references cimport MessageReferences, Post
from pyengine._engine.activemq.topic.topic cimport Topic


cdef class Headers:
    """Headers that the caller of a send names, in place of the message's own; see message_intake.pxd."""

    def __cinit__(self, *, priority=ABSENT, expiration=ABSENT, timestamp=ABSENT, persistent=ABSENT, message_id=ABSENT,
                  size=ABSENT):
        self.priority = priority
        self.expiration = expiration
        self.timestamp = timestamp
        self.persistent = persistent
        self.message_id = message_id
        self.size = size

    def __reduce__(self):
        raise TypeError("the headers of a send cannot be pickled")


ABSENT_HEADERS = Headers()
STORED_HEADERS = Headers(persistent=True)


@final
cdef class MessageIntake:
    """Internal to a region of topics; see message_intake.pxd."""

    def __cinit__(self, MessageReferences messages not None):
        self.messages = messages
        self.connections = {}

    cdef int32_t connection_number(self, object connection) except -2:
        return -1 if connection is None else self.connections.setdefault(connection, len(self.connections))

    cdef int32_t accept(self, Topic topic, object message, int64_t handle, Headers given, object connection,
                        bint plain) except -1:
        cdef int32_t slot, number
        cdef int priority_sent
        cdef int64_t expiration_sent, timestamp_sent, bytes
        cdef bint persistent_sent = True
        cdef Post* post
        cdef object priority = given.priority, expiration = given.expiration, timestamp = given.timestamp
        cdef object persistent = given.persistent, size = given.size
        if isinstance(message, Envelope):
            priority = (<Envelope> message)._priority if priority is ABSENT else priority
            expiration = (<Envelope> message).expires() if expiration is ABSENT else expiration
            timestamp = (<Envelope> message)._timestamp if timestamp is ABSENT else timestamp
            size = (<Envelope> message).size_in_bytes(topic.minimum_message_size) if size is ABSENT else size
            persistent_sent = (<Envelope> message)._persistent
        elif not plain and (isinstance(message, dict) or isinstance(message, Mapping)):
            priority = header_in(message, "JMSPriority") if priority is ABSENT else priority
            expiration = header_in(message, "JMSExpiration") if expiration is ABSENT else expiration
            timestamp = header_in(message, "JMSTimestamp") if timestamp is ABSENT else timestamp
            if persistent is ABSENT:
                persistent_sent = is_persistent(header_in(message, "JMSDeliveryMode"))
        priority_sent = <int> header_number("JMSPriority", priority, 4, 0, 9)
        expiration_sent = header_number("JMSExpiration", expiration, 0, 0, INT64_MAX)
        timestamp_sent = header_number("JMSTimestamp", timestamp, 0, INT64_MIN, INT64_MAX)
        bytes = header_number("size", size, topic.minimum_message_size, 0, INT64_MAX)
        if persistent is not ABSENT:
            persistent_sent = bool(persistent)
        number = self.connection_number(connection)
        slot = self.messages.add(message, handle)
        post = &self.messages.at[slot]
        post.topic = topic.number
        post.priority = priority_sent
        post.expiration = expiration_sent
        post.timestamp = timestamp_sent
        post.persistent = persistent_sent
        post.size = bytes
        post.connection = number
        return slot
