"""redelivery_policy: when a message is delivered again, and when it is given up."""

from libc.stdint cimport int64_t


cdef class RedeliveryPolicy:
    cdef readonly int maximum_redeliveries
    cdef readonly int64_t initial_redelivery_delay
    cdef readonly int64_t redelivery_delay
    cdef readonly bint use_exponential_back_off
    cdef readonly double back_off_multiplier
    cdef readonly int64_t maximum_redelivery_delay
    cdef readonly bint use_collision_avoidance
    cdef readonly int collision_avoidance_percent
    cdef readonly bint pre_dispatch_check

    cpdef int64_t next_delay(self, int64_t previous, double chance=*) except? -1
    cpdef bint exhausted(self, int64_t redeliveries) except -1
    cdef str text(self)
