"""Messages of a queue that are not paged in; see message_cursors.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.lowlevel.linked_list cimport Chain, start_chain
from pyengine._engine.activemq.queue.message_slots cimport STORED, Message, MessageSlots


@final
cdef class MessageCursors:
    """Internal to a queue; see message_cursors.pxd."""

    def __cinit__(self, MessageSlots messages not None, bint prioritized, int turns):
        self.messages = messages
        self.prioritized = prioritized
        self.turns = turns
        self.renew()

    cdef void renew(self) noexcept nogil:
        cdef int tier
        for tier in range(20):
            start_chain(&self.cursor[tier])
        for tier in range(3):
            start_chain(&self.unread[tier])
        self.cached = True
        self.stored = self.served = 0
        self.pages = 0

    cdef void store(self, int32_t message) noexcept nogil:
        cdef Message* sent = &self.messages.at[message]
        sent.unread = not self.cached and not self.cursor_number(message)
        self.messages.link(self.cursor_of(message), message)
        sent.whereabouts = STORED
        self.stored += 1

    cdef void unstore(self, int32_t message) noexcept nogil:
        self.messages.unlink(self.cursor_of(message), message)
        self.stored -= 1

    cdef Chain* cursor_of(self, int32_t message) noexcept nogil:
        cdef const Message* sent = &self.messages.at[message]
        cdef int tier = 9 - sent.priority if self.prioritized else 0
        if sent.unread:
            # KahaDB separates messages above, at and below the default priority.
            return &self.unread[(sent.priority < 5) + (sent.priority < 4) if self.prioritized else 1]
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
                self.messages.unlink(&self.unread[level], message)
                self.messages.at[message].unread = 0
                self.messages.link(self.cursor_of(message), message)
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
                    self.messages.unlink(&self.cursor[level], message)
                    self.stored -= 1
                    self.messages.at[message].paged = self.pages
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
        self.messages.at[message].paged = self.pages
        self.pages += 1

    def _check(self):
        """Assert the invariants of message_cursors.pxd."""
        cdef int tier
        cdef int32_t total = 0
        for tier in range(20):
            total += self.cursor[tier].count
        for tier in range(3):
            total += self.unread[tier].count
        assert total == self.stored
        assert not self.cached or not self.has_unread()
