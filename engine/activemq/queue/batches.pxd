"""batches: messages as columns in, decisions as columns out.

A batch changes no result: each message is sent, and each wakeup is a round, as for single messages; only the crossing
between Python and the core is paid once. ``prompt``: ids of the consumers that acknowledge after the round, None all.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from pyengine._engine.activemq.queue.rounds cimport Rounds


cdef struct Rows:                # columns of a batch by row; NULL: the default on every row
    const int32_t* groups        # handles, -1 none
    const int32_t* group_sequences
    const int32_t* priorities
    const int64_t* expirations
    const int32_t* persistent
    const int64_t* arrivals
    const uint64_t* matches      # ``words`` a row
    int64_t words


cdef struct Line:                # the outcome of one message
    int64_t row                  # of the batch; before its run's first row for a message of an earlier batch
    int64_t delivery             # position among the deliveries of its queue, -1 none
    int64_t consumer             # id of the consumer that got it, or that the reason is about; -1
    int32_t run
    int32_t reason               # HoldReason, DELIVERED, or EXPIRED


cdef enum:
    DELIVERED = -1
    EXPIRED = -2


cdef class MessageColumns:
    cdef int64_t size
    cdef readonly object groups         # as given
    cdef list group_names
    cdef Rows rows
    cdef list kept                      # the arrays that ``rows`` points into

    cdef const int32_t* narrow(self, str field, object values) except? NULL
    cdef const int64_t* wide(self, str field, object values) except? NULL
    cdef int suits(self, Rounds rounds) except -1


cdef tuple offer(Rounds rounds, MessageColumns given, set prompt)
