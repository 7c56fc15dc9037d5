"""bucket_lookup: the buckets and access points that the values of a message fall into, of one or of many together.

Of many it goes table by table, so that what a table has is at hand for all of them; the values of one message are
ranked, and their points fetched, together.
"""

from libc.stdint cimport int32_t, uint64_t

from pyengine._engine.index.message_view cimport Kinds, Reading
from pyengine._engine.index.segment cimport Placed, Segment


cdef struct Sought:              # values of a table that may be points
    int32_t table
    uint64_t messages            # a bit for each of those that are placed together


# Of a message: at[slot]. sought: room for one more than tables.
cdef void place_one(Segment segment, Reading* at, Placed* placed, Sought* sought) noexcept nogil
# Of ``count`` messages, TOGETHER at most: message m's of a slot is at[slot * step + m]. kinds: by slot.
cdef void place_many(
    Segment segment, Reading* at, int step, const Kinds* kinds, int count, Placed* placed,
    Sought* sought) noexcept nogil
