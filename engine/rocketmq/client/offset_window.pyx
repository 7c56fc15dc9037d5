# cython: freethreading_compatible=True, cdivision=True
"""The window of unfinished offsets."""

from cython cimport final

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from pyengine._engine.lowlevel.memory cimport allocate, resize
from pyengine._engine.lowlevel.bits cimport count_bits, highest_bit, lowest_bit

# Chunks that the array may hold for each one in use when it is extended; twice as many before empty ones are swept.
cdef int64_t SPARE = 2
cdef int64_t CREDIT = 7

cdef int64_t[4] CAPACITY = [64, 1, 4, 16]       # of DENSE, SINGLE, FEW, SOME


cdef uintptr_t storage(int64_t need) except 0:
    """Slots for so many messages, tagged."""
    cdef uintptr_t kind = FEW if need <= CAPACITY[<int>FEW] else SOME if need <= CAPACITY[<int>SOME] else DENSE
    return <uintptr_t>allocate(CAPACITY[kind] * sizeof(PyObject*)) | kind


cdef void give_back(uintptr_t slots) noexcept:
    if slots & 3 != SINGLE:
        free(<void*>(slots & ~<uintptr_t>3))


@final
cdef class Window:
    """Unfinished offsets with their messages. Offsets are any signed 64-bit integers."""

    def __cinit__(self):
        self.chunks = NULL
        self.head = self.tail = self.capacity = self.filled = self.gaps = self.credit = self.count = 0

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
        """Index of the chunk with this base, or of the first one beyond it.

        Interpolation first, because filtered messages lie about evenly; then doubling steps from there, and bisection.
        """
        cdef int64_t low = self.head, high = self.tail, middle, reach = 1
        cdef double part
        if low == high or self.chunks[high - 1].base < base:
            return high
        if base <= self.chunks[low].base:
            return low
        part = <double>steps(self.chunks[low].base, base) / <double>steps(
            self.chunks[low].base, self.chunks[high - 1].base)
        middle = min(low + <int64_t>(part * (high - 1 - low)), high - 1)
        if self.chunks[middle].base < base:
            low = middle + 1
            while low + reach < high and self.chunks[low + reach].base < base:
                low += reach + 1
                reach *= 2
            high = min(high, low + reach)
        else:
            high = middle
            while high - reach >= low and self.chunks[high - reach].base >= base:
                high -= reach
                reach *= 2
            low = max(low, high - reach)
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
        cdef Chunk* chunk = self.find(base_of(first))
        cdef int64_t place = first & 63, i, below
        cdef uint64_t bits = (~<uint64_t>0 >> (64 - length)) << place
        cdef uintptr_t slots
        cdef PyObject** array
        if chunk != NULL and chunk.present & bits:
            return False
        if length == 1:
            return self.put_elsewhere(chunk, first, message)
        if chunk == NULL or chunk.slots == 0:
            slots = storage(64 if self.credit else length)
            if chunk == NULL:
                try:
                    chunk = self.make(base_of(first), slots)
                except MemoryError:
                    give_back(slots)
                    raise
            else:
                chunk.slots = slots
                self.filled += 1
            self.credit -= self.credit > 0
        else:
            self.widen(chunk, count_bits(chunk.present) + length)
        array = array_of(chunk)
        if chunk.slots & 3:
            below = rank(chunk, place)
            memmove(array + below + length, array + below, (count_bits(chunk.present) - below) * sizeof(PyObject*))
            array += below
        else:
            array += place
        for i in range(length):
            Py_INCREF(message)
            array[i] = <PyObject*>message
        chunk.present |= bits
        self.count += length
        return True

    cdef bint put_elsewhere(self, Chunk* chunk, int64_t offset, object message) except -1:
        """put, unless it is a new offset of a DENSE chunk."""
        cdef int64_t place = offset & 63, below
        cdef uint64_t bit = <uint64_t>1 << place
        cdef uintptr_t slots
        cdef PyObject* before
        cdef PyObject** array
        if chunk == NULL and self.credit:
            slots = storage(64)
            try:
                chunk = self.make(base_of(offset), slots)
            except MemoryError:
                give_back(slots)
                raise
            self.credit -= 1
            array_of(chunk)[place] = <PyObject*>message
        elif chunk == NULL:
            chunk = self.make(base_of(offset), <uintptr_t><PyObject*>message | SINGLE)
        elif chunk.present == 0:
            chunk.slots = <uintptr_t><PyObject*>message | SINGLE
            self.filled += 1
        elif chunk.present & bit:
            before = message_at(chunk, place)
            Py_INCREF(message)
            if chunk.slots & 3 == SINGLE:
                chunk.slots = <uintptr_t><PyObject*>message | SINGLE
            else:
                array_of(chunk)[rank(chunk, place) if chunk.slots & 3 else place] = <PyObject*>message
            Py_DECREF(<object>before)
            return False
        else:
            self.widen(chunk, count_bits(chunk.present) + 1)
            array = array_of(chunk)
            if chunk.slots & 3:
                below = rank(chunk, place)
                memmove(array + below + 1, array + below, (count_bits(chunk.present) - below) * sizeof(PyObject*))
                array[below] = <PyObject*>message
            else:
                array[place] = <PyObject*>message
        Py_INCREF(message)
        chunk.present |= bit
        self.count += 1
        return True

    cdef int widen(self, Chunk* chunk, int64_t need) except -1:
        """Let a chunk that is not empty have slots for so many messages."""
        cdef uintptr_t slots
        cdef PyObject** array
        cdef uint64_t left = chunk.present
        cdef int64_t i = 0
        if need <= CAPACITY[chunk.slots & 3]:
            return 0
        slots = storage(need)
        array = <PyObject**>(slots & ~<uintptr_t>3)
        while left:
            array[i if slots & 3 else lowest_bit(left)] = message_at(chunk, lowest_bit(left))
            left &= left - 1
            i += 1
        give_back(chunk.slots)
        chunk.slots = slots
        if slots & 3 == DENSE:
            self.credit = CREDIT
        return 0

    cdef PyObject* extract(self, Chunk* chunk, int64_t place) noexcept nogil:
        """Take a message out of a chunk that is not DENSE; the caller clears its bit."""
        cdef PyObject* message = message_at(chunk, place)
        cdef PyObject** array
        cdef int64_t below
        if chunk.slots & 3 != SINGLE:
            below = rank(chunk, place)
            array = array_of(chunk) + below
            memmove(array, array + 1, (count_bits(chunk.present) - below - 1) * sizeof(PyObject*))
        return message

    cdef Chunk* make(self, int64_t base, uintptr_t slots) except NULL:
        """A new chunk with these slots; the caller sets its first bit, and keeps the slots if this raises."""
        cdef int64_t index, i, held = self.tail - self.head, before = 0, behind = 0
        cdef uint64_t allowed = <uint64_t>max(0, SPARE * (self.filled + 16) - held), apart
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
        for i in range(index - before, index + behind + 1):
            self.chunks[i].base = base + 64 * (i - index)
            self.chunks[i].present = 0
            self.chunks[i].slots = 0
        self.chunks[index].slots = slots
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
        return <object>message_at(self.find(base_of(offset)), offset & 63)

    cdef inline object pop(self, int64_t offset):
        cdef Chunk* chunk = self.find(base_of(offset))
        cdef uint64_t bit = <uint64_t>1 << (offset & 63)
        if chunk == NULL or not chunk.present & bit:
            return None
        message = <object>(
            self.extract(chunk, offset & 63) if chunk.slots & 3 else array_of(chunk)[offset & 63])
        Py_DECREF(message)
        chunk.present &= ~bit
        self.count -= 1
        if not chunk.present:
            self.leave(chunk)
        return message

    cdef int leave(self, Chunk* chunk) noexcept:
        """The chunk is empty now."""
        cdef int64_t index, kept
        give_back(chunk.slots)
        chunk.slots = 0
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
        self.head = self.tail = self.capacity = self.filled = self.gaps = self.credit = self.count = 0
        for index in range(head, tail):
            left = chunks[index].present
            while left:
                Py_DECREF(<object>message_at(&chunks[index], lowest_bit(left)))
                left &= left - 1
            give_back(chunks[index].slots)
        free(chunks)
        return 0

    def nbytes(self):
        """Bytes of the structure, the messages and the allocator's own not counted."""
        cdef int64_t index, slots = 0
        for index in range(self.head, self.tail):
            if self.chunks[index].slots and self.chunks[index].slots & 3 != SINGLE:
                slots += CAPACITY[self.chunks[index].slots & 3]
        return slots * sizeof(PyObject*) + self.capacity * sizeof(Chunk)

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
            assert (self.chunks[index].slots != 0) == (self.chunks[index].present != 0), self.chunks[index].base
            assert count_bits(self.chunks[index].present) <= CAPACITY[self.chunks[index].slots & 3]
            filled += self.chunks[index].slots != 0
            left = self.chunks[index].present
            while left:
                assert message_at(&self.chunks[index], lowest_bit(left)) != NULL
                bits += 1
                left &= left - 1
        assert bits == self.count, (bits, self.count)
        assert (filled, gaps) == (self.filled, self.gaps), (filled, self.filled, gaps, self.gaps)
        assert self.tail - self.head <= 2 * SPARE * (self.filled + 16) or not self.filled
