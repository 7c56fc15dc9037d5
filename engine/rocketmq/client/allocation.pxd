"""allocation: which consumer of a group owns which message queue, by RocketMQ's strategies; plans are owner arrays.

A plan is an int32 array with one entry a queue: the position of its owner in the list of client ids, -1 for none. A
client id that stands twice in the list acts at its first position only (spec rocketmq 3.0); queues that the strategy
gives to the later position have no owner.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct RingNode:
    uint32_t hash
    int32_t owner       # position of the client id


cdef enum:
    LANES = 32          # at least the lanes of md5.h
    BATCHED_BLOCKS = 4  # texts of up to this many blocks wait for others of their size
    BATCHED = 247       # and this many bytes
    CROWD = 8           # nodes of one bucket that are looked at one after the other
    # Queues and their names lie anywhere in memory: ask for them this many queues before they are read.
    AHEAD = 16
    AHEAD_WITHIN = 8


@cython.final
cdef class Hasher:
    """MD5 of many texts into ``heads``. Invariant: filled[b] texts of b blocks, padded, wait in texts[b]."""
    cdef unsigned char* texts[BATCHED_BLOCKS + 1]
    cdef int64_t places[BATCHED_BLOCKS + 1][LANES]
    cdef int64_t filled[BATCHED_BLOCKS + 1]
    cdef uint32_t[::1] owner    # of heads
    cdef uint32_t* heads

    cdef void flush(self, int64_t blocks) noexcept
    cdef void finish(self) noexcept
    cdef unsigned char* room(self, int64_t length, int64_t place) noexcept
    cdef void close(self, unsigned char* text, int64_t length) noexcept
    cdef int add(self, bytes whole, int64_t place) except -1


cdef class HashRing:
    """The consistent-hash ring of one list of client ids.

    Invariants: hashes strictly ascend (of equal hashes the one added last stays); starts[i] is the first node whose
    hash >> shift is at least i; nodes[count] has the highest hash and the first node's owner, -1 in an empty ring.
    """
    cdef RingNode* nodes
    cdef int64_t count
    cdef int32_t* starts
    cdef int shift
    cdef readonly int virtual_nodes

    cdef void count_buckets(self, const uint32_t* hashes, int64_t step, int64_t count, int64_t offset) noexcept
    cdef int sort(self, int64_t total) except -1
    cdef void drop_replaced(self, int64_t total) noexcept
    cdef int32_t owner_of(self, uint32_t hash) noexcept nogil
