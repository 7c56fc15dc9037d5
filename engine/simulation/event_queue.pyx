# cython: freethreading_compatible=True
"""Events by time, the earliest first."""

from cython cimport final

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport resize

from pyengine.errors import InvalidMessageError


@final
cdef class EventQueue:
    """Entries by time and order. Filled by the simulations."""

    def __dealloc__(self):
        free(self.heap)

    def __reduce__(self):
        raise TypeError("the event queue of a simulation cannot be pickled")

    cdef inline int64_t next_time(self) noexcept:
        return self.heap[0].time if self.size else NEVER

    cdef inline int64_t next_order(self) noexcept:
        self.last_order += 1
        return self.last_order

    cdef int plan(self, int64_t time, int kind, int32_t subject, int64_t number, int64_t epoch=0) except -1:
        return self.push(Event(time, self.next_order(), number, epoch, subject, kind))

    cdef int push(self, Event entry) except -1:
        cdef int64_t position = self.size, parent, larger
        cdef Event* larger_heap
        if entry.time == NEVER:
            return 0
        if self.size == self.capacity:
            larger = 2 * self.capacity if self.capacity else 64
            larger_heap = <Event*> resize(self.heap, larger * sizeof(Event))
            self.heap, self.capacity = larger_heap, larger
        self.size += 1
        while position > 0:
            parent = (position - 1) >> 1
            if not sooner(&entry, &self.heap[parent]):
                break
            self.heap[position] = self.heap[parent]
            position = parent
        self.heap[position] = entry
        return 0

    cdef Event pop(self) noexcept:
        cdef Event first = self.heap[0]
        cdef Event* last
        cdef int64_t position = 0, child
        self.size -= 1
        last = &self.heap[self.size]
        while True:
            child = 2 * position + 1
            if child >= self.size:
                break
            if child + 1 < self.size and sooner(&self.heap[child + 1], &self.heap[child]):
                child += 1
            if not sooner(&self.heap[child], last):
                break
            self.heap[position] = self.heap[child]
            position = child
        self.heap[position] = last[0]
        return first

    def _check(self):
        """Raise AssertionError unless the invariants of event_queue.pxd hold."""
        cdef int64_t index
        assert 0 <= self.size <= self.capacity
        for index in range(self.size):
            assert self.heap[index].order <= self.last_order
            assert self.heap[index].time < NEVER
            assert index == 0 or not sooner(&self.heap[index], &self.heap[(index - 1) >> 1])


cdef double work_factor(double factor, int64_t longest) except? -1:
    """How many times as long work takes, checked: ``longest`` (ns, at least 1) times it must be a time."""
    if not 0 <= factor * longest < 9223372036854775808.0:
        raise InvalidMessageError("factor", factor, f"must not be negative, nor work of {longest} ns take 292 years")
    return factor


cdef inline bint sooner(const Event* one, const Event* other) noexcept nogil:
    return one.time < other.time or (one.time == other.time and one.order < other.order)
