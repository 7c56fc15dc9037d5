"""A reentrant lock; see reentrant_lock.pxd."""

cimport cython

from cpython.pythread cimport (
    NOWAIT_LOCK, WAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock,
    PyThread_get_thread_ident, PyThread_release_lock)


@cython.final
cdef class ReentrantLock:
    """A lock as threading.RLock, also for a threading.Condition. ``with`` takes and releases it."""

    def __cinit__(self):
        self.gate = PyThread_allocate_lock()
        if self.gate == NULL:
            raise MemoryError()
        PyThread_acquire_lock(self.gate, NOWAIT_LOCK)

    def __dealloc__(self):
        if self.gate != NULL:
            PyThread_release_lock(self.gate)
            PyThread_free_lock(self.gate)

    cdef bint take(self, bint wait) noexcept:
        cdef unsigned long me = PyThread_get_thread_ident()
        if self.depth:
            if self.owner == me:
                self.depth += 1
                return True
            if not wait:
                return False
            self.wait_for()
        self.owner = me
        self.depth = 1
        return True

    cdef void wait_for(self) noexcept:
        self.waiting += 1
        while self.depth:
            with nogil:
                PyThread_acquire_lock(self.gate, WAIT_LOCK)
            self.ajar = False
        self.waiting -= 1

    cdef void give_back(self) noexcept:
        self.depth -= 1
        if self.depth == 0 and self.waiting and not self.ajar:
            self.ajar = True
            PyThread_release_lock(self.gate)

    cdef int check_owned(self) except -1:
        if not self.depth or self.owner != PyThread_get_thread_ident():
            raise RuntimeError("cannot release un-acquired lock")
        return 0

    def acquire(self, bint blocking=True):
        """Take it; False, and nothing is done, if another thread has it and ``blocking`` is False."""
        return self.take(blocking)

    def release(self):
        """Give it back once. Raises RuntimeError if the calling thread does not have it."""
        self.check_owned()
        self.give_back()

    def locked(self):
        """Whether any thread has it."""
        return self.depth != 0

    def __enter__(self):
        return self.take(True)

    def __exit__(self, kind, error, trace):
        self.release()

    def __reduce__(self):
        raise TypeError("a lock cannot be pickled")

    # What threading.Condition asks of a lock that may be taken more than once.

    def _is_owned(self):
        return self.depth != 0 and self.owner == PyThread_get_thread_ident()

    def _release_save(self):
        cdef int depth = self.depth
        self.check_owned()
        self.depth = 1
        self.give_back()
        return depth

    def _acquire_restore(self, int depth):
        self.take(True)
        self.depth = depth
