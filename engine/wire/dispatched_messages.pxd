"""dispatched_messages: what a consumer was given over OpenWire and has not acknowledged, by the broker's numbers.

``by_number``: the broker's number of a message -> its id, in the order of dispatch.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck


cdef class DispatchedMessages:
    cdef dict by_number

    cpdef add(self, int64_t number, str message_id)
    cpdef acknowledge(self, MessageAck ack)
