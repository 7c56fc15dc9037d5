"""allocation: which consumer of a group owns which message queue, by RocketMQ's strategies; plans are owner arrays.

A plan is an int32 array with one entry a queue: the position of its owner in the list of client ids, -1 for nobody. A
client id that stands twice in the list acts at its first position only (spec rocketmq 3.0); what the strategy gives to
the later position is owned by nobody.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct RingNode:
    uint32_t hash
    int32_t owner       # position of the client id


cdef enum:
    LANES = 16          # at least the lanes of md5.h
    BATCHED_BLOCKS = 4  # texts of up to this many blocks wait for others of their size


cdef class Hasher:
    """MD5 of many texts into ``heads``. Invariant: filled[b] texts of b blocks, padded, wait in texts[b]."""
    cdef unsigned char* texts[BATCHED_BLOCKS + 1]
    cdef int64_t places[BATCHED_BLOCKS + 1][LANES]
    cdef int64_t filled[BATCHED_BLOCKS + 1]
    cdef uint32_t[::1] heads

    cdef int flush(self, int64_t blocks) except -1
    cdef int finish(self) except -1
    cdef int add(self, const char* head, int64_t head_size, const char* tail, int64_t tail_size,
                 int64_t place) except -1


cdef class HashRing:
    """The consistent-hash ring of one list of client ids.

    Invariants: hashes strictly ascend (of equal hashes the one added last stays); starts[i] is the first node whose
    hash >> shift is at least i.
    """
    cdef RingNode* nodes
    cdef int64_t count
    cdef int32_t* starts
    cdef int shift
    cdef readonly int virtual_nodes

    cdef int32_t owner_of(self, uint32_t hash) noexcept nogil
