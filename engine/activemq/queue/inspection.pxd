"""inspection: questions about a queue: consumers, waiting messages, counters. No answer changes later dispatch."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.queue_state cimport QueueState


# Would the selector and noLocal of any consumer, browsers included, let a message pass that is elsewhere?
cdef bint is_wanted(QueueState state, object message) except -1
cdef int64_t expiring_messages(QueueState state) noexcept           # messages that have an expiration
cdef list held_by(QueueState state, int32_t slot)                   # handles, in dispatch order
cdef list waiting_handles(QueueState state)                         # in the order in which they are tried
cdef list all_handles(QueueState state)                             # in order of arrival
cdef dict counters_at(QueueState state, int32_t slot)
cdef dict statistics_of(QueueState state)
