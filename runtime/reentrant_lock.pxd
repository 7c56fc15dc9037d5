"""reentrant_lock: a lock that the thread that has it may take again, for what is locked at every message.

Its fields change under the interpreter's lock only, and so no lock of the system is touched unless a thread must wait.
It is as fair as threading.RLock: whoever comes first after a release has it.

Invariants: ``depth`` is above 0 exactly while ``owner`` has it. ``gate`` is shut, but for one of those who wait and may
look again (``ajar``).
"""


cdef class ReentrantLock:
    cdef unsigned long owner
    cdef readonly int depth                   # how often its thread took it, 0: it is free
    cdef int waiting                          # threads at the gate
    cdef bint ajar
    cdef object gate                          # a threading.Lock

    cdef bint take(self, bint wait) except -1     # False: another thread has it, and this one does not wait
    cdef int give_back(self) except -1
    cdef int wait_for(self) except -1
    cdef int check_owned(self) except -1
