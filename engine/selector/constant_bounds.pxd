"""constant_bounds: which numbers stand in a relation to a constant, as an interval of keys, found by asking
comparison.compare.

A key is a long itself, or (``real``) value.order_key of a double.
"""

from libc.stdint cimport int64_t

from pyengine._engine.java.value cimport Value


# The keys in [low, high] that stand in the relation to the constant, again an interval; low > high for none.
cdef void narrow_keys(int64_t* low, int64_t* high, int relation, const Value* constant, bint real) noexcept nogil
