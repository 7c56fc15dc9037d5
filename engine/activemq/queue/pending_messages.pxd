"""pending_messages: the waiting messages of one queue in order, and the buckets in which consumers can take them.

A waiting message lies in the window, several chains, one for each *tier*: (priority if messages are prioritized,
redelivered before new). It also lies in a *bucket*: same match class, same group key (or no claim on a group), same
tier, in order. A bucket lies in a lane of the ready index, or in none (parked) if the owner of its group does not
match, until ``place_bucket``.

Invariants: within a bucket ``current`` is the next message to try: the head, except in a round that has passed it;
``labels`` finds the bucket of each (class, group key, tier) that has one; ``waiting`` counts the messages of the
window, ``redelivered`` those of its redelivered tiers.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.lowlevel.linked_list cimport Chain
from pyengine._engine.activemq.queue.bucket_labels cimport BucketLabels
from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport GroupMap, Moment
from pyengine._engine.activemq.queue.message_slots cimport MessageSlots
from pyengine._engine.activemq.queue.ready_index cimport ReadyIndex


@final
cdef class PendingMessages:
    cdef MessageSlots messages
    cdef ConsumerList consumers
    cdef GroupMap groups
    cdef ReadyIndex ready
    cdef BucketLabels labels
    cdef bint prioritized
    cdef Chain window[20]        # by tier
    cdef int32_t waiting         # messages in the window
    cdef int32_t redelivered     # of these, in the redelivered tiers
    cdef int64_t appended        # position counters
    cdef int64_t prepended
    cdef int32_t* of_group       # group key -> first of its buckets, -1
    cdef int32_t group_room
    cdef int64_t frontier        # position of the running round; -1 outside a round
    cdef int32_t* late           # buckets that the round has passed
    cdef int32_t late_size
    cdef int32_t late_room

    cdef int renew(self) except -1                            # every message of the queue leaves: as constructed
    cdef void shed(self) noexcept nogil                       # no message is left: frees the memory of a peak
    cdef void renumber_groups(self, const int32_t* moved) noexcept nogil    # as GroupMap.compact has moved them
    cdef int tier(self, int32_t message, bint redelivered) noexcept nogil
    cdef void wait(self, int32_t message, bint redelivered, bint ahead) noexcept nogil    # into the window
    cdef void go_behind(self, int32_t message, int tier) noexcept nogil     # its position: after the last of a tier
    cdef void index(self, int32_t message) noexcept nogil
    cdef void unindex(self, int32_t message) noexcept nogil
    cdef void withdraw(self, int32_t message) noexcept nogil  # out of the window
    cdef void regroup(self, int32_t key) noexcept nogil       # the owner of a group changed
    cdef bint awaited(self, int32_t key) noexcept nogil       # does a message of the group wait?
    cdef void place_all(self) noexcept nogil                  # consumers, classes or all groups changed
    cdef bint passes(self, int64_t after, int32_t message) noexcept nogil   # does one wait in between? -1: to the end
    cdef Moment last_look(self, int32_t key) noexcept nogil   # at a group, for a message of it that waits
    cdef int settle(self) except -1                           # compute every look-up that was not made
    cdef int settle_eldest(self) except -1                    # so that the eldest group is the broker's
    cdef int begin(self) except -1                            # a round
    cdef void finish(self) noexcept nogil
    cdef int restore(self) except -1                          # the index, if it was lost

    cdef void put_in_bucket(self, int32_t message) noexcept nogil
    cdef bint reserve_bucket(self, int32_t key) noexcept nogil        # with its label; False: there is no memory
    cdef bint note_late(self, int32_t bucket) noexcept nogil          # False: there is no memory
    cdef void note_look(self, int32_t message) noexcept nogil         # at its group, before it leaves its bucket
    cdef void free_bucket(self, int32_t bucket) noexcept nogil        # which is empty
    cdef void place_bucket(self, int32_t bucket) noexcept nogil       # into the lane where it belongs now
    cdef void lose(self) noexcept nogil                               # the index, for lack of memory
