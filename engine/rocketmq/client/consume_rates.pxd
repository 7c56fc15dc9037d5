"""consume_rates: how fast one topic of a group is pulled and consumed (StatsItem, spec rocketmq 9).

Invariants: a rate keeps at most 7 samples of the last minute (10 s apart) and 7 of the last hour (10 min apart), oldest
first; values and times only grow, except after a listener's ack_index below -1.
"""

from libc.stdint cimport int64_t


cdef struct Sample:
    int64_t when            # ms
    int64_t times
    int64_t value


cdef class Rate:
    cdef readonly int64_t value
    cdef readonly int64_t times
    cdef Sample minute[7]
    cdef Sample hour[7]
    cdef int minutes        # samples in use
    cdef int hours

    cdef int keep(self, Sample* samples, int count, int64_t now, int64_t apart) noexcept
