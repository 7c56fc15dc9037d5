"""bucket_labels: the bucket of each label; a label is (match class, group key, tier).

A hash table with open addressing and linear probing; a removal shifts the entries behind it back, so that no search
ends early.

Invariants: at least half of the seats are free (``count`` of at most ``room`` / 2); ``room`` is a power of two.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t


@final
cdef class BucketLabels:
    cdef int64_t* labels         # seat -> label
    cdef int32_t* buckets        # seat -> bucket
    cdef int64_t room
    cdef int64_t count

    cdef inline bint has_room(self) noexcept nogil:
        return 2 * self.count < self.room

    cdef bint resize(self, int64_t room) noexcept nogil      # False: there is no memory, and nothing has changed
    cdef void clear(self) noexcept nogil
    cdef int64_t seat_of(self, int64_t label) noexcept nogil
    cdef int32_t find(self, int64_t label) noexcept nogil    # -1 none
    cdef void add(self, int64_t label, int32_t bucket) noexcept nogil     # there is room
    cdef void remove(self, int64_t label) noexcept nogil


cdef inline int64_t label_of(int32_t match, int32_t key, int tier) noexcept nogil:
    return (<int64_t> match << 37) | ((<int64_t> key + 1) << 5) | tier


cdef inline int tier_of_label(int64_t label) noexcept nogil:
    return <int> (label & 31)
