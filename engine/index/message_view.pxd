"""message_view: one message as many selectors see it: each property that any of them names, read once.

Invariants: ``at[slot]`` is names[slot] of the reader; text borrows from the message or from ``scratch``, and is valid
until ``clear``. Its *point* stands for a value where values are compared for being the same: the UTF-8 bytes of a text,
or the eight bytes of a number's key; two points are the same exactly if kind, length and bytes are.
"""

from cython cimport final
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.columns.column_views cimport Column
from pyengine._engine.selector.program cimport Program
from pyengine._engine.java.value cimport Scratch, Value


cdef enum Kind:
    NOTHING           # null
    NUMERAL           # an integer up to 2**53 or a double: ``key`` orders it among all of these
    WORD              # text that is the same as another exactly if the bytes are
    ODD               # anything else: only the programs know


cdef struct Kinds:               # of a slot's values in up to 64 messages: a bit for each
    uint64_t numerals
    uint64_t words
    uint64_t odd


cdef inline uint64_t some_of(const Kinds* kinds) noexcept nogil:
    """What is not null."""
    return kinds.numerals | kinds.words | kinds.odd


cdef struct Reading:
    uint8_t kind
    uint32_t length              # of ``bytes``
    int64_t key                  # of a number its order; of a text up to eight bytes all of it
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
    cdef Value* values
    cdef Reading* at             # ``own_at``, or of a row that was read with others
    cdef int step                # at[slot * step]
    cdef Reading* own_at
    cdef Reading* fresh          # of the defaults
    cdef const Column** cells    # [slot]: of rows, NULL none
    cdef int64_t row             # of the cells, from which a value is read when a program asks; -1: ``values`` are read
    cdef int64_t row_number      # counts the rows
    cdef int64_t* read_in        # [slot]: the number of the row whose value is read
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
    # The same of up to 64 rows of cells[slot], into ``at``; what is null becomes the default.
    cdef int interpret_rows(self, int slot, int64_t first, int count, Reading* at, Kinds* kinds) noexcept nogil
    # A row's value of cells[slot], null without a default; -1 without memory.
    cdef int cell(self, int slot, int64_t row, Value* value) noexcept nogil
    cdef void clear(self) noexcept                               # after read
    cdef void forget(self) noexcept nogil                        # what the scratch holds; after columns
    cdef int see(self, int slot) noexcept nogil                  # has values[slot] read; -1 without memory
    cdef int ask(self, const PyObject* subscription) noexcept nogil      # matches() of it: FALSE, TRUE or RAISED
    cdef int reserve(self, int slots) except -1


cdef Program reader_of(list names, bint every_text)

cdef inline uint64_t number_hash(int64_t key) noexcept nogil:
    """No two numbers have the same."""
    # A short number's key is zeros below: its high half is brought down before and behind the product.
    cdef uint64_t hash = (<uint64_t> key ^ <uint64_t> key >> 32) * <uint64_t> 0x9E3779B97F4A7C15
    return hash ^ hash >> 32


# A constant as a point: False if its equality to a value is not that of the points. ``scratch`` holds the bytes that
# are not the constant's.
cdef bint point_of(const Value* constant, Reading* reading, Scratch* scratch) noexcept nogil
