# cython: freethreading_compatible=True
"""The window of unfinished offsets."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static inline int pyengine_lowest_bit(unsigned long long word)
    { unsigned long i; _BitScanForward64(&i, word); return (int)i; }
    static inline int pyengine_highest_bit(unsigned long long word)
    { unsigned long i; _BitScanReverse64(&i, word); return (int)i; }
    #else
    static inline int pyengine_lowest_bit(unsigned long long word) { return __builtin_ctzll(word); }
    static inline int pyengine_highest_bit(unsigned long long word) { return 63 - __builtin_clzll(word); }
    #endif
    """
    int lowest_bit "pyengine_lowest_bit"(uint64_t word) noexcept nogil
    int highest_bit "pyengine_highest_bit"(uint64_t word) noexcept nogil


cdef class Window:
    """Unfinished offsets with their messages. Offsets are any signed 64-bit integers."""

    def __cinit__(self):
        self.chunks = NULL
        self.spare = NULL
        self.head = self.tail = self.capacity = self.count = 0

    def __dealloc__(self):
        self.clear()
        free(self.chunks)
        free(self.spare)

    def __len__(self):
        return self.count

    def __contains__(self, int64_t offset):
        return self.has(offset)

    def __iter__(self):
        """The offsets, ascending."""
        cdef int64_t index
        cdef uint64_t left
        offsets = []
        for index in range(self.head, self.tail):
            left = self.chunks[index].present
            while left:
                offsets.append(self.chunks[index].base + lowest_bit(left))
                left &= left - 1
        return iter(offsets)

    cdef int64_t place(self, int64_t base) noexcept nogil:
        """Index of the chunk with this base, or of the first one beyond it."""
        cdef int64_t low = self.head, high = self.tail, middle
        if low == high or self.chunks[high - 1].base < base:
            return high
        if self.chunks[high - 1].base == base:
            return high - 1
        if self.chunks[low].base >= base:
            return low
        while low < high:
            middle = (low + high) >> 1
            if self.chunks[middle].base < base:
                low = middle + 1
            else:
                high = middle
        return low

    cdef bint put(self, int64_t offset, object message) except -1:
        cdef int64_t base = offset & ~<int64_t>63
        cdef uint64_t bit = <uint64_t>1 << (offset & 63)
        cdef int64_t index = self.place(base)
        cdef PyObject* before
        if index == self.tail or self.chunks[index].base != base:
            index = self.insert(index, base)
        cdef Chunk* chunk = self.chunks[index]
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

    cdef int64_t insert(self, int64_t index, int64_t base) except -1:
        """Make an empty chunk at this index; return where it lies after room was made."""
        cdef Chunk* chunk = self.spare
        cdef Chunk** grown
        if chunk == NULL:
            chunk = <Chunk*>malloc(sizeof(Chunk))
            if chunk == NULL:
                raise MemoryError
        self.spare = NULL
        chunk.base = base
        chunk.present = 0
        if index == self.head and self.head > 0:
            self.head -= 1
            index -= 1
        else:
            if self.tail == self.capacity:
                if self.head > self.capacity // 2:
                    memmove(self.chunks, self.chunks + self.head, (self.tail - self.head) * sizeof(Chunk*))
                    index -= self.head
                    self.tail -= self.head
                    self.head = 0
                else:
                    grown = <Chunk**>realloc(self.chunks, max(8, self.capacity * 2) * sizeof(Chunk*))
                    if grown == NULL:
                        self.spare = chunk
                        raise MemoryError
                    self.chunks = grown
                    self.capacity = max(8, self.capacity * 2)
            memmove(self.chunks + index + 1, self.chunks + index, (self.tail - index) * sizeof(Chunk*))
            self.tail += 1
        self.chunks[index] = chunk
        return index

    cdef bint has(self, int64_t offset) noexcept nogil:
        cdef int64_t base = offset & ~<int64_t>63
        cdef int64_t index = self.place(base)
        return (
            index < self.tail and self.chunks[index].base == base
            and (self.chunks[index].present >> (offset & 63)) & 1
        )

    cdef object get(self, int64_t offset):
        if not self.has(offset):
            return None
        return <object>self.chunks[self.place(offset & ~<int64_t>63)].messages[offset & 63]

    cdef object pop(self, int64_t offset):
        cdef int64_t base = offset & ~<int64_t>63
        cdef uint64_t bit = <uint64_t>1 << (offset & 63)
        cdef int64_t index = self.place(base)
        if index == self.tail or self.chunks[index].base != base or not self.chunks[index].present & bit:
            return None
        cdef Chunk* chunk = self.chunks[index]
        message = <object>chunk.messages[offset & 63]
        Py_DECREF(message)
        chunk.present &= ~bit
        self.count -= 1
        if not chunk.present:
            if index == self.head:
                self.head += 1
            else:
                memmove(self.chunks + index, self.chunks + index + 1, (self.tail - index - 1) * sizeof(Chunk*))
                self.tail -= 1
            if self.head == self.tail:
                self.head = self.tail = 0
            if self.spare == NULL:
                self.spare = chunk
            else:
                free(chunk)
        return message

    cdef int64_t smallest(self) noexcept nogil:
        return self.chunks[self.head].base + lowest_bit(self.chunks[self.head].present)

    cdef int64_t largest(self) noexcept nogil:
        return self.chunks[self.tail - 1].base + highest_bit(self.chunks[self.tail - 1].present)

    cdef int clear(self) except -1:
        cdef int64_t head = self.head, tail = self.tail, index
        cdef uint64_t left
        cdef Chunk** chunks = self.chunks
        # Detached first: a message's own clean-up may call back into the window.
        self.chunks = NULL
        self.head = self.tail = self.capacity = self.count = 0
        for index in range(head, tail):
            left = chunks[index].present
            while left:
                Py_DECREF(<object>chunks[index].messages[lowest_bit(left)])
                left &= left - 1
            free(chunks[index])
        free(chunks)
        return 0

    def nbytes(self):
        """Bytes of the structure, the messages not counted."""
        return (self.tail - self.head + (self.spare != NULL)) * sizeof(Chunk) + self.capacity * sizeof(Chunk*)

    def _check(self):
        """Raise AssertionError unless the invariants of window.pxd hold."""
        cdef int64_t index, bits = 0
        cdef uint64_t left
        assert 0 <= self.head <= self.tail <= self.capacity
        for index in range(self.head, self.tail):
            assert self.chunks[index].present, f"empty chunk at {self.chunks[index].base}"
            assert self.chunks[index].base % 64 == 0
            assert index == self.head or self.chunks[index - 1].base < self.chunks[index].base
            left = self.chunks[index].present
            while left:
                assert self.chunks[index].messages[lowest_bit(left)] != NULL
                bits += 1
                left &= left - 1
        assert bits == self.count, (bits, self.count)
