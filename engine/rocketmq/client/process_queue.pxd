"""process_queue: RocketMQ's ProcessQueue (spec rocketmq 1): what is cached, what is being consumed in order, and the
offset that is safe to commit.

A message that is a bare int is its own offset and has no body: callers that need offsets only put ints. The windows
hold one stand-in for all of them.

Invariants: message_count counts new puts less removals and commits, so an offset that was re-pulled while it was taken
counts twice, as in the real class; message_size follows the real class's arithmetic and may be negative.
"""

from cython cimport final

from libc.stdint cimport int64_t, uint64_t

from pyengine._engine.rocketmq.client.offset_window cimport Window


cpdef enum FlowControl:
    PULL = 0                # nothing holds the pull back
    COUNT = 1               # cached message count exceeds the threshold
    SIZE = 2                # cached message size exceeds the threshold
    SPAN = 3                # span between the smallest and the largest offset is too long


cdef struct PullLimits:
    int64_t count           # messages, pullThresholdForQueue
    int64_t size            # MiB, pullThresholdSizeForQueue
    int64_t span            # offsets, consumeConcurrentlyMaxSpan


# A number as Java's long takes it. Raises ConfigurationError, which calls it ``name``, for anything else.
cdef int64_t whole(str name, object value) except? -1

cdef int holding(int64_t count, int64_t mebibytes, int64_t span, const PullLimits* limits, bint orderly) noexcept
cdef bint overdue(int64_t now, int64_t started, int64_t consume_timeout) noexcept


cdef inline int64_t wrapped_next(int64_t offset) noexcept:
    """offset + 1 as Java's long computes it."""
    return <int64_t>(<uint64_t>offset + 1)


cdef class ProcessQueue:
    cdef Window cached                      # not yet consumed ("tree")
    cdef Window taken                       # taken in order, not committed ("consumingTree")
    cdef readonly int64_t message_count
    cdef readonly int64_t message_size      # bytes of bodies
    cdef readonly int64_t queue_offset_max  # the last new offset, not the largest
    cdef readonly int64_t accumulated       # how far the queue's end was ahead of the last pull ("msgAccCnt")
    cdef readonly bint consuming
    cdef public bint dropped
    cdef public bint locked
    cdef public int64_t last_pull_timestamp      # ms
    cdef public int64_t last_consume_timestamp   # ms
    cdef public int64_t last_lock_timestamp      # ms
    cdef public int64_t try_unlock_times

    cdef bint put_offset(self, int64_t offset, int64_t size) except -1                # the same without its message
    cdef int hold(self, const PullLimits* limits, bint orderly) noexcept              # a FlowControl
    cdef int64_t mebibytes(self) noexcept
    cdef int64_t span(self) noexcept
    cdef bint finishing(self, int64_t now) noexcept                                   # before take_out: any cached?
    cdef object finish_one(self, object message, int64_t now)
    cdef object held(self, Window window, int64_t offset)

    @final
    cdef inline bint put_one(self, int64_t offset, object message, int64_t size) except -1:
        """Cache one message of this size; True: the offset is new. See put_messages."""
        if not self.cached.put(offset, message):
            return False
        self.message_count += 1
        self.queue_offset_max = offset
        self.message_size += size
        return True

    @final
    cdef inline bint take_out(self, int64_t offset, int64_t size) except -1:
        """Let go of one message of this size; True: it was cached. See remove_messages."""
        if not self.cached.drop(offset):
            return False
        self.message_count -= 1
        self.message_size -= size
        return True

    @final
    cdef inline int64_t safe(self) noexcept:
        """The offset that is safe to commit after messages were removed from a queue that was not empty."""
        if self.message_count == 0:
            self.message_size = 0
        return self.cached.smallest() if self.cached.count else wrapped_next(self.queue_offset_max)
