"""rounds: the state of one point-to-point queue and what a wakeup does to it. ``now`` (ms) is an argument.

An event changes the state and asks for wakeups (``rounds_due``); ``round`` pages messages in and hands out what can be
handed out, once (spec activemq 2.2). What it handed out stands in ``out`` until the caller takes it.

Invariants: a message is in exactly one place (see pending.pxd); messages sent == gone + stored + waiting + in flight. A
round leaves nothing behind that somebody could take, except what became takeable behind its back and what it paged in
while others waited: the next round finds both.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.consumers cimport ConsumerList
from pyengine._engine.groups cimport GroupMap
from pyengine._engine.pending cimport Pending


cdef struct Handout:
    int64_t consumer            # id
    int64_t handle              # -1: the null dispatch that ends a pull or a browse
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


cdef class Rounds:
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
    cdef int64_t rounds_due          # wakeups asked for
    cdef readonly str selector_errors
    cdef readonly str cursor
    cdef int64_t flagged             # messages some selector could not be evaluated on since the queue was made
    cdef int64_t stranded
    cdef bint echo                   # a round asked for one itself: when none is due any more, one more is made
    cdef bint extra                  # this round was not asked for; the first wakeup it asks for is its own
    cdef bint stirred                # the last round changed something
    cdef int64_t next_sequence
    cdef int64_t in_flight
    cdef Totals totals
    cdef dict connections            # name -> number
    cdef dict transactions           # name -> [(handle, consumer id)]
    cdef list browsers               # slots of browsers whose pass is not over
    cdef dict browsed                # slot -> page-in numbers seen
    cdef bint first_consumer         # the next round is the first with consumers
    cdef int64_t latch               # consumers the start delay still waits for
    cdef int64_t start_at            # end of the running start delay; -1 none runs
    cdef Handout* out
    cdef int64_t out_size
    cdef int64_t out_room
    cdef int32_t* fresh              # paged in by this round, not tried yet
    cdef int32_t fresh_room
    cdef list removed                # (handle, "expired" | "poison", object, redeliveries) since the caller last asked
    cdef bint told                   # nothing can move any more, and what is held was told (batches)
    cdef list failed                 # (object, selector) that could not be evaluated, since the caller last asked

    cdef int start_over(self) except -1                          # as made, with its consumers; nobody has ever left
    cdef bint at_rest(self) noexcept                             # as long as nobody joins, leaves or acknowledges
    # Who is there
    cdef int32_t join(self, object selector, int32_t connection, bint no_local, set matching) except -1
    cdef int name_consumer(self, int32_t slot, object name) except -1
    cdef int32_t slot_of(self, object consumer) except -1
    cdef int note_failure(self, int32_t message, object selector) except -1
    cdef int reopen(self) except -1                              # credit, election or pause changed for all
    cdef int refresh(self, int32_t slot) except -1               # credit changed for one
    cdef bint ask(self, int32_t message, object selector, int32_t connection) except -1
    cdef int reclass(self, int32_t message, int32_t match) except -1
    # Messages by handle
    cdef int32_t find(self, object handle) except -2             # -1 if it is gone
    cdef int32_t message_of(self, object handle) except -1
    cdef object handle_of(self, int32_t message)
    cdef object object_of(self, int32_t message)
    cdef int accept(self, int32_t message) except -1
    cdef int complete(self, int32_t slot, int32_t message) except -1
    cdef int take_off(self, int32_t message) except -1
    cdef int expire_message(self, int32_t message) except -1
    # A wakeup
    cdef int ask_again(self) except -1
    cdef int run_wakeups(self, int64_t now, int64_t limit) except -1
    # Exact selector errors
    cdef bint raises(self, int32_t message) except -1
    cdef list doubtful(self)                                     # flagged messages of the window, in order
    cdef int strand_page(self, int64_t start, int64_t fresh) except -1
    # The wakeup's round
    cdef int round(self, int64_t now) except -1                  # 0: a start delay holds it back
    cdef bint delayed(self, int64_t now) except -1
    cdef int dispatch(self, int64_t now, int64_t fresh) except -1
    cdef int hop(self, int64_t now) except -1
    cdef int32_t choose(self, int32_t message, int32_t* changed) except -2
    cdef int regrouped(self, int32_t* changed) except -1
    cdef int hand_out(self, int32_t message, int32_t slot, int64_t now) except -1
    cdef int emit(self, int32_t slot, int32_t message) except -1
    cdef int browse_round(self) except -1
    cdef bint browsed_enough(self, int32_t slot) except -1
    cdef int end_pull(self, int32_t slot) except -1
