"""ready_index: the next message that a consumer can take, from buckets of messages that become takeable together.

A *bucket* holds waiting messages in order (see pending_messages.pxd) and lies in a *lane*: the owner's lane if its
group has an owner that matches, otherwise the lane of its match class, or none. A lane is a heap of buckets. Lanes that
may be takeable lie in the ready heap; the others are skipped until ``wake``.

Invariants: lane and ready heaps are ordered by the position of ``current``; a lane in neither the ready heap nor the
``blocked`` list is empty, or an owner's lane whose owner is not open.

All of it follows from the window, the consumers and the owners of groups. A change of those therefore never fails for
lack of memory here: the index is lost, and the next reader of it makes it again, or raises MemoryError.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.message_slots cimport MessageSlots


cdef struct Bucket:
    int64_t label                # (class, group key, tier)
    int32_t match                # class of its messages
    int32_t key                  # group key, -1 none
    int32_t head                 # message
    int32_t tail                 # message
    int32_t current              # next message to try; -1: the round has passed all of it
    int32_t count                # messages
    int32_t lane                 # -1 parked or passed
    int32_t place                # in the lane's heap
    int32_t previous             # bucket of the same group, -1
    int32_t next                 # the same; of a free one: the next free one
    uint8_t late                 # the round has passed its head; it is among the late buckets


cdef struct Lane:
    int32_t* heap                # buckets
    int32_t size
    int32_t room
    int32_t place                # in the ready heap, -1
    int32_t blocked              # in the blocked list, -1


@final
cdef class ReadyIndex:
    cdef MessageSlots messages
    cdef ConsumerList consumers
    cdef Bucket* buckets
    cdef int32_t bucket_slots
    cdef int32_t vacant_bucket   # first free one, linked by next; -1 none
    cdef Lane* lanes             # 2 * slot: an owner's lane; 2 * class + 1: the lane of a class
    cdef int32_t lane_room
    cdef int32_t* ready          # heap of lanes
    cdef int32_t ready_size
    cdef int32_t* blocked        # class lanes with buckets that no open consumer can take
    cdef int32_t blocked_size
    cdef bint lost               # there was no memory for it: it is empty until PendingMessages.restore

    cdef int wake(self, int32_t slot) except -1               # a consumer opened
    cdef int32_t next_ready(self) except -2                   # next message worth trying, -1 none
    cdef int retire(self, int32_t message) except -1          # no consumer took it after all
    cdef bint add_buckets(self) noexcept nogil                # free ones; False: there is no memory
    cdef bint join_lane(self, int32_t bucket, int32_t lane) noexcept nogil    # False: there is no memory
    cdef void leave_lane(self, int32_t bucket) noexcept nogil
    cdef void advance(self, int32_t bucket) noexcept nogil    # its ``current`` is a later message than before
    cdef void lose(self) noexcept nogil
    cdef void shed(self) noexcept nogil                       # no bucket is in use: frees the memory of a peak

    cdef int64_t urgency(self, int32_t lane) noexcept nogil   # position of its first message
    cdef bint reserve_lane(self, int32_t lane) noexcept nogil    # room for one more bucket; False: there is no memory
    cdef void sift(self, int32_t lane, int32_t place) noexcept nogil
    cdef bint lane_open(self, int32_t lane) noexcept nogil
    cdef void reorder(self, int32_t lane) noexcept nogil
    cdef void make_ready(self, int32_t lane) noexcept nogil
    cdef void unready(self, int32_t lane) noexcept nogil
    cdef void block(self, int32_t lane) noexcept nogil
    cdef void unblock(self, int32_t lane) noexcept nogil
