"""row: a program evaluated on one message of any shape, which is read slot by slot.

Shapes: an exact dict (fastest), a native Message, any other mapping. Only the names that a program reads are looked up,
in the order in which it reads them. A value that no message can carry raises InvalidMessageError when it is read.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int8_t

from pyengine._engine.selector.program cimport Leaf, Program
from pyengine._engine.java.value cimport Scratch, Value


# Evaluates leaves from ``at`` on (program.start: all) while they need only values of common types from a dict or a
# Message: ACCEPT, REJECT, or the leaf at which match_row must continue. Needs the GIL; calls no Python code except
# __eq__ of keys that are not str, whose exception match_row raises again.
cdef int quick_match(Leaf* leaves, int at, PyObject* message) noexcept
# The same for messages[row .. count), with answers in ``truths``; returns the first row that match_row must continue,
# at leaf ``at``, or the end of the list.
cdef Py_ssize_t quick_rows(
    Leaf* leaves, int start, list messages, Py_ssize_t row, Py_ssize_t count, int8_t* truths, int* at
) noexcept
# matches() from ``at`` on, and evaluate(): a Truth; for RAISED scratch.problem has the reason. -1: a Python exception.
cdef int match_row(Program program, int at, object message, Scratch* scratch) except -1
cdef int evaluate_row(Program program, object message, Scratch* scratch) except -1
# The value of one slot, default applied. held: what the value borrows from, owned by the caller, or untouched.
cdef int read_slot(Program program, object message, int slot, Value* into, PyObject** held, Scratch* scratch) except -1
# The value of an object found in a dict; NULL: absent, or the look-up failed. Borrows from ``found``.
cdef int found_value(Program program, PyObject* found, int slot, Value* into, Scratch* scratch) except -1
