"""region_broker: what a broker does for every message (broker.region.RegionBroker): take it, and take its
acknowledgement.

What one queue alone decides (QueueRegion.takes, settles) is decided in one step; else the broker makes the same steps.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.queue_region cimport QueueRegion
from pyengine.activemq._runtime.outbox cimport Outbox


cdef RegionBroker region_broker_of(object transport)


cdef class RegionBroker:
    cdef public Outbox outbox
    cdef public QueueRegion region
    cdef public object clock
    cdef public object router
    cdef public object interceptors           # plugins and the scheduler, which see a message first; None without
    cdef public bint _closed                  # True also until it is running

    cdef int put(self, object connection_id, object destination, Message message, object transaction_id,
                 int64_t now) except -1
    cdef int settle_ack(self, MessageAck ack, object failed) except -1
    cdef int answer(self, MessageAck ack, object failed) except -1
