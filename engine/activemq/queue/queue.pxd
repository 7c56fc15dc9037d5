"""queue: the public face of one point-to-point queue.

An event (send, acknowledge, consumer added or removed, ...) asks for wakeups; ``run`` makes one round for each, as the
broker does. Consumers are ids, messages are handles (a slot and its generation): neither is ever used for another.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport GroupMap
from pyengine._engine.activemq.queue.message_slots cimport MessageSlots
from pyengine._engine.activemq.queue.pending_messages cimport PendingMessages
from pyengine._engine.activemq.queue.queue_state cimport QueueState
from pyengine._engine.activemq.queue.ready_index cimport ReadyIndex
from pyengine._engine.activemq.queue.rounds cimport Rounds


cdef class Delivery:
    cdef readonly int64_t consumer
    cdef readonly object message
    cdef readonly object body
    cdef readonly int redeliveries
    cdef readonly bint group_first


cdef class Queue:
    cdef QueueState state
    cdef readonly Rounds rounds
    cdef MessageSlots messages   # the parts of ``state``
    cdef PendingMessages pending
    cdef ReadyIndex ready
    cdef ConsumerList consumers
    cdef GroupMap groups

    cdef list take_out(self, int64_t now)
    cdef list empty_out(self, int64_t now)                       # the same, at the end of an event
    cdef int remove_consumer(self, object consumer, object last_delivered, bint lost, tuple closing,
                             list recounted, bint known) except -1
