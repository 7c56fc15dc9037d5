# cython: freethreading_compatible=True
"""See memory.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, malloc, realloc
from libc.string cimport memset

cdef extern from "lowlevel/huge_pages.h" nogil:
    void* pyengine_resize(void* block, size_t size) noexcept     # realloc
    void* pyengine_zeros(size_t count, size_t size) noexcept     # calloc

cdef bint failing = False    # whether a test counts
cdef int64_t count = 0       # allocations since it began to
cdef int64_t first = 0       # number of the first one that fails, from 1
cdef int64_t stop = 0        # number of the first one after it that does not, 0: none


def fail_allocations(int64_t first_one, int64_t stop_before=0):
    """Let the core's own allocations fail from number ``first_one`` on (1: the next one), up to before ``stop_before``
    (0: all of them); of ``first_one`` 0 none fails. Returns how many there were since the last call that began to
    count. For tests."""
    global failing, count, first, stop
    cdef int64_t counted = count
    failing = first_one > 0
    count = 0
    first = first_one
    stop = stop_before
    return counted


cdef bint fails() noexcept nogil:
    global count
    count += 1
    return count >= first and (stop == 0 or count < stop)


cdef void* try_allocate(size_t size) noexcept nogil:
    if failing and fails():
        return NULL
    return malloc(size if size else 1)


cdef void* try_allocate_zeros(size_t count, size_t size) noexcept nogil:
    if failing and fails():
        return NULL
    return calloc(count if count else 1, size)


cdef void* try_resize(void* block, size_t size) noexcept nogil:
    if failing and fails():
        return NULL
    return realloc(block, size if size else 1)


cdef void* try_resize_sparse(void* block, size_t size) noexcept nogil:
    if failing and fails():
        return NULL
    return pyengine_resize(block, size if size else 1)


cdef void* allocate(size_t size) except NULL:
    cdef void* block = try_allocate(size)
    if block == NULL:
        raise MemoryError()
    return block


cdef void* allocate_zeros(size_t count, size_t size) except NULL:
    cdef void* block = try_allocate_zeros(count, size)
    if block == NULL:
        raise MemoryError()
    return block


cdef void* allocate_sparse_zeros(size_t size) except NULL:
    cdef void* block = NULL if failing and fails() else pyengine_zeros(1, size if size else 1)
    if block == NULL:
        raise MemoryError()
    return block


cdef void* resize(void* block, size_t size) except NULL:
    cdef void* resized = try_resize(block, size)
    if resized == NULL:
        raise MemoryError()
    return resized


cdef void* resize_zeros(void* block, size_t old, size_t size) except NULL:
    cdef void* resized = resize(block, size)
    memset(<char*> resized + old, 0, size - old)
    return resized
