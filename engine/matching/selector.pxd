"""selector: the public Selector: compiled once, with the same answer on every shape of message.

Invariant: ``program`` is shared by the Selectors of one string and dialect and never changes; each Selector has its own
``leaves`` and ``start``.
"""

from libc.stdint cimport int8_t

from pyengine._engine.selector.program cimport Leaf, Program


cdef class Selector:
    cdef readonly str text
    cdef readonly str dialect
    cdef Program program
    cdef Leaf* leaves
    cdef int start
    # matches() of one mapping or Message; returns FALSE, TRUE or RAISED
    cdef int outcome(self, object message) except -1
    cdef bint match_from(self, int at, object message) except -1
    cdef object rows_truth(self, object messages, int question)
    cdef int ask_rows(self, list rows, int8_t* truths, Py_ssize_t count, int question) except -1


cdef int check_choice(str argument, object given, tuple choices) except -1  # ValueError otherwise
