"""region: the topics and subscriptions of a broker by number, their attachment, and questions about them.

Invariants: ``durables`` finds the durable subscription of each key (client id, subscription name); a subscription is in
``consumers`` or in ``offline`` of each topic it is attached to, and of no other.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.fan_out cimport FanOut, Topic
from pyengine._engine.activemq.topic.subscription cimport Subscription


cdef class Headers:                   # that the caller of a send names; ABSENT: as the message has them
    cdef object priority
    cdef object expiration
    cdef object timestamp
    cdef object persistent
    cdef object message_id
    cdef object size


cdef Headers ABSENT_HEADERS


cdef class Region(FanOut):
    cdef readonly bint keep_durable_subscriptions_active
    cdef int64_t next_id
    cdef dict connections                # name -> number
    cdef dict transactions               # name -> actions of commit
    cdef dict durables                   # (client id, name) -> id

    cdef Subscription subscription_at(self, object number)
    cdef int32_t connection_number(self, object connection)
    cdef int open(self) except -1                                # raises for calls from inside user code
    cdef int join(self, Subscription it, Topic topic, int64_t now) except -1
    cdef int quit(self, Subscription it, Topic topic) except -1
    cdef int destroy(self, Subscription it) except -1
    cdef int32_t accept(self, Topic to, object message, int64_t handle, Headers given, object connection,
                        bint plain) except -1
