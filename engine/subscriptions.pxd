"""subscriptions: many selectors against one message, or one batch: an index, not a loop.

New subscriptions gather in the *tail*, which is asked one by one; a full tail becomes a segment, and segments of like
size become one. A *snapshot* is what a match sees: immutable segments, a bitmap of those of their entries that were
alive, a copy of the tail. Changes make the next snapshot; who matches keeps the one he has.

Invariants: every living subscription is in the tail, or is an entry of one segment with its bit alive; numbers ascend
in the order of addition, and that is the order of the answers; ``slot_of`` only grows.
"""

from libc.stdint cimport int64_t

from pyengine._engine.search cimport Search, Snapshot
from pyengine._engine.segment cimport Subscription


cdef class Subscriptions:
    cdef readonly str dialect
    cdef readonly str on_error
    cdef dict by_key             # key -> Subscription
    cdef dict slot_of            # name -> slot
    cdef list living             # of Living, the largest segments first
    cdef list tail
    cdef int64_t next_number
    cdef Snapshot snapshot       # None after a change
    cdef object ordered          # (numbers, keys) arrays of the living, or None

    cdef Subscription made(self, object key, object selector, int64_t number)
    cdef int take_in(self, list fresh) except -1
    cdef int compact(self) except -1
    cdef int drop(self, Subscription gone) except -1
    cdef Snapshot current(self)
    cdef Search begin(self, Snapshot snapshot)
    cdef tuple keyed(self)
