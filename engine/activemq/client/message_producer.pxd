"""message_producer: the headers that a producer sets on its messages (ActiveMQMessageProducer, ActiveMQSession.send).

Invariants: ``sent`` is the sequence number of the last message's id; priority is 0 to 9; time_to_live is not negative;
``destination`` and ``hidden`` are the message's destination for the argument ``given``.
"""

from libc.stdint cimport int64_t

from pyengine._engine.message.message cimport Message


cdef class Outgoing:
    cdef readonly object producer_id
    cdef readonly int64_t sent
    cdef readonly bint persistent
    cdef readonly int priority
    cdef readonly int64_t time_to_live        # ms, 0: for ever
    cdef public bint timestamps
    cdef public bint copies
    cdef readonly bint keeps_untimed
    cdef str given                            # destination of the last message, None: none yet
    cdef object destination
    cdef int hidden

    cdef Message compose(self, object given, str destination, int64_t now, int64_t life, bint persistent, int urgency)
    cdef int address(self, Message message, str destination) except -1
    cdef int check_priority(self, object priority) except -1
    cdef int64_t milliseconds(self, object seconds) except -1
    cdef bint is_persistent(self, object mode) except -1
