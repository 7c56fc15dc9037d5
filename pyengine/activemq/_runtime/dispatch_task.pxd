"""dispatch_task: the dispatch task of one connection (broker.TransportConnection, its taskRunner).

Invariants: ``asked`` is set while the worker has been asked to run and has not looked at ``waiting`` for the last time.
Dispatches reach their sessions in the order in which they were taken.
"""

from pyengine.activemq._runtime.arrivals cimport Arrivals
from pyengine.activemq._runtime.reentrant_lock cimport ReentrantLock
from pyengine.activemq._runtime.route cimport Route


cdef class DispatchTask(Route):
    cdef object clock
    cdef object name
    cdef object dispatch
    cdef Arrivals arrivals                    # the same, if it is one and its sessions may keep dispatches; or None
    cdef object dispatch_all
    cdef object acknowledge
    cdef object waiting                       # deque of dispatches
    cdef ReentrantLock lock
    cdef bint asked
    cdef bint closed
    cdef object worker                        # a clock's Worker, or None: none was needed yet

    cdef int ask(self) except -1
