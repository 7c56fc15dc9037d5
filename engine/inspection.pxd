"""inspection: what a queue says of itself: who is there, what waits and why, what it counted. No answer changes what
happens next.
"""

from libc.stdint cimport int32_t

from pyengine._engine.rounds cimport Rounds


cdef class Inspection(Rounds):
    cdef tuple place_of(self, int32_t message)
