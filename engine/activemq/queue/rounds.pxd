"""rounds: the dispatch rounds of a queue. ``now`` (ms) is an argument.

An event changes the state and asks for wakeups (``rounds_due``); ``round`` pages messages in and dispatches those that
can be dispatched, once (spec activemq 2.2). The dispatches stand in ``out`` until the caller takes them.

Invariants: after a round no consumer can take a waiting message, except those that became takeable behind the round's
position and those that it paged in while others waited: the next round finds both. A round that is interrupted, by a
function used as a selector or by the reader of the store, keeps its page waiting, and its dispatches for the next call.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport GroupMap
from pyengine._engine.activemq.queue.message_cursors cimport MessageCursors
from pyengine._engine.activemq.queue.message_slots cimport MessageSlots
from pyengine._engine.activemq.queue.pending_messages cimport PendingMessages
from pyengine._engine.activemq.queue.queue_state cimport QueueState
from pyengine._engine.activemq.queue.ready_index cimport ReadyIndex


cdef struct Handout:
    int64_t consumer            # id
    int64_t handle              # -1: the null dispatch that ends a pull or a browse
    int64_t sequence
    int32_t message
    int32_t slot
    int32_t redeliveries
    int32_t group_first


cdef class QueueListener:        # what the owner of a queue adds to its steps; a plain queue has this one
    # A message was dispatched to a consumer or a browser.
    cdef int dispatched(self, QueueState state, int32_t message, int64_t now) except -1
    cdef int count_redelivery(self, QueueState state, int32_t message) except -1
    cdef int read_on(self) except -1                             # no persistent message is left here to page in


@final
cdef class Rounds:
    cdef QueueState state
    cdef QueueListener listener
    cdef MessageSlots messages       # the parts of ``state``
    cdef MessageCursors cursors
    cdef ReadyIndex ready
    cdef PendingMessages pending
    cdef ConsumerList consumers
    cdef GroupMap groups
    cdef bint echo                   # a round asked for another one: when no other is due, one more runs
    cdef bint extra                  # this round was not requested; the first wakeup that it asks for is its own
    cdef bint stirred                # the last round changed something
    cdef list browsers               # slots of browsers whose pass is not over; None before the first
    cdef dict browsed                # slot -> page-in numbers seen; None before the first
    cdef bint first_consumer         # the next round is the first with consumers
    cdef int64_t latch               # consumers the start delay still waits for
    cdef int64_t start_at            # end of the running start delay; -1 none runs
    cdef Handout* out
    cdef int64_t out_size
    cdef int64_t out_room
    cdef int32_t* fresh              # paged in by this round, not tried yet
    cdef int32_t fresh_room
    cdef int64_t fresh_size
    cdef int64_t placed              # number of ``fresh`` that were dispatched or wait
    cdef int64_t behind              # persistent messages after those here, which ``read_on`` brings
    cdef bint reported                   # nothing can move any more, and held messages were reported (batches)
    cdef tuple closing               # of a ``close`` that ended before it dispatched: (consumer, messages to ask again)

    cdef inline int begin_handing_out(self) except -1:
        self.state.refuse_while_asked()
        if self.out_size:
            self.keep_handouts()
        return 0

    cdef int keep_handouts(self) except -1                       # of an interrupted call, if still valid
    cdef int start_over(self) except -1                          # as constructed, with its consumers
    cdef bint at_rest(self) noexcept                             # until a consumer joins, leaves or acknowledges
    cdef int ask_again(self) except -1
    cdef bint next_round(self, int64_t now) except -1            # False: none is due, or a start delay holds it back
    cdef int run_wakeups(self, int64_t now, int64_t limit) except -1
    cdef int strand_page(self, int64_t start, int64_t fresh) except -1
    cdef inline void open_round(self) noexcept:
        self.extra = self.state.rounds_due == 0
        if self.extra:
            self.echo = False
        self.state.rounds_due -= self.state.rounds_due > 0
        self.state.totals.rounds += 1

    cdef int round(self, int64_t now) except -1                  # 0: a start delay holds it back
    cdef int make_round(self, int64_t now) except -1             # what was opened
    cdef int64_t page_in(self, int64_t wanted, int64_t now) except -1
    cdef int64_t serve(self, int64_t wanted, int64_t now) except -1     # page in, then dispatch these and waiting ones
    cdef int keep_page(self) except -1                           # the page of an interrupted round waits
    cdef void place_page(self, int64_t fresh) noexcept           # among the waiting messages, from ``placed`` on
    cdef int look_for_expired(self, int64_t now, int64_t limit) except -1
    cdef bint looks_further(self, int64_t limit) noexcept        # a look would page in
    cdef list paged_in(self)
    cdef bint delayed(self, int64_t now) except -1
    cdef void sort(self, int64_t fresh) noexcept                 # the page, with prioritized_messages
    cdef bint idle(self) noexcept                                # no round is due, and nothing here can be taken
    cdef bint steady(self) noexcept                             # one more round would change nothing
    cdef bint bypasses(self, int32_t message) noexcept           # when idle: a consumer takes it; others stay
    cdef bint pass_through(self, int32_t message, int64_t now, set prompt) except -1
    cdef int dispatch(self, int64_t now, int64_t fresh) except -1
    cdef int hop(self, int64_t now) except -1
    cdef int32_t choose(self, int32_t message, int32_t* changed) except -2
    cdef int regrouped(self, int32_t* changed) except -1
    cdef int give(self, int32_t message, int32_t slot, int32_t* changed, int64_t now) except -1
    cdef int hand_out(self, int32_t message, int32_t slot, int64_t now) except -1     # after ``reserve_handout``
    cdef void take_turns(self, int32_t slot, bint grouped) noexcept
    # All that a message needs memory for before it goes to ``slot``; what has expired is noted.
    cdef int reserve_handout(self, int32_t message, int32_t slot, int64_t now) except -1
    cdef inline int reserve_out(self) except -1:                 # a place in ``out``
        if self.out_size == self.out_room:
            self.enlarge_out()
        return 0

    cdef int enlarge_out(self) except -1
    cdef void emit(self, int32_t slot, int32_t message) noexcept nogil    # after ``reserve_out``
    cdef int browse_round(self, int64_t now) except -1
    cdef bint browsed_enough(self, int32_t slot) except -1
    cdef int end_pull(self, int32_t slot) except -1


cdef Rounds rounds_of(QueueState state)
