"""work_table: records that the caller polled from queues: which may be processed now, and which offset may be
committed.

A lane holds the records that must be worked on one after the other: those of one key or of one queue. A record that
waits for no other has none. A record that was given back with a delay is neither in hand nor ready until it is due, and
its lane waits with it.
Invariants: a lane is in ``ready`` exactly if it has waiting records and none in hand or delayed, a record without a
lane exactly if it is neither in hand nor delayed; a record's offset is in its ProcessQueue until it is completed, the
record is not: it knows its queue, and a cycle through a Window is never collected; a revoked queue is in no table, and
its records know an epoch that no table has. A lane's waiting records are waiting[first:], a table's turns
ready[ready_first:].
"""

from libc.stdint cimport int64_t

from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue


cdef class WorkTable


cdef class Lane:
    cdef list waiting           # of Work
    cdef Py_ssize_t first       # the first of them, None before
    cdef object key
    cdef Assigned assigned
    cdef bint busy              # one record of it is in hand, or delayed

    cdef Work next(self)
    cdef int back(self, Work work) except -1
    cdef bint idle(self) noexcept


cdef class Assigned:
    cdef WorkTable table        # whose it is
    cdef object queue
    cdef int64_t epoch
    cdef ProcessQueue process_queue
    cdef dict lanes             # key -> Lane
    cdef int64_t safe           # offset that is safe to commit, -1 before anything was completed
    cdef int64_t reported           # the one that commits() gave last
    cdef int64_t in_hand
    cdef int64_t delayed        # records given back that are not due
    cdef int64_t largest        # offset that was ever put, -1 before
    cdef bint revoked

    cdef int64_t spans(self) noexcept


cdef class Work:
    cdef readonly object queue
    cdef readonly object key
    cdef readonly object record
    cdef readonly object body           # bytes or str whose length counts, else None
    cdef readonly int64_t queue_offset
    cdef readonly int64_t epoch
    cdef readonly int64_t attempts      # how often it was taken
    cdef bint taken
    cdef Assigned assigned
    cdef Lane lane              # None: waits for no other


cdef class WorkTable:
    cdef dict queues            # queue -> Assigned
    cdef list ready             # of Lane and of Work without one; those before ``ready_first`` are None
    cdef Py_ssize_t ready_first
    cdef list delayed           # heap of (due in ms, number of the delay, Work)
    cdef int64_t delays         # numbers given: those due together come in the order in which they were given back
    cdef int64_t epochs
    cdef int order
    cdef readonly int64_t dropped       # completions that came after a revoke
    cdef int64_t max_messages
    cdef int64_t max_mebibytes
    cdef int64_t max_span

    cdef Assigned of(self, queue)
    cdef bint take_in(self, Assigned assigned, Work work) except -1       # True: the offset is new
    cpdef Work take(self)
    cdef bint finish(self, Work work, int64_t now) except -1              # False: its queue was revoked meanwhile
    cdef Assigned leave(self, Work work)
    cdef int wait_again(self, Work work) except -1


cdef class LockedTable:
    cdef WorkTable table
    cdef object acquire         # of the lock that the caller gave
    cdef object release
