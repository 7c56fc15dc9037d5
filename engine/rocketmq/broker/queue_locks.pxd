"""queue_locks: which client of a group holds which queues for ordered consumption (RebalanceLockManager).

A lock belongs to one client until it gives it back or 60 s pass without renewal. The table is a dict per group from the
queue's key to its lock; keys are hashable and otherwise opaque.
"""

from libc.stdint cimport int64_t


cdef class Lock:
    cdef object client_id
    cdef int64_t updated        # ms


cdef class RebalanceLocks:
    cdef dict groups            # group -> {queue: Lock}
    cdef readonly int64_t max_live_time     # ms

    cdef bint is_expired(self, Lock lock, int64_t now) noexcept
