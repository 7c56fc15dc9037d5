"""outbox: the broker's lock, and what a change made under it wants delivered afterwards.

A change runs with the lock held and posts its deliveries; they are made in order once the lock is free, by one thread
at a time. So a callee may call the broker again, and order holds over all threads.

Invariants: ``depth`` is how many parts of the present change have begun, and above 0 only with the lock held; what is
in ``posted`` is called in order, by one thread at a time; ``gathered`` and ``unasked`` are the ``gatherer``'s alone.
"""

from libc.stdint cimport int64_t

from pyengine.activemq._runtime.reentrant_lock cimport ReentrantLock


cdef class Outbox:
    cdef readonly ReentrantLock lock
    cdef readonly int depth
    cdef readonly object posted               # deque of (call, argument)
    cdef readonly object handed_over          # deque of arguments for ``answered``
    cdef object units                         # or None
    cdef object later
    cdef object answered
    cdef bint delivering
    cdef unsigned long gatherer               # the thread between ``gather`` and ``settle``, 0: none
    cdef int64_t gathered, unasked            # its last units: with a caller that waits, and without; 0: none

    cpdef bint begin(self, bint wait=*) except -1
    cpdef leave(self, bint wait=*)
    cpdef gather(self)
    cpdef settle(self)
    cdef int deliver(self, int64_t* unit) except -1
    cdef int take_over(self) except -1
    cdef int64_t answer(self, object answer) except -1
    cdef int keep(self, int64_t unit, bint wait) except -1
