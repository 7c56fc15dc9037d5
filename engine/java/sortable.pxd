"""sortable: integers in the order of Double.compareTo and Float.compareTo; see sortable.h."""

from libc.stdint cimport int32_t, int64_t


cdef extern from "java/sortable.h" nogil:
    int64_t double_to_sortable_long(double value) noexcept
    double sortable_long_to_double(int64_t sortable) noexcept
    int32_t float_to_sortable_int(float value) noexcept
    float sortable_int_to_float(int32_t sortable) noexcept
