"""message_references: the messages of topics, each stored once, and the references of subscriptions to them.

A message lies in a *slot* and is known by its *handle*: its arrival number in the region (the broker sequence id),
which only grows and is never reused, so a store may keep it. A *reference* is one subscription's hold on one
message; references lie in *lines*: waiting ones, and dispatched ones that are not acknowledged.

Invariants: a slot is in use if and only if it has holds (references, recovery policies, a send under way); ``holds``
counts them. ``table`` finds the slot of each handle in use (open addressing, at most half full). ``stored`` counts the
references that durable subscriptions hold to a persistent message; while it is not 0 the message lies in the chain
``stored_*`` of its topic, in order of arrival.
"""

from cpython.object cimport PyObject
from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.lowlevel.linked_list cimport Chain, append_slot, prepend_slot, unlink_slot


cdef struct Post:
    int64_t handle               # -1: the slot is free
    int64_t expiration           # ms, 0 never
    int64_t timestamp            # ms
    int64_t size                 # bytes
    PyObject* body               # owned, or NULL
    int32_t topic
    int32_t holds
    int32_t stored
    int32_t stored_before        # slots, -1 none
    int32_t stored_after         # of a free slot: the next free one
    int32_t connection           # of its producer, -1 unknown
    uint8_t priority             # 0..9
    uint8_t persistent
    uint8_t expiry_reported      # an earlier scan found it expired


cdef struct Reference:
    int32_t message              # slot; -1: it is free
    int32_t previous             # reference in its line, -1 none
    int32_t next                 # the same; of a free one: the next free one
    int32_t redeliveries
    uint8_t stored               # counted in the message's ``stored``
    uint8_t acknowledged         # in an open transaction
    uint8_t queued               # in a cursor of a durable subscription


ctypedef Chain Line             # of references


@final
cdef class MessageReferences:
    cdef Post* at                # slot -> message
    cdef int32_t slots
    cdef int32_t free_slot
    cdef Reference* refs
    cdef int32_t ref_slots
    cdef int32_t free_ref
    cdef int32_t* table          # place -> slot, -1 none
    cdef int64_t table_size      # a power of 2
    cdef int64_t live            # slots in use
    cdef int64_t referenced      # references in use
    cdef readonly int64_t next_handle

    cdef int32_t add(self, object body, int64_t handle) except -1       # with one hold; handle -1: the next one
    cdef int release(self, int32_t message) except -1
    cdef int32_t find(self, int64_t handle) noexcept nogil              # -1: it is gone
    cdef int replace_body(self, int32_t message, object body) except -1
    cdef inline int reserve_reference(self) except -1:           # the next ``refer`` takes no memory
        if self.free_ref < 0:
            self.enlarge_references()
        return 0

    cdef int enlarge_references(self) except -1
    cdef int32_t refer(self, int32_t message) except -1
    cdef int drop(self, int32_t reference) except -1

    cdef inline void append(self, Line* line, int32_t reference) noexcept nogil:
        append_slot(line, &self.refs.previous, sizeof(Reference), reference)

    cdef inline void prepend(self, Line* line, int32_t reference) noexcept nogil:
        prepend_slot(line, &self.refs.previous, sizeof(Reference), reference)

    cdef inline void unlink(self, Line* line, int32_t reference) noexcept nogil:
        unlink_slot(line, &self.refs.previous, sizeof(Reference), reference)

    cdef list handles(self, Line* line)                          # of its messages, in order
    cdef int rehash(self, int64_t size) except -1
    cdef void enter(self, int64_t handle, int32_t message) noexcept nogil
    cdef void forget(self, int64_t handle) noexcept nogil
    cdef int check_line(self, Line* line, list holds) except -1
