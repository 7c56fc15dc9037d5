"""outgoing: what a producer puts on its messages before they are sent (ActiveMQMessageProducer, ActiveMQSession.send).

Invariants: ``sent`` is the sequence number of the last message's id; priority is 0 to 9; time_to_live is not negative.
"""

from libc.stdint cimport int64_t


cdef class Outgoing:
    cdef readonly object producer_id
    cdef readonly int64_t sent
    cdef readonly bint persistent
    cdef readonly int priority
    cdef readonly int64_t time_to_live        # ms, 0: for ever
    cdef public bint timestamps
    cdef public bint copies

    cdef int check_priority(self, object priority) except -1
    cdef int64_t milliseconds(self, object seconds) except -1
    cdef bint is_persistent(self, object mode) except -1
