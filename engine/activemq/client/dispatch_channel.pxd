"""dispatch_channel: messages that the broker dispatched to a client and that were not delivered yet
(MessageDispatchChannel).

Invariants: ``size`` counts every list, and is part of the backlog's; without priorities only the first list is used; a
closed channel does not run.
"""

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch


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
