"""abort_strategies: which slow consumers are aborted, and when (spec activemq 3.6).

Events and checks in, consumers to abort out; the caller owns the timer, the consumers and the abort. Consumers are any
hashable.

Invariants: an entry exists for each consumer that was slow at the last check; ``slow_count`` is at least 1.
"""

from libc.stdint cimport int64_t


cdef class Entry:
    cdef int64_t slow_count
    cdef int64_t mark_count


cdef class AbortSlowConsumer:
    cdef readonly int64_t max_slow_count
    cdef readonly int64_t max_slow_duration
    cdef readonly int64_t check_period
    cdef readonly bint abort_connection
    cdef readonly bint ignore_network_consumers
    cdef dict entries

    cdef bint due(self, Entry entry) noexcept
    cdef list take_due(self)


cdef class AbortSlowAckConsumer(AbortSlowConsumer):
    cdef readonly int64_t max_time_since_last_ack
    cdef readonly bint ignore_idle_consumers
