"""memory: where the rooms of the core take the memory of their own arrays, which libc's ``free`` gives back.

``allocate``, ``allocate_zeros``, ``resize`` and ``resize_zeros`` raise MemoryError; of what they are given nothing has
changed then. ``try_allocate``, ``try_allocate_zeros`` and ``try_resize`` return NULL then, for callers without the GIL.
None returns NULL for a size of 0. ``fail_allocations`` of memory.pyx lets the k-th allocation fail, for tests.
"""

cdef void* allocate(size_t size) except NULL
cdef void* allocate_zeros(size_t count, size_t size) except NULL
cdef void* resize(void* block, size_t size) except NULL
cdef void* resize_zeros(void* block, size_t old, size_t size) except NULL        # bytes from ``old`` on are zero

cdef void* try_allocate(size_t size) noexcept nogil
cdef void* try_allocate_zeros(size_t count, size_t size) noexcept nogil
cdef void* try_resize(void* block, size_t size) noexcept nogil

# Memory of which little is read at a time: the system is asked for large pages where it knows them.
cdef void* allocate_sparse_zeros(size_t size) except NULL
cdef void* try_resize_sparse(void* block, size_t size) noexcept nogil
