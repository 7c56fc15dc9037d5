"""route: who takes what is dispatched to a consumer."""

from pyengine._engine.channel cimport MessageDispatch


cdef class Route:
    cdef object take(self, MessageDispatch dispatch)
