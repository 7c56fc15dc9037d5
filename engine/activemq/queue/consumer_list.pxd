"""consumer_list: the ordered consumer list of one queue: open consumers, their order, and which of them a message
matches.

A consumer has a *slot*; its public id is never reused. A *predicate* is a subscription's condition on messages
(selector and noLocal connection); equal conditions share one, which is evaluated once for each message. A *match class*
is the set of predicates that a message satisfies, with its target consumer: messages of one class can be taken by the
same consumers. Predicate 0 is always satisfied. A *volatile* predicate reads headers that change while a message waits;
it is evaluated again when they change.

Invariants: ``order`` holds the slots of the live consumers, browsers included. A consumer is *open* if it could take a
message now: not a browser, not full, the elected exclusive consumer if one is elected, dispatch not paused.
``predicates[p].open`` counts the open consumers of p; bit p of ``open_words`` is set exactly if that is not 0;
``open_total`` is their sum. A slow consumer is filled. While ``sorted`` is true and priorities count, the list ascends
by (-priority, assigned groups once there is a group map).
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t

from pyengine._engine.lowlevel.linked_list cimport Chain
from pyengine._engine.activemq.queue.group_map cimport GroupMap, Moment


cdef struct Consumer:
    int64_t id
    int64_t extension            # prefetch extension
    int64_t enqueued             # messages dispatched to it, expired ones included
    int64_t dispatched
    int64_t dequeued
    int64_t pull_mark            # dispatched when the last pull was made
    int32_t prefetch             # 0: pull
    int64_t elsewhere            # unacknowledged messages of the same subscription in other queues
    Chain held                   # unacknowledged messages, in dispatch order
    int32_t predicate
    int32_t connection           # -1 none
    int32_t target               # number of its name, for messages with a target; -1 none
    int32_t browse_limit         # browser: messages it may be shown; 0 no limit, -1 none
    int16_t priority
    int64_t opened               # if open: the first round in which it is
    Moment* walks                # positions that rounds reached while it was open: later rounds, smaller positions
    int32_t walk_count
    int32_t walk_room
    uint8_t live
    uint8_t browser
    uint8_t exclusive            # asked for it
    uint8_t extends              # has a prefetch extension
    uint8_t open
    uint8_t filled               # has no credit; never set for a browser
    uint8_t slow                 # found filled in a round, and still filled
    uint8_t done                 # browser: the pass is over


cdef struct Predicate:
    int32_t users
    int32_t open
    int32_t connection           # noLocal: messages of this connection are refused; -1 none
    int32_t changing             # volatile headers that it reads (consumer_filter.pxd)


cdef struct MatchClass:
    uint64_t* words              # bit p: predicate p is satisfied
    int32_t target               # only the consumer of this number; -1 any
    int32_t target_slot          # slot of that consumer; -1 none


cdef enum:
    NO_CLASS = -2    # target of a class that no message has
    RECENT = 256     # a power of two


# Of names with numbers 0, 1, ..., those whose number is held go into ``kept`` with a new one. Old number -> new or -1.
cdef int32_t* kept_numbers(dict names, set held, dict kept) except NULL


cdef class ConsumerList:
    cdef readonly bint use_consumer_priority
    cdef readonly bint use_prefetch_extension
    cdef readonly bint all_exclusive
    cdef GroupMap groups
    cdef Consumer* at            # slot -> consumer
    cdef int32_t slots           # in use or free
    cdef int32_t* vacant         # slots of consumers that left; there is room for all
    cdef int32_t vacant_count
    cdef dict slot_of            # id -> slot
    cdef int64_t next_id
    cdef int32_t* order
    cdef int32_t size
    cdef int32_t elected         # slot, -1 none
    cdef int32_t unmarked        # filled, and not slow
    cdef list slowed             # ids that became slow since the caller last asked; None: none
    cdef bint paused
    cdef bint sorted             # except for one consumer, ``displaced``, whose count fell
    cdef int32_t displaced       # -1 none
    cdef bint counts_matter      # a group had an owner: assigned groups are part of the order
    cdef Predicate* predicates
    cdef int32_t predicate_count
    cdef int changing            # volatile headers that any of them reads
    cdef list questions          # predicate -> (selector, connection) or None when free
    cdef int32_t word_count
    cdef uint64_t* open_words
    cdef int32_t open_total
    cdef MatchClass* classes
    cdef int32_t class_count
    cdef int32_t class_room
    cdef list vacant_classes     # with target NO_CLASS; None: none
    cdef dict class_of           # (bits, target) -> class; None until it is noted again
    cdef uint64_t latest_bits          # the single-word class without a target that was found last,
    cdef int32_t latest_class          # -1 none;
    cdef uint64_t* recent_bits         # others, by hash: RECENT of them, once there are two
    cdef int32_t* recent_class
    cdef dict targets            # name -> number

    cdef int32_t settle_in(self, int32_t predicate, int32_t connection) except -1   # a slot and the next id
    cdef void clear(self, int32_t slot) noexcept nogil          # no consumer is in it
    cdef int leave(self, int32_t slot, object id) except -1     # takes no memory
    cdef int renew(self) except -1                              # all join again without messages; none has ever left
    cdef int32_t predicate_for(self, object selector, int32_t connection) except -1
    cdef int32_t append_predicate(self) except -1
    cdef int set_question(self, int32_t predicate, object selector, int32_t connection) except -1
    cdef int free_predicate(self, int32_t predicate) except -1
    cdef void forget_recent(self) noexcept nogil
    cdef int note_recent(self, uint64_t bits, int32_t match) except -1
    cdef int note_classes(self) except -1                       # class_of, again
    cdef int32_t class_for(self, object bits, int32_t target) except -1
    cdef int32_t class_for_words(self, const uint64_t* words, int32_t count) except -1
    # Free the classes that no message has (``held``, uint8 by class; NULL: none is).
    cdef int free_classes(self, const uint8_t* held) except -1
    cdef int32_t target_number(self, object name) except -1
    cdef int forget_targets(self) except -1                     # names that neither a consumer nor a class has
    cdef bint matches(self, int32_t match, int32_t slot) noexcept nogil
    cdef bint class_open(self, int32_t match) noexcept nogil
    cdef inline bint full(self, int32_t slot) noexcept nogil:
        return self.full_with(slot, 0)

    cdef inline bint full_with(self, int32_t slot, int64_t more) noexcept nogil:      # with ``more`` further messages
        cdef Consumer* consumer = &self.at[slot]
        if consumer.prefetch == 0:
            return consumer.extension == more
        return consumer.held.count + more + consumer.elsewhere - consumer.extension >= consumer.prefetch

    cdef int64_t free_slots(self) noexcept nogil
    cdef int64_t last_look(self, int32_t match, int64_t position, int64_t since) noexcept nogil   # round, -1 none
    cdef int reserve_walks(self, int32_t slot) except -1
    cdef void record_walk(self, int32_t slot, int64_t round, int64_t position) noexcept nogil
    cdef int refresh(self, int32_t slot) noexcept nogil        # recompute open; 1 opened, -1 closed, 0 unchanged
    cdef void refresh_all(self) noexcept nogil
    cdef int mark_slow(self, int32_t until) except -1         # those without credit, in list order, before ``until``
    cdef void append(self, int32_t slot) noexcept nogil
    cdef void withdraw(self, int32_t slot) noexcept nogil
    cdef void displace(self, int32_t slot) noexcept nogil
    cdef void rotate(self, int32_t slot) noexcept nogil
    cdef void expand(self, int32_t slot, int64_t amount) noexcept nogil
    cdef void contract(self, int32_t slot, int64_t amount) noexcept nogil
    cdef int elect_on_join(self, int32_t slot) noexcept nogil
    cdef int elect_on_leave(self, int32_t slot) noexcept nogil

    cdef int widen(self, int32_t words) except -1
    cdef object bits_of(self, int32_t match)
    cdef bint precedes(self, int32_t left, int32_t right) noexcept nogil
