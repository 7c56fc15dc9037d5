"""pending_messages: the waiting messages of one queue, and the index that finds the next one that a consumer can take
without visiting the others.

A waiting message lies in the window (see message_slots.pxd) and in a *bucket*: same match class, same group key (or no
claim on a group), same tier, in order. A bucket lies in a lane (see ready_index.pxd), or in none (parked) if the owner
of its group does not match, until ``replace``.

Invariants: within a bucket ``current`` is the next message to try: the head, except in a round that has passed it;
``labels`` finds the bucket of each (class, group key, tier) that has one.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.group_map cimport Moment
from pyengine._engine.activemq.queue.ready_index cimport Lanes


cdef class Pending(Lanes):
    cdef int64_t appended        # position counters
    cdef int64_t prepended
    cdef int32_t bucket_slots
    cdef int32_t vacant_bucket
    cdef int64_t* labels         # open addressing: label -> bucket
    cdef int32_t* labelled
    cdef int64_t label_room
    cdef int64_t label_count
    cdef int32_t* of_group       # group key -> first of its buckets, -1
    cdef int32_t group_room
    cdef int64_t frontier        # position of the running round; -1 outside a round
    cdef int32_t* late           # buckets that the round has passed
    cdef int32_t late_size
    cdef int32_t late_room

    cdef int renew(self) except -1                            # as if no message had been here
    cdef void renumber_groups(self, const int32_t* moved) noexcept nogil    # as GroupMap.compact has moved them
    cdef void wait(self, int32_t message, bint redelivered, bint ahead) noexcept nogil    # into the window
    cdef void go_behind(self, int32_t message, int tier) noexcept nogil     # it gets the place after the last of a tier
    cdef void index(self, int32_t message) noexcept nogil
    cdef void unindex(self, int32_t message) noexcept nogil
    cdef void withdraw(self, int32_t message) noexcept nogil  # out of the window
    cdef void regroup(self, int32_t key) noexcept nogil       # the owner of a group changed
    cdef bint awaited(self, int32_t key) noexcept nogil       # does a message of the group wait?
    cdef void replace_all(self) noexcept nogil                # consumers, classes or all groups changed
    cdef bint passes(self, int64_t after, int32_t message) noexcept nogil   # does one wait in between? -1: to the end
    cdef Moment last_look(self, int32_t key) noexcept nogil   # at a group, for a message of it that waits
    cdef int settle(self) except -1                           # reckon every look-up that was not made
    cdef int settle_eldest(self) except -1                    # so that the eldest group is the broker's
    cdef int begin(self) except -1
    cdef void finish(self) noexcept nogil
    cdef int restore(self) except -1                          # the index, if it was lost

    cdef void put_in_bucket(self, int32_t message) noexcept nogil
    cdef bint resize_labels(self, int64_t room) noexcept nogil        # False: there is no memory
    cdef int64_t seat(self, int64_t label) noexcept nogil
    cdef int32_t get_label(self, int64_t label) noexcept nogil
    cdef void seat_label(self, int64_t label, int32_t bucket) noexcept nogil     # there is room
    cdef bint reserve_bucket(self, int32_t key) noexcept nogil        # with its label; False: there is no memory
    cdef void drop_label(self, int64_t label) noexcept nogil
    cdef void replace(self, int32_t bucket) noexcept nogil
