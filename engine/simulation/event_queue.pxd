"""event_queue: the events due under virtual time: a binary heap by time; equal times keep the order of planning.

Time ends at NEVER: an event due there or later is dropped.

Invariants: no entry is sooner than its parent, entry i's being (i - 1) / 2; an order of one event queue is used once;
every entry is due before NEVER.
"""

from cython cimport final

from libc.stdint cimport int32_t, int64_t

cdef extern from "<stdint.h>" nogil:
    const int64_t NEVER "INT64_MAX"


cdef struct Event:
    int64_t time            # ns
    int64_t order
    int64_t number          # number, epoch, subject and kind belong to the caller
    int64_t epoch
    int32_t subject
    int32_t kind


@final
cdef class EventQueue:
    cdef Event* heap
    cdef readonly int64_t size
    cdef int64_t capacity
    cdef int64_t last_order

    cdef int64_t next_time(self) noexcept               # of the first entry, NEVER for none
    cdef int64_t next_order(self) noexcept
    cdef int plan(self, int64_t time, int kind, int32_t subject, int64_t number, int64_t epoch=*) except -1
    cdef int push(self, Event entry) except -1            # with an order from next_order
    cdef Event pop(self) noexcept                         # the event queue must not be empty


cdef inline int64_t time_after(int64_t moment, int64_t delay) noexcept nogil:
    """``moment + delay``, NEVER beyond the end of time."""
    return NEVER if delay > 0 and moment > NEVER - delay else moment + delay


cdef inline int64_t nanoseconds(int64_t count, int64_t unit) noexcept nogil:
    """``count * unit``, NEVER beyond the end of time."""
    return NEVER if count > NEVER // unit else count * unit


cdef double work_factor(double factor, int64_t longest) except? -1
