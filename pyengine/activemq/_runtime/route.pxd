"""route: the receiver of what is dispatched to a consumer, and the acknowledgement that may come of it at once."""

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch


cdef class Answer:
    cdef readonly MessageAck ack
    cdef readonly object failed               # called with what the acknowledgement raises


cdef Answer answer_of(MessageAck ack, object failed)


cdef class Route:
    cdef object take(self, MessageDispatch dispatch)
