"""New numbers for old ones; see renumbering.pxd."""

from libc.stdint cimport int32_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate_zeros


cdef class Numbering:
    """Internal to snapshots; see renumbering.pxd."""

    def __cinit__(self, int32_t size):
        self.at = <int32_t*> allocate_zeros(size + 1, sizeof(int32_t))      # new number + 1
        self.size = size

    def __dealloc__(self):
        free(self.at)

    def __reduce__(self):
        raise TypeError("a Numbering cannot be pickled")

    cdef int32_t see(self, int32_t old) noexcept:
        if self.at[old] == 0:
            self.used += 1
            self.at[old] = self.used
        return self.at[old] - 1

    cdef int sort(self) except -1:
        cdef int32_t old
        self.used = 0
        for old in range(self.size):
            if self.at[old]:
                self.used += 1
                self.at[old] = self.used
        return 0
