"""subscriptions: many selectors against one message, or one batch: an index, not a loop.

New subscriptions gather in the *tail*, which is asked one by one; a full tail becomes a segment, and segments of like
size become one. Where there are many already, a new one goes to an *append segment* instead, which takes it at
once; a full one stays a segment, and the next is opened. A *snapshot* is what a match sees: the segments, a bitmap of
those of their entries that were alive, a copy of the tail. Changes make the next snapshot, one thread after another
under the lock; a match keeps the snapshot that it began with.

Invariants: every living subscription is in the tail, or is an entry of one segment with its bit alive; numbers ascend
in the order of addition, and that is the order of the answers, unless any will do; ``slot_of`` has every name that a
living subscription reads, and others until there are as many of those.
"""

from libc.stdint cimport int64_t

from pyengine._engine.index.append_segment cimport AppendSegment
from pyengine._engine.index.search cimport Search, Snapshot
from pyengine._engine.index.segment cimport Subscription


cdef class Subscriptions:
    cdef readonly str dialect
    cdef readonly str on_error
    cdef dict by_key             # key -> Subscription
    cdef dict slot_of            # name -> slot
    cdef int slots_due           # names in ``slot_of`` at which those that nobody reads are looked for
    cdef list living             # of Living, the largest segments first
    cdef list tail
    cdef AppendSegment appended  # takes what is added one by one to many; its Living is among ``living``; or None
    cdef int64_t next_number
    cdef public int _many        # from how many on additions go to an append segment; tests have it small
    cdef bint torn               # a change ended halfway, for lack of memory: ``by_key`` alone says what is there
    cdef Snapshot snapshot       # None after a change
    cdef object lock             # of whoever changes them, or makes the next snapshot

    cdef Subscription made(self, object key, object selector, int64_t number)
    cdef int update_all(self, object subscriptions) except -1
    cdef int take_in(self, list fresh) except -1
    cdef bint append(self, Subscription fresh) except -1
    cdef int compact(self) except -1
    cdef int drop(self, Subscription gone) except -1
    cdef Snapshot current(self)
    cdef int forget_slots(self) except -1
    cdef int mend(self) except -1                # all anew from ``by_key``, after a change that ended halfway
    cdef int swap(self, Subscription old, Subscription new) except -1    # in the index; either may be None
    cdef int gather(self) except -1
    cdef tuple placed(self, Snapshot snapshot, object batch, object missing, bint ordered)
    cdef Search begin(self, Snapshot snapshot, bint keyless, bint any_order)
    cdef Snapshot keyed(self)
    cdef Snapshot made_anew(self)
