"""renumbering: dense new numbers for the items of a snapshot, by first occurrence or in the order of the old numbers.

Invariants: ``at``: old number -> new number + 1, 0 for a number that did not occur; ``used`` counts those that did.
"""

from libc.stdint cimport int32_t


cdef class Numbering:
    cdef int32_t* at
    cdef int32_t size
    cdef int32_t used

    cdef int32_t see(self, int32_t old) noexcept          # its new number; assigns the next one at the first occurrence
    cdef int sort(self) except -1                         # renumber those that occurred, by old number
