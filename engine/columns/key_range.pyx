"""See key_range.pxd."""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, INT8_MAX, INT8_MIN, INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT8_MAX, UINT16_MAX, UINT32_MAX
from libc.string cimport memset

from pyengine._engine.columns.column_views cimport (
    DOUBLE_VALUES, FLOAT_VALUES, HALF_VALUES, INT8_VALUES, INT16_VALUES, INT32_VALUES, INT64_VALUES, UINT8_VALUES,
    UINT16_VALUES, UINT32_VALUES,
)
from pyengine._engine.java.comparison cimport compare
from pyengine._engine.columns.kernels cimport kernel_range
from pyengine._engine.java.sortable cimport (
    double_to_sortable_long, float_to_sortable_int, sortable_int_to_float, sortable_long_to_double,
)
from pyengine._engine.java.value cimport (
    FALSE, IS_EQUAL, IS_GREATER_OR_EQUAL, IS_LESS_OR_EQUAL, TRUE, Scratch, Value, free_scratch,
)


cdef Value typed_value(int storage, int java_type, int64_t key) noexcept:
    """The number of a key: the integer itself; of a float its place in the order of Double.compareTo."""
    cdef Value value
    memset(&value, 0, sizeof(Value))
    value.type = <uint8_t> java_type
    if storage == FLOAT_VALUES or storage == HALF_VALUES:
        value.payload.real = sortable_int_to_float(<int32_t> key)
    elif storage == DOUBLE_VALUES:
        value.payload.real = sortable_long_to_double(key)
    else:
        value.payload.integer = key
    return value


cdef int64_t lowest_key(int storage) noexcept:
    if storage == INT8_VALUES:
        return INT8_MIN
    if storage == INT16_VALUES:
        return INT16_MIN
    if storage == INT32_VALUES:
        return INT32_MIN
    if storage == INT64_VALUES:
        return INT64_MIN
    if storage == FLOAT_VALUES or storage == HALF_VALUES:
        return float_to_sortable_int(-INFINITY)
    if storage == DOUBLE_VALUES:
        return double_to_sortable_long(-INFINITY)
    return 0


cdef int64_t highest_key(int storage) noexcept:
    """The largest value; of floats, the key of NaN, which Double.compareTo puts above Infinity."""
    if storage == INT8_VALUES:
        return INT8_MAX
    if storage == INT16_VALUES:
        return INT16_MAX
    if storage == INT32_VALUES:
        return INT32_MAX
    if storage == UINT8_VALUES:
        return UINT8_MAX
    if storage == UINT16_VALUES:
        return UINT16_MAX
    if storage == UINT32_VALUES:
        return UINT32_MAX
    if storage == FLOAT_VALUES or storage == HALF_VALUES:
        return float_to_sortable_int(NAN)
    if storage == DOUBLE_VALUES:
        return double_to_sortable_long(NAN)
    return INT64_MAX


cdef int truth_of_key(const Comparison* comparison, int relation, int64_t key) noexcept:
    """Truth of ``value relation constant`` (or of ``constant relation value``)."""
    cdef Value value = typed_value(comparison.storage, comparison.java_type, key)
    cdef Scratch scratch
    cdef int truth
    memset(&scratch, 0, sizeof(Scratch))
    if comparison.left:
        truth = compare(relation, &value, &comparison.constant, comparison.rules, &scratch)
    else:
        truth = compare(relation, &comparison.constant, &value, comparison.rules, &scratch)
    free_scratch(&scratch)
    return truth


cdef bint monotone_range(const Comparison* comparison, int relation, int64_t* low, int64_t* high) noexcept:
    """The keys for which an ordering holds; False if it raises. Widening and rounding never reverse an order, so
    the answer changes at most once between the lowest and the highest key."""
    cdef int64_t below = lowest_key(comparison.storage), above = highest_key(comparison.storage), middle
    cdef int first = truth_of_key(comparison, relation, below)
    cdef int last = truth_of_key(comparison, relation, above)
    if first > TRUE or last > TRUE:
        return False
    low[0], high[0] = below, above
    if first == last:
        if first == FALSE:
            low[0], high[0] = 1, 0
        return True
    while above - 1 > below:
        middle = (below & above) + ((below ^ above) >> 1)
        if truth_of_key(comparison, relation, middle) == first:
            below = middle
        else:
            above = middle
    if first == TRUE:
        high[0] = below
    else:
        low[0] = above
    return True


cdef bint key_range(const Comparison* comparison, int64_t* low, int64_t* high) noexcept:
    """The keys of a number type for which a comparison with a constant holds; False if they are not an interval."""
    cdef int storage = comparison.storage
    cdef int64_t low_of_order, high_of_order, key
    if comparison.relation != IS_EQUAL:
        return monotone_range(comparison, comparison.relation, low, high)
    if not monotone_range(comparison, IS_GREATER_OR_EQUAL, low, high):
        return False
    if not monotone_range(comparison, IS_LESS_OR_EQUAL, &low_of_order, &high_of_order):
        return False
    low[0] = max(low[0], low_of_order)
    high[0] = min(high[0], high_of_order)
    if low[0] > high[0]:
        low[0], high[0] = 1, 0
    # Equality must be the meeting of both orders, at its borders and at the ends of the type.
    for key in (lowest_key(storage), highest_key(storage)):
        if truth_of_key(comparison, IS_EQUAL, key) != (low[0] <= key <= high[0]):
            return False
    if low[0] <= high[0]:
        for key in (low[0], high[0]):
            if truth_of_key(comparison, IS_EQUAL, key) != TRUE:
                return False
        if low[0] > lowest_key(storage):
            if truth_of_key(comparison, IS_EQUAL, low[0] - 1) != FALSE:
                return False
        if high[0] < highest_key(storage):
            if truth_of_key(comparison, IS_EQUAL, high[0] + 1) != FALSE:
                return False
    return True


cdef void set_bounds(kernel_range* bounds, int storage, int java_type, int64_t low, int64_t high) noexcept:
    cdef int64_t nan = highest_key(storage), infinite = nan - 1
    bounds.low, bounds.high = low, high
    if storage not in (FLOAT_VALUES, HALF_VALUES, DOUBLE_VALUES):
        return
    if low > high or low == nan:
        bounds.real_low, bounds.real_high = 1.0, 0.0
    else:
        bounds.real_low = typed_value(storage, java_type, low).payload.real
        bounds.real_high = typed_value(storage, java_type, min(high, infinite)).payload.real
    bounds.nan = low <= nan <= high
    # Keys 0 and -1 are 0.0 and -0.0, which IEEE comparison does not tell apart.
    bounds.keyed = low <= high and (low == 0 or high == -1)
