"""key_range: the numbers of a type for which a comparison with a constant holds, found by asking comparison.compare.

A key is the integer itself; of a float, its place in the order of Double.compareTo, where NaN is above Infinity.
"""

from libc.stdint cimport int64_t

from pyengine._engine.columns.kernels cimport kernel_range
from pyengine._engine.java.value cimport Value


cdef struct Comparison:       # value relation constant, or (not left) constant relation value
    int relation
    int rules
    int storage               # arrow.Storage of the values, a number's
    int java_type
    bint left
    Value constant


cdef int64_t lowest_key(int storage) noexcept
cdef int64_t highest_key(int storage) noexcept
cdef Value typed_value(int storage, int java_type, int64_t key) noexcept
# The keys for which the comparison holds, low > high for none; False if they are not an interval, or it raises.
cdef bint key_range(const Comparison* comparison, int64_t* low, int64_t* high) noexcept
# Those keys as a kernel wants them.
cdef void set_bounds(kernel_range* bounds, int storage, int java_type, int64_t low, int64_t high) noexcept
