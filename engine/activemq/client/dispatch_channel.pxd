"""dispatch_channel: messages that the broker dispatched to a client and that were not delivered yet
(MessageDispatchChannel).

Invariants: ``size`` counts every list, and is part of the backlog's; without priorities only the first list is used; a
closed channel does not run.
"""

from libc.stdint cimport int64_t

from pyengine._engine.message.message cimport Message


cdef class MessageDispatch:
    cdef readonly object consumer_id
    cdef readonly object destination
    cdef readonly int redelivery_counter
    cdef Message source                       # the message that the client reads; None: no message (see ``message``)
    cdef Message own                          # the consumer's copy; None: not made yet; may be ``source`` itself
    cdef int counter                          # redeliveries by the client's count; set on a copy, as the next two
    cdef bint group_first
    cdef int64_t out_time
    cdef object consumer                      # whose listener has it, or None (no_gc: cleared after use)
    cdef object cause                         # text of the listener's exception, or None

    cdef Message take(self)                   # the consumer's copy
    cdef int renew(self) except -1            # after a redelivery: drop the copy with the user's changes


cdef class Backlog:
    cdef int size


cdef class Channel:
    cdef Backlog backlog
    cdef tuple lists                          # of deque; by priority, or one
    cdef readonly int size
    cdef readonly bint running
    cdef readonly bint closed

    cdef int count(self, int change) except -1
    cdef object list_of(self, MessageDispatch dispatch)
    cdef int enqueue(self, MessageDispatch dispatch) except -1
    cdef int enqueue_first(self, MessageDispatch dispatch) except -1
    cdef MessageDispatch dequeue(self)             # None: empty, or not running
    cdef list remove_all(self)
    cdef int start(self) except -1
    cdef int stop(self) except -1
    cdef int close(self) except -1
