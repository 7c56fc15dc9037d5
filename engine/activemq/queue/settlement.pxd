"""settlement: acknowledgements of a queue, and the transactions that they are part of."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.queue_state cimport QueueState


# ``Queue.acknowledge``, from slot to slot; start -1: the oldest that the consumer holds. count: of DELIVERED, and the
# size of a STANDARD range according to the client, -1 unknown. astray: the range does not match the client's, so the
# window stays and no round is asked for.
cdef list settle(QueueState state, int32_t slot, int32_t end, int32_t start, int kind, int64_t count,
                 object transaction, bint astray)
cdef int commit_transaction(QueueState state, object transaction) except -1
cdef int roll_back_transaction(QueueState state, object transaction) except -1
