"""consumer_offsets: a broker's committed offsets, by ``topic@group`` and queue id (ConsumerOffsetManager).

Invariant: every value is a signed 64-bit integer, every queue id a signed 32-bit one.
"""

from libc.stdint cimport int64_t


cdef class ConsumerOffsets:
    cdef dict table             # "topic@group" -> {queue id: offset}
    cdef readonly int64_t commits       # made since the start
    cdef readonly int64_t version       # grows with every 500 commits (consumerOffsetUpdateVersionStep)
