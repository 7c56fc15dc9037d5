"""pending: the messages of one queue, and the index that finds the next one somebody can take without looking at the
rest.

A message lies in one *chain*: a cursor (stored, not paged in), the window (paged in, waiting), or the dispatched
chain of a consumer. Cursors and window are several chains, one per *tier*, asked in order of the tier; a tier of the
window is (priority if messages are prioritized, redelivered before new). There is a cursor for persistent messages and
one for the others, as in StoreQueueCursor; ``turns`` says when they change.

A waiting message also lies in a *bucket*: same match class, same group key (or no claim on a group), same tier, in
order. A bucket lies in a *lane*: the owner's lane if its group has an owner who matches, no lane (parked) if the owner
does not match, else the lane of its class. All buckets of a lane can be taken, or cannot, at the same moment. Lanes
that may be takeable lie in the ready heap; the others are passed over until ``wake`` or ``replace``.

Invariants: ``position`` orders the window, smaller first; within a bucket ``current`` is the next message to try, the
head except in a round that went past it; lane and ready heaps are ordered by the position of ``current``; a lane in
neither the ready heap nor the ``blocked`` list is empty, or an owner's lane whose owner is not open.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.consumers cimport Chain, ConsumerList
from pyengine._engine.groups cimport GroupMap, Moment


cdef enum Whereabouts:
    NOWHERE          # the slot is free
    STORED           # in a cursor
    WAITING          # in the window
    IN_FLIGHT        # handed to a consumer, not acknowledged
    IN_DOUBT         # in the window, acknowledged in an open transaction whose consumer left
    REMOVED          # taken off the queue while a consumer still holds it
    STRANDED         # paged in, and lost to every round: a selector raised on it or before it (exact selector errors)


cdef enum Turns:
    ONE_CURSOR          # both kinds in the first
    PERSISTENT_FIRST    # a broker without a store, whose cursor in memory never says that it has more
    UNTIL_DRAINED       # a broker with a store: the cursor that is served is served until it is empty


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


cdef struct Bucket:
    int64_t label                # (class, group key, tier)
    int32_t match
    int32_t key                  # group key, -1 none
    int32_t head
    int32_t tail
    int32_t current              # -1: a round went past all of it
    int32_t count
    int32_t lane                 # -1 parked or past
    int32_t place                # in the lane's heap
    int32_t previous             # among the buckets of the group
    int32_t next
    uint8_t late                 # a round went past its head


cdef struct Lane:
    int32_t* heap                # buckets
    int32_t size
    int32_t room
    int32_t place                # in the ready heap, -1
    int32_t blocked              # in the blocked list, -1


cdef class Pending:
    cdef ConsumerList consumers
    cdef GroupMap groups
    cdef bint prioritized
    cdef Message* at             # slot -> message
    cdef int32_t slots
    cdef int32_t vacant          # first free slot, linked by next
    cdef int turns
    cdef int served              # the cursor whose turn it is: 0 of the persistent messages, 1 of the others
    cdef Chain cursor[20]        # 10 * cursor + tier
    cdef Chain window[20]
    cdef int32_t stored          # messages in the cursors
    cdef int32_t waiting         # messages in the window
    cdef int32_t redelivered     # of these, in the redelivered tiers
    cdef int64_t appended        # position counters
    cdef int64_t prepended
    cdef int64_t pages           # messages paged in so far
    cdef Bucket* buckets
    cdef int32_t bucket_slots
    cdef int32_t vacant_bucket
    cdef int64_t* labels         # open addressing: label -> bucket
    cdef int32_t* labelled
    cdef int64_t label_room
    cdef int64_t label_count
    cdef int32_t* of_group       # group key -> first of its buckets, -1
    cdef int32_t group_room
    cdef Lane* lanes             # 2 * slot: an owner's lane; 2 * class + 1: the lane of a class
    cdef int32_t lane_room
    cdef int32_t* ready          # heap of lanes
    cdef int32_t ready_size
    cdef int32_t* blocked        # class lanes with buckets that nobody open can take
    cdef int32_t blocked_size
    cdef int64_t frontier        # position the round has come to; -1 outside a round
    cdef int32_t* late           # buckets a round went past
    cdef int32_t late_size
    cdef int32_t late_room

    cdef int32_t allot(self) except -1
    cdef void clear(self, int32_t message) noexcept nogil     # as a message is that just came
    cdef int discard(self, int32_t message) except -1
    cdef int renew(self) except -1                            # no message was ever here
    cdef void store(self, int32_t message) noexcept nogil
    cdef Chain* cursor_of(self, int32_t message) noexcept nogil
    cdef int32_t page_in(self) noexcept nogil                 # next of the cursors, taken out; -1 empty
    cdef void link(self, Chain* chain, int32_t message) noexcept nogil
    cdef void link_first(self, Chain* chain, int32_t message) noexcept nogil
    cdef void unlink(self, Chain* chain, int32_t message) noexcept nogil
    cdef int tier(self, int32_t message, bint redelivered) noexcept nogil
    cdef int wait(self, int32_t message, bint redelivered, bint ahead) except -1     # into the window
    cdef int index(self, int32_t message) except -1
    cdef int unindex(self, int32_t message) except -1
    cdef int withdraw(self, int32_t message) except -1        # out of the window
    cdef int regroup(self, int32_t key) except -1             # the owner of a group changed
    cdef int replace_all(self) except -1                      # consumers, classes or all groups changed
    cdef int wake(self, int32_t slot) except -1               # a consumer opened
    cdef int32_t next_ready(self) except -2                   # next message worth trying, -1 none
    cdef bint passes(self, int64_t after, int32_t message) noexcept nogil   # does one wait in between? -1: to the end
    cdef int retire(self, int32_t message) except -1          # nobody took it after all
    cdef Moment last_look(self, int32_t key) noexcept nogil   # at a group, for a message of it that waits
    cdef int settle(self) except -1                           # reckon every look-up that was not made
    cdef int settle_eldest(self) except -1                    # so that the eldest group is the broker's
    cdef int begin(self) except -1
    cdef int finish(self) except -1

    cdef int resize_labels(self, int64_t room) except -1
    cdef int64_t seat(self, int64_t label) noexcept nogil
    cdef int32_t get_label(self, int64_t label) noexcept nogil
    cdef int put_label(self, int64_t label, int32_t bucket) except -1
    cdef void drop_label(self, int64_t label) noexcept nogil
    cdef int replace(self, int32_t bucket) except -1
    cdef int64_t urgency(self, int32_t lane) noexcept nogil
    cdef int join_lane(self, int32_t bucket, int32_t lane) except -1
    cdef int leave_lane(self, int32_t bucket) except -1
    cdef void sift(self, int32_t lane, int32_t place) noexcept nogil
    cdef bint lane_open(self, int32_t lane) noexcept nogil
    cdef void reorder(self, int32_t lane) noexcept nogil
    cdef void make_ready(self, int32_t lane) noexcept nogil
    cdef void unready(self, int32_t lane) noexcept nogil
    cdef void block(self, int32_t lane) noexcept nogil
    cdef void unblock(self, int32_t lane) noexcept nogil
