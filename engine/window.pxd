"""window: the unfinished offsets of one message queue and their messages, in order of offset.

Chunks of 64 offsets lie in an array sorted by their first offset; a chunk is a bitmap word and 64 slots. A gap costs a
bit, a wide gap nothing. put, get and remove look at the last chunk and the first one, then search; the smallest and
largest offset are one bit scan away. About 8.5 bytes an offset in a dense window.

Invariants: chunks[head .. tail) ascend by base without doubles; base is a multiple of 64; no chunk is empty; a slot
owns a reference exactly where the bitmap has a bit; count is the number of bits.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t


cdef struct Chunk:
    int64_t base             # offset of bit 0
    uint64_t present
    PyObject* messages[64]


cdef class Window:
    cdef Chunk** chunks
    cdef int64_t head        # first chunk in use
    cdef int64_t tail        # one past the last
    cdef int64_t capacity
    cdef Chunk* spare        # one emptied chunk kept for the next put
    cdef readonly int64_t count

    cdef int64_t place(self, int64_t base) noexcept nogil
    cdef int64_t insert(self, int64_t index, int64_t base) except -1
    cdef bint put(self, int64_t offset, object message) except -1     # True: the offset is new
    cdef object get(self, int64_t offset)                             # None where absent
    cdef bint has(self, int64_t offset) noexcept nogil
    cdef object pop(self, int64_t offset)                             # None where absent
    cdef int64_t smallest(self) noexcept nogil                        # of a window that is not empty
    cdef int64_t largest(self) noexcept nogil
    cdef int clear(self) except -1
