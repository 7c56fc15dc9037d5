"""selector: the public Selector: text in, compiled once, one answer on every shape of message."""

from pyengine._engine.program cimport Program


cdef class Selector:
    cdef readonly str text
    cdef readonly str dialect
    cdef Program program
    cdef int truth(self, object message) except -1      # Truth of one mapping or Message; RAISED is returned, not raised
