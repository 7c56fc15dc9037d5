# cython: freethreading_compatible=True
"""See partitions.pxd."""

from libc.math cimport ceil
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t
from libc.string cimport memchr

from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros
from pyengine._engine.selector.program cimport Leaf
from pyengine._engine.index.segment cimport MOST_BOUNDS, text_key
from pyengine._engine.java.sortable cimport double_to_sortable_long, sortable_long_to_double

import numpy

cdef enum:
    BOUNDS = 96


cdef bint beginning(const Leaf* leaf, int64_t* low, int64_t* high) noexcept nogil:
    cdef const uint8_t* bytes = <const uint8_t*> leaf.constant.payload.text
    cdef uint32_t length = min(leaf.constant.length, 8)
    low[0] = text_key(bytes, length, 0)
    high[0] = text_key(bytes, length, 0xFF)
    return leaf.constant.length <= 8 and memchr(bytes, 0, length) == NULL


cdef bint holds_no_integer(const Leaf* leaf) noexcept nogil:
    """Whether the doubles of an interval, of which there are some, have no integer up to EXACT between them."""
    cdef double least = sortable_long_to_double(leaf.real_low)
    if leaf.real_low > leaf.real_high or not -<double> EXACT <= least:
        return False
    return least > EXACT or double_to_sortable_long(<double> <int64_t> ceil(least)) > leaf.real_high


cdef bint one_interval(const Leaf* leaf) noexcept nogil:
    cdef int64_t low = max(leaf.low, -EXACT), high = min(leaf.high, EXACT)
    if low > high:
        return holds_no_integer(leaf)
    return (
        leaf.real_low <= double_to_sortable_long(<double> low)
        and double_to_sortable_long(<double> high) <= leaf.real_high
        and (low == -EXACT or double_to_sortable_long(<double> (low - 1)) < leaf.real_low)
        and (high == EXACT or leaf.real_high < double_to_sortable_long(<double> (high + 1))))


cdef object without_repetition(object ascending):
    cdef object keep = numpy.ones(len(ascending), bool)
    numpy.not_equal(ascending[1:], ascending[:-1], out=keep[1:])
    return ascending[keep]


cdef object distinct_of(object values):
    return without_repetition(numpy.sort(values))


cdef int64_t* bounds_of(object ends, int* count) except NULL:
    cdef int64_t* bounds
    cdef int index
    every = numpy.sort(ends)
    found = without_repetition(every)
    if len(found) > BOUNDS:
        # By frequency, so that every stretch cuts through about as many intervals.
        found = without_repetition(every[(numpy.arange(BOUNDS) * len(every)) // BOUNDS])
    count[0] = <int> len(found)
    bounds = <int64_t*> allocate_sparse_zeros((MOST_BOUNDS + MOST_BOUNDS // 8) * sizeof(int64_t))
    for index in range(MOST_BOUNDS):
        bounds[index] = found[index] if index < count[0] else INT64_MAX
    for index in range(MOST_BOUNDS // 8):
        bounds[MOST_BOUNDS + index] = bounds[8 * index + 7]
    return bounds
