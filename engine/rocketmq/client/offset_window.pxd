"""offset_window: the unfinished offsets of one message queue and their messages, in order of offset.

A chunk is 64 offsets: a bitmap word, and 64 slots while one of them is in use. Chunks lie in an array sorted by their
first offset. While that array has no gap, a chunk's place follows from its offset; what would need too many empty
chunks becomes a gap, and then a place is searched. The smallest and largest offset are one bit scan away. About 8.6
bytes an offset in a dense window; emptied chunks go back to the allocator. The functions for every message are inline
here, so that callers compile them in.

Invariants: chunks[head .. tail) ascend by base without doubles; base is a multiple of 64; the first and the last chunk
are not empty; a chunk has slots exactly where it is not empty, and a slot owns a reference exactly where the bitmap has
a bit; count is the number of bits, filled that of chunks with slots, gaps that of neighbours whose bases differ by more
than 64.
"""

from cython cimport final

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t

from pyengine._engine.lowlevel.memory cimport allocate
from pyengine._engine.lowlevel.bits cimport lowest_bit


cdef struct Chunk:
    int64_t base             # offset of bit 0
    uint64_t present
    PyObject** messages


cdef inline int64_t base_of(int64_t offset) noexcept nogil:
    """The base of the chunk of an offset."""
    return offset & ~<int64_t>63


cdef inline uint64_t steps(int64_t before, int64_t behind) noexcept nogil:
    """How many chunks lie from one base to a larger one."""
    return (<uint64_t>behind - <uint64_t>before) >> 6


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
    cdef Chunk* search(self, int64_t base) noexcept nogil
    cdef Chunk* make(self, int64_t base) except NULL
    cdef int64_t room(self, int64_t index, int64_t count) except -1
    cdef int leave(self, Chunk* chunk) noexcept
    cdef bint put_run(self, int64_t first, int64_t length, object message) except -1  # False: one is known
    cdef object get(self, int64_t offset)                             # None where absent
    cdef bint has(self, int64_t offset) noexcept nogil
    cdef object pop(self, int64_t offset)                             # None where absent
    cdef int64_t largest(self) noexcept nogil
    cdef int clear(self) except -1

    cdef inline Chunk* find(self, int64_t base) noexcept nogil:
        """The chunk with this base, NULL for none."""
        cdef uint64_t step
        cdef Chunk* chunk
        if self.head == self.tail:
            return NULL
        chunk = self.chunks + self.head
        step = steps(chunk.base, base)
        chunk += step
        if step < <uint64_t>(self.tail - self.head) and chunk.base == base:
            return chunk
        return NULL if self.gaps == 0 else self.search(base)

    cdef inline Chunk* slots(self, int64_t base) except NULL:
        """The chunk with this base, with slots; the caller sets a bit of one that is new or was empty."""
        cdef Chunk* chunk = self.find(base)
        if chunk == NULL:
            return self.make(base)
        if chunk.messages == NULL:
            chunk.messages = <PyObject**>allocate(64 * sizeof(PyObject*))
            self.filled += 1
        return chunk

    cdef inline bint put(self, int64_t offset, object message) except -1:
        """True: the offset is new."""
        cdef Chunk* chunk = self.slots(base_of(offset))
        cdef uint64_t bit = <uint64_t>1 << (offset & 63)
        cdef PyObject* before
        Py_INCREF(message)
        if chunk.present & bit:
            before = chunk.messages[offset & 63]
            chunk.messages[offset & 63] = <PyObject*>message
            Py_DECREF(<object>before)
            return False
        chunk.messages[offset & 63] = <PyObject*>message
        chunk.present |= bit
        self.count += 1
        return True

    cdef inline bint drop(self, int64_t offset) except -1:
        """True: it was there."""
        cdef Chunk* chunk = self.find(base_of(offset))
        cdef uint64_t bit = <uint64_t>1 << (offset & 63)
        cdef PyObject* message
        if chunk == NULL or not chunk.present & bit:
            return False
        message = chunk.messages[offset & 63]
        chunk.present ^= bit
        self.count -= 1
        if not chunk.present:
            self.leave(chunk)
        Py_DECREF(<object>message)
        return True

    cdef inline int64_t smallest(self) noexcept nogil:
        """Of a window that is not empty."""
        return self.chunks[self.head].base + lowest_bit(self.chunks[self.head].present)
