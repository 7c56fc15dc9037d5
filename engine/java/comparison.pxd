"""comparison: the broker's rules for two values and a relation, by their Java types."""

from pyengine._engine.java.value cimport Scratch, Value


# relation: value.Relation; rules: value.Rules. Truth.
cdef int compare(int relation, const Value* left, const Value* right, int rules, Scratch* scratch) noexcept nogil

cpdef bint java_equal(object left, object right)  # left.equals(right): same Java type and equal; None equals None
