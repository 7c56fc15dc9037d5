"""queue: the public face of one point-to-point queue.

An event (send, acknowledge, consumer added or removed, ...) asks for wakeups; ``run`` makes one round for each, as the
broker does. Consumers are ids, messages are handles (a slot and its generation): neither is ever used for another.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.inspection cimport Inspection


cdef struct Headers:             # of a message that is enqueued, without its names
    int32_t group_sequence
    int32_t redeliveries
    int64_t expiration           # ms, 0 never
    int priority                 # 0..9
    bint persistent


cdef class Delivery:
    cdef readonly int64_t consumer
    cdef readonly object message
    cdef readonly object body
    cdef readonly int redeliveries
    cdef readonly bint group_first


cdef class Queue(Inspection):
    cdef tuple closing           # of a ``close`` that ended before it dispatched: (consumer, messages to ask again)
    cdef list take_out(self, int64_t now)
    cdef list empty_out(self, int64_t now)                       # the same, at the end of an event
    cdef int32_t enter(self, object message, const Headers* of, object group, object connection,
                       object target) except -1
    cdef int32_t admit(self, object message, const Headers* of, object group, object connection,
                       object target) except -1
    cdef int remove_consumer(self, object consumer, object last_delivered, bint lost, tuple closing,
                             list recounted, bint known) except -1
    cdef int32_t match_of(self, int32_t number, int32_t target) except -1
    cdef int32_t connection_number(self, object connection) except -1
    cdef list settle(self, int32_t slot, int32_t end, int32_t start, int kind, int64_t count, object transaction,
                     bint astray=*)
