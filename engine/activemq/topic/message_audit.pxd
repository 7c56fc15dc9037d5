"""message_audit: detects repeated message ids, with a window of sequence numbers per producer (ActiveMQMessageAudit).

Invariants: at most ``producers`` windows, the least recently used one is forgotten first; a window covers ``arrays``
words of 64 numbers from ``first`` on and moves forward with the highest number checked. A number before the window
counts as not seen.
"""

from libc.stdint cimport int64_t, uint64_t


# Producer and sequence number of a message id; (None, 0): another form, unequal to all others.
cpdef tuple producer_and_number(object message_id)


cdef class Window:
    cdef uint64_t* words         # a ring
    cdef int64_t arrays
    cdef int64_t start           # word of ``first``
    cdef int64_t first           # -1: no number was checked yet

    cdef bint see(self, int64_t number) noexcept


cdef class Audit:
    cdef readonly int64_t depth
    cdef readonly int64_t producers
    cdef dict windows            # producer -> Window, least recently used first

    cdef bint was_recorded(self, object producer, int64_t number) except -1
    cdef int forget(self, object producer, int64_t number) except -1
