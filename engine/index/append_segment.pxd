"""append_segment: a segment that takes one subscription after another, for sets too large to build anew.

It shares the bounds and points of a built segment, its *model*: only what its entries say of the buckets is its own.
A text that the model does not know is one of the unknown, and asked of the programs. Entries are behind no access
point. Its bits lie line by line, and a line is made when its first entry comes: an addition touches only that line.

Who matches meanwhile does not see a new entry, because its bit is not alive for him.
"""

from pyengine._engine.index.segment_builder cimport Builder
from pyengine._engine.index.segment cimport Segment, Subscription


cdef class Annex(Builder):
    cdef int room                    # entries
    cdef int leaf_room
    cdef bint unknown                # the need names a text that the model does not know

    cdef int find_texts(self) except -1
    cdef bint take(self, Subscription it) except -1         # False: it is full
    cdef int enter(self, Subscription it, int first, int stop) except -1


cdef Annex annex_of(Segment model, int room)
