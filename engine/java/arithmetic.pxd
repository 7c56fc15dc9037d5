"""arithmetic: the broker's arithmetic on values, by their Java types, and + as concatenation of strings."""

from pyengine._engine.java.value cimport Scratch, Value


# calculation: value.Calculation. TRUE, or RAISED.
cdef int calculate(
    int calculation, const Value* left, const Value* right, Value* result, Scratch* scratch
) noexcept nogil
cdef int negate(const Value* value, Value* result, Scratch* scratch) noexcept nogil
