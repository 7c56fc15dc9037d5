"""rebalance: the queues that a consumer gives up and takes on, their starting offsets, and the timing (spec rocketmq
4).

Invariant of the timer: no two runs begin less than 1000 ms after the one before ended, nor in the first 1000 ms.
"""

from libc.stdint cimport int64_t


cdef class RebalanceTimer:
    cdef int64_t last          # when the last run ended, ms; at first when the service was made
    cdef int64_t wait          # ms
    cdef int64_t since         # when the waiting began, ms
    cdef bint woken

    cdef int64_t steady_period(self, int64_t due) noexcept
    cdef int put_off(self, int64_t time) noexcept
