"""now: the time of a clock, without a call of Python where it is the system's."""

from libc.stdint cimport int64_t


cdef int64_t now_of(object clock) except? -1  # ms since 1970
