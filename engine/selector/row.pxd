"""row: one message of any shape, read slot by slot and asked by a program.

Shapes: an exact dict (fastest), a native Message, any other mapping. Only the names a program reads are looked up, in
the order the
program asks. A value that no message can carry raises InvalidMessageError when it is read.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int8_t

from pyengine._engine.selector.program cimport Leaf, Program
from pyengine._engine.java.value cimport Scratch, Value


# Asks a program's leaves from ``at`` on (program.start: all) as far as a dict or a Message with values of the
# commonest types answers them at once: ACCEPT, REJECT, or the leaf at which match_row must go on. Needs the GIL; calls
# no Python code but the __eq__ of a dict's strange keys, whose exception match_row meets again.
cdef int quick_match(Leaf* leaves, int at, PyObject* message) noexcept
# The same of messages[row .. count), their answers into ``truths``: the first row that match_row must go on with, at
# leaf ``at``, or where the list ends.
cdef Py_ssize_t quick_rows(
    Leaf* leaves, int start, list messages, Py_ssize_t row, Py_ssize_t count, int8_t* truths, int* at
) noexcept
# As matches() from ``at`` on, and as evaluate() answer: Truth; RAISED is returned, and scratch says why. -1: a Python
# exception.
cdef int match_row(Program program, int at, object message, Scratch* scratch) except -1
cdef int evaluate_row(Program program, object message, Scratch* scratch) except -1
# The value of one slot, default applied. held: what the value borrows from, owned by the caller, or untouched.
cdef int read_slot(Program program, object message, int slot, Value* into, PyObject** held, Scratch* scratch) except -1
# The value of what a dict has for a slot; NULL: nothing, or the look-up failed. Borrows from ``found``.
cdef int found_value(Program program, PyObject* found, int slot, Value* into, Scratch* scratch) except -1
