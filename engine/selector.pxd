"""selector: the public Selector: text in, compiled once, one answer on every shape of message.

Invariant: ``program`` is shared by every Selector of the same text and dialect and never changes.
"""

from pyengine._engine.program cimport Program


cdef class Selector:
    cdef readonly str text
    cdef readonly str dialect
    cdef Program program
    cdef int outcome(self, object message) except -1    # matches() of one mapping or Message: FALSE, TRUE, or RAISED returned
