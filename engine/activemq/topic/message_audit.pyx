"""Duplicate detection by producer and sequence number; see message_audit.pxd."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate_zeros

from pyengine.whole_numbers import whole_number_from


cpdef tuple producer_and_number(object message_id):
    if not isinstance(message_id, str):
        return None, 0
    producer, colon, number = message_id.rpartition(":")
    if not colon or not number.isascii() or not number.isdecimal() or len(number) > 18:
        return None, 0
    return producer, int(number)


cdef class Window:
    """Internal to an audit; see message_audit.pxd."""

    def __cinit__(self, int64_t depth):
        self.arrays = max((depth + 1) // 64 + 1, 1)
        self.first = -1
        self.words = <uint64_t*> allocate_zeros(self.arrays, sizeof(uint64_t))

    def __dealloc__(self):
        free(self.words)

    def __reduce__(self):
        raise TypeError("an audit cannot be pickled")

    cdef bint see(self, int64_t number) noexcept:
        cdef int64_t word, excess, place
        cdef bint before
        if self.first < 0:
            self.first = number - number % 64
        if number < self.first:
            return False
        word = (number - self.first) // 64
        if word >= self.arrays:
            excess = word - self.arrays + 1
            self.first += 64 * excess
            if excess >= self.arrays:
                excess = self.arrays
            while excess > 0:
                self.words[self.start] = 0
                self.start = (self.start + 1) % self.arrays
                excess -= 1
            word = self.arrays - 1
        place = (self.start + word) % self.arrays
        before = (self.words[place] >> (number & 63)) & 1
        self.words[place] |= <uint64_t> 1 << (number & 63)
        return before


cdef class Audit:
    """Detects repeated message ids. An id is a producer (any hashable) and its sequence number.

    depth: sequence numbers behind the highest one that are remembered (rounded up to words of 64); producers: number of
    remembered producers. Defaults: ActiveMQMessageAudit's (2048, 64). Raises ConfigurationError if one is negative.
    """

    def __cinit__(self, depth=2048, producers=64):
        for option, value in (("maxAuditDepth", depth), ("maxProducersToAudit", producers)):
            whole_number_from(option, value, 0, 2**31 - 1)
        self.depth = depth
        self.producers = producers
        self.windows = {}

    def __reduce__(self):
        raise TypeError("an audit cannot be pickled")

    cdef bint was_recorded(self, object producer, int64_t number) except -1:
        cdef Window window = <Window> self.windows.pop(producer, None)
        if window is None:
            window = Window(self.depth)
        self.windows[producer] = window
        if len(self.windows) > self.producers:
            del self.windows[next(iter(self.windows))]
        return window.see(number)

    cdef int forget(self, object producer, int64_t number) except -1:
        cdef Window window = <Window> self.windows.get(producer)
        cdef int64_t word
        if window is not None:
            self.windows[producer] = self.windows.pop(producer)
            word = (number - window.first) // 64
            if window.first >= 0 and number >= window.first and word < window.arrays:
                window.words[(window.start + word) % window.arrays] &= ~(<uint64_t> 1 << (number & 63))
        return 0

    def is_duplicate(self, producer, int64_t number):
        """Whether the id was checked before; records it."""
        return self.was_recorded(producer, number)

    def rollback(self, producer, int64_t number):
        """Forget an id: the next check of it answers False."""
        self.forget(producer, number)

    def _check(self):
        """Assert the invariants of the windows."""
        cdef Window window
        assert len(self.windows) <= max(self.producers, 0)
        for each in self.windows.values():
            window = each
            assert 0 <= window.start < window.arrays
            assert window.first < 0 or window.first % 64 == 0
