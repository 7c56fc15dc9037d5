"""message_slots: the messages of one queue, each in a slot, and the *chains* they lie in, in order.

A chain is a cursor (stored, not paged in), the window (paged in, waiting), or what one consumer holds. Cursors and
window are several chains, one per *tier*, asked in order of the tier; a tier of the window is (priority if messages are
prioritized, redelivered before new). There is a cursor for persistent messages and one for the others, as in
StoreQueueCursor; ``turns``: when they alternate. A broker that starts with persistent messages reads them from its
store batch by batch (AbstractStoreCursor): until none is left they are ``unread``, in the order of the store, and the
cursor has the batch alone.

A message's handle is its slot with the slot's generation, which rises when the slot is freed. New slots start at the
lowest generation, so that a handle from before ``shed`` never refers to one of them.

Invariants: a message lies in one chain; ``position`` orders the window, smaller first, and holds the tier.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.lowlevel.linked_list cimport Chain
from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport GroupMap


cdef enum Whereabouts:
    NOWHERE          # the slot is free
    STORED           # in a cursor
    WAITING          # in the window
    IN_FLIGHT        # dispatched to a consumer, not acknowledged
    IN_DOUBT         # in the window, acknowledged in an open transaction whose consumer left
    REMOVED          # removed from the queue while a consumer still holds it
    STRANDED         # paged in and in no list: a selector raised on it or on one before it (exact selector errors)


cdef enum Turns:
    ONE_CURSOR          # both kinds in the first
    PERSISTENT_FIRST    # a broker without a store: its memory cursor never reports further messages
    UNTIL_DRAINED       # a broker with a store: a cursor is served until it, or its batch, is empty


cdef struct Message:
    int64_t position
    int64_t sequence             # arrival number in this queue
    int64_t expiration           # ms, 0 never
    int64_t paged                # page-in number, -1 not paged in
    int64_t joined               # first round that can find it in its bucket
    PyObject* body               # owned, or NULL
    int32_t group                # handle, -1 none
    int32_t group_sequence
    int32_t match                # match class
    int32_t bucket
    int32_t before               # in the bucket
    int32_t after
    int32_t previous             # in the chain
    int32_t next
    int32_t consumer             # slot it is in flight at, -1
    int32_t redeliveries
    int32_t generation
    int32_t connection           # of its producer, -1 unknown
    uint8_t priority             # 0..9
    uint8_t transient            # not persistent
    uint8_t whereabouts
    uint8_t group_first
    uint8_t acknowledged         # in an open transaction
    uint8_t errors               # a selector could not be evaluated on it
    uint8_t unread               # stored, and in no batch of its cursor yet


cdef enum:
    SPARE = 4096     # slots that are kept when a queue runs empty


cdef class MessageSlots:
    cdef ConsumerList consumers
    cdef GroupMap groups
    cdef bint prioritized
    cdef Message* at             # slot -> message
    cdef int32_t slots
    cdef int32_t vacant          # first free slot, linked by next
    cdef int turns
    cdef int served              # the cursor whose turn it is: 0 of the persistent messages, 1 of the others
    cdef bint cached             # new messages join the persistent cursor's batch at once
    cdef int64_t batch_size      # of the next batch that is read
    cdef Chain cursor[20]        # 10 * cursor + tier
    cdef Chain unread[3]         # persistent messages that are in no batch, by level of the store
    cdef Chain window[20]
    cdef int32_t stored          # messages in the cursors
    cdef int32_t waiting         # messages in the window
    cdef int32_t redelivered     # of these, in the redelivered tiers
    cdef int64_t pages           # messages paged in so far

    cdef int32_t allot(self) except -1
    cdef void add_slots(self, int32_t room, int32_t generation) noexcept nogil
    cdef void clear(self, int32_t message) noexcept nogil     # to the values of a new message
    cdef int discard(self, int32_t message) except -1
    cdef int shed(self) except -1                             # every slot is free: frees the memory of a peak
    cdef void store(self, int32_t message) noexcept nogil
    cdef void unstore(self, int32_t message) noexcept nogil   # out of its cursor, from any position
    cdef inline int cursor_number(self, int32_t message) noexcept nogil:
        return 1 if self.at[message].transient and self.turns != ONE_CURSOR else 0

    cdef Chain* cursor_of(self, int32_t message) noexcept nogil
    cdef inline bint has_unread(self) noexcept nogil:
        return self.unread[0].count > 0 or self.unread[1].count > 0 or self.unread[2].count > 0

    cdef bint serves(self, int cursor) noexcept nogil         # whether it has a message that was read
    cdef void begin_page(self, int64_t size) noexcept nogil   # before the ``page_in`` of a round of at most ``size``
    cdef void read_batch(self) noexcept nogil
    cdef int32_t page_in(self) noexcept nogil                 # takes out the next message of the cursors; -1 empty
    cdef void page_alone(self, int32_t message) noexcept nogil   # stored and paged in while the cursors are empty
    cdef void link(self, Chain* chain, int32_t message) noexcept nogil
    cdef void link_first(self, Chain* chain, int32_t message) noexcept nogil
    cdef void unlink(self, Chain* chain, int32_t message) noexcept nogil
    cdef int tier(self, int32_t message, bint redelivered) noexcept nogil
