"""pending_messages: the waiting messages of one queue, and the index that finds the next one that a consumer can take
without visiting the others.

A waiting message lies in the window (see message_slots.pxd) and in a *bucket*: same match class, same group key (or no
claim on a group), same tier, in order. A bucket lies in a lane (see ready_index.pxd), or in none (parked) if the owner
of its group does not match, until ``replace``.

Invariants: within a bucket ``current`` is the next message to try, the head except in a round that went past it;
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
    cdef int64_t frontier        # position the round has come to; -1 outside a round
    cdef int32_t* late           # buckets a round went past
    cdef int32_t late_size
    cdef int32_t late_room

    cdef int renew(self) except -1                            # no message was ever here
    cdef void renumber_groups(self, const int32_t* moved) noexcept nogil    # as GroupMap.compact has moved them
    cdef int wait(self, int32_t message, bint redelivered, bint ahead) except -1     # into the window
    cdef void go_behind(self, int32_t message, int tier) noexcept nogil     # it gets the place after the last of a tier
    cdef int index(self, int32_t message) except -1
    cdef int unindex(self, int32_t message) except -1
    cdef int withdraw(self, int32_t message) except -1        # out of the window
    cdef int regroup(self, int32_t key) except -1             # the owner of a group changed
    cdef bint awaited(self, int32_t key) noexcept nogil       # does a message of the group wait?
    cdef int replace_all(self) except -1                      # consumers, classes or all groups changed
    cdef bint passes(self, int64_t after, int32_t message) noexcept nogil   # does one wait in between? -1: to the end
    cdef Moment last_look(self, int32_t key) noexcept nogil   # at a group, for a message of it that waits
    cdef int settle(self) except -1                           # reckon every look-up that was not made
    cdef int settle_eldest(self) except -1                    # so that the eldest group is the broker's
    cdef int begin(self) except -1
    cdef int finish(self) except -1

    cdef int resize_labels(self, int64_t room) except -1
    cdef int64_t seat(self, int64_t label) noexcept nogil
    cdef int32_t get_label(self, int64_t label) noexcept nogil
    cdef void seat_label(self, int64_t label, int32_t bucket) noexcept nogil     # there is room
    cdef int put_label(self, int64_t label, int32_t bucket) except -1
    cdef void drop_label(self, int64_t label) noexcept nogil
    cdef int replace(self, int32_t bucket) except -1
