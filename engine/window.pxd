"""window: the unfinished offsets of one message queue and their messages, in order of offset.

A chunk is 64 offsets: a bitmap word, and 64 slots while one of them is in use. Chunks lie in an array sorted by their
first offset. While that array has no gap, a chunk's place follows from its offset; what would need too many empty
chunks becomes a gap, and then a place is searched. The smallest and largest offset are one bit scan away. About 8.6
bytes an offset in a dense window; emptied chunks go back to the allocator.

Invariants: chunks[head .. tail) ascend by base without doubles; base is a multiple of 64; the first and the last chunk
are not empty; a chunk has slots exactly where it is not empty, and a slot owns a reference exactly where the bitmap has
a bit; count is the number of bits, filled that of chunks with slots, gaps that of neighbours whose bases differ by more
than 64.
"""

from cython cimport final

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t


cdef struct Chunk:
    int64_t base             # offset of bit 0
    uint64_t present
    PyObject** messages


@final
cdef class Window:
    cdef Chunk* chunks
    cdef int64_t head        # first chunk in use
    cdef int64_t tail        # one past the last
    cdef int64_t capacity
    cdef int64_t filled
    cdef int64_t gaps
    cdef readonly int64_t count

    cdef int64_t place(self, int64_t base) noexcept nogil
    cdef Chunk* find(self, int64_t base) noexcept nogil
    cdef Chunk* search(self, int64_t base) noexcept nogil
    cdef Chunk* make(self, int64_t base) except NULL
    cdef Chunk* slots(self, int64_t base) except NULL
    cdef int64_t room(self, int64_t index, int64_t count) except -1
    cdef int leave(self, Chunk* chunk) noexcept
    cdef bint put(self, int64_t offset, object message) except -1     # True: the offset is new
    cdef bint put_run(self, int64_t first, int64_t length, object message) except -1  # False: one is known
    cdef object get(self, int64_t offset)                             # None where absent
    cdef bint has(self, int64_t offset) noexcept nogil
    cdef object pop(self, int64_t offset)                             # None where absent
    cdef bint drop(self, int64_t offset) except -1                    # True: it was there
    cdef int64_t smallest(self) noexcept nogil                        # of a window that is not empty
    cdef int64_t largest(self) noexcept nogil
    cdef int clear(self) except -1
