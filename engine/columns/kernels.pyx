# cython: freethreading_compatible=True
"""See kernels.pxd."""


cdef extern from "columns/kernel_loops.h" nogil:
    const kernel_table* kernel_copy(int rank, const char** name) noexcept


cdef const char* chosen_name = NULL
cdef const kernel_table* chosen = kernel_copy(0, &chosen_name)


cdef const kernel_table* best_kernels() noexcept nogil:
    return chosen


def use_kernels(int rank):
    """Choose the copy of the loops by rank, best first; return its name, or None if this processor has no such copy.

    For tests and measurements: all copies give the same answers.
    """
    global chosen, chosen_name
    cdef const char* name = NULL
    cdef const kernel_table* copy = kernel_copy(rank, &name)
    if copy == NULL:
        return None
    chosen, chosen_name = copy, name
    return (<bytes> name).decode()
