"""message_slots: the messages of one queue, each in a slot, and the *chains* they lie in, in order.

A chain is a cursor (stored, not paged in: message_cursors.pxd), the window (paged in, waiting: pending_messages.pxd),
or what one consumer holds.

A message's handle is its slot with the slot's generation, which rises when the slot is freed. New slots start at the
lowest generation, so that a handle from before ``shed`` never refers to one of them.

Invariants: a message lies in one chain; ``position`` orders the window, smaller first, and holds the tier.
"""

from cpython.object cimport PyObject
from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.lowlevel.linked_list cimport Chain, append_slot, prepend_slot, unlink_slot


cdef enum Whereabouts:
    NOWHERE          # the slot is free
    STORED           # in a cursor
    WAITING          # in the window
    IN_FLIGHT        # dispatched to a consumer, not acknowledged
    IN_DOUBT         # in the window, acknowledged in an open transaction whose consumer left
    REMOVED          # removed from the queue while a consumer still holds it
    STRANDED         # paged in and in no list: a selector raised on it or on one before it (exact selector errors)


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
    int32_t before               # slot in the bucket, -1
    int32_t after
    int32_t previous             # slot in the chain, -1
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


@final
cdef class MessageSlots:
    cdef Message* at             # slot -> message
    cdef int32_t slots
    cdef int32_t vacant          # first free slot, linked by next

    cdef int32_t allot(self) except -1
    cdef void add_slots(self, int32_t room, int32_t generation) noexcept nogil
    cdef void clear(self, int32_t message) noexcept nogil     # to the values of a new message
    cdef int discard(self, int32_t message) except -1
    cdef int shed(self) except -1                             # every slot is free: frees the memory of a peak

    cdef list handles(self, Chain* chain)                     # of its messages, in order
    cdef inline int64_t handle_of(self, int32_t message) noexcept nogil:
        return (<int64_t> self.at[message].generation << 32) | message

    cdef inline bint on_queue(self, int32_t message) noexcept nogil:
        return self.at[message].whereabouts not in (NOWHERE, REMOVED)

    cdef inline void link(self, Chain* chain, int32_t message) noexcept nogil:
        append_slot(chain, &self.at.previous, sizeof(Message), message)

    cdef inline void link_first(self, Chain* chain, int32_t message) noexcept nogil:
        prepend_slot(chain, &self.at.previous, sizeof(Message), message)

    cdef inline void unlink(self, Chain* chain, int32_t message) noexcept nogil:
        unlink_slot(chain, &self.at.previous, sizeof(Message), message)
