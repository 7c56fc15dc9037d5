"""topics: the public interface of a broker's topics: events in, deliveries and other events out.

Topics and subscriptions are numbers. That of a removed topic is taken again when no message of it is here, that of a
subscription never; messages are handles that only grow (message_references.pxd). A subscription may be attached to any
number of topics (a wildcard); its window, waiting messages and limit count over all of them. Every call returns, in
order, the events that it caused.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.topic.fan_out cimport FanOut
from pyengine._engine.activemq.topic.ledger cimport Ledger
from pyengine._engine.activemq.topic.message_intake cimport Headers, MessageIntake
from pyengine._engine.activemq.topic.message_references cimport MessageReferences
from pyengine._engine.activemq.topic.registry cimport Registry
from pyengine._engine.activemq.topic.store_pager cimport StorePager
from pyengine._engine.activemq.topic.subscription cimport Subscription
from pyengine._engine.activemq.topic.topic cimport Topic


cdef class TopicRegion:
    cdef readonly bint keep_durable_subscriptions_active
    cdef MessageReferences references
    cdef Ledger ledger
    cdef MessageIntake intake
    cdef StorePager pager                # None: all messages are here
    cdef FanOut fan_out
    cdef Registry registry
    cdef dict transactions               # name -> actions of commit

    cdef int refuse_while_asked(self) except -1                  # called first in every change of a region
    cdef int publish(self, Topic topic, object message, Headers given, object connection, object target,
                     Subscription suppressed, int64_t handle, int64_t now) except -1
