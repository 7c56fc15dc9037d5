# cython: freethreading_compatible=True
"""See constant_bounds.pxd."""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t

from pyengine._engine.java.comparison cimport compare
from pyengine._engine.java.sortable cimport double_to_sortable_long, sortable_long_to_double
from pyengine._engine.java.value cimport (
    DOUBLE, EXACT_TYPES, IS_EQUAL, IS_GREATER_OR_EQUAL, IS_LESS, IS_LESS_OR_EQUAL, LONG, TRUE, Scratch, Value,
)


cdef bint accepts(int relation, const Value* constant, bint real, int64_t key) noexcept nogil:
    """Long (or, if real, the Double of that sortable long) ``relation`` constant."""
    cdef Value value
    cdef Scratch scratch
    value.type = DOUBLE if real else LONG
    if real:
        value.payload.real = sortable_long_to_double(key)
    else:
        value.payload.integer = key
    return compare(relation, &value, constant, EXACT_TYPES, &scratch) == TRUE


cdef int64_t edge_of(int relation, const Value* constant, bint real, int64_t inside, int64_t outside) noexcept nogil:
    """The last accepted key between ``inside``, which is accepted, and ``outside``, which is not."""
    cdef int64_t step = 1 if inside < outside else -1
    cdef int64_t middle
    cdef int64_t guess = 0
    cdef double near = <double>constant.payload.integer
    cdef int i
    if accepts(relation, constant, real, outside):
        return outside
    if constant.type == DOUBLE:
        near = constant.payload.real
    if real:
        guess = double_to_sortable_long(near)
    elif constant.type != DOUBLE:
        guess = constant.payload.integer
    elif -1e15 < near < 1e15:
        guess = <int64_t>near
    # The edge is nearly always at the constant or next to it; the binary search below finds it anywhere.
    for i in range(-1, 2):
        middle = guess + i
        if min(inside, outside) < middle < max(inside, outside) and accepts(relation, constant, real, middle):
            if not accepts(relation, constant, real, middle + step):
                return middle
    while True:
        middle = (inside & outside) + ((inside ^ outside) >> 1)
        if middle == inside or middle == outside:
            break
        if accepts(relation, constant, real, middle):
            inside = middle
        else:
            outside = middle
    return inside


cdef void narrow_keys(int64_t* low, int64_t* high, int relation, const Value* constant, bint real) noexcept nogil:
    cdef int64_t least = double_to_sortable_long(-INFINITY) if real else INT64_MIN
    cdef int64_t most = double_to_sortable_long(NAN) if real else INT64_MAX
    cdef bint downward = relation == IS_LESS or relation == IS_LESS_OR_EQUAL
    if relation == IS_EQUAL:
        narrow_keys(low, high, IS_LESS_OR_EQUAL, constant, real)
        narrow_keys(low, high, IS_GREATER_OR_EQUAL, constant, real)
    elif not accepts(relation, constant, real, least if downward else most):
        low[0] = INT64_MAX
        high[0] = INT64_MIN
    elif downward:
        high[0] = min(high[0], edge_of(relation, constant, real, least, most))
    else:
        low[0] = max(low[0], edge_of(relation, constant, real, most, least))
