"""delay_levels: RocketMQ's delay levels, and whether a failed message is tried again or is a dead letter.

Invariant: levels are numbered from 1; delays[level - 1] is its delay in ms.
"""

from libc.stdint cimport int64_t


cdef class DelayLevels:
    cdef readonly tuple delays

    cdef int64_t delay(self, int64_t level) except? -1
