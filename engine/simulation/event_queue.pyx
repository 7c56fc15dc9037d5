# cython: freethreading_compatible=True
"""Events by time, the earliest first."""

from cython cimport final

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport resize

from pyengine.errors import InvalidMessageError


@final
cdef class Agenda:
    """Entries by time and order. Filled by a simulation's room."""

    def __dealloc__(self):
        free(self.heap)

    def __reduce__(self):
        raise TypeError("the agenda of a simulation cannot be pickled")

    cdef inline int64_t next_time(self) noexcept:
        return self.heap[0].time if self.size else NEVER

    cdef inline int64_t take_order(self) noexcept:
        self.orders += 1
        return self.orders

    cdef int plan(self, int64_t time, int what, int32_t who, int64_t number, int64_t epoch=0) except -1:
        return self.push(Due(time, self.take_order(), number, epoch, who, what))

    cdef int push(self, Due entry) except -1:
        cdef int64_t place = self.size, above, larger
        cdef Due* grown
        if entry.time == NEVER:
            return 0
        if self.size == self.room:
            larger = 2 * self.room if self.room else 64
            grown = <Due*> resize(self.heap, larger * sizeof(Due))
            self.heap, self.room = grown, larger
        self.size += 1
        while place > 0:
            above = (place - 1) >> 1
            if not sooner(&entry, &self.heap[above]):
                break
            self.heap[place] = self.heap[above]
            place = above
        self.heap[place] = entry
        return 0

    cdef Due pop(self) noexcept:
        cdef Due first = self.heap[0]
        cdef Due* last
        cdef int64_t place = 0, below
        self.size -= 1
        last = &self.heap[self.size]
        while True:
            below = 2 * place + 1
            if below >= self.size:
                break
            if below + 1 < self.size and sooner(&self.heap[below + 1], &self.heap[below]):
                below += 1
            if not sooner(&self.heap[below], last):
                break
            self.heap[place] = self.heap[below]
            place = below
        self.heap[place] = last[0]
        return first

    def _check(self):
        """Raise AssertionError unless the invariants of event_queue.pxd hold."""
        cdef int64_t index
        assert 0 <= self.size <= self.room
        for index in range(self.size):
            assert self.heap[index].order <= self.orders
            assert self.heap[index].time < NEVER
            assert index == 0 or not sooner(&self.heap[index], &self.heap[(index - 1) >> 1])


cdef double work_factor(double factor, int64_t longest) except? -1:
    """How many times as long work takes, checked: ``longest`` (ns, at least 1) times it must be a time."""
    if not 0 <= factor * longest < 9223372036854775808.0:
        raise InvalidMessageError("factor", factor, f"must not be negative, nor work of {longest} ns take 292 years")
    return factor


cdef inline bint sooner(const Due* one, const Due* other) noexcept nogil:
    return one.time < other.time or (one.time == other.time and one.order < other.order)
