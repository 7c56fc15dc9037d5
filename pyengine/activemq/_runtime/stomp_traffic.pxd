"""stomp_traffic: what a STOMP session does for every message: SEND and its RECEIPT, MESSAGE (ProtocolConverter)."""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.message.message cimport Message
from pyengine._engine.wire.stomp cimport StompFrame
from pyengine.activemq._runtime.region_broker cimport RegionBroker


cdef class StompTraffic:
    cdef public str connection_id
    cdef public str version                   # that was agreed
    cdef public str wire_version              # that frames are written in
    cdef public bint connected
    cdef public bint closing
    cdef readonly object _broker
    cdef RegionBroker region_broker           # the same, if it is one
    cdef object clock
    cdef readonly object _write
    cdef readonly object _names               # TemporaryNames
    cdef readonly dict _by_consumer           # consumer id -> Subscription
    cdef readonly dict _pending               # ack id -> Pending
    cdef readonly str _producer_id
    cdef int64_t sent                         # messages
    cdef int64_t acks                         # ids of acknowledgements so far

    cdef int send(self, object destination, Message message, object transaction, int64_t now) except -1
    cpdef _receipt(self, StompFrame frame)
