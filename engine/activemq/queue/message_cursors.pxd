"""message_cursors: the messages of one queue that are not paged in.

A cursor is several chains, one for each *tier*, served in order: by priority if messages are prioritized. There is a
cursor for persistent messages and one for the others, as in StoreQueueCursor; ``turns``: when they alternate. A broker
that starts with persistent messages reads them from its store batch by batch (AbstractStoreCursor): until none is left
they are ``unread``, in the order of the store, and the cursor has the batch alone.

Invariants: ``stored`` counts the messages of all chains; none is unread while ``cached``.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.lowlevel.linked_list cimport Chain
from pyengine._engine.activemq.queue.message_slots cimport MessageSlots


cdef enum Turns:
    ONE_CURSOR          # both kinds in the first
    PERSISTENT_FIRST    # a broker without a store: its memory cursor never reports further messages
    UNTIL_DRAINED       # a broker with a store: a cursor is served until it, or its batch, is empty


@final
cdef class MessageCursors:
    cdef MessageSlots messages
    cdef bint prioritized
    cdef int turns
    cdef int served              # the cursor whose turn it is: 0 of the persistent messages, 1 of the others
    cdef bint cached             # new messages join the persistent cursor's batch at once
    cdef int64_t batch_size      # of the next batch that is read
    cdef Chain cursor[20]        # 10 * cursor + tier
    cdef Chain unread[3]         # persistent messages that are in no batch, by level of the store
    cdef int32_t stored          # messages in the cursors
    cdef int64_t pages           # messages paged in so far

    cdef void store(self, int32_t message) noexcept nogil
    cdef void unstore(self, int32_t message) noexcept nogil   # out of its cursor, from any position
    cdef void renew(self) noexcept nogil                      # as constructed; no message is in a chain
    cdef inline int cursor_number(self, int32_t message) noexcept nogil:
        return 1 if self.messages.at[message].transient and self.turns != ONE_CURSOR else 0

    cdef Chain* cursor_of(self, int32_t message) noexcept nogil
    cdef inline bint has_unread(self) noexcept nogil:
        return self.unread[0].count > 0 or self.unread[1].count > 0 or self.unread[2].count > 0

    cdef bint serves(self, int cursor) noexcept nogil         # whether it has a message that was read
    cdef void begin_page(self, int64_t size) noexcept nogil   # before the ``page_in`` of a round of at most ``size``
    cdef void read_batch(self) noexcept nogil
    cdef int32_t page_in(self) noexcept nogil                 # takes out the next message of the cursors; -1 empty
    cdef void page_alone(self, int32_t message) noexcept nogil   # stored and paged in while the cursors are empty
