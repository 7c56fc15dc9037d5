"""topic: the public face of a broker's topics: events in, deliveries and what else happened out.

Topics and subscriptions are numbers that are never used again; messages are handles that only grow (references.pxd). A
subscription may be attached to any number of topics (a wildcard); its window, what waits for it and its limit count
over all of them. Nothing happens by itself: every call returns, in order, what it caused.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.fan_out cimport FanOut, Topic
from pyengine._engine.topic_subscription cimport Subscription


cdef class TopicRegion(FanOut):
    cdef readonly bint keep_durable_subscriptions_active
    cdef readonly str evaluation_errors
    cdef int64_t next_id
    cdef dict connections                # name -> number
    cdef dict transactions               # name -> what commit does
    cdef dict durables                   # (client id, name) -> id

    cdef Subscription subscription_at(self, object number)
    cdef int32_t connection_number(self, object connection)
    cdef int open(self) except -1                                # refuses calls from inside user code
    cdef int join(self, Subscription it, Topic topic, int64_t now) except -1
