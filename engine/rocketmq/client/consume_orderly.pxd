"""consume_orderly: one run of a queue's ordered consumption, step by step (spec rocketmq 6.3).

Invariants: at most one run a queue at a time (the driver's lock); between ``next`` and ``close`` the run's batch lies
among the taken messages of its process queue; ``suspends`` is about the batch at hand.
"""

from libc.stdint cimport int64_t

from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue


cdef class OrderlyRun:
    cdef readonly ProcessQueue process_queue
    cdef readonly object queue              # the message queue; its str() is RocketMQ's text
    cdef readonly bint clustering
    cdef readonly bint suspends             # a message of this batch must be retried here
    cdef readonly list messages             # the batch
    cdef int64_t began                      # ms
