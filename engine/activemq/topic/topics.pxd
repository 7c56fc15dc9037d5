"""topics: the public interface of a broker's topics: events in, deliveries and other events out.

Topics and subscriptions are numbers that are never reused; messages are handles that only grow
(message_references.pxd). A subscription may be attached to any number of topics (a wildcard); its window, waiting
messages and limit count over all of them. Every call returns, in order, the events that it caused.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.durable_subscription cimport DurableSubscription
from pyengine._engine.activemq.topic.fan_out cimport Topic
from pyengine._engine.activemq.topic.region cimport Headers, Region
from pyengine._engine.activemq.topic.subscription cimport Subscription


cdef class TopicRegion(Region):
    cdef int recover_stored(self, Topic topic, DurableSubscription it) except -1
    cdef int enliven(self, DurableSubscription it, int64_t now) except -1
    cdef int publish(self, Topic to, object message, Headers given, object connection, object target,
                     Subscription suppressed, int64_t handle, int64_t now) except -1
