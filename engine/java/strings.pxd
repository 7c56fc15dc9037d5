"""strings: STRING and CHAR values as Java sees them, by UTF-16 code units: equality, order, search, numbers in them."""

from libc.stdint cimport uint16_t, uint32_t, uint8_t

from pyengine._engine.java.value cimport Scratch, Value


cdef int order_text(const Value* left, const Value* right) noexcept nogil       # -1, 0, 1
cdef bint same_text(const Value* left, const Value* right) noexcept nogil
cdef bint has_text(const Value* text, const Value* part, int place) noexcept nogil       # AT_START or AT_END


cdef struct Needle:                                  # a string to search for
    uint32_t count
    uint16_t* units
    uint32_t* borders                                # unit -> longest border of the prefix that ends there
    uint8_t* bytes                                   # of units below 256: the units
    bint ascii
    bint narrow                                      # its units are below 256


# Fill in ``needle``, whose arrays have room for every unit of ``part``.
cdef void make_needle(const Value* part, Needle* needle) noexcept nogil
# Knuth-Morris-Pratt search, linear in the length of the string.
cdef bint has_needle(const Value* text, const Needle* needle) noexcept nogil
cdef bytes utf8_of(str source)                       # a lone surrogate becomes three bytes
cdef uint32_t count_units(const Value* text) noexcept nogil
cdef uint16_t* write_units(const Value* text, uint16_t* into) noexcept nogil             # returns the end
# Parses ``number`` as Byte.valueOf .. Double.valueOf do; False if they throw.
cdef bint parse_number(const Value* text, int java_type, Value* number, Scratch* scratch) noexcept nogil
cdef bint is_true_text(const Value* text) noexcept nogil                                 # Boolean.valueOf
