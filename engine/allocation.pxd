"""allocation: which consumer of a group owns which message queue, by RocketMQ's strategies; plans are owner arrays.

A plan is an int32 array with one entry a queue: the position of its owner in the list of client ids, -1 for nobody. A
client id that stands twice in the list acts at its first position only (spec rocketmq 3.0); what the strategy gives to
the later position is owned by nobody.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct RingNode:
    uint32_t hash
    int32_t owner       # position of the client id
    int64_t order       # order of insertion: of equal hashes the later one stays


cdef class HashRing:
    """The consistent-hash ring of one list of client ids. Invariant: hashes strictly ascend; count <= capacity."""
    cdef RingNode* nodes
    cdef int64_t count
    cdef readonly int virtual_nodes

    cdef int32_t owner_of(self, uint32_t hash) noexcept nogil
