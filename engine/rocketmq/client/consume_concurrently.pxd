"""consume_concurrently: what becomes of one batch that a listener was given out of order (spec rocketmq 6.2).

The rules are functions over numbers and a process queue, for a ConsumeRequest with its messages and for callers that
only count offsets.

Invariants: a message leaves the process queue when its batch is settled, unless it could not be given back; such a
message is no longer in the batch.
"""

from libc.stdint cimport int64_t

from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue


cdef enum:
    EXPIRED_MESSAGES = 16       # given back in one look at a queue, at most (ProcessQueue.cleanExpiredMsg)
    EXPIRED_LEVEL = 3           # their delay level


cdef inline bint goes_on(ProcessQueue process_queue) noexcept:
    """Whether the queue is still ours: before the listener, and again before its answer counts and is committed."""
    return not process_queue.dropped


cdef inline int64_t slice_end(int64_t start, int64_t count, int64_t size) noexcept:
    """Where the batch that begins at ``start`` ends, of ``count`` messages in batches of ``size``."""
    return start + size if count - start > size else count


cdef inline int64_t acknowledged_to(int64_t count, bint succeeded, int64_t ack_index) noexcept:
    """The last message of a batch that is done, -1 for none: all up to ack_index, of a success alone."""
    if not succeeded:
        return -1
    return count - 1 if ack_index >= count else ack_index


cdef inline bint commits(ProcessQueue process_queue, int64_t safe) noexcept:
    """Whether what is safe after a batch left (-1: nothing was cached) is committed."""
    return safe >= 0 and goes_on(process_queue)


cdef class ConsumeRequest:
    cdef readonly list messages
    cdef readonly ProcessQueue process_queue
    cdef readonly object queue              # the message queue; its str() is RocketMQ's text
    cdef readonly bint succeeded
    cdef int64_t acknowledged               # messages[0 .. acknowledged] are done
