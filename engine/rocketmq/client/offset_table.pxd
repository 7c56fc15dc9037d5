"""offset_table: what a consumer knows of its committed offsets (spec rocketmq 5.1, 5.2).

Invariants: a frozen entry changes by update_and_freeze alone, until it is removed; an entry is a signed 64-bit number.
"""

from libc.stdint cimport int64_t


cdef inline bint replaces(int64_t value, int64_t before, bint increase_only) noexcept:
    """Whether an update changes an offset that is not frozen."""
    return not increase_only or value > before


cdef class ControllableOffset:
    cdef readonly int64_t value
    cdef readonly bint frozen

    cdef int replace(self, int64_t value, bint increase_only) except -1     # update


cdef class OffsetTable:
    cdef dict entries        # message queue -> ControllableOffset
