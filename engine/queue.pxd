"""queue: the rounds of one point-to-point queue. Events in, decisions out; ``now`` (ms) is an argument.

An event (send, acknowledge, consumer added or removed, ...) changes the state and asks for wakeups; ``run`` makes one round
for each wakeup, as the broker does. A round pages messages in and hands out what can be handed out (spec activemq 2.2).

Invariants: a message is in exactly one place (see pending.pxd); ``sent == stored + waiting + in flight + gone``; nothing a
round could hand out is left behind by it unless the group it waits for changed owner behind the round's back.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.consumers cimport ConsumerList
from pyengine._engine.groups cimport GroupMap
from pyengine._engine.pending cimport Pending


cpdef enum HoldReason:
    NOT_HELD = 0                # in flight
    NO_CONSUMER = 1             # nobody (but browsers) consumes this queue
    START_DELAY = 2             # dispatch starts later
    PAUSED = 3
    NOT_PAGED_IN = 4            # behind the paging window
    TARGET_ABSENT = 5           # addressed to a consumer that is not there
    SELECTOR = 6                # no consumer's selector matches
    NO_LOCAL = 7                # every consumer that could match refuses its own connection's messages
    EXCLUSIVE_NO_CREDIT = 8     # the elected consumer is full, the others stand by
    EXCLUSIVE_SELECTOR = 9      # the elected consumer's selector refuses, the others stand by
    EXCLUSIVE_NO_LOCAL = 10
    EXCLUSIVE_GROUP = 11        # the group is owned by a consumer that stands by
    GROUP_NO_CREDIT = 12        # the owner of the group is full
    GROUP_SELECTOR = 13         # the owner's selector refuses
    GROUP_NO_LOCAL = 14
    NO_CREDIT = 15              # all matching consumers are full
    UNCOMMITTED = 16            # acknowledged in a transaction that is still open
    AWAITING_WAKEUP = 17        # the next round will hand it out


cpdef enum Verdict:
    TAKES = 0
    BROWSES = 1
    FULL = 2
    PAUSES = 3
    NOT_TARGET = 4
    REFUSES_LOCAL = 5
    REFUSES = 6
    STANDS_BY = 7
    OWNED_BY_OTHER = 8


cpdef enum AckKind:
    INDIVIDUAL = 4              # the message only
    STANDARD = 2                # first..last in dispatch order
    DELIVERED = 0               # nothing is acknowledged; the prefetch window widens
    POISON = 1                  # first..last are taken off the queue for the dead-letter queue
    EXPIRED = 6                 # first..last had expired at the client


cdef struct Handout:
    int64_t consumer            # id
    int64_t handle              # -1: the null dispatch that ends a pull
    int64_t sequence
    int32_t message
    int32_t slot
    int32_t redeliveries
    int32_t group_first


cdef struct Totals:
    int64_t enqueues
    int64_t dequeues
    int64_t dispatched
    int64_t expired
    int64_t rounds
    int64_t tries               # messages a round looked at; what a round costs
    int64_t selector_errors


cdef class Delivery:
    cdef readonly int64_t consumer
    cdef readonly object message
    cdef readonly object body
    cdef readonly int redeliveries
    cdef readonly bint group_first


cdef class Queue:
    cdef readonly object max_page_size
    cdef readonly object max_browse_page_size
    cdef readonly bint strict_order_dispatch
    cdef readonly bint prioritized_messages
    cdef readonly bint lazy_dispatch
    cdef readonly int consumers_before_dispatch_starts
    cdef readonly int time_before_dispatch_starts
    cdef GroupMap groups
    cdef ConsumerList consumers
    cdef Pending pending
    cdef int64_t page_size           # window; -1 none
    cdef int64_t rounds_due          # rounds asked for
    cdef int64_t next_sequence
    cdef int64_t in_flight
    cdef Totals totals
    cdef dict connections            # name -> number
    cdef dict transactions           # name -> [(consumer slot or -1, message)]
    cdef list browsers               # slots of browsers whose pass is not over
    cdef dict browsed                # slot -> page-in numbers seen
    cdef bint first_consumer
    cdef int64_t latch
    cdef int64_t start_at           # -1: no delay running
    cdef Handout* out
    cdef int64_t out_size
    cdef int64_t out_room
    cdef int32_t* fresh              # paged in by this round, not tried yet
    cdef int32_t fresh_room
    cdef list removed                # (handle, "expired" | "poison") since the caller last asked

    cdef int round(self, int64_t now) except -1
    cdef int32_t choose(self, int32_t message, int32_t* changed) except -2

    cdef int32_t join(self, object selector, int32_t connection, bint no_local) except -1
    cdef int reclass(self, int32_t message, int32_t match) except -1
    cdef int name_consumer(self, int32_t slot, object name) except -1
    cdef bint ask(self, int32_t message, object selector, int32_t connection) except -1
    cdef int reopen(self) except -1
    cdef int refresh(self, int32_t slot) except -1
    cdef int32_t slot_of(self, object consumer) except -1
    cdef int32_t find(self, object handle) except -2
    cdef int32_t message_of(self, object handle) except -1
    cdef object handle_of(self, int32_t message)
    cdef int accept(self, int32_t message) except -1
    cdef int run_wakeups(self, int64_t now) except -1
    cdef list take_out(self)
    cdef int emit(self, int32_t slot, int32_t message) except -1
    cdef bint delayed(self, int64_t now) except -1
    cdef int dispatch(self, int64_t now) except -1
    cdef int dispatch_with(self, int64_t now, int64_t fresh) except -1
    cdef int hop(self, int64_t now) except -1
    cdef int walk(self, int64_t now) except -1
    cdef int regrouped(self, int32_t* changed) except -1
    cdef int hand_out(self, int32_t message, int32_t slot, int64_t now) except -1
    cdef int expire_message(self, int32_t message) except -1
    cdef int browse_round(self) except -1
    cdef bint browsed_enough(self, int32_t slot) except -1
    cdef int complete(self, int32_t slot, int32_t message) except -1
    cdef int end_pull(self, int32_t slot) except -1
    cdef int take_off(self, int32_t message) except -1
    cdef int refusal(self, int32_t message, int32_t slot) except -1
    cdef (int, int32_t) reason_for(self, int32_t message)
    cdef bint is_local(self, int32_t message, int32_t slot) noexcept
