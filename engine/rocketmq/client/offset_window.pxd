"""offset_window: the unfinished offsets of one message queue and their messages, in order of offset.

A chunk is 64 offsets: a bitmap word, and its messages. Chunks lie in an array sorted by their first offset. While that
array has no gap, a chunk's place follows from its offset; what would need too many empty chunks becomes a gap, and then
a place is searched. The smallest and largest offset are one bit scan away. About 8.6 bytes an offset in a dense window,
at most 64 in any other that was filled in order; emptied chunks go back to the allocator. The functions for every
message are inline here, so that callers compile them in.

    chunk.slots & 3    the rest of it points to                        grows to the next when
    SINGLE             the only message itself                         a second comes
    FEW                4 slots; the message of a bit has its rank,     a fifth comes
    SOME               16 slots   the number of bits below it          a 17th comes
    DENSE              64 slots; the message of bit i is slot i

A chunk does not shrink before it is empty. After one that grew to DENSE the next new ones begin as DENSE (``credit``).

Invariants: chunks[head .. tail) ascend by base without doubles; base is a multiple of 64; the first and the last chunk
are not empty; ``slots`` is 0 exactly where a chunk is empty, and has room for its messages otherwise; a message that
the window holds is one reference; count is the number of bits, filled that of chunks that are not empty, gaps that of
neighbours whose bases differ by more than 64.
"""

from cython cimport final

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t, uintptr_t

from pyengine._engine.lowlevel.bits cimport count_bits, lowest_bit


cdef struct Chunk:
    int64_t base             # offset of bit 0
    uint64_t present
    uintptr_t slots          # tagged; 0: none


cdef enum:
    DENSE = 0
    SINGLE = 1
    FEW = 2
    SOME = 3


cdef inline int64_t base_of(int64_t offset) noexcept nogil:
    """The base of the chunk of an offset."""
    return offset & ~<int64_t>63


cdef inline uint64_t steps(int64_t before, int64_t behind) noexcept nogil:
    """How many chunks lie from one base to a larger one."""
    return (<uint64_t>behind - <uint64_t>before) >> 6


cdef inline PyObject** array_of(const Chunk* chunk) noexcept nogil:
    """The slots of a chunk that is not SINGLE."""
    return <PyObject**>(chunk.slots & ~<uintptr_t>3)


cdef inline int64_t rank(const Chunk* chunk, int64_t place) noexcept nogil:
    """How many messages a chunk has below a place."""
    return count_bits(chunk.present & ((<uint64_t>1 << place) - 1))


cdef inline PyObject* message_at(const Chunk* chunk, int64_t place) noexcept nogil:
    """The message of a bit that is set."""
    cdef int kind = chunk.slots & 3
    if kind == DENSE:
        return array_of(chunk)[place]
    return <PyObject*>array_of(chunk) if kind == SINGLE else array_of(chunk)[rank(chunk, place)]


@final
cdef class Window:
    cdef Chunk* chunks
    cdef int64_t head        # first chunk in use
    cdef int64_t tail        # one past the last
    cdef int64_t capacity
    cdef int64_t filled
    cdef int64_t gaps
    cdef int64_t credit      # new chunks that are made DENSE at once
    cdef readonly int64_t count

    cdef int64_t place(self, int64_t base) noexcept nogil
    cdef Chunk* search(self, int64_t base) noexcept nogil
    cdef Chunk* make(self, int64_t base, uintptr_t slots) except NULL
    cdef bint put_elsewhere(self, Chunk* chunk, int64_t offset, object message) except -1
    cdef int widen(self, Chunk* chunk, int64_t need) except -1
    cdef PyObject* extract(self, Chunk* chunk, int64_t place) noexcept nogil
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

    cdef inline bint put(self, int64_t offset, object message) except -1:
        """True: the offset is new."""
        cdef Chunk* chunk = self.find(base_of(offset))
        cdef uint64_t bit = <uint64_t>1 << (offset & 63)
        if chunk == NULL or chunk.slots == 0 or chunk.slots & 3 or chunk.present & bit:
            return self.put_elsewhere(chunk, offset, message)
        Py_INCREF(message)
        array_of(chunk)[offset & 63] = <PyObject*>message
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
        if chunk.slots & 3:
            message = self.extract(chunk, offset & 63)
        else:
            message = array_of(chunk)[offset & 63]
        chunk.present ^= bit
        self.count -= 1
        if not chunk.present:
            self.leave(chunk)
        Py_DECREF(<object>message)
        return True

    cdef inline int64_t smallest(self) noexcept nogil:
        """Of a window that is not empty."""
        return self.chunks[self.head].base + lowest_bit(self.chunks[self.head].present)
