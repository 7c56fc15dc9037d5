"""queue_region: the consumers of a broker by id, and the ways of messages by their destination. If one queue alone
decides what is sent or acknowledged, that is decided here, in one step (broker.region.AbstractRegion).

Invariants: a subscription stands in ``subscriptions`` under its consumer id; a way in ``ways`` under the identity of
its destination, which it keeps alive.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.prefetch_subscription cimport PrefetchSubscription
from pyengine._engine.activemq.region.region_queue cimport RegionQueue


cdef class Way:
    cdef readonly object destination
    cdef readonly object text                 # what the destination of messages becomes
    cdef readonly RegionQueue queue           # where it ends, or None: several, or no queue


cdef class QueueRegion:
    cdef readonly object posted
    cdef readonly dict subscriptions          # consumer id -> PrefetchSubscription, also of those that have several
    cdef readonly dict ways                   # id of a destination -> Way
    cdef public int64_t sent                  # messages so far: the broker's number of the last one
    cdef public bint reports_no_consumer      # a listener asks for messages without a consumer

    cdef Way find(self, object destination)
    cdef bint takes(self, Way way, Message message)
    cdef object put(self, RegionQueue queue, Message message, int64_t now)
    cdef bint settles(self, PrefetchSubscription subscription, MessageAck ack) except -1
    cdef bint settles_alone(self, PrefetchSubscription subscription, MessageAck ack) except -1
    cdef object settle(self, PrefetchSubscription subscription, MessageAck ack, int64_t now)
    cdef object over(self, RegionQueue queue, list dispatches)
