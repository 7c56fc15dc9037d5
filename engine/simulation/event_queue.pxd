"""event_queue: what is due under virtual time: a binary heap by time, and among equal times in the order of planning.

Time ends at NEVER: what would be due there or later is not kept.

Invariants: no entry is sooner than its parent, entry i's being (i - 1) / 2; orders of one agenda are given out once;
every entry is due before NEVER.
"""

from cython cimport final

from libc.stdint cimport int32_t, int64_t

cdef extern from "<stdint.h>" nogil:
    const int64_t NEVER "INT64_MAX"


cdef struct Due:
    int64_t time            # ns
    int64_t order
    int64_t number          # what, who, number and epoch belong to the caller
    int64_t epoch
    int32_t who
    int32_t what


@final
cdef class Agenda:
    cdef Due* heap
    cdef readonly int64_t size
    cdef int64_t room
    cdef int64_t orders

    cdef int64_t next_time(self) noexcept               # of the first entry, NEVER for none
    cdef int64_t take_order(self) noexcept
    cdef int plan(self, int64_t time, int what, int32_t who, int64_t number, int64_t epoch=*) except -1
    cdef int push(self, Due entry) except -1            # its order was taken before
    cdef Due pop(self) noexcept                         # of an agenda that is not empty


cdef inline int64_t time_after(int64_t moment, int64_t delay) noexcept nogil:
    """``moment + delay``, NEVER beyond the end of time."""
    return NEVER if delay > 0 and moment > NEVER - delay else moment + delay


cdef inline int64_t nanoseconds(int64_t count, int64_t unit) noexcept nogil:
    """``count * unit``, NEVER beyond the end of time."""
    return NEVER if count > NEVER // unit else count * unit


cdef double work_factor(double factor, int64_t longest) except? -1
