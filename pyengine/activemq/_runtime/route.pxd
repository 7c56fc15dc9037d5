"""route: who takes what is dispatched to a consumer."""

from pyengine._engine.activemq.client.dispatch_channel cimport MessageDispatch


cdef class Route:
    cdef object take(self, MessageDispatch dispatch)
