"""strings: STRING and CHAR values as Java sees them, by UTF-16 code units: equality, order, search, numbers in them."""

from libc.stdint cimport uint16_t, uint32_t

from pyengine._engine.java.value cimport Scratch, Value


cdef int order_text(const Value* left, const Value* right) noexcept nogil       # -1, 0, 1
cdef bint same_text(const Value* left, const Value* right) noexcept nogil
cdef bint has_text(const Value* text, const Value* part, int place) noexcept nogil       # AT_START or AT_END


cdef struct Needle:                                  # what to look for anywhere in a text
    uint32_t count
    uint16_t* units
    uint32_t* borders                                # by unit: the length of the longest border of what ends with it
    bint ascii


# Fill in ``needle``, whose arrays have room for every unit of ``part``.
cdef void make_needle(const Value* part, Needle* needle) noexcept nogil
# In time linear in the text (Knuth, Morris, Pratt).
cdef bint has_needle(const Value* text, const Needle* needle) noexcept nogil
cdef bytes utf8_of(str source)                       # a surrogate pair is its code point, half of one three bytes
cdef uint32_t count_units(const Value* text) noexcept nogil
cdef uint16_t* write_units(const Value* text, uint16_t* into) noexcept nogil             # returns the end
# A value, with ``number`` parsed from text as Byte.valueOf .. Double.valueOf do; False where they throw.
cdef bint parse_number(const Value* text, int java_type, Value* number, Scratch* scratch) noexcept nogil
cdef bint is_true_text(const Value* text) noexcept nogil                                 # Boolean.valueOf
