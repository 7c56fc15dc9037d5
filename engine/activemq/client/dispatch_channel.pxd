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
    cdef Message source                       # what the client goes by; None: nothing came (see ``message``)
    cdef Message own                          # the consumer's copy; None: not made; ``source`` if that is its own
    cdef int counter                          # redeliveries as the client counts; this and the next two for a copy
    cdef bint group_first
    cdef int64_t out_time
    cdef object consumer                      # whose listener has it, or None: the collector looks at no dispatch
    cdef object cause                         # text of what the listener raised, or None

    cdef Message take(self)                   # the consumer's copy
    cdef int renew(self) except -1            # a redelivery was counted: what the user did to it is not seen again


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
    cdef MessageDispatch dequeue(self)             # None: nothing there, or it does not run
    cdef list remove_all(self)
    cdef int start(self) except -1
    cdef int stop(self) except -1
    cdef int close(self) except -1
