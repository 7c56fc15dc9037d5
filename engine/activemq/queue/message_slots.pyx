"""Messages of a queue and the chains they lie in; see message_slots.pxd."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport resize, try_resize
from pyengine._engine.lowlevel.linked_list cimport Chain, append_slot, prepend_slot, start_chain, unlink_slot


cdef class MessageSlots:
    """Internal to a queue; see message_slots.pxd."""

    def __cinit__(self, ConsumerList consumers not None, GroupMap groups not None, bint prioritized, int turns):
        cdef int tier
        self.consumers = consumers
        self.groups = groups
        self.prioritized = prioritized
        self.turns = turns
        self.vacant = -1
        self.cached = True
        for tier in range(20):
            start_chain(&self.cursor[tier])
            start_chain(&self.window[tier])
        for tier in range(3):
            start_chain(&self.unread[tier])

    def __dealloc__(self):
        cdef int32_t index
        for index in range(self.slots):
            if self.at[index].whereabouts != NOWHERE:
                Py_XDECREF(self.at[index].body)
        free(self.at)

    cdef int32_t allot(self) except -1:
        cdef int32_t message, room, generation = 0x3FFFFFFF if self.slots else 0
        if self.vacant < 0:
            room = 4 if self.slots == 0 else 2 * self.slots
            for message in range(self.slots):
                generation = min(generation, self.at[message].generation)
            self.at = <Message*> resize(self.at, room * sizeof(Message))
            self.add_slots(room, generation)
        message = self.vacant
        self.vacant = self.at[message].next
        self.clear(message)
        return message

    cdef void add_slots(self, int32_t room, int32_t generation) noexcept nogil:
        cdef int32_t message
        memset(self.at + self.slots, 0, (room - self.slots) * sizeof(Message))
        for message in range(room - 1, self.slots - 1, -1):
            self.at[message].generation = generation
            self.at[message].next = self.vacant
            self.vacant = message
        self.slots = room

    cdef int shed(self) except -1:
        cdef int32_t message, generation = 0
        cdef void* fewer
        for message in range(self.slots):
            generation = max(generation, self.at[message].generation)
        self.slots = 0
        self.vacant = -1
        self.add_slots(64, generation)
        fewer = try_resize(self.at, 64 * sizeof(Message))
        if fewer != NULL:
            self.at = <Message*> fewer
        return 0

    cdef void clear(self, int32_t message) noexcept nogil:
        self.at[message].body = NULL
        self.at[message].transient = 0
        self.at[message].paged = -1
        self.at[message].bucket = -1
        self.at[message].consumer = -1
        self.at[message].redeliveries = 0
        self.at[message].group_first = 0
        self.at[message].acknowledged = 0
        self.at[message].errors = 0
        self.at[message].unread = 0

    cdef int discard(self, int32_t message) except -1:
        cdef PyObject* body = self.at[message].body
        self.at[message].whereabouts = NOWHERE
        self.at[message].generation = (self.at[message].generation + 1) & 0x3FFFFFFF
        self.at[message].next = self.vacant
        self.at[message].body = NULL
        self.vacant = message
        Py_XDECREF(body)
        return 0

    cdef void link(self, Chain* chain, int32_t message) noexcept nogil:
        append_slot(chain, &self.at.previous, sizeof(Message), message)

    cdef void link_first(self, Chain* chain, int32_t message) noexcept nogil:
        prepend_slot(chain, &self.at.previous, sizeof(Message), message)

    cdef void unlink(self, Chain* chain, int32_t message) noexcept nogil:
        unlink_slot(chain, &self.at.previous, sizeof(Message), message)

    cdef void store(self, int32_t message) noexcept nogil:
        self.at[message].unread = not self.cached and not self.cursor_number(message)
        self.link(self.cursor_of(message), message)
        self.at[message].whereabouts = STORED
        self.stored += 1

    cdef void unstore(self, int32_t message) noexcept nogil:
        self.unlink(self.cursor_of(message), message)
        self.stored -= 1

    cdef Chain* cursor_of(self, int32_t message) noexcept nogil:
        cdef int tier = 9 - self.at[message].priority if self.prioritized else 0
        if self.at[message].unread:
            # KahaDB separates messages above, at and below the default priority.
            return &self.unread[(self.at[message].priority < 5) + (self.at[message].priority < 4)
                                if self.prioritized else 1]
        return &self.cursor[10 * self.cursor_number(message) + tier]

    cdef bint serves(self, int cursor) noexcept nogil:
        cdef int tier
        for tier in range(10 * cursor, 10 * cursor + (10 if self.prioritized else 1)):
            if self.cursor[tier].count:
                return True
        return False

    cdef void begin_page(self, int64_t size) noexcept nogil:
        self.batch_size = size
        if self.has_unread() and not self.serves(0):
            self.read_batch()

    cdef void read_batch(self) noexcept nogil:
        cdef int level
        cdef int32_t message
        cdef int64_t left = self.batch_size
        for level in range(3):
            while left > 0 and self.unread[level].count:
                message = self.unread[level].first
                self.unlink(&self.unread[level], message)
                self.at[message].unread = 0
                self.link(self.cursor_of(message), message)
                left -= 1

    cdef int32_t page_in(self) noexcept nogil:
        cdef int _, level
        cdef int32_t message
        if self.stored == 0:
            return -1
        if self.turns != UNTIL_DRAINED:
            self.served = 0
        for _ in range(3):
            for level in range(10 * self.served, 10 * self.served + (10 if self.prioritized else 1)):
                message = self.cursor[level].first
                if message >= 0:
                    self.unlink(&self.cursor[level], message)
                    self.stored -= 1
                    self.at[message].paged = self.pages
                    self.pages += 1
                    return message
            # An empty batch passes the turn to the other cursor; if that is empty, the next batch is read.
            if self.served == 0 and self.has_unread() and not self.serves(1):
                self.read_batch()
            else:
                self.served = 1 - self.served
        return -1

    cdef void page_alone(self, int32_t message) noexcept nogil:
        self.served = self.cursor_number(message)
        self.at[message].paged = self.pages
        self.pages += 1

    cdef int tier(self, int32_t message, bint redelivered) noexcept nogil:
        return (2 * (9 - self.at[message].priority) if self.prioritized else 0) + (not redelivered)

    def _check(self):
        """Assert the invariants of message_slots.pxd."""
        cdef int32_t message, previous, total = 0
        cdef int tier
        for tier in range(20):
            previous = -1
            message = self.window[tier].first
            while message >= 0:
                assert self.at[message].whereabouts in (WAITING, IN_DOUBT)
                assert self.at[message].position >> 58 == tier
                assert self.at[message].previous == previous
                assert previous < 0 or self.at[previous].position < self.at[message].position
                total += 1
                previous = message
                message = self.at[message].next
            assert previous == self.window[tier].last
        assert total == self.waiting
        assert sum([self.window[tier].count for tier in range(20)]) == self.waiting
        assert sum([self.window[tier].count for tier in range(0, 20, 2)]) == self.redelivered
        total = sum([it.count for it in self.unread])
        assert total + sum([self.cursor[tier].count for tier in range(20)]) == self.stored
        assert not self.cached or not self.has_unread()
