# cython: freethreading_compatible=True
"""See column_arithmetic.pxd."""

from libc.math cimport fmod
from libc.stdint cimport int64_t, uint16_t

from pyengine._engine.columns.column_views cimport HALF_VALUES, width_of
from pyengine._engine.columns.kernels cimport kernel_float_of_half, kernel_load_bits
from pyengine._engine.java.value cimport REMAINDER_OF


cdef void load(
    const Column* column, int64_t row, int64_t rows, int64_t ahead, const kernel_table* kernels, Vector* into
) noexcept nogil:
    cdef const void* values = <const char*> column.values + row * width_of(column.storage)
    cdef int64_t i
    if column.storage == HALF_VALUES:
        for i in range(rows):
            (<double*> into.values)[i] = kernel_float_of_half((<const uint16_t*> values)[i])
    else:
        kernels.widen[column.storage](values, rows, ahead, into.values)
    into.nulls = column.validity != NULL
    if into.nulls:
        kernel_load_bits(column.validity, column.validity_start + row, rows, into.valid)


cdef void fill(const VectorStep* step, int64_t rows, Vector* into) noexcept nogil:
    cdef int64_t i
    into.nulls = False
    for i in range(rows):
        if step.kind == REALS:
            (<double*> into.values)[i] = step.real
        else:
            (<int64_t*> into.values)[i] = step.integer


cdef void merge(Vector* left, const Vector* right) noexcept nogil:
    """Null where either is."""
    cdef int i
    if not right.nulls:
        return
    for i in range(VECTOR_WORDS):
        left.valid[i] = left.valid[i] & right.valid[i] if left.nulls else right.valid[i]
    left.nulls = True


cdef void compute_vectors(
    const VectorStep* steps, int count, const VectorRows* of, Vector* stack
) noexcept nogil:
    cdef const VectorStep* step
    cdef const kernel_table* kernels = of.kernels
    cdef int64_t rows = of.rows
    cdef void* spare = <char*> of.memory + 8 * VECTOR_ROWS * HEIGHT
    cdef void* computed
    cdef int height = 0
    cdef int at
    cdef int64_t i
    cdef Vector* top
    for at in range(HEIGHT):
        stack[at].values = <char*> of.memory + 8 * VECTOR_ROWS * at
    for at in range(count):
        step = &steps[at]
        if step.operation == LOAD:
            load(of.columns[step.slot], of.row, rows, of.ahead, kernels, &stack[height])
            height += 1
            continue
        if step.operation == FILL:
            fill(step, rows, &stack[height])
            height += 1
            continue
        if step.operation == COMPUTE:
            height -= 1
        top = &stack[height - 1]
        if step.operation == TO_REAL:
            kernels.to_real(<const int64_t*> top.values, rows, <double*> spare)
        elif step.operation == OPPOSITE:
            kernels.opposite[step.kind](top.values, rows, spare)
        else:
            merge(top, &stack[height])
            if step.calculation == REMAINDER_OF:
                for i in range(rows):
                    (<double*> spare)[i] = fmod((<double*> top.values)[i], (<double*> stack[height].values)[i])
            else:
                kernels.compute[step.kind](step.calculation, top.values, stack[height].values, rows, spare)
        computed = spare
        spare = top.values
        top.values = computed
