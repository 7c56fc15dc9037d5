"""partitions: the number line and the order of texts, cut where the intervals of many leaves end.

A key is the sortable long of a double, or the first eight bytes of a text (segment.text_key).
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t

from pyengine._engine.selector.program cimport Leaf
from pyengine._engine.index.requirements cimport MAY_BE_FALSE, MAY_BE_TRUE
from pyengine._engine.java.sortable cimport double_to_sortable_long


cdef extern from *:
    """
    #define PYENGINE_EXACT ((int64_t)1 << 53)
    """
    const int64_t EXACT "PYENGINE_EXACT"     # integers beyond it share doubles


# Bounds of stretches at ends of intervals, by frequency if there are too many, as segment.Table has them: calloc'ed.
cdef int64_t* bounds_of(object ends, int* count) except NULL     # of an array
cdef object distinct_of(object values)       # ascending; numpy.unique imports 20 ms of modules on its first use
# The keys of texts that begin as a PREFIX says; whether no other text has one of them.
cdef bint beginning(const Leaf* leaf, int64_t* low, int64_t* high) noexcept nogil


cdef inline int64_t key_of(int64_t integer) noexcept nogil:
    """The key of an integer; beyond all keys where no double is the integer for sure."""
    if integer < -EXACT:
        return INT64_MIN
    return INT64_MAX if integer > EXACT else double_to_sortable_long(<double> integer)


cdef inline int covered(int64_t least, int64_t most, int64_t low, int64_t high) noexcept nogil:
    """requirements.MAY_*: of an interval of keys on keys from ``low`` to ``high``."""
    if least > most or most < low or least > high:
        return MAY_BE_FALSE
    return MAY_BE_TRUE if least <= low and high <= most else MAY_BE_FALSE | MAY_BE_TRUE


# Whether a NUMBER leaf is TRUE on these numbers exactly where their key lies in [real_low, real_high].
cdef bint one_interval(const Leaf* leaf) noexcept nogil


cdef inline int interval_truths(const Leaf* leaf, int64_t low, int64_t high) noexcept nogil:
    """The same of a NUMBER leaf, on doubles, and integers up to EXACT, with these keys."""
    cdef int truths = covered(leaf.real_low, leaf.real_high, low, high)
    if leaf.low > leaf.high or leaf.low > EXACT or leaf.high < -EXACT:
        return truths | MAY_BE_FALSE
    return truths | covered(key_of(leaf.low), key_of(leaf.high), low, high)
