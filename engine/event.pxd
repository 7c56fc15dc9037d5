"""event: one message as many selectors see it: each property that any of them names, read once.

Invariants: ``at[slot]`` is names[slot] of the reader; text borrows from the message or from ``scratch``, and is valid
until ``clear``. Its *point* stands for a value where values are compared for being the same: the UTF-8 bytes of a text,
or the eight bytes of a number's key; two points are the same exactly if kind, length and bytes are.
"""

from cython cimport final
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.program cimport Program
from pyengine._engine.value cimport Scratch, Value


cdef enum Kind:
    NOTHING           # null
    NUMERAL           # an integer up to 2**53 or a double: ``key`` orders it among all of these
    WORD              # text that is the same as another exactly if the bytes are
    ODD               # anything else: only the programs know


cdef struct Reading:
    uint8_t kind
    uint32_t length              # of ``bytes``
    int64_t key
    uint64_t hash                # of the bytes; of a number number_hash, set where one is sought
    const uint8_t* bytes         # WORD; in a message nothing else has them


cdef struct Known:               # a name
    PyObject* name               # NULL: not known yet
    const void* text
    Py_ssize_t length            # of ASCII; otherwise -1


@final
cdef class Event:
    cdef Program reader          # has names, defaults and headers, and no leaves
    cdef int count               # slots
    cdef Value* values           # ``own_values``, or those of a row that were read with others
    cdef Reading* at             # the same
    cdef Value* own_values
    cdef Reading* own_at
    cdef Reading* fresh          # of the defaults
    cdef dict slots              # name -> slot; behind the slots, names that no slot has
    cdef Known* names            # [slot]
    cdef int* after              # [slot]: the next in the last dict that had this one; its first is behind all others
    cdef PyObject** held
    cdef Value* gathered         # room for the slots of one program
    cdef int gathered_room
    cdef Scratch scratch
    cdef void* body
    cdef bint has_objects        # a list or map is among the values

    cdef int read(self, object message) except -1
    cdef int read_dict(self, dict message) except -1
    cdef int know(self, int slot, PyObject* name) noexcept
    cdef int slot_of(self, PyObject* name) except -1
    cdef int take(self, int slot, PyObject* found) except -1
    cdef int interpret(self, int slot) noexcept nogil            # at[slot] from values[slot]; -1 without memory
    # The same of rows whose slots lie behind each other; what is null becomes the default. type: of all that is not
    # null, or NULL_VALUE: of any.
    cdef int interpret_rows(self, int slot, int type, int count, Value* values, Reading* at) noexcept nogil
    cdef void clear(self) noexcept                               # after read
    cdef void forget(self) noexcept nogil                        # what the scratch holds; after columns
    # matches() of a program, whose slot s is slots[s] here: FALSE, TRUE or RAISED
    cdef int ask(self, Program program, const int* slots) noexcept nogil
    cdef int reserve(self, int slots) except -1


cdef Program reader_of(list names, bint every_text)
cdef uint64_t number_hash(int64_t key) noexcept nogil    # no two numbers have the same
# A constant as a point: False if its equality to a value is not that of the points. ``scratch`` holds the bytes that
# are not the constant's.
cdef bint point_of(const Value* constant, Reading* reading, Scratch* scratch) noexcept nogil
