"""renumbering: the dense new numbers of what a snapshot writes, in order of first sight or of the old numbers.

Invariants: ``at`` holds the new number + 1, 0 for a number that was not seen; ``used`` counts those that were.
"""

from libc.stdint cimport int32_t


cdef class Numbering:
    cdef int32_t* at
    cdef int32_t size
    cdef int32_t used

    cdef int32_t see(self, int32_t old) noexcept          # its new number, the next one if it has none
    cdef int sort(self) except -1                         # number those that were seen again, in order
