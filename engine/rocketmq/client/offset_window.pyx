# cython: freethreading_compatible=True, cdivision=True
"""The window of unfinished offsets."""

from cython cimport final

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from pyengine._engine.lowlevel.memory cimport allocate, resize
from pyengine._engine.lowlevel.bits cimport highest_bit, lowest_bit

# Empty chunks that the array may hold for each one in use when it is extended; twice as many before they are swept.
cdef int64_t SPARE = 16


@final
cdef class Window:
    """Unfinished offsets with their messages. Offsets are any signed 64-bit integers."""

    def __cinit__(self):
        self.chunks = NULL
        self.head = self.tail = self.capacity = self.filled = self.gaps = self.count = 0

    def __dealloc__(self):
        self.clear()

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
        while low < high:
            middle = (low + high) >> 1
            if self.chunks[middle].base < base:
                low = middle + 1
            else:
                high = middle
        return low

    cdef Chunk* search(self, int64_t base) noexcept nogil:
        """What find finds, where gaps lie before it."""
        cdef int64_t index = self.place(base)
        return self.chunks + index if index < self.tail and self.chunks[index].base == base else NULL

    cdef bint put_run(self, int64_t first, int64_t length, object message) except -1:
        """Put one message at ``length`` (1 to 64) offsets of one chunk; where one of them is known, do nothing."""
        cdef Chunk* chunk = self.slots(base_of(first))
        cdef int64_t place = first & 63, i
        cdef uint64_t bits = (~<uint64_t>0 >> (64 - length)) << place
        if chunk.present & bits:
            return False
        for i in range(place, place + length):
            Py_INCREF(message)
            chunk.messages[i] = <PyObject*>message
        chunk.present |= bits
        self.count += length
        return True

    cdef Chunk* make(self, int64_t base) except NULL:
        """A new chunk with slots; the caller sets its first bit."""
        cdef int64_t index, i, held = self.tail - self.head, before = 0, behind = 0
        cdef uint64_t allowed = <uint64_t>max(0, SPARE * (self.filled + 16) - held), apart
        cdef PyObject** messages = <PyObject**>allocate(64 * sizeof(PyObject*))
        try:
            if held == 0:
                index = self.room(self.head, 1)
            elif self.chunks[self.tail - 1].base < base:
                apart = steps(self.chunks[self.tail - 1].base, base) - 1
                before = <int64_t>apart if apart <= allowed else 0
                index = self.room(self.tail, before + 1) + before
                self.gaps += apart > allowed
            elif base < self.chunks[self.head].base:
                apart = steps(base, self.chunks[self.head].base) - 1
                behind = <int64_t>apart if apart <= allowed else 0
                index = self.room(self.head, behind + 1)
                self.gaps += apart > allowed
            else:
                index = self.room(self.place(base), 1)
                self.gaps += (steps(self.chunks[index - 1].base, base) > 1) - 1
                self.gaps += steps(base, self.chunks[index + 1].base) > 1
        except MemoryError:
            free(messages)
            raise
        for i in range(index - before, index + behind + 1):
            self.chunks[i].base = base + 64 * (i - index)
            self.chunks[i].present = 0
            self.chunks[i].messages = NULL
        self.chunks[index].messages = messages
        self.filled += 1
        return &self.chunks[index]

    cdef int64_t room(self, int64_t index, int64_t count) except -1:
        """Make room for ``count`` chunks before ``index``; return where it lies. The chunks there are not set."""
        cdef int64_t held = self.tail - self.head, ahead = index - self.head, larger
        if ahead == 0 and self.head >= count:
            self.head -= count
            return self.head
        if self.tail + count > self.capacity and self.head >= held + count:
            memcpy(self.chunks, self.chunks + self.head, held * sizeof(Chunk))
            self.head, self.tail = 0, held
        elif self.tail + count > self.capacity:
            larger = max(8, self.tail + count + (self.tail + count) // 4)
            self.chunks = <Chunk*>resize(self.chunks, larger * sizeof(Chunk))
            self.capacity = larger
        index = self.head + ahead
        memmove(self.chunks + index + count, self.chunks + index, (self.tail - index) * sizeof(Chunk))
        self.tail += count
        return index

    cdef bint has(self, int64_t offset) noexcept nogil:
        cdef Chunk* chunk = self.find(base_of(offset))
        return chunk != NULL and (chunk.present >> (offset & 63)) & 1

    cdef object get(self, int64_t offset):
        if not self.has(offset):
            return None
        return <object>self.find(base_of(offset)).messages[offset & 63]

    cdef inline object pop(self, int64_t offset):
        cdef Chunk* chunk = self.find(base_of(offset))
        cdef uint64_t bit = <uint64_t>1 << (offset & 63)
        if chunk == NULL or not chunk.present & bit:
            return None
        message = <object>chunk.messages[offset & 63]
        Py_DECREF(message)
        chunk.present &= ~bit
        self.count -= 1
        if not chunk.present:
            self.leave(chunk)
        return message

    cdef int leave(self, Chunk* chunk) noexcept:
        """The chunk is empty now."""
        cdef int64_t index, kept
        free(chunk.messages)
        chunk.messages = NULL
        self.filled -= 1
        if self.filled == 0:
            self.head = self.tail = self.gaps = 0
            return 0
        while not self.chunks[self.head].present:
            self.gaps -= steps(self.chunks[self.head].base, self.chunks[self.head + 1].base) > 1
            self.head += 1
        while not self.chunks[self.tail - 1].present:
            self.gaps -= steps(self.chunks[self.tail - 2].base, self.chunks[self.tail - 1].base) > 1
            self.tail -= 1
        if self.tail - self.head > 2 * SPARE * (self.filled + 16):
            kept = self.head
            self.gaps = 0
            for index in range(self.head, self.tail):
                if self.chunks[index].present:
                    self.chunks[kept] = self.chunks[index]
                    self.gaps += kept > self.head and steps(self.chunks[kept - 1].base, self.chunks[kept].base) > 1
                    kept += 1
            self.tail = kept
        return 0

    cdef int64_t largest(self) noexcept nogil:
        return self.chunks[self.tail - 1].base + highest_bit(self.chunks[self.tail - 1].present)

    cdef int clear(self) except -1:
        cdef int64_t head = self.head, tail = self.tail, index
        cdef uint64_t left
        cdef Chunk* chunks = self.chunks
        # Detached first: a message's own clean-up may call back into the window.
        self.chunks = NULL
        self.head = self.tail = self.capacity = self.filled = self.gaps = self.count = 0
        for index in range(head, tail):
            left = chunks[index].present
            while left:
                Py_DECREF(<object>chunks[index].messages[lowest_bit(left)])
                left &= left - 1
            free(chunks[index].messages)
        free(chunks)
        return 0

    def nbytes(self):
        """Bytes of the structure, the messages and the allocator's own not counted."""
        return self.filled * 64 * sizeof(PyObject*) + self.capacity * sizeof(Chunk)

    def _check(self):
        """Raise AssertionError unless the invariants of offset_window.pxd hold."""
        cdef int64_t index, bits = 0, filled = 0, gaps = 0
        cdef uint64_t left
        assert 0 <= self.head <= self.tail <= self.capacity
        if self.head < self.tail:
            assert self.chunks[self.head].present, f"empty chunk in front: {self.chunks[self.head].base}"
            assert self.chunks[self.tail - 1].present, f"empty chunk at the end: {self.chunks[self.tail - 1].base}"
        for index in range(self.head, self.tail):
            assert self.chunks[index].base % 64 == 0
            if index > self.head:
                assert self.chunks[index - 1].base < self.chunks[index].base
                gaps += steps(self.chunks[index - 1].base, self.chunks[index].base) > 1
            assert (self.chunks[index].messages != NULL) == (self.chunks[index].present != 0), self.chunks[index].base
            filled += self.chunks[index].messages != NULL
            left = self.chunks[index].present
            while left:
                assert self.chunks[index].messages[lowest_bit(left)] != NULL
                bits += 1
                left &= left - 1
        assert bits == self.count, (bits, self.count)
        assert (filled, gaps) == (self.filled, self.gaps), (filled, self.filled, gaps, self.gaps)
        assert self.tail - self.head <= 2 * SPARE * (self.filled + 16) or not self.filled
