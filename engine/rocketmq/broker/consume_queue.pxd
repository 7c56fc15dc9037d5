"""consume_queue: the index of one message queue in a broker: where each offset's message lies, and what a pull finds.

Offsets are dense: entry i of the array is offset ``base + i``; deleting below an offset only moves ``base``.
Invariants: 0 <= first <= end <= capacity; base = offset of entries[first]; positions strictly ascend.
"""

from libc.stdint cimport int32_t, int64_t


cdef enum:
    MAX_COUNT = 32          # messages of one answer, MessageStoreConfig.maxTransferCountOnMessageInMemory


cdef struct Entry:
    int64_t position        # of the record in the broker's log
    int64_t tags_code       # hash of the tags; of a delayed message the time of its delivery, ms
    int64_t store_time      # ms
    int32_t size            # bytes of the stored message


cdef class ConsumeQueue:
    cdef Entry* entries
    cdef int64_t first
    cdef int64_t end
    cdef int64_t capacity
    cdef int64_t base

    cdef Entry* at(self, int64_t offset) except NULL
