"""growing: an array of C structs that grows at its end while an index is built."""

from libc.stdint cimport int64_t


cdef class Growing:
    cdef char* items
    cdef int64_t size
    cdef int64_t room
    cdef int64_t width           # bytes of an item

    # ``count`` more items, zeroed: the first of them; valid until the next ones.
    cdef void* more(self, int64_t count) except NULL
    cdef void* keep(self) except NULL        # the memory, fitting, which the caller frees; nothing is left


cdef Growing growing(int64_t width)
