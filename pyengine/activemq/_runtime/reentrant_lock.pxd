"""reentrant_lock: a lock that the thread that has it may take again, for what is locked at every message.

Its fields change under the interpreter's lock only, and so no lock of the system is touched unless a thread must wait.
It is as fair as threading.RLock: the first thread that asks after a release has it. A signal does not end the wait:
what has begun with the lock must be able to take it again, so Ctrl-C is heard when it is taken.

Invariants: ``depth`` is above 0 exactly while ``owner`` has it. ``gate`` is shut, except for one waiting thread, which
may look again (``ajar``).
"""


from cpython.pythread cimport PyThread_type_lock


cdef class ReentrantLock:
    cdef unsigned long owner
    cdef readonly int depth                   # how often its thread took it, 0: it is free
    cdef int waiting                          # threads at the gate
    cdef bint ajar
    cdef PyThread_type_lock gate

    cdef bint take(self, bint wait) noexcept      # False: another thread has it, and this one does not wait
    cdef void give_back(self) noexcept
    cdef void wait_for(self) noexcept
    cdef int check_owned(self) except -1
