"""subscriptions: many selectors against one message, or one batch: an index, not a loop.

New subscriptions gather in the *tail*, which is asked one by one; a full tail becomes a segment. Where there are many
already, a new one goes to an *append segment* instead, which takes it at once; when it is full the next is opened.
Segments of like size, full append segments, and those of which half are gone become one segment anew. That is done
piece by piece: an addition or a match does one piece, so that none of them waits for the whole (``merge``). Until the
new segment is ready the old ones answer. A *snapshot* is what a match sees: the segments, a bitmap of
those of their entries that were alive, a copy of the tail. Changes make the next snapshot, one thread after another
under the lock; a match keeps the snapshot that it began with.

Invariants: every living subscription is in the tail, or is an entry of one segment with its bit alive; numbers ascend
in the order of addition, and that is the order of the answers, unless any will do; a key is owned by ``by_key``, and
after its removal by every snapshot from before: ``removed`` of one is a list of keys, then the next one's list.
"""

from libc.stdint cimport int64_t

from pyengine._engine.index.append_segment cimport AppendSegment
from pyengine._engine.index.key_table cimport KeyTable
from pyengine._engine.index.name_slots cimport NameSlots
from pyengine._engine.index.search cimport Search, Snapshot
from pyengine._engine.index.segment_builder cimport SegmentBuilder
from pyengine._engine.index.subscription cimport Subscription


cdef class Subscriptions:
    cdef readonly str dialect
    cdef readonly str on_error
    cdef KeyTable by_key
    cdef NameSlots names
    cdef list living             # of Living, the largest segments first
    cdef list tail
    cdef list removed            # keys, since the last snapshot
    cdef AppendSegment appended  # takes what is added one by one to many; its Living is among ``living``; or None
    cdef int64_t next_number
    cdef public int _many        # from how many on additions go to an append segment; tests have it small
    cdef bint torn               # a change ended halfway, for lack of memory: ``by_key`` alone says what is there
    cdef Snapshot snapshot       # None after a change
    cdef SegmentBuilder builder  # of the segment that is being made; None: no merge is under way
    cdef object pieces           # its steps, a generator
    cdef list sources            # the segments that become it
    cdef list retired            # segments that have been replaced: each piece frees one
    cdef list left               # Subscriptions of those that were removed meanwhile
    cdef bint due                # there may be something to merge
    cdef bint merging            # a piece is being made: whoever it calls makes none
    cdef object lock             # of whoever changes them, or makes the next snapshot

    cdef Subscription made(self, object key, object selector, int64_t number)
    cdef dict texts(self)                        # key -> text, in order
    cdef int update_all(self, object subscriptions) except -1
    cdef int take_in(self, list fresh) except -1
    cdef bint append(self, Subscription fresh) except -1
    cdef list to_merge(self)                     # of Living; empty: there is nothing to merge
    cdef int merge(self) except -1               # one piece
    cdef int merge_all(self) except -1
    cdef int end_merge(self) except -1
    cdef void give_up_merge(self) noexcept
    cdef int attend(self) except -1              # one piece, unless another thread is changing them
    cdef int full_segments(self) noexcept        # append segments that take no more
    cdef int drop(self, Subscription gone) except -1
    cdef int begin_removed(self) except -1
    cdef Snapshot current(self)
    cdef int forget_names(self) except -1
    cdef int mend(self) except -1                # all anew from ``by_key``, after a change that ended halfway
    cdef int swap(self, Subscription old, Subscription new) except -1    # in the index; either may be None
    cdef int gather(self) except -1
    cdef tuple placed(self, Snapshot snapshot, object batch, object missing, bint ordered)
    cdef Search begin(self, Snapshot snapshot, bint keyless, bint any_order)
    cdef Snapshot keyed(self)
    cdef Snapshot made_anew(self)
