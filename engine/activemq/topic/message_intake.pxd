"""message_intake: a sent message and its headers become a slot among the messages of a region.

The producer's connection becomes a number, for noLocal.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.message_references cimport MessageReferences
from pyengine._engine.activemq.topic.topic cimport Topic


cdef class Headers:                   # that the caller of a send names; ABSENT: as the message has them
    cdef object priority
    cdef object expiration
    cdef object timestamp
    cdef object persistent
    cdef object message_id
    cdef object size


cdef Headers ABSENT_HEADERS
cdef Headers STORED_HEADERS           # of a message that a store kept


@final
cdef class MessageIntake:
    cdef MessageReferences messages
    cdef dict connections                # name -> number

    cdef int32_t connection_number(self, object connection) except -2
    # with one hold; plain: the mapping has no key of a header
    cdef int32_t accept(self, Topic topic, object message, int64_t handle, Headers given, object connection,
                        bint plain) except -1
