"""consume_concurrently: what becomes of one batch that a listener was given out of order (spec rocketmq 6.2).

Invariants: a message leaves the process queue when its batch is settled, unless it could not be given back; such a
message is no longer in the batch.
"""

from libc.stdint cimport int64_t

from pyengine._engine.process_queue cimport ProcessQueue


cdef class ConsumeRequest:
    cdef readonly list messages
    cdef readonly ProcessQueue process_queue
    cdef readonly object queue              # the message queue; its str() is RocketMQ's text
    cdef readonly bint succeeded
    cdef int64_t acknowledged               # messages[0 .. acknowledged] are done
