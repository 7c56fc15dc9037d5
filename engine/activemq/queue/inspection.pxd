"""inspection: questions about a queue: consumers, held messages and reasons, counters. No answer changes later
dispatch.
"""

from pyengine._engine.activemq.queue.rounds cimport Rounds


cdef class Inspection(Rounds):
    pass
