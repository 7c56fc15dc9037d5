"""inspection: what a queue says of itself: who is there, what waits and why, what it counted. No answer changes what
happens next.
"""

from pyengine._engine.activemq.queue.rounds cimport Rounds


cdef class Inspection(Rounds):
    pass
