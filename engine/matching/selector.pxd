"""selector: the public Selector: text in, compiled once, one answer on every shape of message.

Invariant: ``program`` is shared by the Selectors of the same text and dialect and never changes; ``leaves`` and
``start`` are its own.
"""

from libc.stdint cimport int8_t

from pyengine._engine.selector.program cimport Leaf, Program


cdef class Selector:
    cdef readonly str text
    cdef readonly str dialect
    cdef Program program
    cdef Leaf* leaves
    cdef int start
    # matches() of one mapping or Message: FALSE, TRUE, or RAISED returned
    cdef int outcome(self, object message) except -1
    cdef bint match_from(self, int at, object message) except -1
    cdef object rows_truth(self, object messages, int question)
    cdef int ask_rows(self, list rows, int8_t* truths, Py_ssize_t count, int question) except -1
