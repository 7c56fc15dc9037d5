"""constant_bounds: the numbers that satisfy a comparison with a constant, as an interval of keys, found by calling
comparison.compare.

A key is a long itself, or (``real``) the sortable long of a double.
"""

from libc.stdint cimport int64_t

from pyengine._engine.java.value cimport Value


# The keys in [low, high] that satisfy the comparison with the constant: an interval, low > high for none.
cdef void narrow_keys(int64_t* low, int64_t* high, int relation, const Value* constant, bint real) noexcept nogil
