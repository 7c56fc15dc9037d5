"""session_state: the consumers of one session: which gets the next message, and the effects of a transaction's end.

Invariants: ``consumers`` are in the order of creation; each is there under its id until it is closed.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.client.dispatch_channel cimport Channel
from pyengine._engine.activemq.client.message_consumer cimport Consumption, Offer
from pyengine._engine.activemq.client.session_commands cimport Exchange


cdef class SessionState(Exchange):
    cdef dict consumers                       # consumer id -> Consumption
    cdef readonly bint asynchronous           # it has a task of its own
    cdef Channel late                         # without one: messages that arrived while earlier ones were not delivered
    cdef readonly bint started
    cdef readonly bint closed

    cdef Offer offered(self, MessageDispatch dispatch, int64_t now, bint later) except? <Offer>-1
    cdef bint keeps(self, MessageDispatch dispatch)              # until a receiver takes it
    cdef bint behind(self, Consumption consumer)
    cdef Offer offer(self, Consumption consumer, MessageDispatch dispatch, int64_t now) except? <Offer>-1
    cpdef MessageDispatch step(self, int64_t now)
    cdef bint waits(self)
    cdef list heard(self, MessageDispatch dispatch, int64_t now)
    cdef int end(self, Consumption consumer, object last_delivered) except -1
    cdef int settle(self, bint committed, int64_t now, object chance) except -1
