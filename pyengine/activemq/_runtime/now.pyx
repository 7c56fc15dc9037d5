"""The time of a clock; see now.pxd."""

from libc.stdint cimport int64_t

import time

from pyengine.clock import SystemClock


cdef int64_t now_of(object clock) except? -1:
    cdef int64_t nanoseconds
    if type(clock) is SystemClock:
        nanoseconds = time.time_ns()
        return nanoseconds // 1000000
    return clock.now()
