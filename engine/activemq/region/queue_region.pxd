"""queue_region: the consumers of a broker by id, and the destinations of a single queue, for which sends and
acknowledgements are decided in one step (broker.region.AbstractRegion).

Invariants: a subscription stands in ``subscriptions`` under its consumer id; a way in ``ways`` under the identity of
its destination, which it keeps alive.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.region_queue cimport RegionQueue


cdef class QueueRegion:
    cdef readonly object posted
    cdef readonly dict subscriptions          # consumer id -> PrefetchSubscription, also of those that have several
    cdef readonly dict ways                   # id of a destination -> (destination, its name, where to, RegionQueue)
    cdef public int64_t sent                  # number of messages so far, which is the broker's number of the last one

    cdef object put(self, object destination, Message message, object connection_id, int64_t now)
    cdef object settle(self, MessageAck ack, int64_t now)
    cdef object over(self, RegionQueue queue, list dispatches)
