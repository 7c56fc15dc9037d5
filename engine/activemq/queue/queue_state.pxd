"""queue_state: the state of one point-to-point queue: settings, consumers, messages, counters.

Callers refer to messages by handles and to consumers by ids; the core uses slots. Rounds are in rounds.pxd.

Invariants: a message is in exactly one place (see message_slots.pxd); messages sent == gone + stored + waiting + in
flight + stranded.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport GroupMap
from pyengine._engine.activemq.queue.message_cursors cimport MessageCursors
from pyengine._engine.activemq.queue.message_slots cimport SPARE, MessageSlots
from pyengine._engine.activemq.queue.pending_messages cimport PendingMessages
from pyengine._engine.activemq.queue.ready_index cimport ReadyIndex


cdef dict CURSORS                # setting -> Turns (message_cursors.pxd); a snapshot counts them in this order


cdef struct Totals:
    int64_t enqueues
    int64_t dequeues
    int64_t dispatched
    int64_t expired
    int64_t rounds
    int64_t tries               # messages that rounds visited: their cost
    int64_t selector_errors


@final
cdef class QueueState:
    cdef object max_page_size
    cdef object max_browse_page_size
    cdef bint strict_order_dispatch
    cdef bint prioritized_messages
    cdef bint lazy_dispatch
    cdef int consumers_before_dispatch_starts
    cdef int time_before_dispatch_starts
    cdef str selector_errors
    cdef str cursor
    cdef GroupMap groups
    cdef ConsumerList consumers
    cdef MessageSlots messages
    cdef MessageCursors cursors
    cdef ReadyIndex ready
    cdef PendingMessages pending
    cdef int64_t page_size           # window; -1 none
    cdef int64_t rounds_due          # wakeups asked for
    cdef int64_t flagged             # messages on which a selector could not be evaluated, since the construction
    cdef int64_t stranded
    cdef int64_t next_sequence
    cdef int64_t in_flight
    cdef Totals totals
    cdef dict connections            # name -> number
    cdef int64_t connections_due     # size at which unused ones are looked for next; so with
    cdef int64_t targets_due         # the names of consumers, and with the match classes
    cdef int64_t classes_due
    # None until first used, as most queues never use them:
    cdef dict transactions           # name -> [(handle, consumer id)]
    cdef list removed                # (handle, "expired" | "poison", object, redeliveries) since the caller last asked
    cdef list failed                 # (object, selector) that could not be evaluated, since the caller last asked
    cdef bint busy                   # a selector is being evaluated, which may run any code

    # Names (of groups, connections, consumers) that neither a message nor a consumer has are forgotten when there are
    # twice as many as the last time, and when the last message is gone.
    cdef inline int before_names(self) except -1:                # called first where a new name may come
        if not self.busy and (self.groups.size >= self.groups.due or len(self.connections) >= self.connections_due
                              or len(self.consumers.targets) >= self.targets_due
                              or self.consumers.class_count >= self.classes_due):
            self.forget_names()
        return 0

    cdef inline int after_messages(self) except -1:              # called last where the last message may leave
        if self.messages.slots > SPARE and not self.busy and self.size() == 0:
            try:
                self.shed()
            except MemoryError:
                pass          # what has been done is done; the next message that is the last gives the memory back
        return 0

    cdef int begin(self) except -1                               # checks the settings, and makes the other parts
    cdef int forget_names(self) except -1
    cdef int forget_groups(self) except -1
    cdef int forget_connections(self) except -1
    cdef int shed(self) except -1
    # Consumers
    cdef int32_t join(self, object selector, int32_t connection, bint no_local, set matching) except -1
    cdef int32_t free_name(self, object name) except -1          # its number; no consumer has it
    cdef int name_consumer(self, int32_t slot, int32_t number) except -1
    cdef int32_t slot_of(self, object consumer) except -1
    cdef int reopen(self) except -1                              # credit, election or pause changed for all
    cdef int refresh(self, int32_t slot) except -1               # credit changed for one
    cdef int reclass(self, int32_t message, int32_t match) except -1
    cdef int rematch(self, int32_t message, int changed) except -1    # these volatile headers have changed
    cdef dict known_answers(self, object matching)               # {predicate: set of arrival numbers}, checked
    cdef int match_known(self, int32_t message, dict known) except -1
    # Selectors
    cdef bint ask(self, int32_t message, object selector, int32_t connection) except -1
    cdef int put_question(self, object selector, object body) except -1
    cdef inline int refuse_while_asked(self) except -1:          # called first in every change of a queue
        if self.busy:
            self.refuse_call()
        return 0

    cdef int refuse_call(self) except -1
    cdef int note_failure(self, int32_t message, object selector) except -1
    cdef bint raises(self, int32_t message) except -1
    cdef list flagged_messages(self)                             # of the window, the last one first
    # Messages
    cdef int32_t find(self, int64_t handle) except -2            # -1 if it is gone
    cdef int32_t message_of(self, int64_t handle) except -1
    cdef object handle_of(self, int32_t message)
    cdef object object_of(self, int32_t message)
    cdef object current_object(self, int32_t message)            # what selectors evaluate: current values
    cdef inline void arrive(self, int32_t message) noexcept:      # numbers it and asks for a wakeup
        self.messages.at[message].sequence = self.next_sequence
        self.next_sequence += 1
        self.totals.enqueues += 1
        self.rounds_due += 1

    cdef inline void count_dispatch(self, int32_t slot) noexcept:
        self.consumers.at[slot].enqueued += 1
        self.consumers.at[slot].dispatched += 1
        self.totals.dispatched += 1

    cdef inline void count_gone(self, int32_t slot) noexcept:
        self.consumers.at[slot].dequeued += 1
        self.totals.dequeues += 1

    cdef int accept(self, int32_t message) except -1             # it arrives, and is stored
    cdef int complete(self, int32_t slot, int32_t message) except -1
    cdef int acknowledge_one(self, int32_t slot, int32_t message) except -1
    cdef int take_off(self, int32_t message) except -1
    cdef int note_expired(self, int32_t message) except -1       # first; it may yet stay, for lack of memory
    cdef int drop_expired(self, int32_t message) except -1       # which was noted, and is in no chain any more
    cdef int64_t size(self) noexcept
